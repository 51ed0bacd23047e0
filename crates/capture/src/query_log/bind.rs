//! Lines of BIND's category `queries` (BIND 9 Administrator Reference Manual, `logging`).
//!
//! `21-Nov-2026 10:00:00.123 queries: info: client @0x7f0 192.0.2.1#5353 (example.com): query:
//! example.com IN A +E(0)K (192.0.2.53)`

use std::net::{IpAddr, SocketAddr};

use proto::Transport;

use super::{Line, LineKind, Logged, question, time};
use crate::observed::QueryFlags;

/// Reads a line.
pub(super) fn read(line: &str) -> Line {
    // The client's own text, its QNAME, only comes after these words.
    let Some((before, rest)) = line.split_once("client ") else {
        return Line::Other;
    };
    let Some((who, asked)) = rest.split_once(": query: ") else {
        return Line::Other;
    };
    match logged(before, who, asked) {
        Some(logged) => Line::Query(logged),
        None => Line::Malformed,
    }
}

fn logged(before: &str, who: &str, asked: &str) -> Option<Logged> {
    let mut words = asked.split_ascii_whitespace();
    let (name, qclass, qtype) = (words.next()?, words.next()?, words.next()?);
    let flags = words.next()?;
    let server = words.next().and_then(|word| word.strip_prefix('('));
    let server = server.and_then(|word| word.strip_suffix(')')?.parse::<IpAddr>().ok());
    let has = |flag: char| flags.contains(flag);
    if !flags.starts_with(['+', '-']) {
        return None;
    }
    Some(Logged {
        at_ns: time::read(before),
        client: client(who)?,
        server: server.map(|address| (address, 0).into()),
        transport: if has('T') {
            Transport::Tcp
        } else {
            Transport::Udp
        },
        question: question(name, qtype, qclass)?,
        flags: QueryFlags {
            recursion_desired: has('+'),
            checking_disabled: has('C'),
            edns: has('E'),
            dnssec_ok: has('D'),
        },
        kind: LineKind::Query,
    })
}

/// `@0x7f0 192.0.2.1#5353 (example.com)`, in older versions without the first word; a key's name
/// may follow the port.
fn client(who: &str) -> Option<SocketAddr> {
    let mut words = who.split_ascii_whitespace();
    let word = words.find(|word| !word.starts_with('@'))?;
    let (address, port) = word.split_once('#')?;
    let address = address.split('%').next()?; // without its zone (RFC 4007, section 11)
    let port = port.split('/').next()?;
    Some((address.parse::<IpAddr>().ok()?, port.parse().ok()?).into())
}
