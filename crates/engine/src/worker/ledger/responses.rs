//! Counts and times responses; those of a delivery that count alike together.

use measure::Counts;
use proto::Instant;
use proto::pending::Query;
use proto::response::{self, ResponseKind};

use super::Ledger;
use crate::worker::population::connection::Connection;

/// What makes responses of a delivery count alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Kind {
    response: ResponseKind,
    scheduled_at: Instant,
    sent_at: Instant,
}

/// Responses that count alike, as those of a burst do: one update of each distribution covers all
/// of them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Alike {
    /// Their client.
    owner: u32,
    at: Instant,
    kind: Kind,
    responses: u64,
    octets: u64,
}

impl Ledger {
    /// Counts the responses that follow as those of the delivery to client `owner` at `at`; does
    /// nothing if it already does.
    #[inline]
    pub(crate) fn continue_delivery(&mut self, owner: u32, at: Instant) {
        if (self.alike.owner, self.alike.at) != (owner, at) {
            self.begin_delivery(owner, at);
        }
    }

    /// Counts the responses that follow as client `owner`'s, received at `at`.
    #[inline]
    pub(crate) fn begin_delivery(&mut self, owner: u32, at: Instant) {
        self.settle_responses();
        (self.alike.owner, self.alike.at) = (owner, at);
    }

    /// Counts and times a response of the delivery; those that count alike are collected first.
    #[inline(always)]
    pub(crate) fn count_response(
        &mut self,
        (scheduled_at, sent_at): (Instant, Instant),
        response: ResponseKind,
        message: &[u8],
    ) {
        let kind = Kind {
            response,
            scheduled_at,
            sent_at,
        };
        if kind != self.alike.kind {
            self.settle_responses();
            self.alike.kind = kind;
        }
        self.alike.responses += 1;
        self.alike.octets += message.len() as u64;
    }

    /// Adds the collected responses to the tally.
    pub(crate) fn settle_responses(&mut self) {
        let Alike {
            owner,
            at,
            kind,
            responses,
            octets,
        } = self.alike;
        if responses == 0 {
            return;
        }
        (self.alike.responses, self.alike.octets) = (0, 0);
        let latency_ns = at.nanos_since(kind.scheduled_at);
        let service_ns = at.nanos_since(kind.sent_at);
        if self.tally.is_measured(at) && at < self.window.end {
            self.window.responses += responses;
        }
        self.window.last_response_at = at;
        let is_measured = self.tally.is_measured(kind.scheduled_at);
        let interval = self.tally.of_query(kind.scheduled_at);
        interval.counts.responses += responses;
        interval.counts.received_octets += octets;
        let rcode = kind.response.rcode();
        interval.counts.rcodes.record_many(rcode, responses);
        if kind.response.is_special() {
            count_special(&mut interval.counts, kind.response, responses);
            if is_measured && kind.response.is_truncated() && !self.falls_back {
                self.statistics.count_useless(owner, rcode, responses);
            }
        }
        let times = &mut interval.distributions;
        times.latency.record_many(latency_ns, responses);
        times.service.record_many(service_ns, responses);
        if is_measured {
            self.statistics
                .count_responses(owner, (latency_ns, rcode), responses);
        }
    }

    /// Times the first response on a connection.
    #[cold]
    pub(crate) fn count_first_response(
        &mut self,
        connection: &mut Connection,
        query: &Query,
        at: Instant,
    ) {
        connection.served = true;
        self.open_connections.review(connection);
        let interval = self.tally.of_query(query.scheduled_at);
        let times = &mut interval.distributions.connections;
        times.first_query.record(at.nanos_since(query.sent_at));
        // A connection that was usable before its first query did not delay it.
        let idle_ns = query.sent_at.nanos_since(connection.times.usable_at);
        let waited = query.scheduled_at <= connection.times.usable_at;
        let idle_ns = if waited { 0 } else { idle_ns };
        times
            .set_up_and_first_query
            .record(at.nanos_since(connection.times.attempted_at) - idle_ns);
    }

    /// Counts the response to a question that was repeated over TCP.
    #[cold]
    pub(crate) fn count_fallback(&mut self, query: &Query, message: &[u8], at: Instant) {
        let interval = self.tally.of_query(query.scheduled_at);
        let counts = &mut interval.counts.tcp_fallback;
        counts.responses += 1;
        if !response::is_truncated(message) {
            counts.rcodes.record(response::extended_rcode(message));
        }
        let latency_ns = at.nanos_since(query.scheduled_at);
        interval.distributions.tcp_fallback.record(latency_ns);
    }
}

/// Counts what is special about responses beside their RCODE.
#[cold]
pub(crate) fn count_special(counts: &mut Counts, kind: ResponseKind, responses: u64) {
    if kind.is_nodata() {
        counts.nodata += responses;
    }
    if kind.is_truncated() {
        counts.truncated_rcodes.record_many(kind.rcode(), responses);
    }
}
