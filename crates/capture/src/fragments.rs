//! IP datagrams put together from their fragments (RFC 791, section 3.2; RFC 8200, section 4.5).
//!
//! Bounded in datagrams, in octets and in capture time. Fragments that overlap are refused, with
//! their whole datagram (RFC 5722).

use std::collections::HashMap;
use std::net::IpAddr;

use crate::skipped::{Skip, Skipped};

/// Datagrams waiting for the rest of their fragments: more than a resolver of 100,000 queries a
/// second has within the reordering of a network.
const DATAGRAMS_MAX: usize = 4_096;
/// Fragments of one datagram: 65,535 octets at the smallest MTU of IPv4 that occurs, twice.
const FRAGMENTS_MAX: usize = 256;
/// Longest datagram.
const DATAGRAM_OCTETS_MAX: usize = 65_535;
/// How long fragments wait (RFC 8200, section 4.5).
const WAIT_NS_MAX: u64 = 60_000_000_000;

/// Which datagram a fragment belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FragmentKey {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) identification: u32,
    pub(crate) protocol: u8,
}

/// One fragment.
#[derive(Debug)]
pub(crate) struct Fragment<'a> {
    pub(crate) key: FragmentKey,
    /// Where it belongs, in octets.
    pub(crate) start: usize,
    pub(crate) is_last: bool,
    /// Protocol number of what is carried; that of the first fragment counts.
    pub(crate) protocol: u8,
    pub(crate) data: &'a [u8],
}

#[derive(Debug, Default)]
struct Datagram {
    first_ns: u64,
    /// Start and data, in the order of their starts.
    pieces: Vec<(usize, Vec<u8>)>,
    octets: Option<usize>,
    protocol: u8,
}

/// Fragments whose datagrams are not complete.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    open: HashMap<FragmentKey, Datagram>,
}

impl Fragments {
    /// Adds a fragment; the protocol and payload of its datagram if that is complete now.
    pub(crate) fn insert(
        &mut self,
        fragment: Fragment<'_>,
        at_ns: u64,
        skipped: &mut Skipped,
    ) -> Option<(u8, Vec<u8>)> {
        let key = fragment.key;
        let is_stale = |open: &Datagram| at_ns.saturating_sub(open.first_ns) > WAIT_NS_MAX;
        if let Some(stale) = self.open.get(&key).filter(|open| is_stale(open)) {
            // Identifications come again.
            skipped.add(Skip::Fragment, stale.pieces.len() as u64);
            self.open.remove(&key);
        }
        if !self.open.contains_key(&key) {
            self.make_room(at_ns, skipped);
        }
        let datagram = self.open.entry(key).or_insert_with(|| Datagram {
            first_ns: at_ns,
            ..Datagram::default()
        });
        if !datagram.fits(&fragment) {
            let pieces = datagram.pieces.len() as u64 + 1;
            skipped.add(Skip::Fragment, pieces);
            self.open.remove(&key);
            return None;
        }
        if !datagram.add(&fragment) {
            // The same once more.
            skipped.count(Skip::Fragment);
        }
        if !datagram.is_complete() {
            return None;
        }
        let whole = self.open.remove(&key)?;
        let payload = whole
            .pieces
            .into_iter()
            .flat_map(|(_, data)| data)
            .collect();
        Some((whole.protocol, payload))
    }

    /// Counts what is left at the end of the capture.
    pub(crate) fn finish(&mut self, skipped: &mut Skipped) {
        for (_, datagram) in self.open.drain() {
            skipped.add(Skip::Fragment, datagram.pieces.len() as u64);
        }
    }

    /// Gives up datagrams that waited too long, and the oldest if there are too many.
    fn make_room(&mut self, at_ns: u64, skipped: &mut Skipped) {
        if self.open.len() < DATAGRAMS_MAX {
            return;
        }
        let mut starts: Vec<u64> = self.open.values().map(|open| open.first_ns).collect();
        let (_, oldest_eighth, _) = starts.select_nth_unstable(DATAGRAMS_MAX / 8);
        let limit = at_ns.saturating_sub(WAIT_NS_MAX).max(*oldest_eighth);
        self.open.retain(|_, datagram| {
            let stays = datagram.first_ns > limit;
            if !stays {
                skipped.add(Skip::Fragment, datagram.pieces.len() as u64);
            }
            stays
        });
    }
}

impl Datagram {
    /// False if the fragment contradicts what is there.
    fn fits(&self, fragment: &Fragment<'_>) -> bool {
        let end = fragment.start + fragment.data.len();
        let is_ragged = !fragment.is_last && !fragment.data.len().is_multiple_of(8);
        let last_end = self
            .pieces
            .last()
            .map_or(0, |(start, data)| start + data.len());
        if end > DATAGRAM_OCTETS_MAX
            || is_ragged
            || fragment.data.is_empty()
            || self.pieces.len() >= FRAGMENTS_MAX
            || self.octets.is_some_and(|octets| end > octets)
            || (fragment.is_last && (last_end > end || self.octets.is_some_and(|o| o != end)))
        {
            return false;
        }
        let is_apart = |(start, data): &(usize, Vec<u8>)| {
            end <= *start || start + data.len() <= fragment.start
        };
        self.pieces
            .iter()
            .all(|piece| is_apart(piece) || self.is_same(piece, fragment))
    }

    fn is_same(&self, piece: &(usize, Vec<u8>), fragment: &Fragment<'_>) -> bool {
        piece.0 == fragment.start && piece.1 == fragment.data
    }

    /// False if it was there already.
    fn add(&mut self, fragment: &Fragment<'_>) -> bool {
        if fragment.start == 0 {
            self.protocol = fragment.protocol;
        }
        if fragment.is_last {
            self.octets = Some(fragment.start + fragment.data.len());
        }
        let place = self
            .pieces
            .binary_search_by_key(&fragment.start, |(start, _)| *start);
        let Err(place) = place else {
            return false;
        };
        let piece = (fragment.start, fragment.data.to_vec());
        self.pieces.insert(place, piece);
        true
    }

    fn is_complete(&self) -> bool {
        let octets: usize = self.pieces.iter().map(|(_, data)| data.len()).sum();
        self.octets == Some(octets)
    }
}
