//! DNS messages and their transports as state machines (RFC 1035, 7766, 7858, 8484, 9250).
//!
//! Owns no socket, reads no clock, starts no thread: instants and octets go in; messages,
//! transmits and outcomes come out. Every driver can therefore run every transport, and the
//! simulator runs the production code.
//!
//! | module | what it holds |
//! |---|---|
//! | [`time`] | [`Instant`], nanoseconds since the driver's epoch |
//! | [`name`] | domain names between presentation and wire format |
//! | [`rr`] | TYPE, CLASS, RCODE and opcode mnemonics |
//! | [`query`] | building query and update messages, EDNS |
//! | [`response`] | reading what came back and matching it to its query |
//! | [`tsig`] | transaction signatures (RFC 8945) |
//! | [`doh`] | what requests of DNS over HTTPS have in common |
//! | [`http2`], [`hpack`] | HTTP/2 for DoH, both ends |
//! | [`http3`], [`qpack`] | HTTP/3 for DoH, both ends |
//! | [`doq`] | DNS over QUIC: what is on a stream |
//! | [`exchange`] | what becomes of one request over HTTP, or one QUIC stream |
//! | [`framing`] | the two-octet length prefix of DNS over streams |
//! | [`quic`] | QUIC connections, the one module that knows quinn-proto |
//! | [`tls`] | DNS over TLS, the one module that knows rustls |
//! | [`pending`] | queries in flight of one client: IDs, instants, time-outs |

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")
)]

pub mod doh;
pub mod doq;
pub mod exchange;
pub mod framing;
pub mod hpack;
pub mod http2;
pub mod http3;
pub mod name;
pub mod pending;
pub mod qpack;
pub mod query;
pub mod quic;
pub mod response;
pub mod rr;
pub mod time;
pub mod tls;
pub mod tsig;

pub use time::Instant;

/// How messages travel between client and target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// DNS over UDP (RFC 1035, section 4.2.1).
    Udp,
    /// DNS over TCP with pipelining (RFC 7766).
    Tcp,
    /// DNS over TLS (RFC 7858).
    Dot,
    /// DNS over HTTPS (RFC 8484) with HTTP/2 (RFC 9113).
    Doh2,
    /// DNS over HTTPS (RFC 8484) with HTTP/3 (RFC 9114).
    Doh3,
    /// DNS over QUIC (RFC 9250).
    Doq,
}

impl Transport {
    /// All transports, in the order in which tables list them.
    pub const ALL: [Transport; 6] = [
        Transport::Udp,
        Transport::Tcp,
        Transport::Dot,
        Transport::Doh2,
        Transport::Doh3,
        Transport::Doq,
    ];

    /// The name as it is typed and recorded: `udp`, `tcp`, `dot`, `doh2`, `doh3`, `doq`.
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
            Transport::Dot => "dot",
            Transport::Doh2 => "doh2",
            Transport::Doh3 => "doh3",
            Transport::Doq => "doq",
        }
    }

    /// The port that a target listens on unless told otherwise: 53, 853 for DoT and DoQ, 443 for
    /// DoH.
    pub const fn default_port(self) -> u16 {
        match self {
            Transport::Udp | Transport::Tcp => 53,
            Transport::Dot | Transport::Doq => 853,
            Transport::Doh2 | Transport::Doh3 => 443,
        }
    }

    /// The protocol that it is in ALPN (RFC 7301), where it has TLS: `dot` (RFC 7858), `h2`, `h3`,
    /// `doq` (RFC 9250).
    pub const fn alpn(self) -> Option<&'static str> {
        match self {
            Transport::Udp | Transport::Tcp => None,
            Transport::Dot => Some("dot"),
            Transport::Doh2 => Some("h2"),
            Transport::Doh3 => Some("h3"),
            Transport::Doq => Some("doq"),
        }
    }

    /// True if messages travel in a connection that has to be set up first.
    pub const fn has_connections(self) -> bool {
        !matches!(self, Transport::Udp)
    }

    /// True if its connections are TCP's.
    pub const fn is_stream(self) -> bool {
        matches!(self, Transport::Tcp | Transport::Dot | Transport::Doh2)
    }

    /// True if its connections are QUIC's (RFC 9000).
    pub const fn is_quic(self) -> bool {
        matches!(self, Transport::Doh3 | Transport::Doq)
    }

    /// True if its connections begin with a TLS handshake, within QUIC or before HTTP. `http://`
    /// is DoH/2 without it.
    pub const fn has_tls(self) -> bool {
        !matches!(self, Transport::Udp | Transport::Tcp)
    }

    /// True if each query is an HTTP request.
    pub const fn is_doh(self) -> bool {
        matches!(self, Transport::Doh2 | Transport::Doh3)
    }
}

impl std::str::FromStr for Transport {
    type Err = String;

    /// Reads a name; `doh` is `doh2`.
    fn from_str(text: &str) -> Result<Self, String> {
        let name = if text == "doh" { "doh2" } else { text };
        Transport::ALL
            .into_iter()
            .find(|transport| transport.name() == name)
            .ok_or_else(|| {
                format!("unknown transport `{text}`: expected udp, tcp, dot, doh2, doh3 or doq")
            })
    }
}

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
