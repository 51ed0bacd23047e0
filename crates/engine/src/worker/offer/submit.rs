//! Queries that become due, of whatever mode, and how they are submitted to a client.

use load::question_source::Question;
use proto::Instant;

use super::questions::QuestionCursor;
use crate::worker::ledger::Ledger;
use crate::worker::population::client::Client;

/// A query that time has made due.
pub(crate) struct Due {
    pub(crate) at: Instant,
    pub(crate) client: u32,
    pub(crate) question: Option<Question>,
}

impl Due {
    pub(crate) fn of((at, client): (Instant, u32)) -> Self {
        Due {
            at,
            client,
            question: None,
        }
    }
}

/// Queries that a client asks at one instant.
#[derive(Clone, Copy)]
pub(crate) struct Asking {
    pub(crate) client: u32,
    pub(crate) scheduled_at: Instant,
    pub(crate) queries: u32,
    /// What they ask, unless that is still to be chosen.
    pub(crate) question: Option<Question>,
}

impl Asking {
    /// Submits the queries and counts them as offered, those that get no message ID as not sent
    /// too; says how many were submitted. They are sent with the others of `to_send`.
    #[inline(always)]
    pub(crate) fn submit(
        self,
        questions: &mut QuestionCursor,
        (client, to_send): (&mut Client, &mut Vec<u32>),
        ledger: &mut Ledger,
    ) -> u32 {
        let (at, queries) = (self.scheduled_at, self.queries);
        let is_alone = client.open_queries() == 0;
        let is_measured = ledger.tally.is_measured(at);
        let counts = &mut ledger.tally.of_query(at).counts;
        let next = || match self.question {
            None => questions.take(at, counts),
            Some(question) => question,
        };
        let submitted = client.pending.submit_many(at, queries, next);
        questions.count(queries, is_measured, counts);
        if is_measured {
            let first = is_alone.then(|| client.pending.number_waiting());
            let first = first.flatten();
            let statistics = &mut ledger.statistics;
            statistics.count_queries(self.client, queries, first, at);
        }
        client.list_to_send(self.client, to_send);
        if submitted < queries {
            let refused = u64::from(queries - submitted);
            let counts = &mut ledger.tally.of_lost(at, refused).counts;
            counts.not_sent.no_free_id += refused;
        }
        submitted
    }
}
