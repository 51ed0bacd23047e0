//! DNS messages and their transports as state machines (RFC 1035, 7766, 7858, 8484, 9250).
//!
//! Owns no socket, reads no clock, starts no thread: instants and octets go in; messages,
//! transmits and outcomes come out. Every driver can therefore run every transport, and the
//! simulator runs the production code.
//!
//! | module | contents |
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
//! | [`pending`] | queries in flight of one client: IDs, instants, timeouts |

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

pub use settings::Transport;
pub use time::Instant;
