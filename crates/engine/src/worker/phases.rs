//! The phases of a run: set up connections, start with all other workers, offer queries, wait for
//! open ones.

use std::time::Duration;

use driver::{Close, Driver};
use proto::Instant;

use super::happy_eyeballs::Losers;
use super::offer::Mode;
use super::population::client::Link;
use super::population::connection::Reason;
use super::summary::{EndedBy, Timeline};
use super::timers::GivenUp;
use super::{STOP_POLL, Worker};

/// How long an interrupted run waits for queries in flight: most targets answer within it, and few
/// users wait longer.
const INTERRUPTED_DRAIN: Duration = Duration::from_secs(1);
/// How long a closed loop that no time ends continues without any usable connection, if that is
/// more than two timeouts: a restarted server is back by then.
const GONE_AFTER_MIN: Duration = Duration::from_secs(10);
/// Batches that the script handles in one turn, before the sockets are read again.
const BATCHES_MAX: u32 = 32;

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) enum Phase {
    /// Connections are being set up.
    SettingUp,
    /// Waiting for the other workers.
    Ready,
    /// Queries are offered.
    Offering,
    /// No more queries are offered; open ones may still be answered.
    Draining,
    /// Everything is closed and counted.
    Finished,
}

/// Where a worker is in its run.
pub(super) struct Course {
    pub(super) phase: Phase,
    pub(super) timeline: Timeline,
    pub(super) run_end: Instant,
    pub(super) ended_by: EndedBy,
    /// When the drain of an interrupted run is over.
    cut_off_at: Instant,
    /// When a connection was last usable.
    reached_at: Instant,
    /// The drain is over, and the next turns still have queries to give up.
    pub(super) gives_up: bool,
}

impl Default for Course {
    fn default() -> Self {
        Course {
            phase: Phase::SettingUp,
            timeline: Timeline::default(),
            run_end: Instant::FAR_FUTURE,
            ended_by: EndedBy::Duration,
            cut_off_at: Instant::FAR_FUTURE,
            reached_at: Instant::ZERO,
            gives_up: false,
        }
    }
}

impl Worker {
    pub(super) fn start_when_all_are_ready(&mut self, now: Instant) {
        if self.control.is_stopped() {
            self.begin_run(now);
            return self.end_offering(now, EndedBy::Interrupted);
        }
        if let Some(start) = self.control.start() {
            self.begin_run(start);
        }
    }

    fn begin_run(&mut self, start: Instant) {
        let course = &mut self.course;
        course.timeline.started_at = start;
        course.timeline.run_started_at = start + self.plan.warmup;
        let run_start = course.timeline.run_started_at;
        let duration = self.plan.duration;
        course.run_end = duration.map_or(Instant::FAR_FUTURE, |duration| run_start + duration);
        course.reached_at = start;
        course.phase = Phase::Offering;
        self.ledger.window.end = course.run_end;
        let is_due_by_time = self.offer.is_due_by_time();
        self.ledger
            .tally
            .set_start(start, run_start, is_due_by_time);
        self.population.begin_run(&self.plan, start);
        let joins_at = self.population.joins_at;
        let until = self.offer_end();
        self.offer
            .start(&self.plan, self.index, (start, joins_at, until));
        self.offer.open_later(&mut self.population.events, joins_at);
        self.population
            .begin_connections(&self.plan.connections, joins_at);
    }

    pub(super) fn offer_queries(&mut self, driver: &mut impl Driver, now: Instant) {
        if self.control.is_stopped() {
            let ended_by = match self.control.has_given_up() {
                true => EndedBy::NoAnswer,
                false if now >= self.course.run_end => EndedBy::Duration,
                false => EndedBy::Interrupted,
            };
            return self.end_offering(now, ended_by);
        }
        let run_start = self.course.timeline.run_started_at;
        self.offer.leave_warmup(&mut self.ledger, (now, run_start));
        self.offer.allow_due(0, true);
        if now >= self.population.joins_at && self.offer.is_fill_due(now) {
            self.fill(now);
        }
        self.run_script(driver, now);
        self.send_listed(driver);
        if self.offer.questions.left == 0 {
            self.end_offering(now, EndedBy::Queries);
        } else if now >= self.course.run_end && !self.catches_up(now) {
            self.end_offering(self.course.run_end, EndedBy::Duration);
        } else if self.target_is_gone(now) {
            self.end_offering(now, EndedBy::TargetGone);
        }
    }

    /// Submits the queries that are due at `now`; [`Worker::send_listed`] sends them.
    pub(super) fn fill(&mut self, now: Instant) {
        if now < self.population.joins_at {
            return;
        }
        let end = self.offer_end();
        self.offer.fill(
            &mut self.population,
            &mut self.ledger,
            &self.plan.connections,
            (now, end),
        );
    }

    /// True if the run is over, queries were due before its end, and there is time to send them.
    fn catches_up(&self, now: Instant) -> bool {
        let end = self.offer_end();
        self.offer.catches_up(now, self.course.run_end, end)
    }

