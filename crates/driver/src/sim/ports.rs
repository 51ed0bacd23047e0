//! Bound addresses, and free local ports.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use super::socket::Owner;

/// Ports allotted to sockets that ask for none in particular: ip_local_port_range of Linux.
pub(super) const LOCAL_PORTS: RangeInclusive<u16> = 32_768..=60_999;

/// Rotates through [`LOCAL_PORTS`], for each address apart.
#[derive(Debug, Default)]
struct Cursor {
    next: BTreeMap<IpAddr, u16>,
}

impl Cursor {
    /// The next port of `address` that is free, if there is one.
    fn allot(&mut self, address: IpAddr, is_free: impl Fn(SocketAddr) -> bool) -> Option<u16> {
        let next = self.next.entry(address).or_insert(*LOCAL_PORTS.start());
        for _ in LOCAL_PORTS {
            let port = *next;
            *next = if port == *LOCAL_PORTS.end() {
                *LOCAL_PORTS.start()
            } else {
                port + 1
            };
            if is_free(SocketAddr::new(address, port)) {
                return Some(port);
            }
        }
        None
    }
}

/// The sockets at one address and port.
#[derive(Debug)]
struct Bound {
    owners: Vec<Owner>,
    shared: bool,
}

/// Bound sockets of one kind: datagram sockets, or listeners.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    bound: HashMap<SocketAddr, Bound, BuildHasherDefault<AddressHasher>>,
    cursor: Cursor,
}

impl Bindings {
    /// The address to bind when `wanted` is asked for, with a port if it has none.
    pub(super) fn choose(&mut self, wanted: SocketAddr, shared: bool) -> Option<SocketAddr> {
        if wanted.port() == 0 {
            let bound = &self.bound;
            let port = self
                .cursor
                .allot(wanted.ip(), |local| !bound.contains_key(&local))?;
            return Some(SocketAddr::new(wanted.ip(), port));
        }
        match self.bound.get(&wanted) {
            Some(bound) if !(bound.shared && shared) => None,
            _ => Some(wanted),
        }
    }

    /// Binds a socket to an address that [`Bindings::choose`] gave.
    pub(super) fn bind(&mut self, local: SocketAddr, owner: Owner, shared: bool) {
        let bound = self.bound.entry(local).or_insert(Bound {
            owners: Vec::new(),
            shared,
        });
        bound.owners.push(owner);
    }

    /// Frees the address, unless it is shared.
    pub(super) fn unbind(&mut self, local: SocketAddr, owner: Owner) {
        let Some(bound) = self.bound.get_mut(&local) else {
            return;
        };
        bound.owners.retain(|other| *other != owner);
        if bound.owners.is_empty() {
            self.bound.remove(&local);
        }
    }

    /// The socket that receives what goes from `from` to `to`.
    pub(super) fn receiver(&self, from: SocketAddr, to: SocketAddr) -> Option<Owner> {
        let owners = &self.bound.get(&to)?.owners;
        match owners.as_slice() {
            [owner] => Some(*owner),
            _ => owners
                .get((flow_hash(from, to) % owners.len() as u64) as usize)
                .copied(),
        }
    }
}

/// Local addresses of connecting and connected streams. One local port serves many peers.
#[derive(Debug, Default)]
pub(super) struct StreamPorts {
    pairs: HashSet<(SocketAddr, SocketAddr), BuildHasherDefault<AddressHasher>>,
    cursor: Cursor,
}

impl StreamPorts {
    /// Takes a local address for a stream to `peer`, with a port chosen if `wanted` has none.
    pub(super) fn claim(&mut self, wanted: SocketAddr, peer: SocketAddr) -> Option<SocketAddr> {
        let mut local = wanted;
        if local.port() == 0 {
            let pairs = &self.pairs;
            let is_free = |local| !pairs.contains(&(local, peer));
            local.set_port(self.cursor.allot(local.ip(), is_free)?);
        }
        self.pairs.insert((local, peer)).then_some(local)
    }

    /// Frees an address from [`StreamPorts::claim`].
    pub(super) fn release(&mut self, local: SocketAddr, peer: SocketAddr) {
        self.pairs.remove(&(local, peer));
    }
}

/// Hashes addresses a word at a time. These tables are never iterated, so nothing depends on their
/// order.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        // One added, or a zero would leave no trace.
        let mixed = (self.0 ^ word).wrapping_add(1);
        let product = u128::from(mixed) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_u16(&mut self, word: u16) {
        self.write_u64(word.into());
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A stable hash of both addresses and ports (FNV-1a, folded for the sake of its low bits).
fn flow_hash(from: SocketAddr, to: SocketAddr) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |octets: &[u8]| {
        for octet in octets {
            hash = (hash ^ u64::from(*octet)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    };
    for address in [from, to] {
        match address.ip() {
            IpAddr::V4(ip) => add(&ip.octets()),
            IpAddr::V6(ip) => add(&ip.octets()),
        }
        add(&address.port().to_be_bytes());
    }
    hash ^ (hash >> 32)
}
