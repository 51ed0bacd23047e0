//! The query logs of BIND, Unbound and CoreDNS, a line at a time.
//!
//! Logs say less than captures: none tells TTLs, BIND no responses, Unbound no ports and, without
//! `log-destaddr`, no transports.

mod bind;
mod coredns;
mod time;
mod unbound;

use std::io::Read;
use std::net::SocketAddr;

use proto::Transport;
use proto::name;
use proto::rr;

use crate::assembly::Assembly;
use crate::error::CaptureError;
use crate::format::Format;
use crate::input::Input;
use crate::observed::{Observed, QueryFlags, Question, Response};
use crate::pairing::{Key, Seen};
use crate::skipped::Skip;

/// Octets of a line that are looked at: the longest name, escaped, and what is around it.
const LINE_OCTETS_MAX: usize = 8 * 1024;

/// What a line of a log is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    Query(Logged),
    /// About something else.
    Other,
    /// Looks like a query.
    Malformed,
}

/// What a line says about a query.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Logged {
    /// When it was logged, in nanoseconds since 1970.
    pub(crate) at_ns: Option<u64>,
    pub(crate) client: SocketAddr,
    pub(crate) server: Option<SocketAddr>,
    pub(crate) transport: Transport,
    pub(crate) question: Question,
    pub(crate) flags: QueryFlags,
    pub(crate) kind: LineKind,
}

/// When in the life of a query its line is written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// When it came, and nothing is written later.
    Query,
    /// When it came; another line may tell of the response.
    QueryFirst,
    /// When the response was sent.
    Response(Response),
}

/// Reads a line of such a log.
pub(crate) fn read(format: Format, line: &str) -> Line {
    match format {
        Format::Bind => bind::read(line),
        Format::Unbound => unbound::read(line),
        Format::CoreDns => coredns::read(line),
        Format::Pcap | Format::Pcapng | Format::Dnstap => Line::Other,
    }
}

/// Reads lines.
pub(crate) struct LogReader {
    format: Format,
    line: Vec<u8>,
}

impl LogReader {
    pub(crate) fn new(format: Format) -> Self {
        LogReader {
            format,
            line: Vec::new(),
        }
    }

    /// Reads the next line; false at the end.
    pub(crate) fn read<R: Read>(
        &mut self,
        input: &mut Input<R>,
        assembly: &mut Assembly,
    ) -> Result<bool, CaptureError> {
        if input.line(LINE_OCTETS_MAX, &mut self.line)?.is_none() {
            return Ok(false);
        }
        let line = match std::str::from_utf8(&self.line) {
            Ok(line) => read(self.format, line),
            Err(_) => Line::Malformed,
        };
        match line {
            Line::Query(logged) => take(logged, assembly),
            Line::Other => assembly.skipped.count(Skip::OtherLine),
            Line::Malformed => assembly.skipped.count(Skip::MalformedLine),
        }
        Ok(true)
    }
}

fn take(logged: Logged, assembly: &mut Assembly) {
    let at_ns = assembly.at_ns(logged.at_ns);
    let key = Key {
        client: logged.client,
        server: None,
        transport: logged.transport,
        connection: None,
        id: 0,
        question: Some(logged.question.clone()),
    };
    let mut observed = Observed {
        at_ns,
        client: logged.client,
        server: logged.server,
        transport: logged.transport,
        connection: None,
        question: logged.question,
        flags: logged.flags,
        response: None,
    };
    match logged.kind {
        LineKind::Query => assembly.pairing.whole(observed),
        LineKind::QueryFirst => {
            let Assembly {
                pairing, skipped, ..
            } = assembly;
            pairing.query(key, observed, skipped);
        }
        LineKind::Response(response) => {
            let seen = Seen {
                at_ns,
                question: None,
                response,
            };
            if !assembly.pairing.response(&key, &seen) {
                observed.at_ns = at_ns.saturating_sub(response.latency_ns.unwrap_or(0));
                observed.response = Some(response);
                assembly.pairing.whole(observed);
            }
        }
    }
}

/// A question in presentation format.
fn question(name: &str, qtype: &str, qclass: &str) -> Option<Question> {
    let mut wire = Vec::new();
    name::parse(name, &mut wire).ok()?;
    wire.make_ascii_lowercase();
    Some(Question {
        name: wire.into(),
        qtype: rr::type_from_text(qtype)?,
        qclass: rr::class_from_text(qclass)?,
    })
}

/// A latency written in seconds, in nanoseconds.
fn seconds_ns(text: &str) -> Option<u64> {
    let is_plain = text
        .bytes()
        .all(|octet| octet.is_ascii_digit() || octet == b'.');
    let seconds: f64 = text.parse().ok().filter(|_| is_plain)?;
    Some((seconds * 1e9).round() as u64)
}

#[cfg(test)]
mod tests;
