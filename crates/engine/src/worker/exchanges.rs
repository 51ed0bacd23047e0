//! The ends of exchanges: of DoH requests and DoQ streams, which say themselves which query they
//! belong to.

use driver::Driver;
use measure::Counts;
use proto::Instant;
use proto::exchange::ExchangeEnd;
use proto::pending::{Query, State};
use proto::response::Header;
use script::End;

use super::Worker;
use super::scripted::{Told, is_answered_by};
use crate::client::{Channel, Reason};

impl Worker {
    /// An exchange of client `index` has ended. `token` is the number of its query.
    pub(super) fn handle_exchange_end(
        &mut self,
        index: u32,
        token: u32,
        end: ExchangeEnd<'_>,
        at: Instant,
    ) {
        let query = self.clients[index as usize].pending.numbered(token);
        if end == ExchangeEnd::Late {
            let scheduled_at = query.map_or(at, |query| query.scheduled_at);
            self.tally.of_query(scheduled_at).counts.late += 1;
            return;
        }
        let Some(query) = query.filter(|query| query.state == State::InFlight) else {
            // It was given up, and its exchange with it: what still comes is of no account.
            return;
        };
        match end {
            ExchangeEnd::Message(message) => self.handle_answer(index, query, message, at),
            ExchangeEnd::NotProcessed => self.unprocessed.push(token),
            _ => self.lose_exchange(index, &query, end, at),
        }
    }

    /// A query whose exchange failed.
    fn lose_exchange(&mut self, index: u32, query: &Query, end: ExchangeEnd<'_>, at: Instant) {
        let client = &mut self.clients[index as usize];
        client.pending.end(query.position, State::Lost);
        let whose = (client.role, index);
        count_failed(&mut self.tally.of_lost(query.scheduled_at, 1).counts, end);
        self.lose_at_server(index, query, |counts| count_failed(counts, end));
        self.tell(whose, query, Told::End(End::Lost), at);
        self.count_failure();
    }

    /// The message that came on a query's own stream. The stream is over, so a message that is no
    /// response to the query ends it too.
    fn handle_answer(&mut self, index: u32, query: Query, message: &[u8], at: Instant) {
        let header = Header::parse(message).filter(|header| header.is_response);
        let counts = &mut self.tally.of_event(at).counts.unexpected;
        match header {
            None => counts.malformed += 1,
            Some(header) if header.id != 0 => counts.wrong_id += 1,
            Some(_) => {
                let scratch = &mut self.message;
                let asked = query.question;
                if is_answered_by((&self.plan, &self.offer), asked, message, scratch) {
                    return self.complete(index, &query, message, at);
                }
                counts.wrong_question += 1;
            }
        }
        self.lose_exchange(index, &query, ExchangeEnd::Malformed, at);
    }

    /// Decides on the queries that the target says it has not processed: where it takes no more on
    /// this connection they are sent again on the next one (RFC 9113, section 8.7), else they have
    /// failed; sent again at once they would be refused again.
    pub(super) fn settle_unprocessed(&mut self, index: u32, is_going_away: bool, at: Instant) {
        let mut unprocessed = std::mem::take(&mut self.unprocessed);
        for token in unprocessed.drain(..) {
            let client = &mut self.clients[index as usize];
            let known = client.pending.numbered(token);
            let Some(query) = known.filter(|query| query.state == State::InFlight) else {
                continue;
            };
            self.change_in_flight(index, at, -1);
            let client = &mut self.clients[index as usize];
            if is_going_away {
                client.pending.requeue(query.position);
                if !client.dirty {
                    client.dirty = true;
                    self.dirty.push(index);
                }
                continue;
            }
            self.lose_exchange(index, &query, ExchangeEnd::NotProcessed, at);
            self.offer.release(1);
        }
        self.unprocessed = unprocessed;
    }

    /// Gives up the exchange of a query that has timed out, and tells the target so: it would keep
    /// the place of another.
    pub(super) fn cancel_exchange(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        token: u32,
        now: Instant,
    ) {
        let Some(connection) = self.clients[index as usize].connection() else {
            return;
        };
        match &mut connection.channel {
            Channel::Framed(_) => {}
            Channel::Http2(session) => {
                self.plain_out.clear();
                if session.cancel(token, &mut self.plain_out) {
                    self.write_plaintext(driver, index, now);
                }
            }
            Channel::Quic { key, .. } => {
                let key = *key;
                if let Some(quic) = &mut self.quic {
                    quic.cancel(now, key, token);
                }
                self.drive_quic(driver, index, now);
            }
        }
    }

    /// Lets a connection carry no further query.
    pub(super) fn retire(&mut self, index: u32, reason: Reason) {
        if let Some(connection) = self.clients[index as usize].connection() {
            connection.retired_for.get_or_insert(reason);
        }
    }
}

/// Counts an exchange that ended without a message.
fn count_failed(counts: &mut Counts, end: ExchangeEnd<'_>) {
    let failures = &mut counts.exchange_failures;
    match end {
        ExchangeEnd::HttpStatus(status) => failures.http_status.record(status.into()),
        ExchangeEnd::MediaType => failures.media_type += 1,
        ExchangeEnd::Reset(code) => failures.stream_reset.record(code),
        ExchangeEnd::NotProcessed => failures.not_processed += 1,
        ExchangeEnd::Malformed | ExchangeEnd::Late | ExchangeEnd::Message(_) => {
            failures.malformed += 1;
        }
    }
}
