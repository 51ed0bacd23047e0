//! Connections that may not be closed yet, in a run that resumes sessions: a ticket comes behind
//! the handshake (RFC 8446, section 4.6.1), and the client's next connection needs it.
//!
//! One that is opened to be closed would be closed with the handshake, and get none. One whose
//! query left as early data gets the response while the handshake still goes on: closed with that,
//! it would leave no ticket, and only every other connection could send early data. Where a query
//! went behind the handshake, tickets have come before its response.

use std::time::Duration;

use driver::Driver;
use proto::Instant;

use super::Worker;
use crate::client::{Channel, Link, Reason};

/// How long a connection is kept open for its ticket, beside the time that its set-up took: a
/// ticket takes a round trip, which is part of that.
const WAIT_MAX: Duration = Duration::from_millis(100);
/// Targets that have left so many connections in succession without one give none to sessions that
/// are resumed.
const MISSED_MAX: u32 = 3;

/// What is known of the ticket for a client's next connection.
enum Ticket {
    /// Nothing is resumed.
    NotWanted,
    Here,
    /// It may come until then.
    AwaitedUntil(Instant),
    DidNotCome,
}

impl Worker {
    /// Closes a connection that has carried what it was to carry, unless its ticket has yet to
    /// come.
    pub(super) fn close_with_ticket(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        reason: Reason,
        now: Instant,
    ) {
        match self.ticket(index, now) {
            Ticket::NotWanted => {}
            Ticket::Here => self.tickets_missed = 0,
            Ticket::AwaitedUntil(at) => return self.arm(index, at),
            Ticket::DidNotCome => {
                self.tickets_missed += 1;
                self.tally.of_event(now).counts.connections.tickets_missed += 1;
            }
        }
        self.close_connection(driver, index, reason, now);
    }

    fn ticket(&self, index: u32, now: Instant) -> Ticket {
        let resumes = self.tls.as_ref().is_some_and(|it| !it.resume.is_never());
        let Link::Connected(connection) = &self.clients[index as usize].link else {
            return Ticket::NotWanted;
        };
        let asks_nothing = self.plan.connections.asks_nothing();
        let is_ahead = connection.sent_early && self.tickets_missed < MISSED_MAX;
        if !resumes || !(asks_nothing || is_ahead) {
            return Ticket::NotWanted;
        }
        let has_ticket = match (&connection.channel, &self.quic, &connection.tls) {
            (Channel::Quic { key, .. }, Some(quic), _) => quic.has_ticket(*key),
            (_, _, Some(tls)) => tls.has_ticket(),
            _ => false,
        };
        let set_up = connection.usable_at.nanos_since(connection.attempted_at);
        match connection.usable_at + WAIT_MAX + Duration::from_nanos(set_up) {
            _ if has_ticket => Ticket::Here,
            until if until > now => Ticket::AwaitedUntil(until),
            _ => Ticket::DidNotCome,
        }
    }
}
