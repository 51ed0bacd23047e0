//! Lines of Unbound's `log-queries` and `log-replies` (unbound.conf(5)).
//!
//! `[1795255200] unbound[7:0] info: 192.0.2.1 example.com. A IN`, and for a response
//! `NOERROR 0.012345 0 45` after that: RCODE, seconds, whether it was cached, octets. With
//! `log-tag-queryreply` they say `query:` and `reply:` instead of `info:`, and with `log-destaddr`
//! a reply ends with `on udp 192.0.2.53 53`.

use std::net::{IpAddr, SocketAddr};

use proto::Transport;
use proto::rr;

use super::{Line, LineKind, Logged, question, seconds_ns, time};
use crate::observed::{QueryFlags, Response};

/// Reads a line.
pub(super) fn read(line: &str) -> Line {
    let tags = ["] info: ", "] query: ", "] reply: "];
    let Some((before, rest)) = tags.into_iter().find_map(|tag| line.split_once(tag)) else {
        return Line::Other;
    };
    let mut words = rest.split_ascii_whitespace();
    let address = words.next().and_then(|word| word.parse::<IpAddr>().ok());
    let Some(address) = address else {
        return Line::Other;
    };
    match logged(before, address, words) {
        Some(logged) => Line::Query(logged),
        None => Line::Malformed,
    }
}

fn logged<'a>(
    before: &str,
    address: IpAddr,
    mut words: impl Iterator<Item = &'a str>,
) -> Option<Logged> {
    let (name, qtype, qclass) = (words.next()?, words.next()?, words.next()?);
    let question = question(name, qtype, qclass)?;
    let kind = match words.next() {
        None => LineKind::QueryFirst,
        Some(rcode) => LineKind::Response(Response {
            rcode: rr::rcode_from_text(rcode)?,
            ttl_s_min: None,
            latency_ns: Some(seconds_ns(words.next()?)?),
        }),
    };
    // Past whether it was cached, and the octets.
    let at = (words.nth(2) == Some("on"))
        .then(|| destination(words))
        .flatten();
    Some(Logged {
        at_ns: time::read(before),
        client: (address, 0).into(),
        server: at.map(|(_, server)| server),
        transport: at.map_or(Transport::Udp, |(transport, _)| transport),
        question,
        flags: QueryFlags {
            // Not logged; a resolver's clients ask for recursion.
            recursion_desired: true,
            ..QueryFlags::default()
        },
        kind,
    })
}

/// `udp 192.0.2.53 53`.
fn destination<'a>(mut words: impl Iterator<Item = &'a str>) -> Option<(Transport, SocketAddr)> {
    let transport = words.next()?.parse().ok()?;
    let address: IpAddr = words.next()?.parse().ok()?;
    let port = words.next()?.parse().ok()?;
    Some((transport, (address, port).into()))
}
