//! One worker: a share of the clients and of the load, on one core.
//!
//! [`Worker::handle`] takes a delivery. [`Worker::turn`] does everything else that needs no waiting
//! and returns when it is next due; the owner of the driver waits. So the same worker runs on a
//! thread, beside those of other groups, and in the simulator's virtual time.
//!
//! Four parts own their state: `population` (clients, connections, timers), `offer` (which client
//! queries what, and when), `wire` (messages as bytes), `ledger` (what is counted). The worker's
//! own modules do what concerns several of them, or leads from one event to the next:
//!
//! * `phases`: set-up of connections, a common start, offering, drain.
//! * `sending`, `receiving`, `exchanges`: batches of queries; matching of messages; the ends of
//!   requests and streams that carry one query each.
//! * `connecting`, `disconnecting`, `streams`, `quic`: connections and the events within them.
//! * `retiring`: connections that await responses while the client's next one is open.
//! * `timers`, `retries`, `happy_eyeballs`: timeouts; queries and connections that switch to
//!   another server; connections that are raced.
//! * `checkpoints`: regular reports of all that was measured so far.
//! * `churn`: clients that join, leave, or lose their connections.
//!
//! Cost on the data path, a query over UDP in a closed loop with bursts of five: 2 clock readings
//! and 2 system calls a burst, one copy of the template, no allocation.

mod checkpoints;
mod churn;
mod connecting;
mod disconnecting;
mod exchanges;
mod happy_eyeballs;
mod inputs;
mod ledger;
mod offer;
mod phases;
mod population;
mod quic;
mod receiving;
mod retiring;
mod retries;
mod sending;
mod streams;
mod summary;
mod timers;
mod wire;

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use driver::{Driver, Event, Received};
use load::Plan;
use measure::Interval;
use proto::{Instant, Transport};

use crate::SetupError;
use crate::control::Control;
use checkpoints::Taken;
use happy_eyeballs::Losers;
pub use inputs::{RunInputs, TlsSettings};
use ledger::Ledger;
use ledger::checkpoints::Checkpoints;
use offer::{Mode, Offer};
use phases::{Course, Phase};
use population::Population;
use population::client::Link;
use population::set_up::SetUp;
pub use summary::{EndedBy, Timeline, TlsNotes, Window, WorkerSummary};
use wire::Wire;

/// How often a waiting worker reads the stop flag.
pub(crate) const STOP_POLL: Duration = Duration::from_millis(20);

/// One worker.
pub(crate) struct Worker {
    plan: Arc<Plan>,
    control: Arc<Control>,
    /// Its number among the workers of its group.
    index: u32,
    course: Course,
    population: Population,
    offer: Offer,
    wire: Wire,
    ledger: Ledger,
    taken: Taken,
}

impl Worker {
    /// Worker number `index` of the plan; opens nothing yet.
    pub(crate) fn new(inputs: &RunInputs, index: u32, control: Arc<Control>) -> Self {
        let plan = Arc::clone(&inputs.plan);
        let first: u32 = (0..index).map(|before| plan.worker_clients(before)).sum();
        let primaries = plan.worker_clients(index);
        let offer = Offer::new(&plan, index, (first, primaries));
        let has_script = matches!(offer.mode, Mode::Scripted(_));
        let mut ledger = Ledger::new(&plan, primaries, inputs.observer.clone(), has_script);
        if control.tells_checkpoints() {
            ledger
                .tally
                .note_checkpoints(Checkpoints::of(&plan, control.is_agent()));
        }
        Worker {
            index,
            course: Course::default(),
            population: Population::new(&plan, (first, primaries)),
            wire: Wire::new(&plan, inputs.tls.clone(), index),
            ledger,
            offer,
            control,
            plan,
            taken: Taken::default(),
        }
    }

