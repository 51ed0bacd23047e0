//! Which instances of a server have responded, by the name that each gives itself (NSID, RFC 5001):
//! whether what divides the load among them does.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Instances that are told apart; a service with more is counted, not named. Anycast services have
/// some hundreds.
const INSTANCES_MAX: usize = 1_024;
/// Octets of a name that are kept.
const NAME_OCTETS_MAX: usize = 64;

/// Responses by the instance that sent them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Instances {
    /// Responses of each instance, by its name; one that is no text is written in hexadecimal.
    pub by_name: BTreeMap<String, u64>,
    /// Responses that name no instance.
    pub unnamed: u64,
    /// Responses of further instances.
    pub others: u64,
}

impl Instances {
    /// Counts a response with that name.
    pub fn count(&mut self, name: Option<&[u8]>) {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            self.unnamed += 1;
            return;
        };
        let name = written(&name[..name.len().min(NAME_OCTETS_MAX)]);
        self.add(name, 1);
    }

    fn add(&mut self, name: String, responses: u64) {
        let is_full = self.by_name.len() >= INSTANCES_MAX;
        match self.by_name.get_mut(&name) {
            Some(own) => *own += responses,
            None if is_full => self.others += responses,
            None => drop(self.by_name.insert(name, responses)),
        }
    }

    /// Adds what another has counted.
    pub fn merge(&mut self, other: Instances) {
        for (name, responses) in other.by_name {
            self.add(name, responses);
        }
        self.unnamed += other.unnamed;
        self.others += other.others;
    }

    /// All responses that were looked at.
    pub fn total(&self) -> u64 {
        self.by_name.values().sum::<u64>() + self.unnamed + self.others
    }
}

/// A name for people.
fn written(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => name.iter().map(|octet| format!("{octet:02x}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_counted_by_instance_and_more_than_can_be_named_are_counted_too() {
        let mut instances = Instances::default();
        for name in [
            Some(&b"ns1"[..]),
            Some(b"ns2"),
            Some(b"ns1"),
            Some(b"\xff\x00"),
            Some(b""),
            None,
        ] {
            instances.count(name);
        }
        let named = [("ff00", 1), ("ns1", 2), ("ns2", 1)].map(|(it, of)| (it.to_owned(), of));
        assert_eq!(instances.by_name, BTreeMap::from(named));
        assert_eq!((instances.unnamed, instances.others), (2, 0));
        for number in 0..2 * INSTANCES_MAX {
            instances.count(Some(number.to_string().as_bytes()));
        }
        assert_eq!(instances.by_name.len(), INSTANCES_MAX);
        assert_eq!(instances.total(), 6 + 2 * INSTANCES_MAX as u64);
        let once = instances.clone();
        instances.merge(once);
        assert_eq!(instances.total(), 2 * (6 + 2 * INSTANCES_MAX as u64));
    }
}
