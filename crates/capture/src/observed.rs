//! What a capture says about one query.

use std::net::SocketAddr;

use proto::Transport;

/// A query that somebody sent, and what it got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// When the query was seen, in nanoseconds since 1970 UTC. Logs without a time zone count as
    /// UTC, and logs without a year as of 2000: only differences mean something then. 0 in every
    /// query of a log without any times.
    pub at_ns: u64,
    /// Who asked. Port 0 if the log does not say it.
    pub client: SocketAddr,
    /// Who was asked, if the capture says so.
    pub server: Option<SocketAddr>,
    /// How the query came.
    pub transport: Transport,
    /// Number of the TCP connection within the capture, where connections can be told apart.
    pub connection: Option<u64>,
    /// What was asked.
    pub question: Question,
    /// Bits of the query that change what a server does.
    pub flags: QueryFlags,
    /// The response, if one was seen.
    pub response: Option<Response>,
}

/// The question section of a query (RFC 1035, section 4.1.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Question {
    /// QNAME in wire format, letters in lower case.
    pub name: Box<[u8]>,
    /// QTYPE.
    pub qtype: u16,
    /// QCLASS.
    pub qclass: u16,
}

/// Bits of a query that change what a server does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryFlags {
    /// RD.
    pub recursion_desired: bool,
    /// CD (RFC 4035).
    pub checking_disabled: bool,
    /// There is an OPT record (RFC 6891).
    pub edns: bool,
    /// DO (RFC 3225).
    pub dnssec_ok: bool,
}

/// What a query got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response {
    /// The RCODE, extended by EDNS where that was captured.
    pub rcode: u16,
    /// How long a cache may keep the response, in seconds: the least TTL of the answer, or of a
    /// negative response (RFC 2308, section 5) the lesser of the SOA's TTL and MINIMUM. `None` if
    /// the capture does not say.
    pub ttl_s_min: Option<u32>,
    /// From the query to the response, in nanoseconds; `None` if the log does not say.
    pub latency_ns: Option<u64>,
}
