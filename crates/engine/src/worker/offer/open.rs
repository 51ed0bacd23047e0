//! The open loop: queries at the instants of a schedule, independent of responses.

use std::time::Duration;

use load::arrival::{Arrival, Schedule};
use load::{ClientOrder, Plan};
use proto::Instant;

use super::submit::Due;
use super::unoffered::Unoffered;
use crate::worker::ledger::tally::Tally;

/// When queries are due, and which client sends the next one.
pub(crate) struct Open {
    /// None until the run starts.
    schedule: Option<Schedule>,
    order: ClientOrder,
}

impl Open {
    /// The share of `worker`, with that number of clients.
    pub(super) fn new(plan: &Plan, worker: u32, clients: u32) -> Self {
        Open {
            schedule: None,
            order: ClientOrder::new(clients, worker, plan.seed),
        }
    }

    /// The clients join at `joins_at`.
    pub(super) fn start(&mut self, plan: &Plan, worker: u32, joins_at: Instant) {
        let Arrival::Open {
            rate_qps,
            process,
            burst,
        } = plan.arrival
        else {
            return;
        };
        let (bursts, share) = ((rate_qps, process, burst), (worker, plan.workers));
        self.schedule = Some(Schedule::of_bursts(bursts, share, plan.seed, joins_at));
    }

    /// When the next query is due.
    pub(super) fn next_due(&self) -> Instant {
        let schedule = self.schedule.as_ref();
        schedule.map_or(Instant::FAR_FUTURE, Schedule::next_due)
    }

    /// Takes the query that is due first, at `now` and before `end`.
    #[inline]
    pub(super) fn take(&mut self, now: Instant, end: Instant) -> Option<Due> {
        let schedule = self.schedule.as_mut()?;
        let due = schedule.next_due();
        if due > now || due >= end {
            return None;
        }
        schedule.advance();
        let client = self.order.current();
        if schedule.starts_burst() {
            self.order.advance();
        }
        Some(Due::of((due, client)))
    }

    /// Counts the queries that were due before `run_start` and will never be sent.
    pub(super) fn leave_warmup(&mut self, tally: &mut Tally, run_start: Instant) {
        if let Some(schedule) = &mut self.schedule {
            let queries = schedule.skip_until(run_start, u64::MAX);
            tally.count_unoffered(Instant::ZERO, queries);
        }
    }

    /// Counts the queries that were due before `end` and will never be sent.
    pub(super) fn count_unoffered(
        &mut self,
        unoffered: &mut Unoffered<'_>,
        (run_start, end): (Instant, Instant),
    ) {
        self.leave_warmup(unoffered.tally, run_start.min(end));
        let Some(schedule) = &mut self.schedule else {
            return;
        };
        while *unoffered.left > 0 && schedule.next_due() < end {
            let due = schedule.next_due();
            unoffered.tally.due_at(due);
            let until = end.min(unoffered.tally.due_last() + Duration::from_nanos(1));
            let queries = schedule.skip_until(until, *unoffered.left);
            unoffered.count(due, queries);
        }
    }
}