    /// Runs the script's clients that have events, and carries out their actions.
    pub(super) fn run_script(&mut self, driver: &mut impl Driver, now: Instant) {
        if !matches!(self.offer.mode, Mode::Scripted(_)) || self.course.phase != Phase::Offering {
            return;
        }
        if now < self.population.joins_at || now >= self.offer_end() {
            return;
        }
        for _ in 0..BATCHES_MAX {
            let Some(mut batch) = self.offer.run_script(now) else {
                return;
            };
            for action in batch.actions.drain(..) {
                let parts = (&mut self.population, &mut self.ledger);
                if let Some(client) = self.offer.act(action, parts) {
                    self.close_for_script(driver, client, now);
                }
            }
            self.offer.end_batch(batch.actions);
            // Not if clients were stopped because the run is over.
            if batch.is_over && !self.control.is_stopped() {
                // Ends the run like one by number of queries after its last query.
                self.offer.questions.left = 0;
            }
            if !batch.has_run || self.offer.questions.left == 0 {
                return;
            }
        }
    }

    /// A closed loop offers nothing without a connection, so it has to give up if no time ends the
    /// run.
    fn target_is_gone(&mut self, now: Instant) -> bool {
        if self.ledger.open_connections.usable() > 0 {
            self.course.reached_at = now;
        }
        let policy = &self.plan.connections;
        // The plan may ask for longer without a connection.
        let between_attempts = policy
            .rate_max
            .map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / rate));
        let by_plan = policy.reconnect_delay + between_attempts;
        let patience = GONE_AFTER_MIN.max(2 * self.plan.timeout) + by_plan;
        let is_due = self.plan.transport.has_connections()
            && self.plan.duration.is_none()
            && self.offer.is_closed()
            && now >= self.course.reached_at + patience;
        // Clients that need no connection are no sign that the target is gone.
        if is_due && self.population.has_idle_client() {
            self.course.reached_at = now;
            return false;
        }
        is_due
    }

    fn end_offering(&mut self, at: Instant, ended_by: EndedBy) {
        // Responses received so far belong to the window before it is extended.
        self.ledger.settle_responses();
        let run_start = self.course.timeline.run_started_at;
        let at = at.min(self.course.run_end).max(run_start);
        self.course.ended_by = ended_by;
        self.course.run_end = at;
        // A run by queries is measured until its last response: the drain is part of it.
        let is_by_queries = ended_by == EndedBy::Queries;
        self.ledger.window.end = match is_by_queries {
            true => Instant::FAR_FUTURE,
            false => at,
        };
        let end = self.offer_end();
        self.offer
            .count_unoffered(&mut self.ledger, (run_start, end));
        self.course.timeline.run_ended_at = at;
        if !is_by_queries {
            self.ledger.tally.cut_off(at);
        }
        self.course.phase = Phase::Draining;
    }

    pub(super) fn finish_when_drained(&mut self, driver: &mut impl Driver, now: Instant) {
        let open = self.population.has_open_client(&self.plan.connections);
        if self.control.is_interrupted() {
            self.course.cut_off_at = self.course.cut_off_at.min(now + INTERRUPTED_DRAIN);
        }
        // A query may wait one timeout for its connection and another for its response.
        let drained_at = self.course.run_end + 2 * self.plan.timeout + STOP_POLL;
        if open && now < drained_at.min(self.course.cut_off_at) {
            return;
        }
        let how = match now < drained_at {
            true => GivenUp::Interrupted,
            false => GivenUp::TimedOut,
        };
        self.course.gives_up = !self.give_up_open_queries(now, how);
        if self.course.gives_up {
            return;
        }
        // The counts before connections are closed.
        let mut open_connections = self.ledger.open_connections;
        self.close_all(driver, now);
        debug_assert_eq!(self.ledger.tally.in_flight(), 0, "every query has ended");
        self.ledger
            .roll_intervals(driver, now.max(self.course.run_end));
        if self.course.ended_by == EndedBy::Queries {
            self.ledger.tally.close_window(driver.cpu_time());
        }
        self.ledger.settle_responses();
        self.ledger
            .tally
            .finish(now, driver.cpu_time(), &mut open_connections);
        self.course.timeline.drained_at = now;
        self.course.phase = Phase::Finished;
    }

    fn close_all(&mut self, driver: &mut impl Driver, now: Instant) {
        for index in 0..self.population.clients.len() {
            match &self.population.clients[index].link {
                Link::Datagram { socket, .. } => match &self.population.stub {
                    None => driver.close(*socket, Close::Graceful),
                    Some(stub) => (stub.sockets_of(index as u32).iter())
                        .for_each(|socket| driver.close(*socket, Close::Graceful)),
                },
                Link::Connected(connection) if connection.is_open() => {
                    self.close_connection(driver, index as u32, Reason::Done, now);
                }
                Link::Connected(connection) => {
                    driver.close(connection.socket, Close::Reset);
                    self.ledger.connections(now).abandoned += 1;
                    self.end_race(driver, index as u32, Losers::Abandoned, now);
                }
                Link::Down { .. } => {}
            }
        }
        self.close_retiring(driver, now);
    }
}
