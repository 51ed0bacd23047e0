//! DNS messages and the transports udp, tcp and dot as state machines (RFC 1035, 7766, 7858).
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
//! | [`framing`] | the two-octet length prefix of DNS over streams |
//! | [`tls`] | DNS over TLS, the one module that knows rustls |
//! | [`pending`] | queries in flight of one client: IDs, instants, time-outs |

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")
)]

pub mod framing;
pub mod name;
pub mod pending;
pub mod query;
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
}

impl Transport {
    /// All transports, in the order in which tables list them.
    pub const ALL: [Transport; 3] = [Transport::Udp, Transport::Tcp, Transport::Dot];

    /// The name as it is typed and recorded: `udp`, `tcp`, `dot`.
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
            Transport::Dot => "dot",
        }
    }

    /// The port that a target listens on unless told otherwise (53, or 853 for DoT).
    pub const fn default_port(self) -> u16 {
        match self {
            Transport::Udp | Transport::Tcp => 53,
            Transport::Dot => 853,
        }
    }

    /// True if messages travel in a connection that has to be set up first.
    pub const fn is_stream(self) -> bool {
        !matches!(self, Transport::Udp)
    }
}

impl std::str::FromStr for Transport {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Transport::ALL
            .into_iter()
            .find(|transport| transport.name() == text)
            .ok_or_else(|| format!("unknown transport `{text}`: expected udp, tcp or dot"))
    }
}

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
