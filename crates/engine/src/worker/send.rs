//! Sending: the waiting queries of each client that has some, in one batch a client.

use driver::{Driver, Outgoing, SocketError, SocketId};
use load::question_source::Question;
use load::{Plan, QuestionSet};
use measure::counts::SendFailures;
use proto::Instant;
use proto::framing;
use proto::pending::{Query, State, WaitingQueries};
use script::End;

use super::Worker;
use super::offer::Offer;
use super::scripted::{Told, write_framed_query, write_query};
use crate::client::{Channel, Client, Link, Role};

/// Queries of one client sent in one batch; the next batch follows at once.
const BATCH_MAX: usize = 256;

impl Worker {
    /// Sends the waiting queries of all clients that were marked dirty.
    pub(super) fn send_dirty(&mut self, driver: &mut impl Driver) {
        if self.dirty.is_empty() {
            return;
        }
        let mut place = 0;
        while let Some(&index) = self.dirty.get(place) {
            place += 1;
            self.clients[index as usize].dirty = false;
            self.send_waiting(driver, index);
        }
        self.dirty.clear();
    }

    /// Sends what waits at one client, as far as its socket or connection takes it.
    pub(super) fn send_waiting(&mut self, driver: &mut impl Driver, index: u32) {
        loop {
            let client = &self.clients[index as usize];
            let waiting = client.pending.waiting();
            if waiting == 0 {
                return;
            }
            let sent = match &client.link {
                Link::Datagram {
                    socket,
                    blocked: false,
                } => self.send_datagrams(driver, index, *socket),
                Link::Datagram { .. } => false,
                Link::Connected(connection) if connection.takes_queries() => {
                    self.send_on_connection(driver, index)
                }
                Link::Connected(_) => false,
                Link::Down { .. } => {
                    let now = driver.now();
                    self.connect_if_needed(driver, index, now);
                    false
                }
            };
            if !sent || self.clients[index as usize].pending.waiting() >= waiting {
                break;
            }
        }
        // What still waits may time out before its connection is usable.
        let pending = &mut self.clients[index as usize].pending;
        if pending.waiting() > 0
            && let Some(query) = pending.next_waiting()
        {
            self.arm(index, query.scheduled_at + self.plan.timeout);
        }
    }

    /// One batch of datagrams; true if all of it was taken.
    fn send_datagrams(&mut self, driver: &mut impl Driver, index: u32, socket: SocketId) -> bool {
        let now = driver.now();
        let socket = self.choose_socket(index, socket, now);
        self.render_datagrams(index, self.signing_time(driver));
        let outcome = driver.send_datagrams(socket, &self.outgoing);
        let queries = self.outgoing.datagrams.len();
        self.count_datagrams(outcome.accepted, now);
        self.count_sent(index, outcome.accepted, now);
        if self.stamps.is_some() {
            self.note_sent(index, outcome.accepted);
            self.read_send_stamps(driver, index, socket);
        }
        self.after_sending(index, outcome.accepted, now);
        if self.stub.is_some() {
            self.send_copies(driver, index, outcome.accepted);
        }
        if outcome.accepted == queries {
            return true;
        }
        let Some(error) = outcome.error else {
            if let Link::Datagram { blocked, .. } = &mut self.clients[index as usize].link {
                *blocked = true;
            }
            return false;
        };
        // The kernel refused the next datagram; the others may fare better.
        self.give_up_next(index, error, now);
        true
    }

