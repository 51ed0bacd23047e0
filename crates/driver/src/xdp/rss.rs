//! Which queue a network card puts a datagram into: receive-side scaling.
//!
//! A card hashes addresses and ports of what arrives (Toeplitz, with a key) and looks the queue up
//! in a table by the low bits of the hash. With key, table and the hashed fields known, the source
//! port of a query can be chosen so that the response arrives in a certain queue. Cards report all
//! three (ETHTOOL_GRSSH, ETHTOOL_GRXFH); virtual interfaces do not have them.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use crate::ethtool::ethtool;

/// Setting with the kernel's local port range, and its default.
const LOCAL_PORTS: &str = "/proc/sys/net/ipv4/ip_local_port_range";
const LOCAL_PORTS_USUAL: RangeInclusive<u16> = 32_768..=60_999;
/// Setting with the default key that Linux gives to cards (`proc(5)`).
const KEY_OF_THE_KERNEL: &str = "/proc/sys/net/core/netdev_rss_key";

// Numbers of linux/ethtool.h.
const ETHTOOL_GRXFH: u32 = 0x29;
const ETHTOOL_GRSSH: u32 = 0x46;
const UDP_V4_FLOW: u32 = 2;
const UDP_V6_FLOW: u32 = 6;
const RXH_IP_SRC: u64 = 1 << 4;
const RXH_IP_DST: u64 = 1 << 5;
const RXH_PORT_SRC: u64 = 1 << 6;
const RXH_PORT_DST: u64 = 1 << 7;
const RXH_ADDRESSES: u64 = RXH_IP_SRC | RXH_IP_DST;
const RXH_ALL: u64 = RXH_ADDRESSES | RXH_PORT_SRC | RXH_PORT_DST;
/// The hash function is Toeplitz's.
const HASH_TOEPLITZ: u8 = 1;

/// `struct ethtool_rxfh` before its table: command, context, entries of the table, octets of the
/// key, function, transformation of the input, and eight octets that are not used.
const HEAD_OCTETS: usize = 24;
/// More than any card has; larger values of a card's driver are rejected.
const TABLE_ENTRIES_MAX: usize = 1 << 16;
const KEY_OCTETS_MAX: usize = 1 << 10;
/// `struct ethtool_rxnfc`; the command reads and writes its first 16 octets.
const FIELDS_OCTETS: usize = 192;

/// The longest input: two IPv6 addresses and two ports.
const INPUT_OCTETS_MAX: usize = 36;

/// What a card hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fields {
    /// Both addresses and both ports: the port decides on the queue.
    All,
    /// Only the addresses: no port makes a difference.
    Addresses,
}

/// How a card finds the queue of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rss {
    key: Vec<u8>,
    /// Queues, by the low bits of the hash.
    table: Vec<u32>,
    ipv4: Option<Fields>,
    ipv6: Option<Fields>,
    /// Those to choose from.
    ports: RangeInclusive<u16>,
}

impl Rss {
    /// Reads the scaling settings of an interface's card; none if it has none or uses another
    /// method.
    pub(super) fn of(interface: u32) -> Option<Rss> {
        let (key, table) = parse_table(&ask_table(interface).ok()?)?;
        let key = match key.is_empty() {
            true => parse_key(&std::fs::read_to_string(KEY_OF_THE_KERNEL).ok()?)?,
            false => key,
        };
        let fields = |flow| parse_fields(&ask_fields(interface, flow).ok()?);
        let (ipv4, ipv6) = (fields(UDP_V4_FLOW), fields(UDP_V6_FLOW));
        (key.len() >= INPUT_OCTETS_MAX + 4).then_some(Rss {
            key,
            table,
            ipv4,
            ipv6,
            ports: local_ports().unwrap_or(LOCAL_PORTS_USUAL),
        })
    }

    /// Ports for `local` so that what comes `from` there arrives in a queue that is wanted, those
    /// above its own first. None of them need be free.
    pub(super) fn ports(
        &self,
        from: SocketAddr,
        local: SocketAddr,
        is_wanted: impl Fn(u32) -> bool,
    ) -> impl Iterator<Item = SocketAddr> {
        let above = local.port().saturating_add(1).max(*self.ports.start())..=*self.ports.end();
        let below = *self.ports.start()..=local.port().min(*self.ports.end());
        let candidates = above.chain(below).map(move |port| {
            let mut candidate = local;
            candidate.set_port(port);
            candidate
        });
        candidates.filter(move |to| self.queue(from, *to).is_some_and(&is_wanted))
    }

