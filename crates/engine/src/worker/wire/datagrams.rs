//! Queries as datagrams.

use std::time::Duration;

use driver::Outgoing;
use load::{Plan, QuestionSet};
use proto::pending::{Query, WaitingQueries};

use super::Wire;
use super::question::write_query;
use crate::worker::offer::Mode;

impl Wire {
    /// Copies waiting queries into `outgoing`, in order, without marking them as sent.
    #[inline(always)]
    pub(crate) fn render_datagrams(
        &mut self,
        asked: (&Plan, &Mode),
        waiting: WaitingQueries<'_>,
        is_watched: bool,
        unix_time: Duration,
    ) {
        self.outgoing.clear();
        self.positions.clear();
        let (plan, _) = asked;
        if !is_watched && plan.tsig.is_none() {
            return render_plain(plan, &plan.questions, waiting, &mut self.outgoing);
        }
        for query in waiting {
            self.render_datagram(asked, &query, unix_time);
        }
    }

    /// Copies a query to the end of `outgoing`.
    pub(crate) fn render_datagram(
        &mut self,
        asked: (&Plan, &Mode),
        query: &Query,
        unix_time: Duration,
    ) {
        let start = self.outgoing.octets.len();
        write_query(asked, query.question, query.id, &mut self.outgoing.octets);
        if let Some(key) = &asked.0.tsig {
            key.sign(&mut self.outgoing.octets, start, unix_time);
        }
        self.outgoing.finish(start, None);
        self.positions.push(query.position);
    }
}

/// Copies queries to the end of `outgoing` that are neither signed nor made by a script. A separate
/// function, so that the compiler can hoist what does not change.
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
