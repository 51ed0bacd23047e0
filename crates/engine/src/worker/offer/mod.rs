//! Which client sends the next query, which question it has, and when it is due.
//!
//! Each mode has a file: `closed` (a new query as soon as a slot is free; `throttle` holds slots
//! back), `open` (at the instants of a schedule), `by_client` (at each client's own instants),
//! `replayed` (as in a capture) and `scripted` (as a script decides). All of them submit queries
//! with [`Asking::submit`]; questions come from `questions`, unless the mode chooses them.

mod by_client;
mod closed;
mod open;
mod questions;
mod replayed;
pub(crate) mod scripted;
mod submit;
mod throttle;
mod unoffered;

use std::time::Duration;

use load::arrival::Arrival;
use load::{ConnectionPolicy, Plan};
use proto::Instant;
use proto::pending::Query;

use super::ledger::Ledger;
use super::population::Population;
use super::population::client::Role;
use super::population::events::Events;
use crate::query_end::QueryEnd;
use by_client::ByClient;
use closed::Closed;
use open::Open;
use questions::QuestionCursor;
use replayed::Replayed;
use scripted::Scripted;
use submit::{Asking, Due};
use unoffered::Unoffered;

/// Queries due by time that a turn may offer, beside one for each query that has ended since. A
/// worker that cannot keep up thus divides its time between sending and receiving: it falls behind
/// its rate, but leaves no responses unread.
const DUE_EACH_TURN: u32 = 256;
/// Most queries that a turn may offer; a delayed worker catches up in such steps.
const DUE_MAX: u32 = 4_096;
/// How long after the end of the run, or of its warm-up, queries that were due before it may still
/// be offered. On a busy host a worker may wait this long for its CPU.
const CATCH_UP_MAX: Duration = Duration::from_millis(100);

/// One worker's share of the load.
pub(crate) struct Offer {
    pub(crate) mode: Mode,
    pub(crate) questions: QuestionCursor,
    /// Queries made due by time that may be offered before the next turn.
    due_allowed: u32,
}

/// How queries become due.
pub(crate) enum Mode {
    /// A new query as soon as a slot is free.
    Closed(Closed),
    /// Queries at the instants of a schedule.
    Open(Open),
    /// Queries at the instants of each client.
    ByClient(ByClient),
    /// Queries of a capture at their instants.
    Replayed(Replayed),
    /// Queries as a script sends them.
    Scripted(Box<Scripted>),
}

impl Offer {
    /// The share of `worker`: `clients` clients from number `first` on.
    pub(crate) fn new(plan: &Plan, worker: u32, (first, clients): (u32, u32)) -> Self {
        let numbers = first..first + clients;
        Offer {
            mode: match &plan.arrival {
                &Arrival::Closed { outstanding, .. } => {
                    Mode::Closed(Closed::new(plan, worker, (outstanding, clients)))
                }
                Arrival::Open { .. } => Mode::Open(Open::new(plan, worker, clients)),
                Arrival::Clients(_) | Arrival::Profile(_) => {
                    Mode::ByClient(ByClient::new(plan, numbers.clone()))
                }
                Arrival::Replay(replay) => Mode::Replayed(Replayed::new(replay, numbers.clone())),
                Arrival::Script(text) => Mode::Scripted(Box::new(Scripted::new(text, clients))),
            },
            questions: QuestionCursor::new(plan, worker, numbers),
            due_allowed: 0,
        }
    }

    /// Starts the clock of the schedule: the run starts at `start`, its first query is due when
    /// the clients join or soon after, and none from `until` on.
    pub(crate) fn start(
        &mut self,
        plan: &Plan,
        worker: u32,
        (start, joins_at, until): (Instant, Instant, Instant),
    ) {
        match &mut self.mode {
            Mode::Closed(closed) => closed.start(plan, worker, joins_at),
            Mode::Open(open) => open.start(plan, worker, joins_at),
            Mode::ByClient(clients) => clients.start(plan, (start, joins_at), until),
            Mode::Replayed(replayed) => replayed.start(start),
            Mode::Scripted(scripted) => scripted.start(start, joins_at),
        }
    }

