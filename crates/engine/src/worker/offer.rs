//! Which client asks next, and when: the closed and the open loop.

use std::time::Duration;

use load::Plan;
use load::arrival::{Arrival, Process, Schedule};
use load::plan::share;
use load::question_source::Question;
use proto::Instant;
use proto::pending::OPEN_MAX;

use super::by_client::ByClient;
use super::gate::{Burst, Gate};
use super::replayed::Replayed;
use super::scripted::Scripted;
use super::{ClientQueue, Worker};

/// Queries that time has made due and that a turn may offer, beside one for each query that has
/// ended since: a worker that cannot keep up shares its time between asking and reading, and so
/// falls behind its rate without letting responses lie.
const DUE_EACH_TURN: u32 = 256;
/// Most that a turn may offer; a worker that was held up catches up in such steps.
const DUE_MAX: u32 = 4_096;
/// How long after the end of the run queries that were due before it may still be offered: as long
/// as a worker may have to wait for its CPU on a host with other things to do.
const CATCH_UP_MAX: Duration = Duration::from_millis(100);

/// Part of a closed loop's places that may wait to be filled together. Responses that come a few
/// microseconds apart would otherwise each cost a system call and a wake-up at both ends. Streams
/// only: with datagrams the extra wake-up was measured to cost more than it saves.
const DEFERRED_PART: u32 = 64;
/// How long places may wait to be filled together.
const DEFERRED_MAX: Duration = Duration::from_micros(100);

/// The worker's share of the load.
pub(super) enum Offer {
    /// A new query as soon as a place is free.
    Closed {
        /// Places free, without those that the gate keeps shut.
        free: u32,
        /// Most queries open at one client.
        per_client: u32,
        /// Clients that can take a query.
        ready: ClientQueue,
        /// Most places that may wait to be filled together.
        deferred_max: u32,
        /// When they are filled at the latest; far in the future if none waits.
        fill_at: Instant,
        /// What holds places back; none while nothing does.
        gate: Option<Gate>,
        /// Places that may be filled in one burst after their queries were lost.
        losses: Burst,
    },
    /// Queries at their instants.
    Open {
        /// None until the run starts.
        schedule: Option<Schedule>,
        next_client: u32,
    },
    /// Queries at the instants of each client.
    ByClient(ByClient),
    /// Queries of a capture at their instants.
    Replayed(Replayed),
    /// Queries as a script asks them.
    Scripted(Box<Scripted>),
}

/// A query that time has made due.
pub(super) struct Due {
    pub(super) at: Instant,
    pub(super) client: u32,
    /// What it asks, unless that is still to be chosen.
    pub(super) question: Option<Question>,
}

impl Due {
    fn of((at, client): (Instant, u32)) -> Self {
        Due {
            at,
            client,
            question: None,
        }
    }
}

impl Offer {
    /// The share of `worker`: `clients` clients from number `first` on.
    pub(super) fn new(plan: &Plan, worker: u32, (first, clients): (u32, u32)) -> Self {
        match plan.arrival {
            Arrival::Closed { outstanding, .. } => {
                let free = share(outstanding.into(), worker, plan.workers) as u32;
                Offer::Closed {
                    free,
                    per_client: match plan.connections.asks_nothing() {
                        true => 0,
                        false => free.div_ceil(clients.max(1)).clamp(1, OPEN_MAX),
                    },
                    ready: ClientQueue::with_capacity(clients as usize),
                    deferred_max: match plan.transport.has_connections() {
                        true => free / DEFERRED_PART,
                        false => 0,
                    },
                    fill_at: Instant::FAR_FUTURE,
                    gate: None,
                    losses: Burst::new(plan.workers),
                }
            }
            Arrival::Open { .. } => Offer::Open {
                schedule: None,
                next_client: 0,
            },
            Arrival::Clients(_) | Arrival::Profile => {
                Offer::ByClient(ByClient::new(plan, first..first + clients))
            }
            Arrival::Replay => Offer::Replayed(Replayed::new(plan, first..first + clients)),
            Arrival::Script => Offer::Scripted(Box::new(Scripted::new(plan, clients))),
        }
    }

    /// Starts the clock of the schedule: the run starts at `start`, its first query is due when
    /// the clients join or soon after, and none from `until` on.
    pub(super) fn start(
        &mut self,
        plan: &Plan,
        worker: u32,
        (start, joins_at, until): (Instant, Instant, Instant),
    ) {
        let share = (worker, plan.workers);
        match (self, plan.arrival) {
            (
                Offer::Closed {
                    free, gate, losses, ..
                },
                Arrival::Closed { rate_qps_max, .. },
            ) => {
                let pace =
                    |rate| Schedule::new(rate, Process::Constant, share, plan.seed, joins_at);
                *gate = Gate::at_start(rate_qps_max.map(pace), free, losses.places_max);
            }
            (
                Offer::Open { schedule, .. },
                Arrival::Open {
                    rate_qps,
                    process,
                    burst,
                },
            ) => {
                let bursts = (rate_qps, process, burst);
                *schedule = Some(Schedule::of_bursts(bursts, share, plan.seed, joins_at));
            }
            (Offer::ByClient(clients), Arrival::Clients(_) | Arrival::Profile) => {
                clients.start(plan, (start, joins_at), until);
            }
            (Offer::Replayed(replayed), Arrival::Replay) => replayed.start(start),
            (Offer::Scripted(scripted), Arrival::Script) => scripted.start(start, joins_at),
            _ => unreachable!("the offer was made from the same plan"),
        }
    }

