//! Counts by a number or a name that the peer chose: HTTP statuses, error codes, TLS alerts.
//!
//! A peer may send any of 2^62 error codes, so a map of them is bounded. Which codes it names does
//! not depend on the order of recording or merging: always the smallest that occurred, so that
//! merging stays exact and associative.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Most codes that a map distinguishes. The registries of HTTP and QUIC have fewer; further codes
/// are counted together.
pub const CODES_MAX: usize = 64;
const OTHER: &str = "other";

/// Counts by code: of the [`CODES_MAX`] smallest codes one each, of all others together.
///
/// In JSON a map from the code in decimal to its count, without zeroes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Codes {
    /// Ascending by code, no count is zero.
    by_code: Vec<(u64, u64)>,
    other: u64,
}

impl Codes {
    /// Counts one event. O(log n); allocates only for a code that is new to the map.
    pub fn record(&mut self, code: u64) {
        self.record_many(code, 1);
    }

    /// Counts `times` events of one code.
    pub fn record_many(&mut self, code: u64, times: u64) {
        if times == 0 {
            return;
        }
        match self.by_code.binary_search_by_key(&code, |entry| entry.0) {
            Ok(position) => self.by_code[position].1 += times,
            // A code that was once left out has `CODES_MAX` smaller ones for good, so none is
            // partly in its own entry and partly in `other`.
            Err(CODES_MAX) => self.other += times,
            Err(position) => {
                if self.by_code.len() == CODES_MAX {
                    self.other += self.by_code.pop().map_or(0, |(_, count)| count);
                }
                self.by_code.insert(position, (code, times));
            }
        }
    }

    /// Adds everything counted in `other`.
    pub fn add(&mut self, other: &Self) {
        for &(code, count) in &other.by_code {
            self.record_many(code, count);
        }
        self.other += other.other;
    }

    /// Events of whatever code.
    pub fn total(&self) -> u64 {
        self.by_code.iter().map(|(_, count)| count).sum::<u64>() + self.other
    }

    /// Events of `code`; 0 if it is one of those counted together.
    pub fn get(&self, code: u64) -> u64 {
        let found = self.by_code.binary_search_by_key(&code, |entry| entry.0);
        found.map_or(0, |position| self.by_code[position].1)
    }

    /// Code and count of every event, ascending; last and without code those counted together.
    pub fn named(&self) -> impl Iterator<Item = (Option<u64>, u64)> + '_ {
        let known = self
            .by_code
            .iter()
            .map(|&(code, count)| (Some(code), count));
        let all = known.chain(std::iter::once((None, self.other)));
        all.filter(|(_, count)| *count > 0)
    }
}

impl Serialize for Codes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (code, count) in self.named() {
            match code {
                Some(code) => map.serialize_entry(&code, &count)?,
                None => map.serialize_entry(OTHER, &count)?,
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Codes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = BTreeMap::<String, u64>::deserialize(deserializer)?;
        read(&map).map_err(serde::de::Error::custom)
    }
}

fn read(map: &BTreeMap<String, u64>) -> Result<Codes, String> {
    let mut codes = Codes::default();
    for (name, &count) in map.iter().filter(|(name, _)| *name != OTHER) {
        let code = name
            .parse()
            .ok()
            .filter(|code: &u64| code.to_string() == *name);
        let code = code.ok_or_else(|| format!("`{name}` is not a code in decimal"))?;
        codes.record_many(code, count);
    }
    let other = map.get(OTHER).copied().unwrap_or(0);
    // Merging relies on it: only a full map may have left codes out.
    if codes.other > 0 || (other > 0 && codes.by_code.len() < CODES_MAX) {
        return Err(format!(
            "counts by code name at most {CODES_MAX} codes, and `{OTHER}` only beside as many"
        ));
    }
    codes.other = other;
    Ok(codes)
}

impl JsonSchema for Codes {
    fn schema_name() -> Cow<'static, str> {
        "Codes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "Counts by code in decimal, zero counts left out; of the 64 smallest \
                codes one each, of all others together in `other`.",
            "propertyNames": { "pattern": "^(0|[1-9][0-9]{0,19}|other)$" },
            "additionalProperties": { "type": "integer", "minimum": 0 },
        })
    }
}

/// Counts by a name from a fixed list, which bounds their number: that of a TLS alert in the IANA
/// registry, such as `handshake_failure`, or of a rule that the target broke. In JSON a map.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Names(BTreeMap<String, u64>);

impl Names {
    /// Counts one event; allocates only for a name that is new to the map.
    pub fn record(&mut self, name: &str) {
        match self.0.get_mut(name) {
            Some(count) => *count += 1,
            None => {
                self.0.insert(name.to_owned(), 1);
            }
        }
    }

    /// Adds everything counted in `other`.
    pub fn add(&mut self, other: &Self) {
        for (name, count) in &other.0 {
            *self.0.entry(name.clone()).or_default() += count;
        }
    }

    /// True if nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Events of whatever name.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Events of that name.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Names and counts, ascending by name.
    pub fn named(&self) -> impl Iterator<Item = (&str, u64)> + '_ {
        self.0.iter().map(|(name, &count)| (name.as_str(), count))
    }
}
