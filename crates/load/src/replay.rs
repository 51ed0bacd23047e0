//! Replays the queries of a capture: which client sends which question when.
//!
//! A [`Replay`] is read-only and shared by all workers; a query takes 16 bytes, however many
//! workers, clients and rounds there are. Each worker has a [`ReplayCursor`], which skips the
//! queries of other workers' clients: about a nanosecond each, compared with a thousand for sending
//! one.

use std::ops::Range;

use crate::plan_error::PlanError;

/// One query to replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayQuery {
    /// When it is due, in nanoseconds since the first of the list.
    pub at_ns: u64,
    /// Its client, from 0.
    pub client: u32,
    /// Index of its template among the questions.
    pub question: u32,
}

/// Queries in the order of their times, sent once or in several rounds.
#[derive(Debug, PartialEq, Eq)]
pub struct Replay {
    queries: Vec<ReplayQuery>,
    clients: u32,
    rounds: u64,
    /// From the first query of one round to the first of the next.
    round_ns: u64,
}

impl Replay {
    /// The queries of `clients` clients, in the order of their times, `rounds` times over. A round
    /// begins a mean gap after the last query of the round before.
    ///
    /// # Errors
    /// There are no queries, or no rounds; or no time passes between the queries, so that rounds
    /// cannot be told apart.
    ///
    /// # Panics
    /// If the queries are not in the order of their times.
    pub fn new(queries: Vec<ReplayQuery>, clients: u32, rounds: u64) -> Result<Self, PlanError> {
        assert!(
            queries.is_sorted_by_key(|query| query.at_ns),
            "the caller sorts the list"
        );
        let Some(last) = queries.last() else {
            let hint = "leave out filters one by one";
            return Err(PlanError::new("replay", "there are no questions", hint));
        };
        if rounds == 0 {
            let hint = "give 1 or more";
            return Err(PlanError::new("loops", "must not be zero", hint));
        }
        if rounds > 1 && last.at_ns == 0 {
            let what = "no time passes between the queries: there is no length to repeat";
            return Err(PlanError::new("loops", what, "replay them once"));
        }
        let gaps = queries.len() as u64 - 1;
        let gap_ns = last.at_ns.checked_div(gaps).unwrap_or(0).max(1);
        Ok(Replay {
            round_ns: last.at_ns.saturating_add(gap_ns),
            queries,
            clients,
            rounds,
        })
    }

    /// Number of clients.
    pub fn clients(&self) -> u32 {
        self.clients
    }

    /// Queries of one round.
    pub fn queries(&self) -> &[ReplayQuery] {
        &self.queries
    }

    /// Number of rounds.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Queries of all rounds.
    pub fn queries_total(&self) -> u64 {
        (self.queries.len() as u64).saturating_mul(self.rounds)
    }

    /// Queries of these clients in all rounds. Scans every query once.
    pub fn queries_of(&self, clients: &Range<u32>) -> u64 {
        let own = self.queries.iter();
        let own = own.filter(|query| clients.contains(&query.client));
        (own.count() as u64).saturating_mul(self.rounds)
    }

    /// Mean queries a second of all clients; none if no time passes between the queries.
    pub fn rate_qps(&self) -> Option<f64> {
        let last_ns = self.queries.last().map_or(0, |query| query.at_ns);
        (last_ns > 0).then(|| self.queries.len() as f64 / (self.round_ns as f64 / 1e9))
    }
}

/// One worker's position in the list.
#[derive(Clone, Debug)]
pub struct ReplayCursor {
    /// The clients of the worker.
    clients: Range<u32>,
    index: usize,
    /// Start of the current round, since the start of the first.
    round_at_ns: u64,
    rounds_left: u64,
}

impl ReplayCursor {
    /// At the first query of these clients.
    pub fn new(replay: &Replay, clients: Range<u32>) -> Self {
        let has_queries = (replay.queries.iter()).any(|query| clients.contains(&query.client));
        let mut cursor = ReplayCursor {
            clients,
            index: 0,
            round_at_ns: 0,
            rounds_left: if has_queries { replay.rounds } else { 0 },
        };
        cursor.seek(replay);
        cursor
    }

    /// The next query of these clients, due in nanoseconds since the first of the list; none after
    /// the last round.
    #[inline]
    pub fn peek(&self, replay: &Replay) -> Option<ReplayQuery> {
        if self.rounds_left == 0 {
            return None;
        }
        let query = replay.queries[self.index];
        Some(ReplayQuery {
            at_ns: self.round_at_ns.saturating_add(query.at_ns),
            ..query
        })
    }

    /// Skips the query that [`ReplayCursor::peek`] returned.
    #[inline]
    pub fn advance(&mut self, replay: &Replay) {
        self.index += 1;
        self.seek(replay);
    }

    /// Advances to the next query of these clients, from the current position on.
    #[inline]
    fn seek(&mut self, replay: &Replay) {
        while self.rounds_left > 0 {
            let rest = &replay.queries[self.index..];
            let own = |query: &ReplayQuery| self.clients.contains(&query.client);
            if let Some(passed) = rest.iter().position(own) {
                self.index += passed;
                return;
            }
            self.index = 0;
            self.rounds_left -= 1;
            self.round_at_ns = self.round_at_ns.saturating_add(replay.round_ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(rounds: u64) -> Replay {
        let query = |(at_ns, client)| ReplayQuery {
            at_ns,
            client,
            question: client,
        };
        let queries = [(0, 0), (10, 1), (10, 0), (25, 2), (40, 1)].map(query);
        Replay::new(queries.to_vec(), 3, rounds).unwrap()
    }

    fn told(replay: &Replay, clients: Range<u32>) -> Vec<(u64, u32)> {
        let mut cursor = ReplayCursor::new(replay, clients);
        let mut told = Vec::new();
        while let Some(query) = cursor.peek(replay) {
            told.push((query.at_ns, query.client));
            cursor.advance(replay);
        }
        told
    }

    #[test]
    fn each_worker_is_told_its_clients_queries_and_together_all_of_them() {
        let replay = replay(1);
        assert_eq!(told(&replay, 0..1), [(0, 0), (10, 0)]);
        assert_eq!(told(&replay, 1..3), [(10, 1), (25, 2), (40, 1)]);
        assert_eq!(told(&replay, 3..9), []);
        assert_eq!(told(&replay, 0..3).len(), 5);
        assert_eq!(replay.queries_of(&(1..3)), 3);
        assert_eq!(replay.queries_total(), 5);
    }

    #[test]
    fn a_round_begins_a_mean_gap_after_the_last_query() {
        let replay = replay(3);
        let expected = [(10, 1), (40, 1), (60, 1), (90, 1), (110, 1), (140, 1)];
        assert_eq!(told(&replay, 1..2), expected);
        assert_eq!(replay.queries_of(&(1..2)), 6);
        assert_eq!(replay.rate_qps(), Some(5.0 / 50e-9));
    }

    #[test]
    fn lists_that_cannot_be_repeated_are_refused() {
        let query = ReplayQuery {
            at_ns: 0,
            client: 0,
            question: 0,
        };
        let setting = |queries: &[ReplayQuery], rounds| {
            let made = Replay::new(queries.to_vec(), 1, rounds);
            made.map(|replay| replay.rate_qps())
                .map_err(|error| error.setting)
        };
        assert_eq!(setting(&[], 1), Err("replay"));
        assert_eq!(setting(&[query], 0), Err("loops"));
        assert_eq!(setting(&[query, query], 2), Err("loops"));
        assert_eq!(setting(&[query, query], 1), Ok(None));
    }
}
