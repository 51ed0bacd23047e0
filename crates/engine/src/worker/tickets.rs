//! Connections that are opened to be closed, in a run that resumes sessions: a ticket comes behind
//! the handshake (RFC 8446, section 4.6.1), so one that is closed with the handshake gets none, and
//! nothing would ever be resumed.

use std::time::Duration;

use driver::Driver;
use proto::Instant;

use super::Worker;
use crate::client::{Channel, Link, Reason};

/// How long a connection is kept open for its ticket.
const WAIT_MAX: Duration = Duration::from_millis(100);

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
    /// Closes a connection that was opened to be closed, unless its ticket has yet to come.
    pub(super) fn close_without_query(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        now: Instant,
    ) {
        match self.ticket(index, now) {
            Ticket::NotWanted | Ticket::Here => {}
            Ticket::AwaitedUntil(at) => return self.arm(index, at),
            Ticket::DidNotCome => {
                self.tally.of_event(now).counts.connections.tickets_missed += 1;
            }
        }
        self.close_connection(driver, index, Reason::WithoutQuery, now);
    }

    fn ticket(&self, index: u32, now: Instant) -> Ticket {
        let resumes = self.tls.as_ref().is_some_and(|it| !it.resume.is_never());
        let Link::Connected(connection) = &self.clients[index as usize].link else {
            return Ticket::NotWanted;
        };
        if !resumes {
            return Ticket::NotWanted;
        }
        let has_ticket = match (&connection.channel, &self.quic, &connection.tls) {
            (Channel::Quic { key, .. }, Some(quic), _) => quic.has_ticket(*key),
            (_, _, Some(tls)) => tls.has_ticket(),
            _ => false,
        };
        match connection.usable_at + WAIT_MAX {
            _ if has_ticket => Ticket::Here,
            until if until > now => Ticket::AwaitedUntil(until),
            _ => Ticket::DidNotCome,
        }
    }
}
