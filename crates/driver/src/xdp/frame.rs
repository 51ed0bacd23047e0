//! Frames: Ethernet (with a VLAN tag if need be), IPv4 (RFC 791) or IPv6 (RFC 8200), and UDP
//! (RFC 768), written and read in place, with their checksums (RFC 1071).
//!
//! All headers of a flow but lengths and checksums are the same for each datagram. They are
//! written once into a [`Template`], whose sums are known; a datagram then costs a copy of its
//! headers, a copy of its payload and one sum over the payload.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::netlink::Mac;

const ETHERNET_OCTETS: usize = 14;
const TAG_OCTETS: usize = 4;
const IPV4_OCTETS: usize = 20;
const IPV6_OCTETS: usize = 40;
const UDP_OCTETS: usize = 8;
/// The longest headers: with a tag, and of IPv6.
const HEADERS_OCTETS_MAX: usize = ETHERNET_OCTETS + TAG_OCTETS + IPV6_OCTETS + UDP_OCTETS;
const ETHERTYPE_TAG: u16 = 0x8100;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const UDP: u8 = 17;
/// The bits of a tag that are the VLAN.
const TAG_VLAN: u16 = 0x0fff;
/// Hops that a datagram may take, what Linux starts with.
const HOPS: u8 = 64;

/// The link that frames cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Link-layer address of this end.
    pub from: Mac,
    /// Of the next host.
    pub to: Mac,
    /// The VLAN, if frames have a tag.
    pub vlan: Option<u16>,
}

/// The headers of all datagrams from one port to another host.
#[derive(Clone)]
pub struct Template {
    headers: [u8; HEADERS_OCTETS_MAX],
    headers_octets: u8,
    /// Where the network header begins.
    network: u8,
    is_ipv6: bool,
    /// Sum of the IPv4 header without its length.
    header_sum: u32,
    /// Sum of the pseudo-header and of the sender's port, without the lengths.
    pseudo_sum: u32,
}

impl Template {
    /// The port of `to` is given with each datagram.
    ///
    /// # Panics
    /// If the two addresses are not of one family.
    pub fn new(hop: Hop, from: SocketAddr, to: SocketAddr) -> Template {
        let mut headers = [0; HEADERS_OCTETS_MAX];
        headers[0..6].copy_from_slice(&hop.to);
        headers[6..12].copy_from_slice(&hop.from);
        let mut network = ETHERNET_OCTETS;
        if let Some(vlan) = hop.vlan {
            put(&mut headers, 12, ETHERTYPE_TAG);
            put(&mut headers, 14, vlan & TAG_VLAN);
            network += TAG_OCTETS;
        }
        let is_ipv6 = to.is_ipv6();
        let ethertype = if is_ipv6 {
            ETHERTYPE_IPV6
        } else {
            ETHERTYPE_IPV4
        };
        put(&mut headers, network - 2, ethertype);
        let ip = &mut headers[network..];
        let (ip_octets, addresses_at, addresses_octets) = match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                (ip[0], ip[8], ip[9]) = (0x45, HOPS, UDP);
                // Do not fragment: then the identification may be anything (RFC 6864, section 4.1).
                put(ip, 6, 0x4000);
                ip[12..16].copy_from_slice(&from.octets());
                ip[16..20].copy_from_slice(&to.octets());
                (IPV4_OCTETS, 12, 8)
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                (ip[0], ip[6], ip[7]) = (0x60, UDP, HOPS);
                ip[8..24].copy_from_slice(&from.octets());
                ip[24..40].copy_from_slice(&to.octets());
                (IPV6_OCTETS, 8, 32)
            }
            _ => panic!("{from} and {to} are of one family"),
        };
        put(ip, ip_octets, from.port());
        let header_sum = if is_ipv6 { 0 } else { sum(&ip[..ip_octets], 0) };
        let mut pseudo_sum = sum(&ip[addresses_at..][..addresses_octets], u64::from(UDP));
        pseudo_sum += sum(&ip[ip_octets..][..4], 0);
        Template {
            headers,
            headers_octets: (network + ip_octets + UDP_OCTETS) as u8,
            network: network as u8,
            is_ipv6,
            header_sum: fold(header_sum).into(),
            pseudo_sum: fold(pseudo_sum).into(),
        }
    }

    /// Octets of a whole frame with so much payload.
    #[inline]
    pub fn frame_octets(&self, payload_octets: usize) -> usize {
        usize::from(self.headers_octets) + payload_octets
    }

    /// Writes a datagram to a port of the receiver to the start of `frame`.
    ///
    /// # Panics
    /// If the frame is shorter than [`Template::frame_octets`] says.
    #[inline]
    pub fn write(&self, payload: &[u8], to_port: u16, frame: &mut [u8]) {
        let headers = usize::from(self.headers_octets);
        let network = usize::from(self.network);
        // All of it, so that its length is known when this is compiled; the payload follows.
        frame[..HEADERS_OCTETS_MAX].copy_from_slice(&self.headers);
        frame[headers..][..payload.len()].copy_from_slice(payload);
        let udp_octets = (payload.len() + UDP_OCTETS) as u16;
        let udp = headers - UDP_OCTETS;
        if self.is_ipv6 {
            put(frame, network + 4, udp_octets);
        } else {
            let total = udp_octets + IPV4_OCTETS as u16;
            put(frame, network + 2, total);
            put(
                frame,
                network + 10,
                !fold(u64::from(self.header_sum) + u64::from(total)),
            );
        }
        put(frame, udp + 2, to_port);
        put(frame, udp + 4, udp_octets);
        // The length is in the pseudo-header and in the header.
        let own = 2 * u64::from(udp_octets) + u64::from(to_port);
        let checksum = !fold(sum(payload, u64::from(self.pseudo_sum) + own));
        // Zero would say that there is none.
        put(
            frame,
            udp + 6,
            if checksum == 0 { 0xffff } else { checksum },
        );
    }
}

