//! Files that a run reads, by the SHA-256 of what is in them: a part asks its parent for those that
//! it does not have yet, and gets each in pieces.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::wire::Message;

/// Octets of a piece.
pub(super) const PIECE_OCTETS: usize = 256 << 10;
/// How long the next piece may take to come.
const PIECE_MAX: Duration = Duration::from_secs(60);

/// SHA-256 as hexadecimal digits.
pub(super) type Hash = String;

/// A file as it is named before it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileName {
    /// The path by which the run reads it.
    pub path: String,
    /// Of what is in it, as hexadecimal digits.
    pub sha256: String,
    /// How long it is.
    pub octets: u64,
}

/// What files hold, by its hash.
#[derive(Clone, Debug, Default)]
pub struct Files(BTreeMap<Hash, Arc<[u8]>>);

impl Files {
    /// Keeps what a file holds.
    pub fn keep(&mut self, path: &str, octets: Arc<[u8]>) -> FileName {
        let name = FileName {
            path: path.to_owned(),
            sha256: hash(&octets),
            octets: octets.len() as u64,
        };
        self.0.insert(name.sha256.clone(), octets);
        name
    }

    /// What the file with that hash holds.
    pub fn get(&self, sha256: &str) -> Option<&Arc<[u8]>> {
        self.0.get(sha256)
    }

    /// What the file with that hash holds, in pieces that a part can be told; none of one that is
    /// not here.
    pub fn pieces<'a>(&'a self, sha256: &'a str) -> impl Iterator<Item = Vec<u8>> + 'a {
        let octets = self.get(sha256);
        octets
            .into_iter()
            .flat_map(move |octets| pieces(sha256, octets))
    }

    /// Asks for those of these files that are not here, by `say`, waits until all have come, by
    /// `receive`, and forgets all others.
    ///
    /// # Errors
    /// One does not come, or is not what it was to be.
    pub fn complete(
        &mut self,
        names: &[FileName],
        say: impl FnOnce(&str, &str),
        mut receive: impl FnMut(Duration) -> Option<Message>,
    ) -> Result<(), String> {
        self.0
            .retain(|have, _| names.iter().any(|name| name.sha256 == *have));
        let mut missing: BTreeMap<&str, (&FileName, Vec<u8>)> = names
            .iter()
            .filter(|name| !self.0.contains_key(&name.sha256))
            .map(|name| (name.sha256.as_str(), (name, Vec::new())))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let wanted: BTreeSet<&&str> = missing.keys().collect();
        say("want", &serde_json::to_string(&wanted).unwrap_or_default());
        while let Some((_, (name, _))) = missing.first_key_value() {
            let path = &name.path;
            let message = receive(PIECE_MAX).ok_or_else(|| {
                let seconds = PIECE_MAX.as_secs();
                format!("{path}: nothing of it came for {seconds} s")
            })?;
            if message.word == "piece" {
                self.add(&mut missing, &message.about)?;
            }
        }
        Ok(())
    }

    /// Takes a piece: `HASH`, a line feed, octets.
    fn add(
        &mut self,
        missing: &mut BTreeMap<&str, (&FileName, Vec<u8>)>,
        about: &[u8],
    ) -> Result<(), String> {
        let end = about.iter().position(|octet| *octet == b'\n');
        let (sha256, piece) = about.split_at(end.ok_or("a piece of a file has no name")?);
        let sha256 = String::from_utf8_lossy(sha256).into_owned();
        let Some((name, octets)) = missing.get_mut(sha256.as_str()) else {
            return Err("a piece came of a file that nobody asked for".to_owned());
        };
        octets.extend_from_slice(&piece[1..]);
        let (path, whole) = (&name.path, name.octets);
        if (octets.len() as u64) < whole {
            return Ok(());
        }
        if octets.len() as u64 > whole || hash(octets) != name.sha256 {
            return Err(format!(
                "{path}: what came is not what was sent (SHA-256), so nothing was begun"
            ));
        }
        let octets = std::mem::take(octets);
        missing.remove(sha256.as_str());
        self.0.insert(sha256, octets.into());
        Ok(())
    }
}