    /// Opens the datagram sockets; streams are connected by [`Worker::turn`].
    ///
    /// # Errors
    /// [`SetupError`] names the socket that could not be opened.
    pub(crate) fn open(&mut self, driver: &mut impl Driver) -> Result<(), SetupError> {
        let now = driver.now();
        self.course.timeline.opened_at = now;
        self.population.choose_message_ids(driver);
        self.population.set_up = SetUp::new(&self.plan, self.index, now);
        self.wire.quic = wire::quic::client(&self.plan, driver);
        if let Mode::Scripted(scripted) = &mut self.offer.mode {
            let is_over = self.control.stop_flag();
            let loaded = scripted.load(&self.plan, self.population.first_client, is_over);
            loaded.map_err(SetupError::Script)?;
        }
        if self.plan.transport.has_connections() {
            return Ok(());
        }
        for client in 0..self.population.primaries {
            let target = self.plan.target;
            let socket = self.population.open_servers(driver, (client, target))?;
            self.population.clients[client as usize].link = Link::Datagram {
                socket,
                blocked: false,
            };
            self.list_client(client, now);
        }
        Ok(())
    }

    /// Does all that can be done without a delivery; returns when it has to be called next, at the
    /// latest.
    pub(crate) fn turn(&mut self, driver: &mut impl Driver) -> Instant {
        // Nothing is due: other workers of its thread may still run for long.
        if self.is_finished() {
            return Instant::FAR_FUTURE;
        }
        let now = driver.now();
        self.roll_intervals(driver, now);
        self.fire_events(driver, now);
        self.fire_timers(driver, now);
        if self.population.stub.is_some() {
            self.ask_again(driver, now);
        }
        if self.population.set_up.has_next_client() {
            self.connect_next_clients(driver, now);
        }
        self.connect_queued(driver, now);
        match self.course.phase {
            Phase::SettingUp => self.end_set_up(now),
            Phase::Ready => self.start_when_all_are_ready(now),
            Phase::Offering => self.offer_queries(driver, now),
            Phase::Draining => self.finish_when_drained(driver, now),
            Phase::Finished => {}
        }
        self.wake_up(now)
    }

    /// True when there is nothing left to do.
    pub(crate) fn is_finished(&self) -> bool {
        self.course.phase == Phase::Finished
    }

    /// The next interval that has ended, in order.
    pub(crate) fn poll_interval(&mut self) -> Option<Interval> {
        let interval = self.ledger.tally.finished.pop_front()?;
        self.taken.intervals += 1;
        Some(interval)
    }

    /// The rest, once [`Worker::is_finished`].
    pub(crate) fn summary(&self, driver: &impl Driver) -> WorkerSummary {
        let present_ns = self.population.present_ns(&self.course.timeline);
        WorkerSummary {
            bins: self.ledger.tally.timeline().clone(),
            experience: self.ledger.statistics.experience(present_ns),
            ..self.common_summary(driver)
        }
    }

    /// The part of the summary that checkpoints have too.
    fn common_summary(&self, driver: &impl Driver) -> WorkerSummary {
        let Ledger { tally, window, .. } = &self.ledger;
        let stub = self.population.stub.as_ref();
        WorkerSummary {
            timeline: self.course.timeline,
            warmup: tally.warmup.clone(),
            window: *window,
            ended_by: self.course.ended_by,
            stats: driver.stats(),
            tls: self.ledger.tls.clone(),
            streams_max: self.ledger.streams_max,
            first_late_ns: self.first_late_ns(),
            cpu_in_window: tally.cpu_in_window(),
            losses: self.ledger.losses.clone(),
            instances: self.ledger.instances(),
            script: match &self.offer.mode {
                Mode::Scripted(scripted) => scripted.record(),
                _ => None,
            },
            servers: stub.map_or_else(Vec::new, |stub| stub.ended().to_vec()),
            ..WorkerSummary::default()
        }
    }

    /// How late the first query left, if any has left.
    fn first_late_ns(&self) -> Option<u64> {
        let (due_at, sent_at) = self.ledger.first_sent?;
        let due_at = match self.offer.is_due_by_time() {
            true => due_at,
            // Closed-loop queries are due from the moment when clients join.
            false => self.population.joins_at,
        };
        Some(sent_at.nanos_since(due_at))
    }

