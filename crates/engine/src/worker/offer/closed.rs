//! The closed loop: a new query as soon as a slot is free.

use std::collections::VecDeque;
use std::time::Duration;

use load::arrival::{Arrival, Process, Schedule};
use load::plan::share;
use load::{ConnectionPolicy, Plan};
use proto::Instant;
use proto::pending::OPEN_MAX;

use super::questions::QuestionCursor;
use super::submit::Asking;
use super::throttle::{Burst, Throttle};
use crate::worker::ledger::Ledger;
use crate::worker::population::Population;

/// Share (1 / this) of a closed loop's slots that may wait to be filled together. Responses that
/// come a few microseconds apart would otherwise each cost a system call and a wake-up at both
/// ends. Streams only: with datagrams the extra wake-up was measured to cost more than it saves.
const DEFERRED_PART: u32 = 64;
/// How long slots may wait to be filled together.
const DEFERRED_MAX: Duration = Duration::from_micros(100);

/// The slots of a worker, and the clients that may fill them.
pub(crate) struct Closed {
    /// Free slots, without those that are held back.
    free: u32,
    /// Most queries open at one client.
    per_client: u32,
    /// Clients that can take a query; the longest waiting first.
    ready: VecDeque<u32>,
    /// Most slots that may wait to be filled together.
    deferred_max: u32,
    /// Deadline for filling them; far in the future if none waits.
    fill_at: Instant,
    /// Holds slots back; none if all are open and no rate is kept.
    throttle: Option<Throttle>,
    /// Slots that may be filled in one burst after their queries were lost.
    losses: Burst,
}

impl Closed {
    /// The share of `worker` in `outstanding` queries, for `clients` clients.
    pub(super) fn new(plan: &Plan, worker: u32, (outstanding, clients): (u32, u32)) -> Self {
        let free = share(outstanding.into(), worker, plan.workers) as u32;
        Closed {
            free,
            per_client: match plan.connections.asks_nothing() {
                true => 0,
                false => free.div_ceil(clients.max(1)).clamp(1, OPEN_MAX),
            },
            ready: VecDeque::with_capacity(clients as usize),
            deferred_max: match plan.transport.has_connections() {
                true => free / DEFERRED_PART,
                false => 0,
            },
            fill_at: Instant::FAR_FUTURE,
            throttle: None,
            losses: Burst::new(plan.workers),
        }
    }

    /// The clients join at `joins_at`.
    pub(super) fn start(&mut self, plan: &Plan, worker: u32, joins_at: Instant) {
        let Arrival::Closed { rate_qps_max, .. } = plan.arrival else {
            return;
        };
        let share = (worker, plan.workers);
        let pace = |rate| Schedule::new(rate, Process::Constant, share, plan.seed, joins_at);
        let schedule = rate_qps_max.map(pace);
        self.throttle = Throttle::at_start(schedule, &mut self.free, self.losses.slots_max);
    }

    /// When time makes a query due.
    pub(super) fn next_due(&self) -> Instant {
        match &self.throttle {
            // Time makes no query due while no client can take one.
            Some(Throttle {
                schedule: Some(schedule),
                ..
            }) if self.free > 0 && !self.ready.is_empty() => schedule.next_due(),
            _ => self.fill_at,
        }
    }

    /// True if free slots are to be filled at `now`; a few may wait for others for a moment.
    #[inline]
    pub(super) fn is_fill_due(&mut self, now: Instant) -> bool {
        if self.free == 0 || self.ready.is_empty() {
            self.fill_at = Instant::FAR_FUTURE;
            return false;
        }
        if self.free > self.deferred_max
            || now >= self.fill_at
            || self.throttle.as_ref().is_some_and(Throttle::holds)
        {
            self.fill_at = Instant::FAR_FUTURE;
            return true;
        }
        if self.fill_at == Instant::FAR_FUTURE {
            self.fill_at = now + DEFERRED_MAX;
        }
        false
    }

    /// Submits queries until no slot may be filled, or no client can take a query.
    pub(super) fn fill(
        &mut self,
        questions: &mut QuestionCursor,
        (population, ledger): (&mut Population, &mut Ledger),
        policy: &ConnectionPolicy,
        now: Instant,
    ) {
        let Closed { free, ready, .. } = self;
        let mut throttle = self.throttle.as_mut().filter(|throttle| throttle.holds());
        while *free > 0 && questions.left > 0 {
            let Some(&index) = ready.front() else { break };
            let client = &mut population.clients[index as usize];
            let of_loop = self.per_client.saturating_sub(client.open_queries());
            let room = of_loop.min(client.room(policy));
            if room == 0 {
                client.listed.ready = false;
                ready.pop_front();
                continue;
            }
            if let Some(throttle) = &mut throttle
                && !throttle.admit(now, free)
            {
                break;
            }
            // One query each in turn, so that few queries are spread over many clients; a single
            // ready client takes all that it may.
            let is_alone = ready.len() == 1 && throttle.is_none();
            let left = u32::try_from(questions.left).unwrap_or(u32::MAX);
            let queries = if is_alone {
                room.min(*free).min(left)
            } else {
                1
            };
            let asking = Asking {
                client: index,
                scheduled_at: now,
                queries,
                question: None,
            };
            let whose = (&mut *client, &mut population.to_send);
            let submitted = asking.submit(questions, whose, ledger);
            *free -= submitted;
            ready.pop_front();
            client.listed.ready = submitted < room;
            if client.listed.ready {
                ready.push_back(index);
            }
        }
    }

    /// Puts a client into the list of those that can take a query, if it can.
    #[inline(always)]
    pub(super) fn list(
        &mut self,
        population: &mut Population,
        policy: &ConnectionPolicy,
        index: u32,
    ) {
        let client = &mut population.clients[index as usize];
        let wanted = !client.listed.ready && index < population.primaries;
        if wanted && client.open_queries() < self.per_client && client.can_send(policy) {
            client.listed.ready = true;
            self.ready.push_back(index);
        }
    }

    /// Frees slots whose queries have ended.
    #[inline]
    pub(super) fn release(&mut self, slots: u32) {
        self.free += slots;
    }

    /// Frees slots whose queries were lost. Returns when to begin opening those that may not be
    /// filled at once, unless that is scheduled already.
    #[cold]
    pub(super) fn release_lost(&mut self, slots: u32, now: Instant) -> Option<Instant> {
        let at_once = self.losses.take(slots, now);
        self.free += at_once;
        Throttle::hold_lost(&mut self.throttle, at_once, slots - at_once, now)
    }

    /// When to begin opening the slots that are held back, from `at` on; none if there are none or
    /// that is scheduled already.
    pub(super) fn open_later(&mut self, at: Instant) -> Option<Instant> {
        self.throttle.as_mut()?.begin_steps(at)
    }

    /// Opens the slots of one step; returns when the next one is due.
    pub(super) fn open_slots(&mut self, now: Instant) -> Option<Instant> {
        let throttle = self.throttle.as_mut()?;
        let next = throttle.step(&mut self.free, now);
        if next.is_none() && !throttle.holds() {
            self.throttle = None;
        }
        next
    }
}
