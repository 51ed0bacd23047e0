//! Inputs of agents: files that their lead has read, by the SHA-256 of their content.
//!
//! An agent opens no file of its own. The lead sends contents in parts, before the setup; a
//! complete content is verified by its hash.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use data_encoding::{BASE64, HEXLOWER};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::message::ToAgent;

/// Bytes of a part.
const PART: usize = 256 << 10;
/// Most bytes of one content: more than the questions of any run take.
const LENGTH_MAX: u64 = 4 << 30;

/// Contents by their hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs(BTreeMap<String, Arc<Vec<u8>>>);

/// A part of a content.
#[derive(Debug, Serialize, Deserialize)]
pub struct Part {
    /// SHA-256 of the whole, in hexadecimal digits.
    hash: String,
    /// Bytes of the whole.
    length: u64,
    /// In Base64.
    octets: String,
}

impl Inputs {
    /// Adds a content, and returns its hash.
    pub fn add(&mut self, content: Arc<Vec<u8>>) -> String {
        let hash = hash(&content);
        self.0.insert(hash.clone(), content);
        hash
    }

    /// The content of this hash.
    pub fn get(&self, hash: &str) -> Option<&Arc<Vec<u8>>> {
        self.0.get(hash)
    }

    /// The hashes of all contents.
    pub fn hashes(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// Bytes of all contents together.
    pub fn size(&self) -> usize {
        self.0.values().map(|content| content.len()).sum()
    }

    /// The messages with all contents except those of these hashes.
    pub fn messages(&self, known: &BTreeSet<String>) -> impl Iterator<Item = ToAgent> {
        let missing = self.0.iter().filter(|(hash, _)| !known.contains(*hash));
        missing.flat_map(|(hash, content)| {
            let length = content.len() as u64;
            // An empty content is sent too.
            let parts = content
                .chunks(PART)
                .chain(content.is_empty().then_some(&[][..]));
            parts.map(move |octets| {
                ToAgent::Input(Part {
                    hash: hash.clone(),
                    length,
                    octets: BASE64.encode(octets),
                })
            })
        })
    }
}

/// Contents as they arrive, some of them incomplete.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    whole: Inputs,
    /// Incomplete contents.
    coming: BTreeMap<String, Vec<u8>>,
}

impl Incoming {
    /// Takes the next part of a content.
    ///
    /// # Errors
    /// The part is invalid, or the whole does not match its hash.
    pub(crate) fn take(&mut self, part: Part) -> Result<(), String> {
        let octets = BASE64.decode(part.octets.as_bytes());
        let octets = octets.map_err(|error| format!("a part of an input: {error}"))?;
        if part.length > LENGTH_MAX {
            return Err(format!("an input of {} bytes is too long", part.length));
        }
        let content = self.coming.entry(part.hash.clone()).or_default();
        content.extend_from_slice(&octets);
        if (content.len() as u64) < part.length {
            return Ok(());
        }
        let content = self.coming.remove(&part.hash).unwrap_or_default();
        if self.whole.add(Arc::new(content)) != part.hash {
            return Err(format!("the input {} has come damaged", part.hash));
        }
        Ok(())
    }

    /// The complete contents.
    pub(crate) fn whole(&self) -> Inputs {
        self.whole.clone()
    }

    /// Drops all contents.
    pub(crate) fn forget(&mut self) {
        *self = Incoming::default();
    }
}

/// SHA-256 of a content, in hexadecimal digits.
pub fn hash(content: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The inputs received from the messages of these inputs, each of which `change` may alter.
    fn carried(inputs: &Inputs, change: impl Fn(usize, &mut Part)) -> Result<Inputs, String> {
        let mut incoming = Incoming::default();
        for (number, message) in inputs.messages(&BTreeSet::new()).enumerate() {
            let ToAgent::Input(mut part) = message else {
                panic!("{message:?}");
            };
            change(number, &mut part);
            incoming.take(part)?;
        }
        Ok(incoming.whole())
    }

    #[test]
    fn inputs_arrive_as_they_are_or_not_at_all() {
        let mut inputs = Inputs::default();
        let long: Vec<u8> = (0..600_000_u32).map(|it| (it % 251) as u8).collect();
        let hashes = [&long[..], b"", b"short"].map(|it| inputs.add(Arc::new(it.to_vec())));
        let parts = |known: &[&String]| {
            let known = known.iter().map(|it| (*it).clone()).collect();
            inputs.messages(&known).count()
        };
        assert_eq!(parts(&[]), 3 + 1 + 1);
        assert_eq!(parts(&[&hashes[0]]), 1 + 1);
        assert_eq!(parts(&hashes.each_ref()), 0);
        let arrived = carried(&inputs, |_, _| {}).unwrap();
        assert_eq!(arrived, inputs);
        assert_eq!(arrived.get(&hashes[2]).unwrap().as_slice(), b"short");
        for number in 0..5 {
            let flip = |at: usize, part: &mut Part| {
                if at == number {
                    part.octets = match part.octets.strip_prefix('A') {
                        Some(rest) => format!("B{rest}"),
                        None => format!("A{}", part.octets.get(1..).unwrap_or("AAA")),
                    };
                }
            };
            assert!(carried(&inputs, flip).is_err(), "part {number}");
        }
        let endless = carried(&inputs, |_, part| part.length = u64::MAX);
        assert!(endless.unwrap_err().contains("too long"));
    }
}
