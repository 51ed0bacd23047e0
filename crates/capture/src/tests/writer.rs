//! Writes captures.

use std::net::SocketAddr;

use proto::query::{QueryOptions, write_query};

pub(crate) const CLIENT: &str = "192.0.2.1:5353";
pub(crate) const SERVER: &str = "192.0.2.53:53";

/// Seconds in nanoseconds.
pub(crate) const S: u64 = 1_000_000_000;
/// When captures start here.
pub(crate) const START: u64 = 1_795_255_200 * S;

/// A query for TYPE A.
pub(crate) fn query(id: u16, name: &str) -> Vec<u8> {
    let mut qname = Vec::new();
    proto::name::parse(name, &mut qname).unwrap();
    let mut message = Vec::new();
    write_query(&qname, 1, 1, &QueryOptions::default(), &mut message).unwrap();
    message[..2].copy_from_slice(&id.to_be_bytes());
    message
}

/// A response to [`query`] with one A record, or without if the RCODE is not NOERROR.
pub(crate) fn response(id: u16, name: &str, rcode: u8, ttl_s: u32) -> Vec<u8> {
    let mut message = query(id, name);
    message[2] |= 0x80;
    message[3] |= 0x80 | rcode;
    if rcode == 0 {
        message[7] = 1;
        message.extend([0xc0, 12, 0, 1, 0, 1]);
        message.extend(ttl_s.to_be_bytes());
        message.extend([0, 4, 192, 0, 2, 99]);
    }
    message
}

/// A UDP datagram in IP.
pub(crate) fn udp(source: &str, destination: &str, payload: &[u8]) -> Vec<u8> {
    let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
    ip(
        source,
        destination,
        17,
        &udp_header(source, destination, payload),
    )
}

/// What IP carries of a UDP datagram.
pub(crate) fn udp_header(source: SocketAddr, destination: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let mut datagram = Vec::new();
    datagram.extend(source.port().to_be_bytes());
    datagram.extend(destination.port().to_be_bytes());
    datagram.extend((payload.len() as u16 + 8).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    datagram
}

/// A packet of the version that the addresses have.
pub(crate) fn ip(
    source: SocketAddr,
    destination: SocketAddr,
    protocol: u8,
    data: &[u8],
) -> Vec<u8> {
    match source {
        SocketAddr::V4(_) => ipv4(source, destination, protocol, (0, 0, data)),
        SocketAddr::V6(_) => ipv6(source, destination, protocol, data),
    }
}

/// An IPv4 packet with identification, flags and fragment offset field, and payload.
pub(crate) fn ipv4(
    source: SocketAddr,
    destination: SocketAddr,
    protocol: u8,
    (identification, fragment, data): (u16, u16, &[u8]),
) -> Vec<u8> {
    let (SocketAddr::V4(source), SocketAddr::V4(destination)) = (source, destination) else {
        panic!("IPv4 addresses");
    };
    let mut packet = vec![0x45, 0];
    packet.extend((data.len() as u16 + 20).to_be_bytes());
    packet.extend(identification.to_be_bytes());
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0]);
    packet.extend(source.ip().octets());
    packet.extend(destination.ip().octets());
    packet.extend(data);
    packet
}

