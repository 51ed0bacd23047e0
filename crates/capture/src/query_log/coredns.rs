//! Lines of CoreDNS's plugin `log` in its common format.
//!
//! `[INFO] 192.0.2.1:50759 - 29008 "A IN example.org. udp 41 false 4096" NOERROR qr,rd,ra 68
//! 0.037990251s`
//!
//! CoreDNS writes no timestamps; the collector of its output can put one before each line
//! (`kubectl logs --timestamps`). A line is written when the response is sent.

use std::net::SocketAddr;

use proto::Transport;
use proto::rr;

use super::{Line, LineKind, Logged, question, seconds_ns, time};
use crate::observed::{QueryFlags, Response};

/// Reads a line.
pub(super) fn read(line: &str) -> Line {
    let Some((before, rest)) = line.split_once("[INFO] ") else {
        return Line::Other;
    };
    let Some((who, asked)) = rest.split_once(" - ") else {
        return Line::Other;
    };
    let Some(client) = client(who) else {
        return Line::Other;
    };
    match logged(before, client, asked) {
        Some(logged) => Line::Query(logged),
        None => Line::Malformed,
    }
}

/// `192.0.2.1:50759` or `[2001:db8::1]:50759`, with a zone perhaps.
fn client(who: &str) -> Option<SocketAddr> {
    let (before, zone) = who.split_once('%').unwrap_or((who, ""));
    match zone.find(']') {
        Some(end) => format!("{before}{}", &zone[end..]).parse().ok(),
        None => before.parse().ok(),
    }
}

fn logged(before: &str, client: SocketAddr, asked: &str) -> Option<Logged> {
    let (_id, rest) = asked.split_once(" \"")?;
    let (query, rest) = rest.rsplit_once("\" ")?;
    // Blanks within a name are escaped and stay blanks, so the name is what is left in the middle.
    let (qtype, rest_of_query) = query.split_once(' ')?;
    let (qclass, rest_of_query) = rest_of_query.split_once(' ')?;
    let mut words = rest_of_query.rsplitn(5, ' ');
    let payload_octets: u32 = words.next()?.parse().ok()?;
    let dnssec_ok = words.next()? == "true";
    let _octets = words.next()?;
    let transport = transport(words.next()?)?;
    let name = words.next()?;
    let mut words = rest.split_ascii_whitespace();
    let (rcode, response_flags) = (words.next()?, words.next()?);
    let latency_ns = words
        .nth(1)
        .and_then(|word| seconds_ns(word.strip_suffix('s')?));
    Some(Logged {
        at_ns: time::read(before),
        client,
        server: None,
        transport,
        question: question(name, qtype, qclass)?,
        flags: QueryFlags {
            recursion_desired: response_flags.split(',').any(|flag| flag == "rd"),
            checking_disabled: response_flags.split(',').any(|flag| flag == "cd"),
            // 512 is what holds without EDNS.
            edns: dnssec_ok || payload_octets != 512,
            dnssec_ok,
        },
        kind: match rr::rcode_from_text(rcode) {
            Some(rcode) => LineKind::Response(Response {
                rcode,
                ttl_s_min: None,
                latency_ns,
            }),
            // No response was sent: `-`.
            None => LineKind::Query,
        },
    })
}

fn transport(word: &str) -> Option<Transport> {
    match word {
        "udp" => Some(Transport::Udp),
        "tcp" => Some(Transport::Tcp),
        "tls" => Some(Transport::Dot),
        "https" => Some(Transport::Doh2),
        "https3" => Some(Transport::Doh3),
        "quic" => Some(Transport::Doq),
        _ => None,
    }
}