    /// True if queries are due at instants that a worker may come to late.
    pub(super) fn is_due_by_time(&self) -> bool {
        !matches!(self, Offer::Closed { .. })
    }

    /// When time alone makes a query due.
    pub(super) fn next_due(&self) -> Instant {
        match self {
            // Without a client that can take a query, time makes none due.
            Offer::Closed {
                gate:
                    Some(Gate {
                        schedule: Some(schedule),
                        ..
                    }),
                free: 1..,
                ready,
                ..
            } if !ready.is_empty() => schedule.next_due(),
            Offer::Closed { fill_at, .. } => *fill_at,
            Offer::Open { schedule, .. } => schedule
                .as_ref()
                .map_or(Instant::FAR_FUTURE, Schedule::next_due),
            Offer::ByClient(clients) => clients.next_due(),
            Offer::Replayed(replayed) => replayed.next_due(),
            Offer::Scripted(scripted) => scripted.next_due(),
        }
    }

    /// True if free places are to be filled at `now`; a few may wait for others for a moment.
    #[inline]
    pub(super) fn is_fill_due(&mut self, now: Instant) -> bool {
        let Offer::Closed {
            free,
            ready,
            deferred_max,
            fill_at,
            gate,
            ..
        } = self
        else {
            return !matches!(self, Offer::Scripted(_));
        };
        if *free == 0 || ready.is_empty() {
            *fill_at = Instant::FAR_FUTURE;
            return false;
        }
        if *free > *deferred_max || now >= *fill_at || gate.as_ref().is_some_and(Gate::holds) {
            *fill_at = Instant::FAR_FUTURE;
            return true;
        }
        if *fill_at == Instant::FAR_FUTURE {
            *fill_at = now + DEFERRED_MAX;
        }
        false
    }

    /// Takes the query that time has made due first, with its client of `clients`; none is due
    /// from `end` on.
    #[inline]
    fn take_due(&mut self, now: Instant, end: Instant, clients: u32) -> Option<Due> {
        match self {
            Offer::Open {
                schedule: Some(schedule),
                next_client,
            } => {
                let due = schedule.next_due();
                if due > now || due >= end {
                    return None;
                }
                schedule.advance();
                let client = *next_client;
                if schedule.starts_burst() {
                    *next_client = if client + 1 == clients { 0 } else { client + 1 };
                }
                Some(Due::of((due, client)))
            }
            Offer::ByClient(own) if own.next_due() <= now => own.take().map(Due::of),
            Offer::Replayed(own) if own.next_due() <= now && own.next_due() < end => own.take(),
            _ => None,
        }
    }

    /// A place is free again: one of its queries has ended.
    #[inline]
    pub(super) fn release(&mut self, places: u32) {
        if let Offer::Closed { free, .. } = self {
            *free += places;
        }
    }
}

impl Worker {
    /// Lets more queries be offered that time makes due: as many as have ended, and those of a
    /// turn if this is one.
    #[inline]
    pub(super) fn allow_due(&mut self, ended: u64, is_turn: bool) {
        let more = ended + if is_turn { u64::from(DUE_EACH_TURN) } else { 0 };
        self.due_allowed = (u64::from(self.due_allowed) + more).min(DUE_MAX.into()) as u32;
    }

    /// Submits the queries that are due at `now`, within what [`Worker::allow_due`] allows;
    /// [`Worker::send_dirty`] sends them.
    pub(super) fn fill(&mut self, now: Instant) {
        if now < self.joins_at {
            return;
        }
        match self.offer {
            Offer::Closed { .. } if now >= self.offer_end() => {}
            Offer::Closed { .. } => self.fill_closed(now),
            Offer::Open { .. } | Offer::ByClient(_) | Offer::Replayed(_) => self.fill_due(now),
            Offer::Scripted(_) => {}
        }
    }

