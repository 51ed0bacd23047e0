//! A cache of decoded field blocks. A server sends much the same fields with all its responses:
//! responses to one name have identical blocks, which need not be decoded again.
//!
//! Only blocks that mean the same on every connection are known, those without a reference to the
//! peer's table and without a change of it, which is all blocks unless the peer may have a table
//! (`Http2Options::table_octets`). So one memory serves all connections of a thread, and an idle
//! connection pays nothing for it.

use super::fields::ResponseFields;
use std::cell::RefCell;

/// Longest block that is remembered.
const OCTETS_MAX: usize = 256;

/// Cached blocks, each in the slot given by a hash of its octets.
const PLACES: usize = 32;

thread_local! {
    static KNOWN: RefCell<KnownFields> = const { RefCell::new(KnownFields::new()) };
}

/// Lets `read` read the fields of `block`, if it is one that is known.
#[inline]
pub(super) fn find<R>(block: &[u8], read: impl FnOnce(&ResponseFields) -> R) -> Option<R> {
    KNOWN.with_borrow_mut(|known| known.find(block).map(read))
}

/// Caches the content of blocks, for all connections.
pub(super) fn remember(block: &[u8], fields: ResponseFields) {
    KNOWN.with_borrow_mut(|known| known.remember(block, fields));
}

struct KnownFields {
    /// Empty until the first entry, then all slots; 10 KB.
    places: Vec<Known>,
    /// Where the last one was found.
    last: usize,
}

#[derive(Clone)]
struct Known {
    octets: [u8; OCTETS_MAX],
    /// Of these; `usize::MAX` if the place is free.
    length: usize,
    fields: ResponseFields,
}

impl Known {
    #[inline]
    fn is(&self, block: &[u8]) -> bool {
        self.length == block.len() && self.octets.get(..self.length) == Some(block)
    }
}

impl KnownFields {
    const fn new() -> Self {
        KnownFields {
            places: Vec::new(),
            last: 0,
        }
    }

    #[inline]
    fn find(&mut self, block: &[u8]) -> Option<&ResponseFields> {
        if !self.places.get(self.last)?.is(block) {
            self.last = place(block);
        }
        let known = &self.places[self.last];
        known.is(block).then_some(&known.fields)
    }

    fn remember(&mut self, block: &[u8], fields: ResponseFields) {
        if block.len() > OCTETS_MAX {
            return;
        }
        let free = Known {
            octets: [0; OCTETS_MAX],
            length: usize::MAX,
            fields: ResponseFields::default(),
        };
        if self.places.is_empty() {
            self.places = vec![free; PLACES];
        }
        self.last = place(block);
        let known = &mut self.places[self.last];
        known.octets[..block.len()].copy_from_slice(block);
        (known.length, known.fields) = (block.len(), fields);
    }
}

/// A hash: the octets in eights, multiplied.
#[inline]
fn place(block: &[u8]) -> usize {
    let (eights, rest) = block.as_chunks::<8>();
    let mix = |hash: u64, number: u64| {
        (hash ^ number)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
    };
    let eights = eights.iter().map(|eight| u64::from_le_bytes(*eight));
    let hash = eights.fold(block.len() as u64, mix);
    let hash = rest.iter().map(|octet| u64::from(*octet)).fold(hash, mix);
    hash as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(status: u16) -> ResponseFields {
        let mut fields = ResponseFields::default();
        fields.add(b":status", status.to_string().as_bytes());
        fields
    }

    #[test]
    fn what_is_remembered_is_found_or_forgotten_and_never_mistaken() {
        let mut known = KnownFields::new();
        assert!(known.find(b"").is_none() && known.find(b"block").is_none());
        for round in 0..3 {
            for number in 100..1_000_u16 {
                let block = format!("content-length: {number}").into_bytes();
                let found = known.find(&block).map(|fields| fields.status);
                assert!(found.is_none_or(|status| status == number), "{round}");
                known.remember(&block, fields(number));
                assert_eq!(known.find(&block).unwrap().status, number);
                assert!(known.find(&block[1..]).is_none());
            }
        }
        assert_eq!(known.places.len(), PLACES);
    }

    #[test]
    fn blocks_of_several_lengths_are_known_beside_each_other() {
        let mut known = KnownFields::new();
        let block = |octets: u16| format!("content-length: {octets}").into_bytes();
        (160..170).for_each(|octets| known.remember(&block(octets), fields(octets)));
        let found = (160..170).filter(|octets| known.find(&block(*octets)).is_some());
        assert!(found.count() >= 7);
    }

    #[test]
    fn very_long_blocks_are_not_remembered() {
        let mut known = KnownFields::new();
        known.remember(&[7; OCTETS_MAX + 1], fields(200));
        assert!(known.places.is_empty());
        known.remember(&[7; OCTETS_MAX], fields(200));
        assert!(known.find(&[7; OCTETS_MAX]).is_some());
        assert!(known.find(&[]).is_none() && known.find(&[7; OCTETS_MAX + 1]).is_none());
    }
}
