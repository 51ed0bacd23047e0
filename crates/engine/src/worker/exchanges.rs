//! The ends of exchanges: HTTP requests and QUIC streams, each of which belongs to one query.

use driver::Driver;
use measure::Counts;
use proto::Instant;
use proto::doh::MediaType;
use proto::exchange::ExchangeEnd;
use proto::pending::{Query, State};
use proto::response::Header;
use script::End;

use super::Worker;
use crate::query_end::QueryEnd;

impl Worker {
    /// An exchange of client `index` has ended. `token` is the number of its query.
    pub(super) fn handle_exchange_end(
        &mut self,
        index: u32,
        token: u32,
        end: ExchangeEnd<'_>,
        at: Instant,
    ) {
        let query = self.population.clients[index as usize]
            .pending
            .numbered(token);
        if end == ExchangeEnd::Late {
            let scheduled_at = query.map_or(at, |query| query.scheduled_at);
            self.ledger.of_query(scheduled_at).late += 1;
            return;
        }
        let Some(query) = query.filter(|query| query.state == State::InFlight) else {
            // The query and its exchange were given up: ignore what still arrives.
            return;
        };
        match end {
            ExchangeEnd::Message(message) => self.handle_answer(index, query, message, at),
            ExchangeEnd::NotProcessed => self.wire.unprocessed.push(token),
            _ => self.lose_exchange(index, &query, end, at),
        }
    }

    /// A query whose exchange failed.
    fn lose_exchange(&mut self, index: u32, query: &Query, end: ExchangeEnd<'_>, at: Instant) {
        let client = &mut self.population.clients[index as usize];
        client.pending.end(query.position, State::Lost);
        let whose = (client.role, index);
        count_failed(self.ledger.of_lost(query.scheduled_at, 1), end);
        self.population
            .lose_at_server(&self.ledger.tally, index, query, |counts| {
                count_failed(counts, end)
            });
        self.report_end(whose, query, QueryEnd::End(End::Lost), at);
        self.ledger.count_failure(&self.control);
    }

    /// Handles the message that came on a query's stream. The stream is over, so the query ends
    /// even if the message is not its response.
    fn handle_answer(&mut self, index: u32, query: Query, message: &[u8], at: Instant) {
        let unexpected = &mut self.ledger.of_event(at).unexpected;
        match Header::parse(message) {
            None => unexpected.malformed += 1,
            Some(header) if !header.is_response && !self.plan.matches_by_id_alone => {
                unexpected.queries += 1;
            }
            Some(header) if header.id != 0 => unexpected.wrong_id += 1,
            Some(_) if self.is_answered(query.question, message) => {
                return self.complete(index, &query, message, at);
            }
            Some(_) => self.ledger.of_event(at).unexpected.wrong_question += 1,
        }
        self.lose_exchange(index, &query, ExchangeEnd::Malformed, at);
    }

    /// Decides on the queries that the target reports as unprocessed. If it accepts no more on this
    /// connection they are sent again on the next one (RFC 9113, section 8.7). Else they have
    /// failed: the target would refuse them again.
    pub(super) fn settle_unprocessed(&mut self, index: u32, is_going_away: bool, at: Instant) {
        let mut unprocessed = std::mem::take(&mut self.wire.unprocessed);
        for token in unprocessed.drain(..) {
            let client = &mut self.population.clients[index as usize];
            let known = client.pending.numbered(token);
            let Some(query) = known.filter(|query| query.state == State::InFlight) else {
                continue;
            };
            self.ledger
                .change_in_flight(self.population.whose(index), at, -1);
            let client = &mut self.population.clients[index as usize];
            if is_going_away {
                client.pending.requeue(query.position);
                self.population.send_later(index);
                continue;
            }
            self.lose_exchange(index, &query, ExchangeEnd::NotProcessed, at);
            self.offer.release(1);
        }
        self.wire.unprocessed = unprocessed;
    }

    /// Cancels the exchange of a query that has timed out, since it would occupy a stream. False if
    /// the query had none.
    pub(super) fn cancel_exchange(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        token: u32,
        now: Instant,
    ) -> bool {
        if self.cancel_on_link(driver, index, token, now) {
            return true;
        }
        let mut is_cancelled = false;
        self.with_each_retiring(index, |worker| {
            is_cancelled = is_cancelled || worker.cancel_on_link(driver, index, token, now);
        });
        is_cancelled
    }

    fn cancel_on_link(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        token: u32,
        now: Instant,
    ) -> bool {
        let Some(connection) = self.population.connection(index) else {
            return false;
        };
        if self.wire.cancel_request(connection, token) {
            self.write_plaintext(driver, index, now);
        } else if self.wire.cancel_stream(connection, token, now) {
            self.drive_quic(driver, index, now);
        } else {
            return false;
        }
        true
    }
}

/// Counts an exchange that ended without a message.
fn count_failed(counts: &mut Counts, end: ExchangeEnd<'_>) {
    let failures = &mut counts.exchange_failures;
    match end {
        ExchangeEnd::HttpStatus(status) => failures.http_status.record(status.into()),
        ExchangeEnd::MediaType(other) => {
            failures.media_type += 1;
            failures.media_type_dns += u64::from(other == MediaType::Dns);
        }
        ExchangeEnd::Reset(code) => failures.stream_reset.record(code),
        ExchangeEnd::NotProcessed => failures.not_processed += 1,
        ExchangeEnd::Malformed | ExchangeEnd::Late | ExchangeEnd::Message(_) => {
            failures.malformed += 1;
        }
    }
}
