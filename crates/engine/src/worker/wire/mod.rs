//! The wire formats of one worker: renders queries as datagrams, frames, requests and streams, and
//! compares messages with the queries that they answer.
//!
//! * `question`: writes the message of a query, and compares questions.
//! * `datagrams`, `framed`, `http2`, `quic`: how messages travel, a file each.
//! * `session_tickets`: connections that may not be closed before their ticket has come.

pub(crate) mod datagrams;
pub(crate) mod framed;
pub(crate) mod http2;
pub(crate) mod question;
pub(crate) mod quic;
pub(crate) mod session_tickets;

use std::time::Duration;

use driver::{Driver, Outgoing};
use load::Plan;
use proto::quic::QuicClient;

use super::inputs::TlsSettings;

/// Queries of one client sent in one batch; the next batch follows at once.
pub(crate) const BATCH_MAX: usize = 256;

/// What one worker sends and receives with.
pub(crate) struct Wire {
    /// How TLS sessions are made, if the transport has TLS.
    pub(crate) tls: Option<TlsSettings>,
    /// All QUIC connections; none on other transports. Taken out while it is worked with.
    pub(crate) quic: Option<QuicClient>,
    /// State of the draws that decide on resumption.
    draws: u64,
    /// Connections in succession that were closed because their ticket did not come.
    pub(crate) tickets_missed: u32,
    /// Numbers of queries whose exchange ended unprocessed in the delivery being handled.
    pub(crate) unprocessed: Vec<u32>,
    /// The batch that is being sent: datagrams, or the lengths of messages on a connection.
    pub(crate) outgoing: Outgoing,
    /// Positions of the queries in `outgoing`, if stamps or clients that retry need them.
    pub(crate) positions: Vec<u32>,
    /// One message that travels in its own request or stream.
    pub(crate) message: Vec<u8>,
    /// Framed plaintext, ciphertext, and received plaintext of the stream being served.
    pub(crate) plain_out: Vec<u8>,
    pub(crate) cipher_out: Vec<u8>,
    pub(crate) plain_in: Vec<u8>,
}

impl Wire {
    /// For worker number `index`.
    pub(crate) fn new(plan: &Plan, tls: Option<TlsSettings>, index: u32) -> Self {
        Wire {
            tls,
            quic: None,
            draws: plan.seed ^ u64::from(index) << 32,
            tickets_missed: 0,
            unprocessed: Vec::new(),
            outgoing: Outgoing::default(),
            positions: Vec::new(),
            message: Vec::new(),
            plain_out: Vec::new(),
            cipher_out: Vec::new(),
            plain_in: Vec::new(),
        }
    }

    /// The next random number: of those that decide on resumption, all equally likely.
    pub(crate) fn draw(&mut self) -> u64 {
        self.draws = self.draws.wrapping_add(1);
        mix(self.draws)
    }
}

/// The time in signatures; zero where nothing is signed, which saves reading a clock.
#[inline]
pub(crate) fn signing_time(plan: &Plan, driver: &impl Driver) -> Duration {
    match plan.tsig {
        Some(_) => driver.unix_time(),
        None => Duration::ZERO,
    }
}

/// Splitmix64: numbers that are close together become numbers that look unrelated.
pub(crate) fn mix(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
