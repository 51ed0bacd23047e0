//! From a frame to the IP packet within: Ethernet with VLAN tags, Linux cooked captures, raw IP,
//! BSD loopback.

use crate::skipped::Skip;

const NULL: u32 = 0;
const ETHERNET: u32 = 1;
/// Raw IP as some BSDs number it in their own files.
const RAW_BSD: u32 = 12;
const RAW_OPENBSD: u32 = 14;
const RAW: u32 = 101;
const LOOP: u32 = 108;
const LINUX_SLL: u32 = 113;
const IPV4: u32 = 228;
const IPV6: u32 = 229;
const LINUX_SLL2: u32 = 276;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad (QinQ) and its number before there was a standard.
const ETHERTYPES_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// True if [`strip`] understands frames of this link type.
pub(crate) fn is_known(link_type: u32) -> bool {
    matches!(
        link_type,
        NULL | ETHERNET | RAW_BSD | RAW_OPENBSD | RAW | LOOP | LINUX_SLL | IPV4 | IPV6 | LINUX_SLL2
    )
}

/// The IP packet in a frame.
pub(crate) fn strip(link_type: u32, frame: &[u8]) -> Result<&[u8], Skip> {
    match link_type {
        ETHERNET => typed(frame, 12, 14),
        LINUX_SLL => typed(frame, 14, 16),
        LINUX_SLL2 => typed(frame, 0, 20),
        NULL | LOOP => address_family(frame),
        RAW | RAW_BSD | RAW_OPENBSD | IPV4 | IPV6 => Ok(frame),
        _ => Err(Skip::UnknownLinkType),
    }
}

/// A frame whose EtherType is at `type_at` and whose header ends at `end`; VLAN tags may follow.
fn typed(frame: &[u8], type_at: usize, end: usize) -> Result<&[u8], Skip> {
    let number = |octets: Option<&[u8]>| match octets {
        Some(&[high, low]) => Ok(u16::from_be_bytes([high, low])),
        _ => Err(Skip::MalformedPacket),
    };
    let mut ethertype = number(frame.get(type_at..type_at + 2))?;
    let mut payload = frame.get(end..).ok_or(Skip::MalformedPacket)?;
    while ETHERTYPES_VLAN.contains(&ethertype) {
        ethertype = number(payload.get(2..4))?;
        payload = &payload[4..];
    }
    match ethertype {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => Ok(payload),
        _ => Err(Skip::NotIp),
    }
}

/// A frame after an address family of four octets, in the byte order of either machine. AF_INET is
/// 2 everywhere; AF_INET6 is 10 on Linux, 24, 28 or 30 on BSDs and macOS.
fn address_family(frame: &[u8]) -> Result<&[u8], Skip> {
    let (family, payload) = frame
        .split_first_chunk::<4>()
        .ok_or(Skip::MalformedPacket)?;
    match family {
        [0, 0, 0, 2 | 10 | 24 | 28 | 30] | [2 | 10 | 24 | 28 | 30, 0, 0, 0] => Ok(payload),
        _ => Err(Skip::NotIp),
    }
}
