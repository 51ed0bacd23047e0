//! Responses by RCODE; in JSON a map from the RCODE's IANA name to its count, without zeroes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Names of RCODE 0 to 23 in the IANA registry (RFC 6895, section 2.3); 12 to 15 are unassigned.
const NAMES: [&str; 24] = [
    "NOERROR",
    "FORMERR",
    "SERVFAIL",
    "NXDOMAIN",
    "NOTIMP",
    "REFUSED",
    "YXDOMAIN",
    "YXRRSET",
    "NXRRSET",
    "NOTAUTH",
    "NOTZONE",
    "DSOTYPENI",
    "RCODE12",
    "RCODE13",
    "RCODE14",
    "RCODE15",
    "BADVERS",
    "BADKEY",
    "BADTIME",
    "BADMODE",
    "BADNAME",
    "BADALG",
    "BADTRUNC",
    "BADCOOKIE",
];
const OTHER: &str = "other";

/// Responses by RCODE; index is the RCODE, everything from 24 up is in `other`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rcodes {
    /// Counts of RCODE 0 to 23.
    pub by_rcode: [u64; 24],
    /// Counts of RCODEs from 24 up.
    pub other: u64,
}

/// The name of an RCODE; `other` from 24 up.
pub fn rcode_name(rcode: u16) -> &'static str {
    NAMES.get(usize::from(rcode)).copied().unwrap_or(OTHER)
}

impl Rcodes {
    /// Counts one response. O(1), does not allocate.
    #[inline]
    pub fn record(&mut self, rcode: u16) {
        self.record_many(rcode, 1);
    }

    /// Counts responses. O(1), does not allocate.
    #[inline]
    pub fn record_many(&mut self, rcode: u16, responses: u64) {
        match self.by_rcode.get_mut(usize::from(rcode)) {
            Some(count) => *count += responses,
            None => self.other += responses,
        }
    }

    /// Adds everything counted in `other`.
    pub fn add(&mut self, other: &Self) {
        for (sum, count) in self.by_rcode.iter_mut().zip(&other.by_rcode) {
            *sum += count;
        }
        self.other += other.other;
    }

    /// Responses with one of these RCODEs; one from 24 up is never among them.
    pub fn of(&self, rcodes: &[u16]) -> u64 {
        let by_rcode = self.by_rcode.iter().enumerate();
        let wanted = by_rcode.filter(|(rcode, _)| rcodes.contains(&(*rcode as u16)));
        wanted.map(|(_, count)| count).sum()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        *self == Rcodes::default()
    }

    /// Responses with whatever RCODE.
    pub fn total(&self) -> u64 {
        self.by_rcode.iter().sum::<u64>() + self.other
    }

    /// Names and counts of the RCODEs that occurred, ascending, `other` last.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let known = NAMES.iter().copied().zip(self.by_rcode);
        let all = known.chain(std::iter::once((OTHER, self.other)));
        all.filter(|(_, count)| *count > 0)
    }
}

impl Serialize for Rcodes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, count) in self.named() {
            map.serialize_entry(name, &count)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Rcodes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = BTreeMap::<String, u64>::deserialize(deserializer)?;
        let mut rcodes = Rcodes::default();
        for (name, count) in map {
            match NAMES.iter().position(|known| *known == name) {
                Some(rcode) => rcodes.by_rcode[rcode] = count,
                None if name == OTHER => rcodes.other = count,
                None => {
                    let message = format!("`{name}` is not the name of an RCODE");
                    return Err(serde::de::Error::custom(message));
                }
            }
        }
        Ok(rcodes)
    }
}

impl JsonSchema for Rcodes {
    fn schema_name() -> Cow<'static, str> {
        "Rcodes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = NAMES.into_iter().chain([OTHER]).collect();
        json_schema!({
            "type": "object",
            "description": "Responses by RCODE, zero counts left out; `other` from RCODE 24 up.",
            "propertyNames": { "enum": names },
            "additionalProperties": { "type": "integer", "minimum": 0 },
        })
    }
}