pub(crate) fn ipv6(source: SocketAddr, destination: SocketAddr, next: u8, data: &[u8]) -> Vec<u8> {
    let (SocketAddr::V6(source), SocketAddr::V6(destination)) = (source, destination) else {
        panic!("IPv6 addresses");
    };
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((data.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    packet.extend(source.ip().octets());
    packet.extend(destination.ip().octets());
    packet.extend(data);
    packet
}

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

/// A TCP segment in IP.
pub(crate) fn tcp(
    source: &str,
    destination: &str,
    (sequence, acknowledgment): (u32, u32),
    flags: u8,
    payload: &[u8],
) -> Vec<u8> {
    let (source, destination): (SocketAddr, SocketAddr) =
        (source.parse().unwrap(), destination.parse().unwrap());
    let mut segment = Vec::new();
    segment.extend(source.port().to_be_bytes());
    segment.extend(destination.port().to_be_bytes());
    segment.extend(sequence.to_be_bytes());
    segment.extend(acknowledgment.to_be_bytes());
    segment.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    segment.extend(payload);
    ip(source, destination, 6, &segment)
}

/// A message with its length before it.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    proto::framing::write_message(message, &mut stream);
    stream
}

/// How a pcap file is written.
#[derive(Clone, Copy)]
pub(crate) struct Pcap {
    pub(crate) is_little: bool,
    pub(crate) has_nanoseconds: bool,
    pub(crate) link_type: u32,
}

/// Raw IP.
pub(crate) const RAW: Pcap = Pcap {
    is_little: true,
    has_nanoseconds: true,
    link_type: 101,
};

fn number(is_little: bool, number: u32) -> [u8; 4] {
    match is_little {
        true => number.to_le_bytes(),
        false => number.to_be_bytes(),
    }
}

impl Pcap {
    /// A file of these packets and their times in nanoseconds.
    pub(crate) fn write(self, packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
        let number = |value| number(self.is_little, value);
        let magic = if self.has_nanoseconds {
            0xa1b2_3c4d
        } else {
            0xa1b2_c3d4
        };
        let version = if self.is_little {
            [2, 0, 4, 0]
        } else {
            [0, 2, 0, 4]
        };
        let mut file = number(magic).to_vec();
        file.extend(version);
        for field in [0, 0, 262_144, self.link_type] {
            file.extend(number(field));
        }
        for (at_ns, data) in packets {
            let tick_ns = if self.has_nanoseconds { 1 } else { 1_000 };
            file.extend(number((at_ns / S) as u32));
            file.extend(number((at_ns % S / tick_ns) as u32));
            file.extend(number(data.len() as u32));
            file.extend(number(data.len() as u32));
            file.extend(data);
        }
        file
    }
}

/// A block of pcapng.
pub(crate) fn block(is_little: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let octets = number(is_little, padded as u32 + 12);
    let mut block = number(is_little, kind).to_vec();
    block.extend(octets);
    block.extend(body);
    block.resize(8 + padded, 0);
    block.extend(octets);
    block
}

/// The start of a section.
pub(crate) fn section(is_little: bool) -> Vec<u8> {
    let mut body = number(is_little, 0x1a2b_3c4d).to_vec();
    body.extend(if is_little {
        [1, 0, 0, 0]
    } else {
        [0, 1, 0, 0]
    });
    body.extend([0xff; 8]);
    block(is_little, 0x0a0d_0d0a, &body)
}

/// An interface with `if_tsresol` and `if_tsoffset`.
pub(crate) fn interface(is_little: bool, link_type: u16, clock: (u8, i64)) -> Vec<u8> {
    let short = |value: u16| match is_little {
        true => value.to_le_bytes(),
        false => value.to_be_bytes(),
    };
    let mut body = [short(link_type), short(0)].concat();
    body.extend(number(is_little, 0));
    body.extend([short(9), short(1)].concat());
    body.extend([clock.0, 0, 0, 0]);
    body.extend([short(14), short(8)].concat());
    body.extend(match is_little {
        true => clock.1.to_le_bytes(),
        false => clock.1.to_be_bytes(),
    });
    body.extend([0, 0, 0, 0]);
    block(is_little, 1, &body)
}

/// An enhanced packet block.
pub(crate) fn enhanced(is_little: bool, interface: u32, ticks: u64, data: &[u8]) -> Vec<u8> {
    let fields = [
        interface,
        (ticks >> 32) as u32,
        ticks as u32,
        data.len() as u32,
        data.len() as u32,
    ];
    let mut body = fields.map(|field| number(is_little, field)).concat();
    body.extend(data);
    block(is_little, 6, &body)
}