    /// The queue that a datagram arrives in; none if the card's method is not known.
    pub(super) fn queue(&self, from: SocketAddr, to: SocketAddr) -> Option<u32> {
        let fields = match to.is_ipv4() {
            true => self.ipv4?,
            false => self.ipv6?,
        };
        let mut input = [0; INPUT_OCTETS_MAX];
        let octets = write_input(&mut input, from, to);
        let octets = match fields {
            Fields::All => octets,
            Fields::Addresses => octets - 4,
        };
        let hash = toeplitz(&self.key, &input[..octets]) as usize;
        Some(self.table[hash % self.table.len()])
    }

    /// A port of ours makes a difference for the queue that responses arrive in.
    pub(super) fn hashes_ports(&self) -> bool {
        self.ipv4 == Some(Fields::All) || self.ipv6 == Some(Fields::All)
    }

    /// A card with one table entry for each queue, and the key of Microsoft's examples.
    #[cfg(test)]
    pub(super) fn in_tests(queues: u32) -> Rss {
        Rss {
            key: tests::KEY.to_vec(),
            table: (0..queues).collect(),
            ipv4: Some(Fields::All),
            ipv6: Some(Fields::All),
            ports: LOCAL_PORTS_USUAL,
        }
    }
}

fn local_ports() -> Option<RangeInclusive<u16>> {
    parse_ports(&std::fs::read_to_string(LOCAL_PORTS).ok()?)
}

/// The first and the last.
fn parse_ports(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, last) = text.trim().split_once(char::is_whitespace)?;
    Some(first.parse().ok()?..=last.trim().parse().ok()?)
}

/// Addresses and ports in the order in which they are in the datagram; how many octets.
fn write_input(input: &mut [u8; INPUT_OCTETS_MAX], from: SocketAddr, to: SocketAddr) -> usize {
    let mut end = 0;
    let mut put = |octets: &[u8]| {
        input[end..][..octets.len()].copy_from_slice(octets);
        end += octets.len();
    };
    for ip in [from.ip(), to.ip()] {
        match ip {
            IpAddr::V4(v4) => put(&v4.octets()),
            IpAddr::V6(v6) => put(&v6.octets()),
        }
    }
    for port in [from.port(), to.port()] {
        put(&port.to_be_bytes());
    }
    end
}

/// The Toeplitz hash: for each bit of the input that is set, the 32 bits of the key that begin
/// at the same place. A key that is too short goes on with zeros.
fn toeplitz(key: &[u8], input: &[u8]) -> u32 {
    let octet = |at: usize| u64::from(key.get(at).copied().unwrap_or(0));
    let mut window = (0..4).fold(0, |window, at| window << 8 | octet(at));
    let mut hash = 0;
    for (at, value) in input.iter().enumerate() {
        window = window << 8 | octet(at + 4);
        for bit in 0..8 {
            if value & (0x80 >> bit) != 0 {
                hash ^= (window >> (8 - bit)) as u32;
            }
        }
        window &= 0xffff_ffff;
    }
    hash
}

fn ask_table(interface: u32) -> io::Result<Vec<u8>> {
    let mut question = vec![0; HEAD_OCTETS];
    question[..4].copy_from_slice(&ETHTOOL_GRSSH.to_ne_bytes());
    // SAFETY: asked for no entries and no key, the command writes only the head: their sizes.
    unsafe { ethtool(interface, &mut question[..])? };
    let (entries, key_octets) = sizes(&question).ok_or(io::ErrorKind::InvalidData)?;
    question.resize(HEAD_OCTETS + entries * 4 + key_octets, 0);
    // SAFETY: the head says how many entries and octets of the key there is room for, and there is.
    unsafe { ethtool(interface, &mut question[..])? };
    Ok(question)
}

fn ask_fields(interface: u32, flow: u32) -> io::Result<Vec<u8>> {
    let mut question = vec![0; FIELDS_OCTETS];
    question[..4].copy_from_slice(&ETHTOOL_GRXFH.to_ne_bytes());
    question[4..8].copy_from_slice(&flow.to_ne_bytes());
    // SAFETY: as long as the structure that the command reads and writes.
    unsafe { ethtool(interface, &mut question[..])? };
    Ok(question)
}

fn word(octets: &[u8], at: usize) -> Option<u32> {
    let word = octets.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(word))
}

