//! QUIC connections for DoQ (RFC 9250) and DoH over HTTP/3 (RFC 9114): the one module that knows
//! quinn-proto.
//!
//! [`QuicClient`] holds all connections of one worker, [`QuicServer`] all connections of one
//! socket. Both own no socket, read no clock and draw no randomness but from the seed they are
//! given (key exchanges excepted, which rustls draws from the system). quinn-proto wants
//! `std::time::Instant`: [`Clock`] converts, from an epoch that the caller hands in.
//!
//! Calling order of both: `handle_datagram` or `handle_timeout`, then `poll_event` until it is
//! `None`, then what is to be sent (`request`, `respond`, `close`), then `poll_transmit` until it
//! is `None`, then `timeout`.
//!
//! Not here: connection migration, unreliable datagrams, a store for address validation tokens
//! (RFC 9000, section 8.1.3; every client arrives as a new one), MTU discovery.

mod client;
mod clock;
mod identity;
mod lost;
mod server;
mod session;
mod slab;
mod streams;
mod transport;

#[cfg(test)]
mod tests;

use crate::tls::Negotiated;
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

/// What a handshake led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Established {
    /// Whether keys come from a key exchange and a certificate, or from an earlier session.
    pub handshake: Handshake,
    /// What became of queries in the first flight.
    pub early_data: EarlyData,
    /// Version, cipher suite and group; `None` if rustls does not tell.
    pub negotiated: Option<Negotiated>,
    /// Octets of UDP payload sent until the handshake was complete on this side; a client's last
    /// flight is not among them, because it may carry queries already.
    pub octets_sent: u64,
    /// Octets of UDP payload received until then.
    pub octets_received: u64,
}

/// How a TLS 1.3 handshake came to its keys (RFC 8446, section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Handshake {
    /// With certificate and signature.
    Full,
    /// With the key of an earlier session.
    Resumed,
}

/// What became of 0-RTT (RFC 9001, section 4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EarlyData {
    /// There was no session that allows it, or it is switched off.
    NotOffered,
    /// The server processes what came in the first flight.
    Accepted,
    /// The server did not look at it; a client's exchanges end as not processed.
    Rejected,
}

/// What a handshake that is complete says about itself.
fn established(quic: &quinn_proto::Connection, early_data: EarlyData) -> Established {
    let facts = quic.crypto_session().handshake_data();
    let facts = facts.and_then(|facts| facts.downcast::<HandshakeFacts>().ok());
    let stats = quic.stats();
    Established {
        handshake: facts
            .as_ref()
            .map_or(Handshake::Full, |facts| facts.handshake),
        early_data,
        negotiated: facts.and_then(|facts| facts.negotiated),
        octets_sent: stats.udp_tx.bytes,
        octets_received: stats.udp_rx.bytes,
    }
}
