//! Queries on streams of QUIC connections: the endpoint of a worker, what it sends, and why its
//! connections end.

use std::time::Duration;

use driver::{Driver, Outgoing};
use load::Plan;
use measure::counts::Connections;
use proto::quic::{
    By, ClientProtocol, Clock, ConnectionKey, LostReason, QuicClient, QuicClientOptions,
};
use proto::{Instant, Transport};

use super::Wire;
use super::question::render_without_id;
use crate::worker::offer::Mode;
use crate::worker::population::client::{Client, Link};
use crate::worker::population::connection::{Channel, Connection};

/// Datagrams of one connection that are sent in one batch; the next batch follows at once.
const DATAGRAMS_MAX: usize = 16;

/// How long a connection may have no open stream and be allowed none, beside
/// [`STARVED_ROUND_TRIPS`]. Some servers allow each connection a fixed number of streams in all.
const STARVED_MIN: Duration = Duration::from_millis(100);

/// Round trips that suffice for the target to learn that all streams have ended, and to allow more,
/// even if a datagram is lost.
const STARVED_ROUND_TRIPS: u32 = 4;

/// RFC 9250, section 8.4.
const DOQ_NO_ERROR: u64 = 0;
/// RFC 9114, section 8.1.
const H3_NO_ERROR: u64 = 0x100;

/// The endpoint of a worker, if the plan's transport is QUIC's.
pub(crate) fn client(plan: &Plan, driver: &impl Driver) -> Option<QuicClient> {
    let epoch = driver.epoch();
    let protocol = match plan.transport {
        Transport::Doq => ClientProtocol::Doq,
        Transport::Doh3 => ClientProtocol::Http3(plan.doh.clone()?),
        _ => return None,
    };
    let mut quic = QuicClient::new(QuicClientOptions {
        protocol,
        // The target and the plan decide how long an idle connection stays open.
        idle_timeout: None,
        keep_alive: None,
        seed: driver.seed(),
        clock: Clock::new(epoch),
    });
    if plan.connections.stop_sending_allowed {
        quic.allow_stop_sending();
    }
    Some(quic)
}

impl Wire {
    /// Opens a stream for each of up to `room` waiting queries; their lengths go to `outgoing`.
    pub(crate) fn open_streams(
        &mut self,
        asked: (&Plan, &Mode),
        client: &mut Client,
        (room, is_watched): (usize, bool),
        (unix_time, now): (Duration, Instant),
    ) {
        self.outgoing.clear();
        self.positions.clear();
        let Client { pending, link, .. } = client;
        let (Link::Connected(connection), Some(quic)) = (link, &mut self.quic) else {
            return;
        };
        let Channel::Quic { key, .. } = &mut connection.channel else {
            return;
        };
        for query in pending.waiting_queries(room) {
            let message = &mut self.message;
            render_without_id(asked, query.question, unix_time, message);
            if quic.request(now, *key, message, query.number).is_err() {
                break;
            }
            self.outgoing.push_length(message.len());
            if is_watched {
                self.positions.push(query.position);
            }
        }
    }

    /// When a connection that is allowed no stream, though none is open, is given up.
    pub(crate) fn starved_until(&self, client: &Client) -> Option<Instant> {
        let Link::Connected(connection) = &client.link else {
            return None;
        };
        let Channel::Quic {
            key, starved_since, ..
        } = connection.channel
        else {
            return None;
        };
        let rtt = self.quic.as_ref()?.rtt(key);
        Some(starved_since? + STARVED_MIN + rtt * STARVED_ROUND_TRIPS)
    }

    /// When the connection's next timeout is due, if it is a QUIC connection.
    pub(crate) fn quic_due(&mut self, client: &Client) -> Option<Instant> {
        let Link::Connected(connection) = &client.link else {
            return None;
        };
        let Channel::Quic { key, .. } = connection.channel else {
            return None;
        };
        let starved_until = self.starved_until(client);
        let timeout = self.quic.as_mut()?.timeout(key);
        timeout.into_iter().chain(starved_until).min()
    }

    /// Fills `outgoing` with the next datagrams of a connection, up to [`DATAGRAMS_MAX`]; returns
    /// their number.
    #[inline]
    pub(crate) fn fill_datagrams(&mut self, key: ConnectionKey, now: Instant) -> usize {
        let Some(quic) = &mut self.quic else {
            return 0;
        };
        fill_burst(quic, (now, key), &mut self.outgoing);
        self.outgoing.datagrams.len()
    }

    /// Cancels a stream of a QUIC connection; false for other connections.
    pub(crate) fn cancel_stream(
        &mut self,
        connection: &Connection,
        token: u32,
        now: Instant,
    ) -> bool {
        let Channel::Quic { key, .. } = connection.channel else {
            return false;
        };
        if let Some(quic) = &mut self.quic {
            quic.cancel(now, key, token);
        }
        true
    }

    /// Begins to close a connection without an error.
    pub(crate) fn close_quic(&mut self, plan: &Plan, key: ConnectionKey, now: Instant) {
        let no_error = match plan.transport {
            Transport::Doh3 => H3_NO_ERROR,
            _ => DOQ_NO_ERROR,
        };
        if let Some(quic) = &mut self.quic {
            quic.close(now, key, no_error);
        }
    }
}

/// Fills `outgoing` with the next datagrams of a connection, up to [`DATAGRAMS_MAX`].
fn fill_burst(
    quic: &mut QuicClient,
    (now, key): (Instant, ConnectionKey),
    outgoing: &mut Outgoing,
) {
    outgoing.clear();
    while outgoing.datagrams.len() < DATAGRAMS_MAX {
        let most = DATAGRAMS_MAX - outgoing.datagrams.len();
        let Some(burst) = quic.poll_transmit(now, key, &mut outgoing.octets, most) else {
            return;
        };
        let mut left = burst.octets;
        while left > 0 {
            let octets = left.min(burst.datagram_octets);
            outgoing.push_length(octets);
            left -= octets;
        }
    }
}

/// Counts how a connection ended, other than by TLS.
pub(crate) fn count_quic_end(counts: &mut Connections, reason: &LostReason, usable: bool) {
    let failed = &mut counts.failed;
    match (reason, usable) {
        (LostReason::IdleTimeout, true) => counts.quic_idle_timeouts += 1,
        (LostReason::HandshakeTimeout, true) => counts.quic_idle_timeouts += 1,
        (LostReason::IdleTimeout | LostReason::HandshakeTimeout, false) => failed.timed_out += 1,
        (LostReason::Transport { code, .. }, true) => counts.quic_transport.record(*code),
        (LostReason::Transport { code, .. }, false) => failed.quic_transport.record(*code),
        (LostReason::Application { code, by: By::Peer }, true) if is_no_error(*code) => {
            counts.closed_by_target += 1;
        }
        (LostReason::Application { code, .. }, true) => counts.quic_application.record(*code),
        (LostReason::Application { code, .. }, false) => failed.quic_application.record(*code),
        (LostReason::StatelessReset, true) => counts.reset_by_target += 1,
        (LostReason::StatelessReset, false) => failed.reset += 1,
        (LostReason::VersionNegotiation, _) => failed.quic_version += 1,
        (LostReason::ClosedByUs, true) => counts.closed_by_client += 1,
        (LostReason::ClosedByUs, false) => failed.closed += 1,
        (LostReason::Tls(_), _) => {}
    }
}

fn is_no_error(code: u64) -> bool {
    matches!(code, DOQ_NO_ERROR | H3_NO_ERROR)
}