    fn fill_closed(&mut self, now: Instant) {
        let policy = &self.plan.connections;
        let Offer::Closed {
            free,
            per_client,
            ready,
            gate,
            ..
        } = &mut self.offer
        else {
            return;
        };
        let mut gate = gate.as_mut().filter(|gate| gate.holds());
        let is_measured = self.tally.is_measured(now);
        let counts = &mut self.tally.of_query(now).counts;
        let mut refused = 0;
        while *free > 0 && self.questions.left > 0 {
            let Some(&index) = ready.front() else { break };
            let client = &mut self.clients[index as usize];
            let open = client.open_queries();
            let room = per_client.saturating_sub(open).min(client.room(policy));
            if room == 0 {
                client.listed = false;
                ready.pop_front();
                continue;
            }
            if let Some(gate) = &mut gate
                && !gate.admit(now, free)
            {
                break;
            }
            // One query each in turn, so that few queries are spread over many clients; a client
            // that is alone takes all that it may.
            let is_alone = ready.len() == 1 && gate.is_none();
            let left = u32::try_from(self.questions.left).unwrap_or(u32::MAX);
            let most = if is_alone {
                room.min(*free).min(left)
            } else {
                1
            };
            let questions = || self.questions.take(now, counts);
            let submitted = client.pending.submit_many(now, most, questions);
            *free -= submitted;
            self.questions.count(most, is_measured, counts);
            if is_measured {
                let first = (open == 0).then(|| client.pending.number_waiting());
                let first = first.flatten();
                self.statistics.count_queries(index, most, first, now);
            }
            refused += u64::from(most - submitted);
            if !client.dirty {
                client.dirty = true;
                self.dirty.push(index);
            }
            ready.pop_front();
            client.listed = submitted < room;
            if client.listed {
                ready.push_back(index);
            }
        }
        if refused > 0 {
            let counts = &mut self.tally.of_lost(now, refused).counts;
            counts.not_sent.no_free_id += refused;
        }
    }

    /// Submits the queries that time has made due, those of one bin of the timeline after those of
    /// the other.
    fn fill_due(&mut self, now: Instant) {
        let end = self.offer_end();
        loop {
            let last = self.tally.due_last();
            self.fill_due_until(now.min(last), end);
            let next = self.offer.next_due();
            if self.due_allowed == 0 || next <= last || next > now || next >= end {
                return;
            }
            self.tally.due_at(next);
        }
    }

    /// Submits the queries that are due at `now` at the latest.
    fn fill_due_until(&mut self, now: Instant, end: Instant) {
        let waits = matches!(&self.offer, Offer::ByClient(clients) if !clients.is_open());
        while self.due_allowed > 0 && self.questions.left > 0 {
            let Some(due) = self.offer.take_due(now, end, self.primaries) else {
                return;
            };
            self.due_allowed -= 1;
            let (scheduled_at, index) = (due.at, due.client);
            let client = &mut self.clients[index as usize];
            if waits && !client.can_send(&self.plan.connections) {
                // It thinks again when it has a connection.
                continue;
            }
            let is_measured = self.tally.is_measured(scheduled_at);
            let counts = &mut self.tally.of_query(scheduled_at).counts;
            let question = match due.question {
                None => self.questions.take(scheduled_at, counts),
                Some(question) => question,
            };
            self.questions.count(1, is_measured, counts);
            let is_alone = client.open_queries() == 0;
            if !client.pending.submit(scheduled_at, question) {
                let counts = &mut self.tally.of_lost(scheduled_at, 1).counts;
                counts.not_sent.no_free_id += 1;
            } else if !client.dirty {
                client.dirty = true;
                self.dirty.push(index);
            }
            if is_measured {
                let first = is_alone.then(|| client.pending.newest());
                self.statistics.count_queries(index, 1, first, scheduled_at);
            }
        }
    }

    /// True if the run is over, queries were due before its end, and there is time to send them.
    pub(super) fn catches_up(&self, now: Instant) -> bool {
        let is_open = match &self.offer {
            Offer::Open { .. } | Offer::Replayed(_) => true,
            Offer::ByClient(clients) => clients.is_open(),
            Offer::Closed { .. } | Offer::Scripted(_) => false,
        };
        is_open && self.offer.next_due() < self.offer_end() && now < self.run_end + CATCH_UP_MAX
    }

    /// Counts the queries that were due before the end of the run and will never be sent: the
    /// worker could not keep up.
    pub(super) fn count_unoffered(&mut self) {
        self.count_unoffered_by_client();
        self.count_unoffered_of_replay();
        let end = self.offer_end();
        let Offer::Open {
            schedule: Some(schedule),
            ..
        } = &mut self.offer
        else {
            return;
        };
        let run_start = self.timeline.run_started_at.min(end);
        let of_warmup = schedule.skip_until(run_start, u64::MAX);
        self.tally.count_unoffered(Instant::ZERO, of_warmup);
        while self.questions.left > 0 && schedule.next_due() < end {
            let due = schedule.next_due();
            self.tally.due_at(due);
            let until = end.min(self.tally.due_last() + Duration::from_nanos(1));
            let queries = schedule.skip_until(until, self.questions.left);
            self.questions.left -= queries;
            self.tally.count_unoffered(due, queries);
        }
    }

    /// Puts a client into the list of those that can take a query, if it can (closed loop).
    #[inline(always)]
    pub(super) fn list_client(&mut self, index: u32, now: Instant) {
        if let Offer::ByClient(_) = self.offer {
            return self.think(index, now);
        }
        let Offer::Closed {
            ready, per_client, ..
        } = &mut self.offer
        else {
            return;
        };
        let client = &mut self.clients[index as usize];
        let wanted = !client.listed && index < self.primaries;
        if wanted && client.open_queries() < *per_client && client.can_send(&self.plan.connections)
        {
            client.listed = true;
            ready.push_back(index);
        }
    }
}