/// The sender's link-layer address.
#[inline]
pub fn sender(frame: &[u8]) -> Option<Mac> {
    frame.get(6..12)?.try_into().ok()
}

/// A datagram within a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Where its payload begins in the frame.
    pub start: usize,
    /// Length of its payload.
    pub octets: usize,
    /// Who sent it.
    pub from: SocketAddr,
    /// Who is to have it.
    pub to: SocketAddr,
    /// The state of its checksum.
    pub checksum: Checksum,
}

/// The state of a received UDP checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// The datagram is whole, or (IPv4) has none.
    Right,
    /// Only the pseudo-header has been summed up: the rest was left to a network card.
    Unfinished,
    /// The datagram was corrupted on its way.
    Wrong,
}

/// Reads the datagram in a frame; none if there is none, or not a whole one.
#[inline]
pub fn parse(frame: &[u8]) -> Option<Parsed> {
    let mut network = ETHERNET_OCTETS;
    let mut ethertype = get(frame, 12)?;
    if ethertype == ETHERTYPE_TAG {
        network += TAG_OCTETS;
        ethertype = get(frame, 16)?;
    }
    let packet = frame.get(network..)?;
    let (ip_octets, packet_octets, addresses, from, to): (_, _, _, IpAddr, IpAddr) = match ethertype
    {
        ETHERTYPE_IPV4 => {
            let header: &[u8; IPV4_OCTETS] = packet.get(..IPV4_OCTETS)?.try_into().ok()?;
            if header[0] != 0x45 || header[9] != UDP || fold(sum(header, 0)) != 0xffff {
                return None;
            }
            let octets = usize::from(u16::from_be_bytes([header[2], header[3]]));
            let at = |start: usize| -> Option<Ipv4Addr> {
                let octets: [u8; 4] = header[start..][..4].try_into().ok()?;
                Some(octets.into())
            };
            (
                IPV4_OCTETS,
                octets,
                &header[12..],
                at(12)?.into(),
                at(16)?.into(),
            )
        }
        ETHERTYPE_IPV6 => {
            let header: &[u8; IPV6_OCTETS] = packet.get(..IPV6_OCTETS)?.try_into().ok()?;
            if header[6] != UDP {
                return None;
            }
            let octets = usize::from(u16::from_be_bytes([header[4], header[5]]));
            let at = |start: usize| -> Option<Ipv6Addr> {
                let octets: [u8; 16] = header[start..][..16].try_into().ok()?;
                Some(octets.into())
            };
            (
                IPV6_OCTETS,
                octets + IPV6_OCTETS,
                &header[8..],
                at(8)?.into(),
                at(24)?.into(),
            )
        }
        _ => return None,
    };
    // What follows is padding of a short frame.
    let udp = packet.get(ip_octets..packet_octets)?;
    let header: &[u8; UDP_OCTETS] = udp.get(..UDP_OCTETS)?.try_into().ok()?;
    let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let udp_octets = usize::from(port(4));
    let datagram = udp.get(..udp_octets).filter(|it| it.len() >= UDP_OCTETS)?;
    let pseudo_sum = sum(addresses, u64::from(UDP) + udp_octets as u64);
    Some(Parsed {
        start: network + ip_octets + UDP_OCTETS,
        octets: udp_octets - UDP_OCTETS,
        from: SocketAddr::new(from, port(0)),
        to: SocketAddr::new(to, port(2)),
        checksum: checksum(port(6), pseudo_sum, datagram, to),
    })
}

#[inline]
fn checksum(given: u16, pseudo_sum: u64, datagram: &[u8], to: IpAddr) -> Checksum {
    // IPv4 allows it to be left out (RFC 768), IPv6 does not (RFC 8200, section 8.1).
    if given == 0 && to.is_ipv4() {
        return Checksum::Right;
    }
    if fold(sum(datagram, pseudo_sum)) == 0xffff {
        return Checksum::Right;
    }
    match given == fold(pseudo_sum) {
        true => Checksum::Unfinished,
        false => Checksum::Wrong,
    }
}

#[inline]
fn put(octets: &mut [u8], at: usize, value: u16) {
    octets[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

#[inline]
fn get(octets: &[u8], at: usize) -> Option<u16> {
    let pair: [u8; 2] = octets.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_be_bytes(pair))
}

/// Adds 16-bit words in network order to `start`; not yet folded.
#[inline]
fn sum(octets: &[u8], start: u64) -> u64 {
    // The sum of words in either order of octets is the same sum in that order (RFC 1071,
    // section 2.B): long words are added as they lie in memory, and turned at the end.
    let mut chunks = octets.chunks_exact(8);
    let mut native: u64 = 0;
    for chunk in &mut chunks {
        let word = u64::from_le_bytes(chunk.try_into().expect("chunks have eight bytes"));
        native += (word & 0xffff_ffff) + (word >> 32);
    }
    let mut last = [0_u8; 8];
    let rest = chunks.remainder();
    last[..rest.len()].copy_from_slice(rest);
    let word = u64::from_le_bytes(last);
    native += (word & 0xffff_ffff) + (word >> 32);
    start + u64::from(fold(native).swap_bytes())
}

/// A sum in 16 bits, with the carries added in.
#[inline]
fn fold(sum: u64) -> u16 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests;