/// A file in pieces, each as a part is told of it. One that is empty has a piece too.
pub(super) fn pieces<'a>(sha256: &'a str, octets: &'a [u8]) -> impl Iterator<Item = Vec<u8>> + 'a {
    let count = octets.len().div_ceil(PIECE_OCTETS).max(1);
    (0..count).map(move |number| {
        let from = number * PIECE_OCTETS;
        let to = octets.len().min(from + PIECE_OCTETS);
        [sha256.as_bytes(), b"\n", &octets[from..to]].concat()
    })
}

/// SHA-256 as hexadecimal digits.
pub fn hash(octets: &[u8]) -> String {
    let digest = Sha256::digest(octets);
    digest.iter().map(|octet| format!("{octet:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    use super::*;

    /// A part asks a parent for files, on a way that changes pieces so; how many were sent.
    fn ask(
        part: &mut Files,
        (parent, names): (&Files, &[FileName]),
        change: impl Fn(usize, &mut Vec<u8>),
    ) -> Result<usize, String> {
        let sent = RefCell::new(VecDeque::new());
        let say = |_: &str, wanted: &str| {
            let wanted: Vec<String> = serde_json::from_str(wanted).unwrap();
            for sha256 in &wanted {
                sent.borrow_mut()
                    .extend(pieces(sha256, parent.get(sha256).unwrap()));
            }
            let mut sent = sent.borrow_mut();
            let pieces = sent.iter_mut().enumerate();
            pieces.for_each(|(number, piece)| change(number, piece));
        };
        let count = RefCell::new(0);
        let receive = |_| {
            *count.borrow_mut() += 1;
            Some(Message {
                word: "piece".to_owned(),
                about: sent.borrow_mut().pop_front()?,
            })
        };
        part.complete(names, say, receive)?;
        Ok(count.into_inner())
    }

    #[test]
    fn files_come_whole_and_once() {
        let (mut parent, mut part) = (Files::default(), Files::default());
        let large: Vec<u8> = (0..PIECE_OCTETS * 3 + 7).map(|it| it as u8).collect();
        let names = [
            parent.keep("names.txt", large.clone().into()),
            parent.keep("same.txt", large.clone().into()),
            parent.keep("empty.txt", Arc::default()),
        ];
        let nothing = |_: usize, _: &mut Vec<u8>| {};
        assert_eq!(ask(&mut part, (&parent, &names), nothing), Ok(4 + 1));
        assert_eq!(part.get(&names[0].sha256).unwrap().as_ref(), large);
        assert_eq!(part.get(&names[2].sha256).unwrap().as_ref(), b"");
        // The next run has them already, and those of the last are not kept for ever.
        assert_eq!(ask(&mut part, (&parent, &names[..2]), nothing), Ok(0));
        assert_eq!(ask(&mut part, (&parent, &names[2..]), nothing), Ok(1));
    }

    #[test]
    fn a_file_that_came_to_harm_is_refused() {
        let mut parent = Files::default();
        let names = [parent.keep("names.txt", vec![7; PIECE_OCTETS * 2].into())];
        let refused = |change: fn(usize, &mut Vec<u8>)| {
            ask(&mut Files::default(), (&parent, &names), change).unwrap_err()
        };
        let flipped = refused(|number, piece| {
            if number == 1 {
                piece[1_000] ^= 1;
            }
        });
        assert!(
            flipped.starts_with("names.txt: what came is not"),
            "{flipped}"
        );
        let longer = refused(|_, piece| piece.push(7));
        assert!(
            longer.starts_with("names.txt: what came is not"),
            "{longer}"
        );
        let foreign = refused(|_, piece| piece[0] ^= 1);
        assert!(foreign.contains("nobody asked for"), "{foreign}");
        let cut = refused(|_, piece| piece.truncate(100));
        assert!(cut.starts_with("names.txt: nothing of it came"), "{cut}");
    }
}