/// Entries of the table and octets of the key, from the head.
fn sizes(answer: &[u8]) -> Option<(usize, usize)> {
    let (entries, key_octets) = (word(answer, 8)? as usize, word(answer, 12)? as usize);
    let is_sound = (1..=TABLE_ENTRIES_MAX).contains(&entries) && key_octets <= KEY_OCTETS_MAX;
    is_sound.then_some((entries, key_octets))
}

/// Key and table of an ETHTOOL_GRSSH; none if another function is used, or its input is changed.
fn parse_table(answer: &[u8]) -> Option<(Vec<u8>, Vec<u32>)> {
    let (entries, key_octets) = sizes(answer)?;
    let (function, transformation) = (*answer.get(16)?, *answer.get(17)?);
    // Kernels before 6.8 leave the second one at zero, as those that change nothing do.
    if function & HASH_TOEPLITZ == 0 || transformation != 0 {
        return None;
    }
    let table = (0..entries).map(|entry| word(answer, HEAD_OCTETS + entry * 4));
    let table = table.collect::<Option<Vec<u32>>>()?;
    let key = answer.get(HEAD_OCTETS + entries * 4..)?.get(..key_octets)?;
    Some((key.to_vec(), table))
}

/// What is hashed, of an ETHTOOL_GRXFH.
fn parse_fields(answer: &[u8]) -> Option<Fields> {
    let data = u64::from_ne_bytes(answer.get(8..16)?.try_into().ok()?);
    match data {
        RXH_ALL => Some(Fields::All),
        RXH_ADDRESSES => Some(Fields::Addresses),
        _ => None,
    }
}

