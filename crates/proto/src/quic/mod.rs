//! QUIC connections for DoQ (RFC 9250) and DoH over HTTP/3 (RFC 9114): the only module that uses
//! quinn-proto.
//!
//! [`QuicClient`] holds all connections of one worker, [`QuicServer`] all connections of one
//! socket. Both own no socket, read no clock and draw no randomness but from the seed they are
//! given (key exchanges excepted, which rustls draws from the system). quinn-proto wants
//! `std::time::Instant`: [`Clock`] converts, from an epoch that the caller hands in.
//!
//! Calling order of both: `handle_datagram` or `handle_timeout`, then `poll_event` until it is
//! `None`, then calls that send (`request`, `respond`, `close`), then `poll_transmit` until it is
//! `None`, then `timeout`.
//!
//! Not here: connection migration, unreliable datagrams, a store for address validation tokens
//! (RFC 9000, section 8.1.3; every client arrives as a new one), MTU discovery.

mod client;
mod clock;
mod http3_streams;
mod identity;
mod lost;
mod server;
mod session;
mod slab;
mod streams;
mod transport;

#[cfg(test)]
mod tests;

use crate::tls::{EarlyData, Handshake, HandshakeKind, Negotiated};
use session::HandshakeFacts;

pub use client::{Blocked, ClientProtocol, ConnectError, QuicClient, QuicClientOptions, QuicEvent};
pub use clock::Clock;
pub use lost::{By, LostReason};
pub use server::{
    Admission, Arrival, QuicServer, QuicServerOptions, ServerEvent, ServerProtocol, ServerTransmit,
};
pub use slab::ConnectionKey;

/// A burst of datagrams that `poll_transmit` has appended, to be cut into equal pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Octets of each datagram but the last, which may be shorter.
    pub datagram_octets: usize,
    /// Octets of all datagrams.
    pub octets: usize,
}

/// The result of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Established {
    /// Figures of a handshake. Octets are those of UDP payload, including retransmissions and early
    /// data, but not what a client sends once it is complete, such as its Finished.
    pub handshake: Handshake,
    /// Cipher suite, group and ALPN.
    pub negotiated: Option<Negotiated>,
}

/// Properties of a complete handshake.
fn established(quic: &quinn_proto::Connection, early_data: EarlyData) -> Established {
    let facts = quic.crypto_session().handshake_data();
    let facts = facts.and_then(|facts| facts.downcast::<HandshakeFacts>().ok());
    let stats = quic.stats();
    let octets = |octets: u64| u32::try_from(octets).unwrap_or(u32::MAX);
    Established {
        handshake: Handshake {
            kind: facts
                .as_ref()
                .map_or(HandshakeKind::Full, |facts| facts.kind),
            early_data,
            octets_sent: octets(stats.udp_tx.bytes),
            octets_received: octets(stats.udp_rx.bytes),
        },
        negotiated: facts.and_then(|facts| facts.negotiated),
    }
}
