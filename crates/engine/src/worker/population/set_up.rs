//! Connection set-up before the run, and the pace of all attempts.

use std::collections::VecDeque;
use std::time::Duration;

use load::Plan;
use load::arrival::{Process, Schedule};
use proto::Instant;

/// First attempts that one worker has under way at a time: many small servers have a listen
/// backlog of 10, and an overflowing backlog costs a SYN retransmission of 1 s.
///
/// A connection counts until it is usable, not only until TCP is established: the kernel
/// establishes a connection and leaves it in the backlog until the server accepts it, and only a
/// handshake above TCP shows that the server did.
const CONNECTING_MAX: usize = 10;
/// An attempt that takes longer no longer counts: the server, not the network, delays it (it has
/// reached its limit of clients), and the other clients must have their attempt.
const WAITS_AFTER_MIN: Duration = Duration::from_millis(250);
/// The same limit in durations of a set-up, since a server with long set-ups is slow and not full.
const WAITS_AFTER_SET_UPS: u32 = 4;

/// Progress of connection set-up before the run, and the pace of all attempts.
#[derive(Debug, Default)]
pub(crate) struct SetUp {
    /// The next client to have its first attempt.
    next_client: u32,
    /// Clients that are to have their first attempt before the run.
    clients: u32,
    /// Clients whose first attempt is over.
    pub(crate) settled: u32,
    /// First attempts that count among [`CONNECTING_MAX`], and when they were made.
    under_way: Vec<(u32, Instant)>,
    /// Duration of the last set-up that counted until it was over; of any set-up until there is
    /// one.
    took: Duration,
    /// Connections that were usable when [`SetUp::change_usable`] was last called.
    usable: u64,
    /// Their maximum, and when it was reached.
    usable_max: u64,
    grown_at: Instant,
    /// Total time in which [`CONNECTING_MAX`] attempts were under way, and when it was last
    /// updated.
    kept_waiting: Duration,
    known_at: Instant,
    /// When attempts may be made, if their rate is limited.
    pub(crate) pace: Option<Schedule>,
    /// How long the pace keeps the next attempt waiting.
    pause: Duration,
    /// Clients that wait for their turn.
    pub(crate) queue: VecDeque<u32>,
}

impl SetUp {
    pub(crate) fn new(plan: &Plan, worker: u32, now: Instant) -> Self {
        let share = (worker, plan.workers);
        let is_before_run = plan.transport.has_connections()
            && !plan.connections.asks_nothing()
            && plan.presence.joins_after.is_zero();
        let rate = plan.connections.rate_max;
        SetUp {
            clients: match is_before_run {
                true => plan.worker_clients(worker),
                false => 0,
            },
            under_way: Vec::with_capacity(CONNECTING_MAX),
            grown_at: now,
            known_at: now,
            pace: rate.map(|rate| Schedule::new(rate, Process::Constant, share, plan.seed, now)),
            pause: rate.map_or(Duration::ZERO, |rate| {
                Duration::from_secs_f64(f64::from(plan.workers) / rate)
            }),
            ..SetUp::default()
        }
    }

    /// Takes the next client that has had no attempt, if it may have its first one now.
    pub(crate) fn take_next_client(&mut self, now: Instant) -> Option<u32> {
        if self.next_client >= self.clients {
            return None;
        }
        if self.pace.is_none() {
            let waits_after = WAITS_AFTER_MIN.max(self.took * WAITS_AFTER_SET_UPS);
            self.under_way
                .retain(|(_, since)| now < *since + waits_after);
            if self.under_way.len() >= CONNECTING_MAX {
                return None;
            }
        }
        self.next_client += 1;
        Some(self.next_client - 1)
    }

    /// The first attempt of a client is made now.
    pub(crate) fn begin(&mut self, client: u32, now: Instant) {
        if self.pace.is_none() {
            self.under_way.push((client, now));
        }
    }

    /// True while there are clients that have had no attempt.
    #[inline]
    pub(crate) fn has_next_client(&self) -> bool {
        self.next_client < self.clients
    }

    /// The first attempt of a client is over; `took` is how long, if its connection is usable.
    pub(crate) fn settle(&mut self, client: u32, took: Option<Duration>) {
        self.settled += 1;
        let mut under_way = self.under_way.iter();
        let position = under_way.position(|(index, _)| *index == client);
        if let Some(position) = position {
            self.under_way.swap_remove(position);
        }
        // An attempt that no longer counted measures the server's delay, not a set-up. Before the
        // first that counted, any duration will do.
        if position.is_some() || self.took.is_zero() {
            self.took = took.unwrap_or(self.took);
        }
    }

    /// Records that `usable` connections are usable now; returns the change since the last call.
    pub(crate) fn change_usable(&mut self, usable: u64, now: Instant) -> i64 {
        if usable > self.usable_max {
            (self.usable_max, self.grown_at) = (usable, now);
        }
        let known_at = std::mem::replace(&mut self.known_at, now);
        let counted = self.settled as usize + self.under_way.len();
        let waiting = (self.next_client as usize).saturating_sub(counted);
        if self.pace.is_none() && waiting >= CONNECTING_MAX {
            self.kept_waiting += now - known_at;
        }
        usable as i64 - std::mem::replace(&mut self.usable, usable) as i64
    }

    /// True if each client has had its attempt, or if set-up makes no progress: the number of
    /// usable connections has had no new maximum for `timeout` plus the time that the pace delays
    /// an attempt, or it still grows slowly but clients were kept waiting for `timeout` in all.
    /// Failures and connections that replace others are no progress: a server at its limit of
    /// clients may produce both for ever. Its kernel may even keep establishing connections that
    /// the server never accepts.
    pub(crate) fn is_over(&self, timeout: Duration, now: Instant) -> bool {
        self.settled >= self.clients
            || now >= self.grown_at + timeout + self.pause
            || self.kept_waiting >= timeout
    }

    /// When the next attempt is due, if a client waits for it.
    pub(crate) fn next_due(&self) -> Instant {
        match (&self.pace, self.queue.is_empty()) {
            (Some(pace), false) => pace.next_due(),
            _ => Instant::FAR_FUTURE,
        }
    }
}