    /// Counts the first datagrams of `outgoing` as those that a socket took.
    #[inline]
    pub(super) fn count_datagrams(&mut self, accepted: usize, now: Instant) {
        let Outgoing { octets, datagrams } = &self.outgoing;
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

    /// Copies waiting queries into `outgoing`, in order, without marking them as sent.
    fn render_datagrams(&mut self, index: u32, unix_time: std::time::Duration) {
        self.outgoing.clear();
        self.positions.clear();
        let most = match &self.stub {
            Some(stub) if stub.sends_singly() => 1,
            _ => BATCH_MAX,
        };
        let waiting = self.clients[index as usize].pending.waiting_queries(most);
        if !self.is_watched && self.plan.tsig.is_none() {
            return render_plain(
                &self.plan,
                &self.plan.questions,
                waiting,
                &mut self.outgoing,
            );
        }
        for query in waiting {
            let asked = (&*self.plan, &self.offer);
            write_datagram(asked, &query, unix_time, &mut self.outgoing);
            self.positions.push(query.position);
        }
    }

    /// Copies a query to the end of `outgoing`.
    pub(super) fn render_datagram(&mut self, query: &Query, unix_time: std::time::Duration) {
        let asked = (&*self.plan, &self.offer);
        write_datagram(asked, query, unix_time, &mut self.outgoing);
        self.positions.push(query.position);
    }

    /// One batch of queries on a connection; true if all of it was taken.
    #[inline(never)]
    fn send_on_connection(&mut self, driver: &mut impl Driver, index: u32) -> bool {
        let client = &mut self.clients[index as usize];
        let (waiting, in_flight) = (client.pending.waiting(), client.pending.in_flight());
        let Some(connection) = client.connection() else {
            return false;
        };
        let room = connection.room(in_flight, &self.plan.connections);
        if room < waiting {
            self.count_kept_waiting(index, room);
        }
        if room == 0 {
            return false;
        }
        let now = driver.now();
        let room = (room as usize).min(BATCH_MAX);
        let unix_time = self.signing_time(driver);
        match &self.clients[index as usize].link {
            Link::Connected(connection) => match connection.channel {
                Channel::Framed(_) => self.render_frames(index, room, unix_time),
                Channel::Http2(_) => self.render_requests(index, room, unix_time),
                Channel::Quic { .. } => self.open_streams(index, room, unix_time, now),
            },
            _ => return false,
        }
        self.sends_on_connection(index);
        self.count_batch(index, now);
        match self.clients[index as usize].link {
            Link::Connected(ref connection)
                if matches!(connection.channel, Channel::Quic { .. }) =>
            {
                self.drive_quic(driver, index, now)
            }
            _ => self.write_plaintext(driver, index, now),
        }
    }

    /// Counts the queries of `outgoing` as sent on the client's connection.
    fn count_batch(&mut self, index: u32, now: Instant) {
        let queries = self.outgoing.datagrams.len() as u32;
        self.count_sent(index, queries as usize, now);
        let client = &mut self.clients[index as usize];
        client.kept_waiting = client.kept_waiting.saturating_sub(queries);
        if let Some(connection) = client.connection() {
            connection.queries_sent = connection.queries_sent.saturating_add(queries);
            self.tally
                .connection_is_active(now, &mut connection.active_in);
            let is_early = connection.early;
            self.standings.review(connection);
            if is_early {
                connection.sent_early = true;
                let counts = &mut self.tally.of_event(now).counts.connections;
                counts.early_data.queries += u64::from(queries);
            }
        }
        self.after_sending(index, queries as usize, now);
    }

    /// Counts queries that wait for a place on their connection, which has `room` for others now,
    /// each once.
    fn count_kept_waiting(&mut self, index: u32, room: u32) {
        let client = &mut self.clients[index as usize];
        let waiting = client.pending.waiting();
        let mut new = waiting.saturating_sub(room.max(client.kept_waiting));
        // Those that there is room for are taken off when they are sent.
        client.kept_waiting = waiting;
        // The newest are those not counted yet.
        let mut query = client.pending.next_waiting();
        let mut passed = 0;
        while let Some(current) = query
            && new > 0
        {
            passed += 1;
            if passed + new > client.pending.waiting() {
                let counts = &mut self.tally.of_query(current.scheduled_at).counts;
                counts.waited_for_stream += 1;
                new -= 1;
            }
            query = client.pending.next_waiting_after(current);
        }
    }

    /// Frames up to `room` waiting queries into `plain_out`; their lengths go to `outgoing`.
    fn render_frames(&mut self, index: u32, room: usize, unix_time: std::time::Duration) {
        self.outgoing.clear();
        self.positions.clear();
        self.plain_out.clear();
        let waiting = self.clients[index as usize].pending.waiting_queries(room);
        if !self.is_watched && self.plan.tsig.is_none() {
            let rendered = (&mut self.plain_out, &mut self.outgoing);
            return render_plain_frames(&self.plan, &self.plan.questions, waiting, rendered);
        }
        for query in waiting {
            let stream = &mut self.plain_out;
            let start = stream.len();
            let message = start + framing::PREFIX_OCTETS;
            let asked = (&*self.plan, &self.offer);
            write_framed_query(asked, query.question, query.id, stream);
            if let Some(key) = &self.plan.tsig {
                key.sign(stream, message, unix_time);
                let length = (stream.len() - message) as u16;
                stream[start..message].copy_from_slice(&length.to_be_bytes());
            }
            self.outgoing.push_length(stream.len() - message);
            self.positions.push(query.position);
        }
    }

    /// Turns up to `room` waiting queries into HTTP/2 requests in `plain_out`.
    fn render_requests(&mut self, index: u32, room: usize, unix_time: std::time::Duration) {
        self.outgoing.clear();
        self.positions.clear();
        self.plain_out.clear();
        let Client { pending, link, .. } = &mut self.clients[index as usize];
        let Link::Connected(connection) = link else {
            return;
        };
        let Channel::Http2(session) = &mut connection.channel else {
            return;
        };
        for query in pending.waiting_queries(room) {
            let message = &mut self.message;
            render_without_id(
                (&self.plan, &self.offer),
                query.question,
                unix_time,
                message,
            );
            let taken = session.request(message, query.number, &mut self.plain_out);
            if taken.is_err() {
                break;
            }
            self.outgoing.push_length(message.len());
            if self.is_watched {
                self.positions.push(query.position);
            }
        }
    }

    /// Writes `plain_out` to the client's stream, through TLS if it has it; true if all was taken.
    pub(super) fn write_plaintext(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        now: Instant,
    ) -> bool {
        let Some(connection) = self.clients[index as usize].connection() else {
            return false;
        };
        if let Some(tls) = &mut connection.tls {
            self.cipher_out.clear();
            match connection.channel {
                // Servers are in use that read one message from a record and leave the rest of it
                // until more octets come.
                Channel::Framed(_) => {
                    tls.write_messages(&mut self.plain_out, &mut self.cipher_out);
                }
                _ => tls.write_into(&self.plain_out, &mut self.cipher_out),
            }
            return self.write_cipher_out(driver, index, now);
        }
        let octets = std::mem::take(&mut self.plain_out);
        let taken = self.write_octets(driver, index, &octets, now);
        self.plain_out = octets;
        taken
    }

    /// Writes `cipher_out` to the client's stream; true if all was taken.
    pub(super) fn write_cipher_out(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        now: Instant,
    ) -> bool {
        let octets = std::mem::take(&mut self.cipher_out);
        let taken = self.write_octets(driver, index, &octets, now);
        self.cipher_out = octets;
        taken
    }

    fn write_octets(
        &mut self,
        driver: &mut impl Driver,
        index: u32,
        octets: &[u8],
        now: Instant,
    ) -> bool {
        let Some(connection) = self.clients[index as usize].connection() else {
            return false;
        };
        if !connection.unsent.is_empty() {
            connection.keep_unsent(octets, now);
            return false;
        }
        match driver.send_bytes(connection.socket, octets) {
            Ok(taken) if taken == octets.len() => {
                self.tally.of_event(now).counts.wire.write(taken);
                true
            }
            Ok(taken) => {
                self.tally.of_event(now).counts.wire.write(taken);
                connection.keep_unsent(&octets[taken..], now);
                self.arm(index, now + self.plan.timeout);
                false
            }
            Err(error) => {
                self.handle_end(driver, index, Some(error), now);
                false
            }
        }
    }

    /// Counts the first `queries` of `outgoing`, which have waited longest, as sent at `now`. Those
    /// that were scheduled together are counted together.
    #[inline]
    fn count_sent(&mut self, index: u32, queries: usize, now: Instant) {
        let client = &mut self.clients[index as usize];
        // A fallback was counted when it was decided on, for it may never get a connection.
        let is_counted = client.role == Role::Primary;
        let is_retried = self.stub.is_none();
        let mut lengths = self.outgoing.datagrams.iter();
        let tally = &mut self.tally;
        client
            .pending
            .send_oldest(queries as u32, now, |alike, scheduled_at, is_repeated| {
                let octets = lengths.by_ref().take(alike as usize);
                let octets: u64 = octets.map(|datagram| u64::from(datagram.length)).sum();
                let queries = u64::from(alike);
                let interval = tally.of_query(scheduled_at);
                if is_repeated {
                    interval.counts.retried_unprocessed += queries * u64::from(is_retried);
                } else if is_counted {
                    interval.counts.sent += queries;
                    interval.counts.sent_octets += octets;
                    let lateness = &mut interval.distributions.send_lateness;
                    lateness.record_many(now.nanos_since(scheduled_at), queries);
                }
            });
        if self.stub.is_some() {
            for place in 0..queries {
                let octets = self.outgoing.datagrams[place].length as usize;
                self.count_attempt(index, self.positions[place], octets, now);
            }
        }
    }

    /// The time in signatures; zero where nothing is signed, which saves reading a clock.
    #[inline]
    pub(super) fn signing_time(&self, driver: &impl Driver) -> std::time::Duration {
        match self.plan.tsig {
            Some(_) => driver.unix_time(),
            None => std::time::Duration::ZERO,
        }
    }

    #[inline]
    fn after_sending(&mut self, index: u32, queries: usize, now: Instant) {
        if queries > 0 {
            self.change_in_flight(index, now, queries as i64);
            self.arm(index, now + self.plan.timeout);
        }
    }

    /// Ends the query that has waited longest: the kernel refused to send it.
    fn give_up_next(&mut self, index: u32, error: SocketError, now: Instant) {
        let client = &mut self.clients[index as usize];
        let Some(query) = client.pending.next_waiting() else {
            return;
        };
        client.pending.end(query.position, State::Lost);
        let whose = (client.role, index);
        let told = Told::End(End::NotSent);
        self.tell(whose, &query, told, query.scheduled_at);
        let counts = &mut self.tally.of_lost(query.scheduled_at, 1).counts;
        counts.not_sent.send_failed += 1;
        *send_failure(&mut counts.not_sent.send_failed_for, error) += 1;
        self.offer.release(1);
        self.list_client(index, now);
    }

    /// A socket or stream that was blocked takes octets again.
    pub(super) fn handle_writable(&mut self, driver: &mut impl Driver, index: u32, now: Instant) {
        if self.plan.transport.is_quic() {
            return self.handle_quic_writable(driver, index, now);
        }
        let broken = match &mut self.clients[index as usize].link {
            Link::Datagram { blocked, .. } => {
                *blocked = false;
                None
            }
            Link::Connected(connection) if !connection.unsent.is_empty() => {
                match driver.send_bytes(connection.socket, &connection.unsent) {
                    Ok(taken) if taken == connection.unsent.len() => {
                        self.tally.of_event(now).counts.wire.write(taken);
                        connection.unsent = Vec::new();
                        None
                    }
                    Ok(taken) => {
                        self.tally.of_event(now).counts.wire.write(taken);
                        connection.unsent.drain(..taken);
                        if taken > 0 {
                            connection.blocked_at = now;
                        }
                        None
                    }
                    Err(error) => Some(error),
                }
            }
            _ => None,
        };
        match broken {
            Some(error) => self.handle_end(driver, index, Some(error), now),
            None => {
                self.send_waiting(driver, index);
                self.list_client(index, now);
            }
        }
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

/// Copies queries to the end of `outgoing` that are neither signed nor made by a script. A function
/// of its own, so that the compiler knows what does not change meanwhile.
#[inline(never)]
fn render_plain(
    plan: &Plan,
    questions: &QuestionSet,
    waiting: WaitingQueries<'_>,
    outgoing: &mut Outgoing,
) {
    for query in waiting {
        let start = outgoing.octets.len();
        let asked = query.question;
        match asked.is_plain() {
            true => {
                let template = asked.template as usize;
                questions.append_message(template, query.id, &mut outgoing.octets);
            }
            false => plan.write_query(asked, query.id, &mut outgoing.octets),
        }
        outgoing.finish(start, None);
    }
}

/// The same for a stream, each behind its length; `outgoing` has the lengths.
#[inline(never)]
fn render_plain_frames(
    plan: &Plan,
    questions: &QuestionSet,
    waiting: WaitingQueries<'_>,
    (stream, outgoing): (&mut Vec<u8>, &mut Outgoing),
) {
    for query in waiting {
        let start = stream.len() + framing::PREFIX_OCTETS;
        let asked = query.question;
        match asked.is_plain() {
            true => questions.append_framed(asked.template as usize, query.id, stream),
            false => plan.write_framed_query(asked, query.id, stream),
        }
        outgoing.push_length(stream.len() - start);
    }
}

/// Copies a query to the end of `outgoing`.
fn write_datagram(
    asked: (&Plan, &Offer),
    query: &Query,
    unix_time: std::time::Duration,
    outgoing: &mut Outgoing,
) {
    let start = outgoing.octets.len();
    write_query(asked, query.question, query.id, &mut outgoing.octets);
    if let Some(key) = &asked.0.tsig {
        key.sign(&mut outgoing.octets, start, unix_time);
    }
    outgoing.finish(start, None);
}

/// Copies a question into `message`, with message ID 0: over HTTP so that responses can be cached
/// (RFC 8484, section 4.1), over DoQ because it must be (RFC 9250, section 4.2.1).
pub(super) fn render_without_id(
    asked: (&Plan, &Offer),
    question: Question,
    unix_time: std::time::Duration,
    message: &mut Vec<u8>,
) {
    message.clear();
    write_query(asked, question, 0, message);
    if let Some(key) = &asked.0.tsig {
        key.sign(message, 0, unix_time);
    }
}
