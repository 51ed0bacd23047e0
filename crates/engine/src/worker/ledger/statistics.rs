//! Statistics of each client of a worker, for distributions over clients.
//!
//! They are one block of memory, 88 bytes a client, separate from the clients' state; latencies of
//! a client take another 16 to 48 bytes. A query touches one or two cache lines of it, and a
//! response one more. Queries of the warm-up are not counted; set-ups of connections always are.

use measure::experience::IDLE_NS_MIN;
use measure::{ClientExperience, ClientFigures, Histogram};
use proto::Instant;

/// The statistics of all clients of a worker, or none.
#[derive(Debug)]
pub(crate) struct Statistics {
    clients: Option<Vec<ClientStatistics>>,
    first_after_idle: Histogram,
}

/// Statistics of one client.
#[derive(Clone, Debug, Default)]
struct ClientStatistics {
    figures: ClientFigures,
    /// When it last sent a query or one of its queries ended, warm-up included; zero before.
    touched_at: Instant,
    /// Number of the open query that it sent after idleness, plus one; 0 if it has none.
    after_idle: u32,
}

impl Statistics {
    /// For this number of clients.
    pub(crate) fn new(clients: u32) -> Self {
        Statistics {
            clients: Some(vec![ClientStatistics::default(); clients as usize]),
            first_after_idle: Histogram::on_demand(),
        }
    }

    /// Keeps nothing.
    pub(crate) fn none() -> Self {
        Statistics {
            clients: None,
            first_after_idle: Histogram::on_demand(),
        }
    }

    /// None for a fallback client, whose number is beyond those of the others.
    #[inline]
    fn of(&mut self, client: u32) -> Option<&mut ClientStatistics> {
        self.clients.as_mut()?.get_mut(client as usize)
    }

    /// Counts queries of the measured run that were scheduled for a client; the number of the first
    /// is given if no query was open before it.
    #[inline]
    pub(crate) fn count_queries(
        &mut self,
        client: u32,
        queries: u32,
        first_after_pause: Option<u32>,
        scheduled_at: Instant,
    ) {
        let Some(client) = self.of(client) else {
            return;
        };
        client.figures.queries += u64::from(queries);
        let Some(number) = first_after_pause else {
            return;
        };
        let idle_ns = scheduled_at.nanos_since(client.touched_at);
        if client.touched_at == Instant::ZERO || idle_ns >= IDLE_NS_MIN {
            client.after_idle = number.wrapping_add(1);
        }
    }

    /// Counts responses to a client that had the same latency; their queries are of the measured
    /// run.
    #[inline]
    pub(crate) fn count_responses(
        &mut self,
        client: u32,
        (latency_ns, rcode): (u64, u16),
        times: u64,
    ) {
        if let Some(client) = self.of(client) {
            client.figures.respond_many(latency_ns, rcode, times);
        }
    }

    /// Counts responses with an RCODE that makes them useless to the client, among those counted
    /// already.
    #[cold]
    pub(crate) fn count_useless(&mut self, client: u32, rcode: u16, times: u64) {
        if let Some(client) = self.of(client) {
            client.figures.fail_many(rcode, times);
        }
    }

    /// True while a client's query after idleness is open.
    #[inline]
    pub(crate) fn is_after_idleness(&self, client: u32) -> bool {
        let clients = self.clients.as_ref();
        let client = clients.and_then(|clients| clients.get(client as usize));
        client.is_some_and(|client| client.after_idle != 0)
    }

    /// A response came to the query `number` of a client, maybe the first after idleness.
    #[inline]
    pub(crate) fn count_end_of_idleness(&mut self, client: u32, number: u32, latency_ns: u64) {
        let Some(client) = self.of(client) else {
            return;
        };
        if client.after_idle == number.wrapping_add(1) {
            client.after_idle = 0;
            self.first_after_idle.record(latency_ns);
        }
    }

    /// A client sent queries, or some of its queries have ended.
    #[inline]
    pub(crate) fn touch(&mut self, client: u32, at: Instant) {
        if let Some(client) = self.of(client) {
            client.touched_at = at;
        }
    }