/// Octets in hexadecimal with colons between them.
fn parse_key(text: &str) -> Option<Vec<u8>> {
    let octets = text.trim().split(':');
    octets.map(|it| u8::from_str_radix(it, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Microsoft's "Verifying the RSS hash calculation", as are the tuples below.
    pub(super) const KEY: [u8; 40] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];

    /// From, to, the hash of addresses and ports, that of the addresses.
    const VECTORS: [(&str, &str, u32, u32); 8] = [
        (
            "66.9.149.187:2794",
            "161.142.100.80:1766",
            0x51cc_c178,
            0x323e_8fc2,
        ),
        (
            "199.92.111.2:14230",
            "65.69.140.83:4739",
            0xc626_b0ea,
            0xd718_262a,
        ),
        (
            "24.19.198.95:12898",
            "12.22.207.184:38024",
            0x5c2b_394a,
            0xd2d0_a5de,
        ),
        (
            "38.27.205.30:48228",
            "209.142.163.6:2217",
            0xafc7_327f,
            0x8298_9176,
        ),
        (
            "153.39.163.191:44251",
            "202.188.127.2:1303",
            0x10e8_28a2,
            0x5d18_09c5,
        ),
        (
            "[3ffe:2501:200:1fff::7]:2794",
            "[3ffe:2501:200:3::1]:1766",
            0x4020_7d3d,
            0x2cc1_8cd5,
        ),
        (
            "[3ffe:501:8::260:97ff:fe40:efab]:14230",
            "[ff02::1]:4739",
            0xdde5_1bbf,
            0x0f0c_461c,
        ),
        (
            "[3ffe:1900:4545:3:200:f8ff:fe21:67cf]:44251",
            "[fe80::200:f8ff:fe21:67cf]:38024",
            0x02d1_feef,
            0x4b61_e985,
        ),
    ];

    #[test]
    fn hashes_are_those_that_microsoft_published() {
        for (from, to, with_ports, of_addresses) in VECTORS {
            let mut input = [0; INPUT_OCTETS_MAX];
            let octets = write_input(&mut input, from.parse().unwrap(), to.parse().unwrap());
            assert_eq!(toeplitz(&KEY, &input[..octets]), with_ports, "{from}");
            assert_eq!(toeplitz(&KEY, &input[..octets - 4]), of_addresses, "{from}");
        }
    }

    /// A card's response, composed by hand according to linux/ethtool.h.
    fn table_answer(table: &[u32], key: &[u8], (function, change): (u8, u8)) -> Vec<u8> {
        let mut answer = Vec::new();
        for number in [ETHTOOL_GRSSH, 0, table.len() as u32, key.len() as u32] {
            answer.extend(number.to_ne_bytes());
        }
        answer.extend([function, change, 0, 0, 0, 0, 0, 0]);
        answer.extend(table.iter().flat_map(|queue| queue.to_ne_bytes()));
        answer.extend(key);
        answer
    }

    fn fields_answer(flow: u32, fields: u64) -> Vec<u8> {
        let mut answer = vec![0; FIELDS_OCTETS];
        answer[..4].copy_from_slice(&ETHTOOL_GRXFH.to_ne_bytes());
        answer[4..8].copy_from_slice(&flow.to_ne_bytes());
        answer[8..16].copy_from_slice(&fields.to_ne_bytes());
        answer
    }

    #[test]
    fn what_a_card_says_of_itself_is_read() {
        let table: Vec<u32> = (0..128).map(|entry| entry % 6).collect();
        let answer = table_answer(&table, &KEY, (HASH_TOEPLITZ, 0));
        assert_eq!(parse_table(&answer), Some((KEY.to_vec(), table)));
        let kinds = [
            (0xf0, Some(Fields::All)),
            (0x30, Some(Fields::Addresses)),
            (0x70, None),
            (0, None),
        ];
        for (fields, kind) in kinds {
            assert_eq!(parse_fields(&fields_answer(UDP_V4_FLOW, fields)), kind);
        }
        assert_eq!(parse_key("6d:5a:00\n"), Some(vec![0x6d, 0x5a, 0]));
        assert_eq!(parse_key("6d:5a:0x"), None);
    }

    #[test]
    fn cards_that_hash_otherwise_and_answers_that_are_cut_off_are_left_alone() {
        for kind in [(2, 0), (HASH_TOEPLITZ, 1), (0, 0)] {
            assert_eq!(parse_table(&table_answer(&[0, 1], &KEY, kind)), None);
        }
        assert_eq!(parse_table(&table_answer(&[], &KEY, (1, 0))), None);
        let whole = table_answer(&[0, 1], &KEY, (HASH_TOEPLITZ, 0));
        for octets in 0..whole.len() {
            assert_eq!(parse_table(&whole[..octets]), None, "{octets} bytes");
        }
        let mut huge = whole;
        huge[8..12].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(parse_table(&huge), None);
        assert_eq!(parse_fields(&[0; 15]), None);
    }

    #[test]
    fn ports_decide_on_the_queue_only_where_they_are_hashed() {
        let mut rss = Rss::in_tests(4);
        let server: SocketAddr = "192.0.2.1:53".parse().unwrap();
        let queues = |rss: &Rss| -> Vec<Option<u32>> {
            let ports = 1_024..1_088;
            let clients = ports.map(|port| SocketAddr::from(([192, 0, 2, 7], port)));
            clients.map(|client| rss.queue(server, client)).collect()
        };
        let with_ports = queues(&rss);
        for queue in 0..4 {
            let times = with_ports.iter().filter(|it| **it == Some(queue)).count();
            assert!((8..=24).contains(&times), "queue {queue}: {times} of 64");
        }
        rss.ipv4 = Some(Fields::Addresses);
        let without = queues(&rss);
        assert!(without.iter().all(|it| *it == without[0] && it.is_some()));
        rss.ipv4 = None;
        assert!(queues(&rss).iter().all(Option::is_none));
    }

    #[test]
    fn ports_to_choose_from_are_those_of_the_kernel_that_hash_to_a_wanted_queue() {
        let mut rss = Rss::in_tests(4);
        rss.ports = 40_000..=40_063;
        let server: SocketAddr = "[2001:db8::1]:53".parse().unwrap();
        let ports = |own: u16| -> Vec<u16> {
            let local = SocketAddr::new("2001:db8::7".parse().unwrap(), own);
            let found = rss.ports(server, local, |queue| queue % 2 == 1);
            found.map(|it| it.port()).collect()
        };
        let mut wrapped = ports(40_031);
        assert!((20..=44).contains(&wrapped.len()), "{wrapped:?}");
        assert!(wrapped[0] > 40_031 && wrapped.last().unwrap() <= &40_031);
        wrapped.sort_unstable();
        for own in [1, 40_063, 65_535] {
            assert_eq!(ports(own), wrapped, "from {own}");
        }
        assert_eq!(parse_ports("32768\t60999\n"), Some(LOCAL_PORTS_USUAL));
        assert_eq!(parse_ports("32768"), None);
    }

    #[test]
    fn interfaces_without_it_are_no_error() {
        // The loopback interface, in any namespace.
        assert_eq!(Rss::of(1), None);
    }
}
