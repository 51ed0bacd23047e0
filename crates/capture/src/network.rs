//! IPv4 and IPv6: from a packet to what UDP and TCP see, fragments put together.

use std::borrow::Cow;
use std::net::IpAddr;

use etherparse::{
    IpAuthHeaderSlice, Ipv4HeaderSlice, Ipv6FragmentHeaderSlice, Ipv6HeaderSlice,
    Ipv6RawExtHeaderSlice,
};

use crate::fragments::{Fragment, FragmentKey, Fragments};
use crate::skipped::{Skip, Skipped};

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;

/// What an IP packet, or several as its fragments, carries.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Carried<'a> {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// Protocol number.
    pub(crate) protocol: u8,
    pub(crate) payload: Cow<'a, [u8]>,
    /// Octets at its end that were sent and not captured.
    pub(crate) missing_octets: usize,
}

/// Unwraps the packet `ip`; `None` if it is a fragment and others are missing.
pub(crate) fn unwrap<'a>(
    ip: &'a [u8],
    at_ns: u64,
    fragments: &mut Fragments,
    skipped: &mut Skipped,
) -> Result<Option<Carried<'a>>, Skip> {
    let mut network = Network {
        at_ns,
        fragments,
        skipped,
    };
    match ip.first().map(|octet| octet >> 4) {
        Some(4) => network.ipv4(ip),
        Some(6) => network.ipv6(ip),
        _ => Err(Skip::MalformedPacket),
    }
}

struct Network<'f> {
    at_ns: u64,
    fragments: &'f mut Fragments,
    skipped: &'f mut Skipped,
}

impl Network<'_> {
    fn ipv4<'a>(&mut self, ip: &'a [u8]) -> Result<Option<Carried<'a>>, Skip> {
        let header = Ipv4HeaderSlice::from_slice(ip).map_err(|_| Skip::MalformedPacket)?;
        let header_octets = header.slice().len();
        let total = match usize::from(header.total_len()) {
            // Left to the network card (TCP segmentation offload): all that is there.
            0 => ip.len(),
            octets => octets,
        };
        let payload = ip.get(header_octets..total.min(ip.len()));
        let payload = payload.ok_or(Skip::MalformedPacket)?;
        let carried = Carried {
            source: header.source_addr().into(),
            destination: header.destination_addr().into(),
            protocol: header.protocol().0,
            payload: payload.into(),
            missing_octets: total.saturating_sub(ip.len()),
        };
        if !header.is_fragmenting_payload() {
            return Ok(Some(carried));
        }
        if carried.missing_octets > 0 {
            return Err(Skip::CutBySnapshotLength);
        }
        let fragment = Fragment {
            key: FragmentKey {
                source: carried.source,
                destination: carried.destination,
                identification: header.identification().into(),
                protocol: carried.protocol,
            },
            start: usize::from(header.fragments_offset().value()) * 8,
            is_last: !header.more_fragments(),
            protocol: carried.protocol,
            data: payload,
        };
        Ok(self
            .fragments
            .insert(fragment, self.at_ns, self.skipped)
            .map(|(protocol, payload)| Carried {
                protocol,
                payload: payload.into(),
                ..carried
            }))
    }

    fn ipv6<'a>(&mut self, ip: &'a [u8]) -> Result<Option<Carried<'a>>, Skip> {
        let header = Ipv6HeaderSlice::from_slice(ip).map_err(|_| Skip::MalformedPacket)?;
        let header_octets = header.slice().len();
        let octets = match usize::from(header.payload_length()) {
            0 => ip.len() - header_octets,
            octets => octets,
        };
        let payload = &ip[header_octets..ip.len().min(header_octets + octets)];
        let missing_octets = (header_octets + octets).saturating_sub(ip.len());
        let (source, destination) = (
            header.source_addr().into(),
            header.destination_addr().into(),
        );
        let carried = |protocol, payload| Carried {
            source,
            destination,
            protocol,
            payload,
            missing_octets,
        };
        let (protocol, payload) = match extensions(header.next_header().0, payload)? {
            Extended::Payload(protocol, payload) => {
                return Ok(Some(carried(protocol, payload.into())));
            }
            Extended::Fragment(header, data) => {
                if missing_octets > 0 {
                    return Err(Skip::CutBySnapshotLength);
                }
                let fragment = Fragment {
                    key: FragmentKey {
                        source,
                        destination,
                        identification: header.identification(),
                        // RFC 8200, section 4.5: not a part of what tells datagrams apart.
                        protocol: 0,
                    },
                    start: usize::from(header.fragment_offset().value()) * 8,
                    is_last: !header.more_fragments(),
                    protocol: header.next_header().0,
                    data,
                };
                match self.fragments.insert(fragment, self.at_ns, self.skipped) {
                    Some(whole) => whole,
                    None => return Ok(None),
                }
            }
        };
        match extensions(protocol, &payload)? {
            Extended::Payload(protocol, rest) => Ok(Some(carried(protocol, rest.to_vec().into()))),
            // A fragment within a fragment has no use but to hide something.
            Extended::Fragment(..) => Err(Skip::MalformedPacket),
        }
    }
}

enum Extended<'a> {
    Payload(u8, &'a [u8]),
    Fragment(Ipv6FragmentHeaderSlice<'a>, &'a [u8]),
}

/// Passes over extension headers up to a fragment or to what is carried (RFC 8200, section 4).
fn extensions(first: u8, payload: &[u8]) -> Result<Extended<'_>, Skip> {
    let (mut protocol, mut rest) = (first, payload);
    let malformed = |_| Skip::MalformedPacket;
    loop {
        match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY => {
                let header = Ipv6RawExtHeaderSlice::from_slice(rest).map_err(malformed)?;
                protocol = header.next_header().0;
                rest = &rest[header.slice().len()..];
            }
            AUTHENTICATION => {
                let header = IpAuthHeaderSlice::from_slice(rest);
                let header = header.map_err(|_| Skip::MalformedPacket)?;
                protocol = header.next_header().0;
                rest = &rest[header.slice().len()..];
            }
            FRAGMENT => {
                let header = Ipv6FragmentHeaderSlice::from_slice(rest).map_err(malformed)?;
                rest = &rest[header.slice().len()..];
                // An atomic fragment is a whole datagram (RFC 6946).
                if header.is_fragmenting_payload() {
                    return Ok(Extended::Fragment(header, rest));
                }
                protocol = header.next_header().0;
            }
            _ => return Ok(Extended::Payload(protocol, rest)),
        }
    }
}