    /// True if queries are due by time, so that a worker may be late for them.
    pub(crate) fn is_due_by_time(&self) -> bool {
        !matches!(self.mode, Mode::Closed(_))
    }

    /// True if queries are due whenever a slot is free.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.mode, Mode::Closed(_))
    }

    /// When time alone makes a query due.
    pub(crate) fn next_due(&self) -> Instant {
        match &self.mode {
            Mode::Closed(closed) => closed.next_due(),
            Mode::Open(open) => open.next_due(),
            Mode::ByClient(clients) => clients.next_due(),
            Mode::Replayed(replayed) => replayed.next_due(),
            Mode::Scripted(scripted) => scripted.next_due(),
        }
    }

    /// True if free slots are to be filled at `now`; a few may wait for others for a moment.
    #[inline]
    pub(crate) fn is_fill_due(&mut self, now: Instant) -> bool {
        match &mut self.mode {
            Mode::Closed(closed) => closed.is_fill_due(now),
            mode => !matches!(mode, Mode::Scripted(_)),
        }
    }

    /// Allows more queries due by time to be offered: as many as have ended, plus those of a turn
    /// if this is one.
    #[inline]
    pub(crate) fn allow_due(&mut self, ended: u64, is_turn: bool) {
        let more = ended + if is_turn { u64::from(DUE_EACH_TURN) } else { 0 };
        self.due_allowed = (u64::from(self.due_allowed) + more).min(DUE_MAX.into()) as u32;
    }

    /// Submits the queries that are due at `now`, before `end`, within what [`Offer::allow_due`]
    /// allows.
    pub(crate) fn fill(
        &mut self,
        population: &mut Population,
        ledger: &mut Ledger,
        policy: &ConnectionPolicy,
        (now, end): (Instant, Instant),
    ) {
        match &mut self.mode {
            Mode::Closed(_) if now >= end => {}
            Mode::Closed(closed) => {
                closed.fill(&mut self.questions, (population, ledger), policy, now);
            }
            Mode::Open(_) | Mode::ByClient(_) | Mode::Replayed(_) => {
                self.fill_due((population, ledger), policy, (now, end));
            }
            Mode::Scripted(_) => {}
        }
    }

    /// Submits the queries that time has made due, one bin of the timeline after the other.
    fn fill_due(
        &mut self,
        (population, ledger): (&mut Population, &mut Ledger),
        policy: &ConnectionPolicy,
        (now, end): (Instant, Instant),
    ) {
        loop {
            let last = ledger.tally.due_last();
            let until = (now.min(last), end);
            self.fill_due_until((&mut *population, &mut *ledger), policy, until);
            let next = self.next_due();
            if self.due_allowed == 0 || next <= last || next > now || next >= end {
                return;
            }
            ledger.tally.due_at(next);
        }
    }

    /// Submits the queries that are due by `now`.
    fn fill_due_until(
        &mut self,
        (population, ledger): (&mut Population, &mut Ledger),
        policy: &ConnectionPolicy,
        (now, end): (Instant, Instant),
    ) {
        let waits = matches!(&self.mode, Mode::ByClient(clients) if !clients.is_open());
        while self.due_allowed > 0 && self.questions.left > 0 {
            let Some(due) = self.take_due(now, end) else {
                return;
            };
            self.due_allowed -= 1;
            let client = &mut population.clients[due.client as usize];
            if waits && !client.can_send(policy) {
                // Its think time starts when it has a connection.
                continue;
            }
            let asking = Asking {
                client: due.client,
                scheduled_at: due.at,
                queries: 1,
                question: due.question,
            };
            let whose = (client, &mut population.to_send);
            asking.submit(&mut self.questions, whose, ledger);
        }
    }

    /// Takes the query that time has made due first; none is due from `end` on.
    #[inline]
    fn take_due(&mut self, now: Instant, end: Instant) -> Option<Due> {
        match &mut self.mode {
            Mode::Open(open) => open.take(now, end),
            Mode::ByClient(own) if own.next_due() <= now => own.take().map(Due::of),
            Mode::Replayed(own) if own.next_due() <= now && own.next_due() < end => own.take(),
            _ => None,
        }
    }

    /// Frees slots whose queries have ended.
    #[inline]
    pub(crate) fn release(&mut self, slots: u32) {
        if let Mode::Closed(closed) = &mut self.mode {
            closed.release(slots);
        }
    }

    /// Frees slots whose queries were lost by a timeout or with their connection.
    pub(crate) fn release_lost(&mut self, events: &mut Events, slots: u32, now: Instant) {
        if let Mode::Closed(closed) = &mut self.mode
            && let Some(at) = closed.release_lost(slots, now)
        {
            events.open_slots(at);
        }
    }

    /// Schedules the opening of slots that are held back, from `at` on.
    pub(crate) fn open_later(&mut self, events: &mut Events, at: Instant) {
        if let Mode::Closed(closed) = &mut self.mode
            && let Some(at) = closed.open_later(at)
        {
            events.open_slots(at);
        }
    }

    /// Opens the slots of one step.
    pub(crate) fn open_slots(&mut self, events: &mut Events, now: Instant) {
        if let Mode::Closed(closed) = &mut self.mode
            && let Some(at) = closed.open_slots(now)
        {
            events.open_slots(at);
        }
    }

    /// Records that a client may be able to take a query, in the closed loop of all clients or of
    /// each.
    #[inline(always)]
    pub(crate) fn list_client(
        &mut self,
        population: &mut Population,
        policy: &ConnectionPolicy,
        index: u32,
        now: Instant,
    ) {
        match &mut self.mode {
            Mode::Closed(closed) => closed.list(population, policy, index),
            Mode::ByClient(clients) => clients.think(population, policy, (index, now)),
            _ => {}
        }
    }

    /// Reports to the script, if there is one, how a query of client `index` has ended.
    #[inline]
    pub(crate) fn report_end(
        &mut self,
        (role, index): (Role, u32),
        query: &Query,
        end: QueryEnd<'_>,
        at: Instant,
    ) {
        if let Mode::Scripted(scripted) = &mut self.mode {
            scripted.report_end(role, index, query, end, at);
        }
    }

    /// Keeps the script's message of `query`, whose question is repeated over TCP.
    pub(crate) fn ask_again(&mut self, query: &Query) {
        if let Mode::Scripted(scripted) = &mut self.mode {
            scripted.ask_again(query);
        }
    }

    /// True if enough events have queued that the script has to run.
    #[inline]
    pub(crate) fn is_script_due(&self) -> bool {
        matches!(&self.mode, Mode::Scripted(scripted) if scripted.is_due())
    }

    /// True if the run is over, queries were due before `end`, and there is time to send them.
    pub(crate) fn catches_up(&self, now: Instant, run_end: Instant, end: Instant) -> bool {
        let is_open = match &self.mode {
            Mode::Open(_) | Mode::Replayed(_) => true,
            Mode::ByClient(clients) => clients.is_open(),
            Mode::Closed(_) | Mode::Scripted(_) => false,
        };
        is_open && self.next_due() < end && now < run_end + CATCH_UP_MAX
    }

    /// Drops the warm-up's remaining queries at `now` if the worker could not keep up; else they
    /// would delay all queries of the measured run.
    #[inline]
    pub(crate) fn leave_warmup(
        &mut self,
        ledger: &mut Ledger,
        (now, run_start): (Instant, Instant),
    ) {
        if let Mode::Open(open) = &mut self.mode
            && open.next_due() < run_start
            && now >= run_start + CATCH_UP_MAX
        {
            open.leave_warmup(&mut ledger.tally, run_start);
        }
    }

    /// Counts the queries that were due before `end` and will never be sent because the worker
    /// could not keep up.
    pub(crate) fn count_unoffered(
        &mut self,
        ledger: &mut Ledger,
        (run_start, end): (Instant, Instant),
    ) {
        let mut unoffered = Unoffered {
            left: &mut self.questions.left,
            tally: &mut ledger.tally,
        };
        match &mut self.mode {
            Mode::Open(open) => open.count_unoffered(&mut unoffered, (run_start, end)),
            Mode::ByClient(clients) => clients.count_unoffered(&mut unoffered, end),
            Mode::Replayed(replayed) => replayed.count_unoffered(&mut unoffered, end),
            Mode::Closed(_) | Mode::Scripted(_) => {}
        }
    }
}
