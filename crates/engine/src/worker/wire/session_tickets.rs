//! Connections that may not be closed yet, in a run that resumes sessions: a ticket comes after the
//! handshake (RFC 8446, section 4.6.1), and the client's next connection needs it.
//!
//! A connection without queries would be closed right after the handshake, before its ticket. One
//! whose query left as early data gets the response during the handshake: closed then, it would
//! have no ticket, and only every other connection could send early data. If a query is sent after
//! the handshake, tickets come before its response.

use std::time::Duration;

use load::Plan;
use proto::Instant;
use proto::tls::ClientSession;

use super::Wire;
use crate::worker::population::client::{Client, Link};
use crate::worker::population::connection::{Channel, Connection};

/// How long a connection is kept open for its ticket, beside the time that its set-up took: a
/// ticket takes a round trip, which is part of that.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// A target that gave this many connections in succession no ticket gives none to resumed sessions.
const MISSED_MAX: u32 = 3;

/// What is known of the ticket for a client's next connection.
pub(crate) enum Ticket {
    /// Nothing is resumed.
    NotWanted,
    Here,
    /// It may arrive until this instant.
    AwaitedUntil(Instant),
    DidNotCome,
}

impl Wire {
    /// Drops the state of a lost connection; returns the session for its client to keep, if it had
    /// one.
    pub(crate) fn forget(&mut self, connection: &mut Connection) -> Option<ClientSession> {
        let mut session = connection.tls.as_mut().map(|tls| tls.take_memory());
        if let (Channel::Quic { key, .. }, Some(quic)) = (&connection.channel, &mut self.quic) {
            session = Some(quic.take_memory(*key));
            quic.forget(*key);
        }
        session
    }

    /// What is known of the ticket of a client's connection.
    pub(crate) fn ticket(&self, plan: &Plan, client: &Client, now: Instant) -> Ticket {
        let resumes = self.tls.as_ref().is_some_and(|it| !it.resume.is_never());
        let Link::Connected(connection) = &client.link else {
            return Ticket::NotWanted;
        };
        let asks_nothing = plan.connections.asks_nothing();
        let is_ahead = connection.early.was_used && self.tickets_missed < MISSED_MAX;
        if !resumes || !(asks_nothing || is_ahead) {
            return Ticket::NotWanted;
        }
        let has_ticket = match (&connection.channel, &self.quic, &connection.tls) {
            (Channel::Quic { key, .. }, Some(quic), _) => quic.has_ticket(*key),
            (_, _, Some(tls)) => tls.has_ticket(),
            _ => false,
        };
        let set_up = connection
            .times
            .usable_at
            .nanos_since(connection.times.attempted_at);
        match connection.times.usable_at + WAIT_MAX + Duration::from_nanos(set_up) {
            _ if has_ticket => Ticket::Here,
            until if until > now => Ticket::AwaitedUntil(until),
            _ => Ticket::DidNotCome,
        }
    }
}