    /// A connection of a client became usable.
    pub(crate) fn count_set_up(&mut self, client: u32, set_up_ns: u64) {
        if let Some(ClientStatistics { figures, .. }) = self.of(client) {
            figures.connections = figures.connections.saturating_add(1);
            figures.set_up_ns += set_up_ns;
        }
    }

    /// The distributions over all clients, which were present for `present_ns` of the measured run;
    /// none if nothing was kept.
    pub(crate) fn experience(&self, present_ns: u64) -> Option<ClientExperience> {
        let clients = self.clients.as_ref()?;
        let mut experience = ClientExperience {
            first_after_idle: self.first_after_idle.clone(),
            ..ClientExperience::default()
        };
        clients
            .iter()
            .for_each(|client| experience.record(&client.figures, present_ns));
        experience.shrink_to_fit();
        Some(experience)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proto::pending::{Pending, Question, State};

    use super::*;

    const MS: u64 = 1_000_000;

    fn at_ms(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * MS)
    }

    /// Sends a query at `asked_at` that is answered 5 ms later; returns the number of queries after
    /// idleness so far.
    fn ask(statistics: &mut Statistics, pending: &mut Pending, asked_at: Instant) -> u64 {
        assert!(pending.submit(asked_at, Question::plain(0)));
        let query = pending.next_waiting().unwrap();
        statistics.count_queries(0, 1, Some(query.number), asked_at);
        pending.send_oldest(1, asked_at, |_, _, _| {});
        statistics.touch(0, asked_at);
        let responded_at = asked_at + Duration::from_millis(5);
        pending.end(query.position, State::Answered);
        statistics.count_responses(0, (5 * MS, 0), 1);
        statistics.count_end_of_idleness(0, query.number, 5 * MS);
        statistics.touch(0, responded_at);
        statistics.first_after_idle.count()
    }

    #[test]
    fn statistics_of_a_client_take_88_bytes() {
        assert_eq!(size_of::<ClientStatistics>(), 88);
    }

    #[test]
    fn query_is_after_idleness_if_none_was_open_for_a_second() {
        let mut statistics = Statistics::new(1);
        let mut pending = Pending::default();
        let after_idle = [10_000, 10_500, 11_504, 12_509, 13_000]
            .map(|asked_ms| ask(&mut statistics, &mut pending, at_ms(asked_ms)));
        // The first query of all, and the one sent 1 s after the last response.
        assert_eq!(after_idle, [1, 1, 1, 2, 2]);
        let experience = statistics.experience(10 * 1_000 * MS).unwrap();
        assert_eq!((experience.clients(), experience.asked()), (1, 1));
        assert_eq!(experience.responses.max_ns(), Some(5));
    }

    #[test]
    fn query_beside_an_open_one_is_not_after_idleness() {
        let mut statistics = Statistics::new(1);
        let mut pending = Pending::default();
        for asked_ms in [10_000, 20_000] {
            let is_first = pending.waiting() == 0;
            assert!(pending.submit(at_ms(asked_ms), Question::plain(0)));
            let first = is_first.then(|| pending.newest());
            statistics.count_queries(0, 1, first, at_ms(asked_ms));
        }
        let first = pending.next_waiting().unwrap();
        let second = pending.next_waiting_after(first).unwrap();
        statistics.count_end_of_idleness(0, second.number, MS);
        assert_eq!(statistics.first_after_idle.count(), 0);
        statistics.count_end_of_idleness(0, first.number, 2 * MS);
        assert_eq!(statistics.first_after_idle.max_ns(), Some(2 * MS));
    }

    #[test]
    fn fallback_clients_and_runs_without_statistics_count_nothing() {
        let mut none = Statistics::none();
        none.count_set_up(0, MS);
        assert!(none.experience(10 * 1_000 * MS).is_none());
        let mut statistics = Statistics::new(1);
        statistics.count_responses(1, (MS, 0), 1);
        statistics.count_useless(1, 0, 1);
        statistics.count_end_of_idleness(1, 0, MS);
        statistics.count_set_up(1, MS);
        let experience = statistics.experience(10 * 1_000 * MS).unwrap();
        assert_eq!((experience.answered(), experience.clients()), (0, 1));
        assert_eq!(experience.connections.max_ns(), Some(0));
    }
}