    /// Handles one delivery on a socket that this worker opened, unless it has finished. Queries
    /// are sent after it only if it `sends`.
    // Left to the compiler, a change in any crate below decides it.
    #[inline(always)]
    pub(crate) fn handle(&mut self, driver: &mut impl Driver, received: &Received, sends: bool) {
        let owner = self.population.owners.get(received.socket.index as usize);
        let Some(&owner) = owner.filter(|_| !self.is_finished()) else {
            return;
        };
        self.ledger.begin_delivery(owner, received.at);
        self.roll_intervals(driver, received.at);
        self.ledger.count_received(received);
        if self.population.stub.is_some() && self.handle_racer(driver, owner, received) {
            return;
        }
        let in_flight = self.ledger.tally.in_flight();
        match received.event {
            Event::Datagrams if self.wire.quic.is_some() => {
                self.handle_quic_datagrams(driver, owner, received);
            }
            Event::Datagrams => {
                // A query that is answered has left.
                self.ledger.read_send_stamps(driver, owner, received.socket);
                self.handle_datagrams(owner, received);
            }
            _ if !self.population.retiring.is_empty()
                && self.population.is_retiring(owner, received.socket) =>
            {
                self.handle_retiring(driver, owner, received);
            }
            Event::Writable => self.handle_writable(driver, owner, received.at),
            Event::DatagramError(error) => {
                self.handle_datagram_error(driver, owner, (received.socket, error), received.at);
            }
            Event::Connected => {
                self.end_race(driver, owner, Losers::Lost, received.at);
                self.handle_connected(driver, owner, received.at);
            }
            Event::Bytes => {
                self.handle_bytes(driver, owner, received);
                if self.plan.transport == Transport::Doh2 {
                    self.retire_if_going_away(driver, owner, received.at);
                }
            }
            Event::EndOfStream => self.handle_end(driver, owner, None, received.at),
            Event::Failed(error) => self.handle_end(driver, owner, Some(error), received.at),
            Event::Accepted { .. } => {}
        }
        if !sends {
            return;
        }
        if self
            .population
            .stub
            .as_ref()
            .is_some_and(|stub| stub.has_urgent())
        {
            let now = driver.now();
            self.ask_again(driver, now);
        }
        if self.course.phase == Phase::Offering {
            let now = driver.now();
            let ended = in_flight.saturating_sub(self.ledger.tally.in_flight());
            self.offer.allow_due(ended, false);
            if self.offer.is_fill_due(now) {
                self.fill(now);
            } else if self.offer.is_script_due() {
                self.run_script(driver, now);
            }
        }
        self.send_listed(driver);
    }

    fn wake_up(&self, now: Instant) -> Instant {
        let timer = self
            .population
            .timers
            .peek()
            .map_or(Instant::FAR_FUTURE, |Reverse((at, _))| *at);
        let phase = match self.course.phase {
            Phase::Finished => return Instant::FAR_FUTURE,
            Phase::Draining if self.course.gives_up => now,
            Phase::SettingUp | Phase::Draining => Instant::FAR_FUTURE,
            Phase::Ready => now + Duration::from_micros(200),
            Phase::Offering => {
                let offer = if now < self.population.joins_at {
                    self.population.joins_at
                } else if now >= self.population.leaves_at {
                    self.course.run_end
                } else {
                    self.offer.next_due().min(self.course.run_end)
                };
                offer.min(self.population.events.next_due())
            }
        };
        let again = match &self.population.stub {
            Some(stub) => stub.next_due(),
            None => Instant::FAR_FUTURE,
        };
        timer
            .min(phase)
            .min(again)
            .min(self.population.set_up.next_due())
            .min(self.ledger.tally.interval_end())
            .min(now + STOP_POLL)
    }

    /// Until when queries are offered: the end of the run, or when the clients leave.
    #[inline]
    fn offer_end(&self) -> Instant {
        self.course.run_end.min(self.population.leaves_at)
    }

    /// Notes that a client may be able to take a query.
    #[inline(always)]
    fn list_client(&mut self, index: u32, now: Instant) {
        let policy = &self.plan.connections;
        self.offer
            .list_client(&mut self.population, policy, index, now);
    }
}
