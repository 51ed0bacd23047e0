//! Queries counted as they are sent, kept waiting, or refused by the kernel.

use driver::{Outgoing, SocketError};
use measure::counts::SendFailures;
use proto::Instant;
use proto::pending::Query;

use super::Ledger;
use crate::worker::population::client::{Client, Role};

impl Ledger {
    /// Counts the first `accepted` datagrams of `outgoing` as accepted by a socket.
    #[inline]
    pub(crate) fn count_datagrams(&mut self, outgoing: &Outgoing, accepted: usize, now: Instant) {
        let Outgoing { octets, datagrams } = outgoing;
        let octets = match accepted == datagrams.len() {
            true => octets.len(),
            false => datagrams[..accepted]
                .iter()
                .map(|it| it.length as usize)
                .sum(),
        };
        let counts = &mut self.tally.of_event(now).counts;
        counts.wire.send_datagrams(accepted, octets);
    }

    /// Counts the first `queries` of `outgoing`, those of a client that have waited longest, as
    /// sent at `now`. Those that were scheduled together are counted together. Attempts of clients
    /// that retry are counted separately.
    #[inline]
    pub(crate) fn count_sent(
        &mut self,
        client: &mut Client,
        outgoing: &Outgoing,
        (queries, asks_again): (usize, bool),
        now: Instant,
    ) {
        // A fallback was counted when it was decided on, for it may never get a connection.
        let is_counted = client.role == Role::Primary;
        let mut lengths = outgoing.datagrams.iter();
        let (tally, first_sent) = (&mut self.tally, &mut self.first_sent);
        client
            .pending
            .send_oldest(queries as u32, now, |alike, scheduled_at, is_repeated| {
                first_sent.get_or_insert((scheduled_at, now));
                let octets = lengths.by_ref().take(alike as usize);
                let octets: u64 = octets.map(|datagram| u64::from(datagram.length)).sum();
                let queries = u64::from(alike);
                let interval = tally.of_query(scheduled_at);
                if is_repeated {
                    interval.counts.retried_unprocessed += queries * u64::from(!asks_again);
                } else if is_counted {
                    interval.counts.sent += queries;
                    interval.counts.sent_octets += octets;
                    let lateness = &mut interval.distributions.send_lateness;
                    lateness.record_many(now.nanos_since(scheduled_at), queries);
                }
            });
    }

    /// Counts, once each, queries that wait because their connection, which has `room` for others
    /// now, is full.
    pub(crate) fn count_kept_waiting(&mut self, client: &mut Client, room: u32) {
        let waiting = client.pending.waiting();
        let new = waiting.saturating_sub(room.max(client.kept_waiting));
        // Those that there is room for are subtracted when they are sent.
        client.kept_waiting = waiting;
        // The newest are those not counted yet. The oldest may be many thousands.
        for scheduled_at in client.pending.newest_waiting(new) {
            self.tally.of_query(scheduled_at).counts.waited_for_stream += 1;
        }
    }

    /// Counts a query that the kernel refused to send.
    pub(crate) fn count_refused(&mut self, query: &Query, error: SocketError) {
        let not_sent = &mut self.of_lost(query.scheduled_at, 1).not_sent;
        not_sent.send_failed += 1;
        *send_failure(&mut not_sent.send_failed_for, error) += 1;
    }
}

/// Where a datagram that the kernel refused is counted.
fn send_failure(failures: &mut SendFailures, error: SocketError) -> &mut u64 {
    match error {
        SocketError::Unreachable | SocketError::NoLocalPort => &mut failures.unreachable,
        SocketError::Forbidden => &mut failures.forbidden,
        SocketError::Refused => &mut failures.refused,
        SocketError::NoResources => &mut failures.no_resources,
        SocketError::Reset | SocketError::TimedOut | SocketError::Other(_) => &mut failures.other,
    }
}
