//! Clients of a server's socket, each with the link-layer address that its query came from.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::net::{IpAddr, SocketAddr};

use super::frame::{Hop, Template, sender};
use super::interface::Interface;

/// Peers cached; others are answered through the kernel's socket.
const PEERS_MAX: usize = 65_536;

/// A server's address with its port, and the address of its peer, whose ports are alike.
type Pair = (SocketAddr, IpAddr);

/// Templates of responses by peer.
#[derive(Default)]
pub(super) struct Peers {
    places: HashMap<Pair, u32, BuildHasherDefault<Folding>>,
    peers: Vec<(Pair, Hop, Template)>,
    /// The last lookup: most loads come from few addresses.
    last: usize,
}

impl Peers {
    /// Notes where `frame` came from.
    #[inline]
    pub(super) fn learn(
        &mut self,
        interface: &Interface,
        frame: &[u8],
        (local, from): (SocketAddr, SocketAddr),
    ) {
        let pair = (local, from.ip());
        let Some(to) = sender(frame) else {
            return;
        };
        if let Some(place) = self.find(pair) {
            self.last = place;
            if self.peers[place].1.to == to {
                return;
            }
        }
        let hop = Hop {
            from: interface.mac,
            to,
            vlan: interface.vlan,
        };
        let new = (pair, hop, Template::new(hop, local, from));
        match self.find(pair) {
            Some(place) => self.peers[place] = new,
            None if self.peers.len() < PEERS_MAX => {
                self.places.insert(pair, self.peers.len() as u32);
                self.peers.push(new);
            }
            None => {}
        }
    }

    /// The template of responses to `to`, if it has sent a query.
    #[inline]
    pub(super) fn template(&mut self, local: SocketAddr, to: IpAddr) -> Option<&Template> {
        self.last = self.find((local, to))?;
        Some(&self.peers[self.last].2)
    }

    #[inline]
    fn find(&self, pair: Pair) -> Option<usize> {
        match self.peers.get(self.last) {
            Some((last, ..)) if *last == pair => Some(self.last),
            _ => self.places.get(&pair).map(|place| *place as usize),
        }
    }
}

/// A quick hash of addresses: a table of so few entries is no target.
#[derive(Default)]
struct Folding(u64);

impl Hasher for Folding {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, octets: &[u8]) {
        for chunk in octets.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        // The odd number next to 2^64 divided by the golden ratio spreads what is next to each
        // other.
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}
