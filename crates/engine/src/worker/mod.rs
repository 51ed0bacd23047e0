//! One worker: a share of the clients and of the load, on one core.
//!
//! [`Worker::handle`] takes a delivery, [`Worker::turn`] does everything else that can be done
//! without waiting and says when it next has something to do; whoever owns the driver waits. So the
//! same worker runs on a thread, beside those of other groups, and in the simulator's virtual time.
//!
//! Cost on the data path, a query over UDP in a closed loop with bursts of five: 2 clock readings
//! and 2 system calls a burst, one copy of the template, no allocation.

mod by_client;
mod connections;
mod exchanges;
mod failover;
mod gate;
mod messages;
mod offer;
mod presence;
mod questions;
mod quic;
mod race;
mod replayed;
mod scripted;
mod send;
mod stamps;
mod streams;
mod stub;
mod tickets;
mod timers;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use driver::{Close, CpuTime, Driver, DriverStats, Event, Outgoing, Received};
use load::{Plan, Resume};
use measure::{ClientExperience, Interval, ScriptRecord};
use proto::quic::QuicClient;
use proto::tls::Negotiated;
use proto::{Instant, Transport};

use crate::SetupError;
use crate::client::{Client, Link, Reason, Role};
use crate::control::Control;
use crate::observer::Observer;
use crate::standings::Standings;
use crate::statistics::Statistics;
use crate::tally::Tally;
use connections::SetUp;
use messages::Alike;
use offer::Offer;
use presence::Events;
use questions::QuestionCursor;
use race::Losers;
pub(crate) use scripted::Told;
use stamps::Stamps;
use streams::mix;
use stub::Stub;
use timers::GivenUp;

/// So many of a worker's queries have to fail, and none be answered, before it says that they are
/// in vain: more than a server drops while it starts or a burst takes.
pub(crate) const FAILURES_LOOKED_AT: u32 = 100;

/// How often a waiting worker looks at the stop flag.
const STOP_POLL: Duration = Duration::from_millis(20);
/// Connections that one worker sets up at a time before the run starts: many small servers have a
/// listen backlog of 10, and an overflowing backlog costs a SYN retransmission of 1 s.
const CONNECTING_MAX: u32 = 10;
/// How long an interrupted run waits for queries in flight: most targets answer within it, and few
/// people wait for longer.
const INTERRUPTED_DRAIN: Duration = Duration::from_secs(1);
/// How long a closed loop without an end in time goes on without any usable connection, if that
/// is more than two time-outs: a server that is restarted is back by then.
const GONE_AFTER_MIN: Duration = Duration::from_secs(10);

/// What all workers of a run are given.
#[derive(Clone)]
pub struct RunInputs {
    /// The run as decided.
    pub plan: Arc<Plan>,
    /// For transports with TLS.
    pub tls: Option<TlsSettings>,
    /// Told of every query and connection; none costs nothing.
    pub observer: Option<Observer>,
}

/// How TLS sessions are made.
#[derive(Clone)]
pub struct TlsSettings {
    /// Versions, roots, verification.
    pub config: Arc<proto::tls::rustls::ClientConfig>,
    /// The target's name, for SNI and verification.
    pub name: proto::tls::rustls::pki_types::ServerName<'static>,
    /// Which connections resume their client's last session, if they can.
    pub resume: Resume,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// The duration asked for has passed.
    Duration,
    /// The number of queries asked for has been offered.
    Queries,
    /// No connection could be had any more, and nothing but queries would have ended the run.
    TargetGone,
    /// The first queries had all failed, and the run was to end then.
    NoAnswer,
    /// It was stopped.
    Interrupted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Connections are being set up.
    SettingUp,
    /// Waiting for the other workers.
    Ready,
    /// Queries are offered.
    Offering,
    /// No more queries are offered; those open are waited for.
    Draining,
    /// Everything is closed and counted.
    Finished,
}

/// When one worker entered its phases.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timeline {
    /// Connection set-up began.
    pub opened_at: Instant,
    /// Warm-up, or without it the measured run, began.
    pub started_at: Instant,
    /// The measured run began.
    pub run_started_at: Instant,
    /// Offering ended.
    pub run_ended_at: Instant,
    /// The last open query had ended.
    pub drained_at: Instant,
}

/// What one worker has to say at the end, beside its intervals.
#[derive(Clone, Debug)]
pub struct WorkerSummary {
    /// When what began.
    pub timeline: Timeline,
    /// Everything scheduled during warm-up.
    pub warmup: Interval,
    /// What happened when, from the start of the measured run on.
    pub bins: measure::Timeline,
    /// Responses received within the measured window, whenever their queries were scheduled.
    pub responses_in_window: u64,
    /// When the last response came.
    pub last_response_at: Instant,
    /// Why offering ended.
    pub ended_by: EndedBy,
    /// The driver's counters.
    pub stats: DriverStats,
    /// Distinct reasons of TLS failures, at most eight.
    pub tls_failures: Vec<String>,
    /// What the first completed TLS handshake agreed on.
    pub tls_negotiated: Option<Negotiated>,
    /// Lowest limit of concurrent streams that the target has set; none if it has set none.
    pub streams_max: Option<u64>,
    /// CPU time in the measured window.
    pub cpu_in_window: CpuTime,
    /// What its scripts did; none without a script.
    pub script: Option<ScriptRecord>,
    /// How each of its clients fared; none if no statistics of single clients were kept.
    pub experience: Option<ClientExperience>,
    /// Of clients with several servers, what became of the queries at each of them: counts and
    /// latencies; empty of all others.
    pub servers: Vec<Interval>,
}

impl WorkerSummary {
    /// Books the times in which nothing could leave for the target.
    pub(crate) fn cut_off(&mut self, each: &[Range<Instant>]) {
        let (start, end) = (self.timeline.run_started_at, self.timeline.drained_at);
        for cut in each {
            let (from, until) = (cut.start.max(start), cut.end.min(end));
            if from < until {
                let since_start = |at: Instant| at.nanos_since(start);
                self.bins.cut_off(since_start(from), since_start(until));
            }
        }
    }
}

/// One worker.
pub(crate) struct Worker {
    plan: Arc<Plan>,
    tls: Option<TlsSettings>,
    observer: Option<Observer>,
    control: Arc<Control>,
    /// Which of the run's workers this is.
    index: u32,
    phase: Phase,
    timeline: Timeline,
    run_end: Instant,
    ended_by: EndedBy,
    /// When the drain of an interrupted run is over.
    cut_off_at: Instant,
    /// A client that had an open query when the drain last looked.
    drain_waits_for: usize,
    clients: Vec<Client>,
    primaries: u32,
    /// Number of the first of them in the whole population.
    first_client: u32,
    /// What is still to happen to them.
    events: Events,
    /// When they come, and when they leave.
    joins_at: Instant,
    leaves_at: Instant,
    /// Client of each socket, by socket index.
    owners: Vec<u32>,
    timers: BinaryHeap<Reverse<(Instant, u32)>>,
    dirty: Vec<u32>,
    offer: Offer,
    /// Queries made due by time that may be offered before the next turn.
    due_allowed: u32,
    questions: QuestionCursor,
    tally: Tally,
    /// The responses of late, which count alike and are not in the tally yet.
    alike: Alike,
    statistics: Statistics,
    standings: Standings,
    /// When a connection was last usable.
    reached_at: Instant,
    /// Queries that failed, of the first that did.
    failures_looked_at: u32,
    tls_failures: Vec<String>,
    tls_negotiated: Option<Negotiated>,
    set_up: SetUp,
    /// What clients that ask again have beside; none where they ask one server once.
    stub: Option<Box<Stub>>,
    /// When datagrams left and arrived; none where nobody stamps them.
    stamps: Option<Box<Stamps>>,
    /// Somebody is told of responses: stub resolver, stamps, script or observer.
    is_watched: bool,
    /// All QUIC connections; none on other transports. Taken out while it is worked with.
    quic: Option<QuicClient>,
    /// Lowest limit of concurrent streams that the target has set.
    streams_max: Option<u64>,
    /// State of the draws that decide on resumption.
    draws: u64,
    /// Connections in succession that were closed because their ticket did not come.
    tickets_missed: u32,
    /// Numbers of queries whose exchange ended unprocessed in the delivery being handled.
    unprocessed: Vec<u32>,
    outgoing: Outgoing,
    /// Positions of the queries in `outgoing`, where somebody is told of them.
    positions: Vec<u32>,
    /// Framed plaintext, ciphertext, and received plaintext of the stream being served.
    plain_out: Vec<u8>,
    /// One message that travels in a request or stream of its own.
    message: Vec<u8>,
    cipher_out: Vec<u8>,
    plain_in: Vec<u8>,
}

impl Worker {
    /// Worker number `index` of the plan; opens nothing yet.
    pub(crate) fn new(inputs: &RunInputs, index: u32, control: Arc<Control>) -> Self {
        let plan = Arc::clone(&inputs.plan);
        let first: u32 = (0..index).map(|before| plan.worker_clients(before)).sum();
        let primaries = plan.worker_clients(index);
        let mut clients = make_clients(&plan, first, primaries);
        let offer = Offer::new(&plan, index, (first, primaries));
        Worker {
            is_watched: plan.stub.is_some()
                || plan.timestamps.is_some()
                || matches!(offer, Offer::Scripted(_))
                || (inputs.observer.as_ref()).is_some_and(Observer::hears_responses),
            stub: (plan.stub.as_ref()).map(|policy| Stub::new(policy, &mut clients)),
            stamps: (plan.timestamps).map(|_| Box::new(Stamps::new(primaries))),
            clients,
            primaries,
            first_client: first,
            events: Events::default(),
            joins_at: Instant::ZERO,
            leaves_at: Instant::FAR_FUTURE,
            index,
            phase: Phase::SettingUp,
            timeline: Timeline::default(),
            run_end: Instant::FAR_FUTURE,
            cut_off_at: Instant::FAR_FUTURE,
            drain_waits_for: 0,
            ended_by: EndedBy::Duration,
            owners: Vec::new(),
            timers: BinaryHeap::with_capacity(2 * primaries as usize),
            dirty: Vec::with_capacity(primaries as usize),
            offer,
            due_allowed: 0,
            questions: QuestionCursor::new(&plan, index, first..first + primaries),
            tally: Tally::new(plan.interval),
            alike: Alike::default(),
            statistics: match plan.client_statistics {
                true => Statistics::new(primaries),
                false => Statistics::none(),
            },
            standings: Standings::default(),
            reached_at: Instant::ZERO,
            failures_looked_at: 0,
            tls_failures: Vec::new(),
            tls_negotiated: None,
            set_up: SetUp::default(),
            quic: None,
            streams_max: None,
            draws: plan.seed ^ u64::from(index) << 32,
            tickets_missed: 0,
            unprocessed: Vec::new(),
            outgoing: Outgoing::default(),
            positions: Vec::new(),
            plain_out: Vec::new(),
            message: Vec::new(),
            cipher_out: Vec::new(),
            plain_in: Vec::new(),
            tls: inputs.tls.clone(),
            observer: inputs.observer.clone(),
            control,
            plan,
        }
    }

    /// Nobody can foretell the message IDs (RFC 5452, section 9.2).
    fn choose_message_ids(&mut self, driver: &impl Driver) {
        let seed = driver.seed();
        let mut state = (seed.iter()).fold(0, |state, octet| mix(state ^ u64::from(*octet)));
        for client in &mut self.clients {
            state = mix(state);
            client.pending.start_ids((state >> 48) as u16);
        }
    }

    /// Opens the datagram sockets; streams are connected by [`Worker::step`].
    ///
    /// # Errors
    /// [`SetupError`] names the socket that could not be opened.
    pub(crate) fn open(&mut self, driver: &mut impl Driver) -> Result<(), SetupError> {
        let now = driver.now();
        self.timeline.opened_at = now;
        self.choose_message_ids(driver);
        self.set_up = SetUp::new(&self.plan, self.index, now);
        self.quic = quic::client(&self.plan, driver);
        if let Offer::Scripted(scripted) = &mut self.offer {
            let is_over = self.control.stop_flag();
            let loaded = scripted.load(&self.plan, self.first_client, is_over);
            loaded.map_err(SetupError::Script)?;
        }
        if self.plan.transport != Transport::Udp {
            return Ok(());
        }
        for client in 0..self.primaries {
            let socket = self.open_servers(driver, client)?;
            self.clients[client as usize].link = Link::Datagram {
                socket,
                blocked: false,
            };
            self.list_client(client, now);
        }
        Ok(())
    }

    /// Does all that can be done without a delivery; returns when it next wants to be called, at
    /// the latest.
    pub(crate) fn turn(&mut self, driver: &mut impl Driver) -> Instant {
        // Others of its crew may go on for long; it has said all that it has to say.
        if self.is_finished() {
            return Instant::FAR_FUTURE;
        }
        let now = driver.now();
        self.roll_intervals(driver, now);
        self.fire_events(driver, now);
        self.fire_timers(driver, now);
        if self.stub.is_some() {
            self.ask_again(driver, now);
        }
        self.connect_queued(driver, now);
        match self.phase {
            Phase::SettingUp => self.set_up_connections(driver, now),
            Phase::Ready => self.start_when_all_are_ready(now),
            Phase::Offering => self.offer_queries(driver, now),
            Phase::Draining => self.finish_when_drained(driver, now),
            Phase::Finished => {}
        }
        self.wake_up(now)
    }

    /// True when there is nothing left to do.
    pub(crate) fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// The next interval that has ended, in order.
    pub(crate) fn poll_interval(&mut self) -> Option<Interval> {
        self.tally.finished.pop_front()
    }

    /// The rest, once [`Worker::is_finished`].
    pub(crate) fn summary(&self, driver: &impl Driver) -> WorkerSummary {
        WorkerSummary {
            timeline: self.timeline,
            warmup: self.tally.warmup.clone(),
            bins: self.tally.timeline().clone(),
            responses_in_window: self.tally.responses_in_window,
            last_response_at: self.tally.last_response_at,
            ended_by: self.ended_by,
            stats: driver.stats(),
            tls_failures: self.tls_failures.clone(),
            tls_negotiated: self.tls_negotiated,
            streams_max: self.streams_max,
            cpu_in_window: self.tally.cpu_in_window,
            script: match &self.offer {
                Offer::Scripted(scripted) => scripted.record(),
                _ => None,
            },
            experience: self.statistics.experience(self.present_ns()),
            servers: self
                .stub
                .as_ref()
                .map_or_else(Vec::new, |stub| stub.ended().to_vec()),
        }
    }

    /// How long of the measured run its clients were there.
    fn present_ns(&self) -> u64 {
        let from = self.joins_at.max(self.timeline.run_started_at);
        let until = self.leaves_at.min(self.timeline.run_ended_at);
        until.nanos_since(from)
    }

    /// Handles one delivery on a socket that this worker opened, unless it has finished.
    pub(crate) fn handle(&mut self, driver: &mut impl Driver, received: &Received) {
        let owner = self.owners.get(received.socket.index as usize);
        let Some(&owner) = owner.filter(|_| !self.is_finished()) else {
            return;
        };
        self.begin_delivery(owner, received.at);
        self.roll_intervals(driver, received.at);
        self.count_received(received);
        if self.stub.is_some() && self.handle_racer(driver, owner, received) {
            return;
        }
        let in_flight = self.tally.in_flight();
        match received.event {
            Event::Datagrams if self.quic.is_some() => {
                self.handle_quic_datagrams(driver, owner, received);
            }
            Event::Datagrams => {
                // Whatever is answered has left.
                self.read_send_stamps(driver, owner, received.socket);
                self.handle_datagrams(owner, received);
            }
            Event::Writable => self.handle_writable(driver, owner, received.at),
            Event::DatagramError(error) => {
                self.handle_datagram_error(driver, owner, (received.socket, error), received.at);
            }
            Event::Connected => {
                self.end_race(driver, owner, Losers::Lost, received.at);
                self.handle_connected(driver, owner, received.at);
            }
            Event::Bytes => self.handle_bytes(driver, owner, received),
            Event::EndOfStream => self.handle_end(driver, owner, None, received.at),
            Event::Failed(error) => self.handle_end(driver, owner, Some(error), received.at),
            Event::Accepted { .. } => {}
        }
        if self.stub.as_ref().is_some_and(|stub| stub.has_urgent()) {
            let now = driver.now();
            self.ask_again(driver, now);
        }
        if self.phase == Phase::Offering {
            let now = driver.now();
            let ended = in_flight.saturating_sub(self.tally.in_flight());
            self.allow_due(ended, false);
            if self.offer.is_fill_due(now) {
                self.fill(now);
            } else if self.offer.is_script_due() {
                self.run_script(driver, now);
            }
        }
        self.send_dirty(driver);
    }

    /// Counts what a socket gave.
    #[inline]
    fn count_received(&mut self, received: &Received) {
        let wire = &mut self.tally.of_event(received.at).counts.wire;
        match received.event {
            Event::Datagrams => {
                let datagrams = &received.datagrams;
                let octets = datagrams.iter().map(|it| it.length as usize).sum();
                wire.receive_datagrams(datagrams.len(), octets);
            }
            Event::Bytes => wire.read(received.stream_octets),
            _ => {}
        }
    }

    fn start_when_all_are_ready(&mut self, now: Instant) {
        if self.control.is_stopped() {
            self.begin_run(now);
            return self.end_offering(now, EndedBy::Interrupted);
        }
        if let Some(start) = self.control.start() {
            self.begin_run(start);
        }
    }

    fn begin_run(&mut self, start: Instant) {
        self.timeline.started_at = start;
        self.timeline.run_started_at = start + self.plan.warmup;
        let duration = self.plan.duration;
        self.run_end = duration.map_or(Instant::FAR_FUTURE, |duration| {
            self.timeline.run_started_at + duration
        });
        self.reached_at = start;
        let run_start = self.timeline.run_started_at;
        let is_due_by_time = self.offer.is_due_by_time();
        self.tally.set_start(start, run_start, is_due_by_time);
        let presence = &self.plan.presence;
        self.joins_at = start + presence.joins_after;
        self.leaves_at = (presence.leaves_after).map_or(Instant::FAR_FUTURE, |after| start + after);
        self.events = Events::of(presence, start);
        let until = self.offer_end();
        self.offer
            .start(&self.plan, self.index, (start, self.joins_at, until));
        self.phase = Phase::Offering;
        self.open_later(self.joins_at);
        self.begin_connections(self.joins_at);
    }

    /// A query was sent and has failed. Of the first that do, the last tells that all have.
    fn count_failure(&mut self) {
        if self.failures_looked_at == FAILURES_LOOKED_AT {
            return;
        }
        self.failures_looked_at += 1;
        if self.failures_looked_at == FAILURES_LOOKED_AT
            && self.tally.last_response_at == Instant::ZERO
        {
            self.control.worker_is_in_vain();
        }
    }

    fn offer_queries(&mut self, driver: &mut impl Driver, now: Instant) {
        if self.control.is_stopped() {
            let ended_by = match self.control.has_given_up() {
                true => EndedBy::NoAnswer,
                false if now >= self.run_end => EndedBy::Duration,
                false => EndedBy::Interrupted,
            };
            return self.end_offering(now, ended_by);
        }
        self.allow_due(0, true);
        if now >= self.joins_at && self.offer.is_fill_due(now) {
            self.fill(now);
        }
        self.run_script(driver, now);
        self.send_dirty(driver);
        if self.questions.left == 0 {
            self.end_offering(now, EndedBy::Queries);
        } else if now >= self.run_end && !self.catches_up(now) {
            self.end_offering(self.run_end, EndedBy::Duration);
        } else if self.target_is_gone(now) {
            self.end_offering(now, EndedBy::TargetGone);
        }
    }

    /// A closed loop offers nothing without a connection. If no time ends it either, it has to
    /// give up.
    fn target_is_gone(&mut self, now: Instant) -> bool {
        if self.standings.usable() > 0 {
            self.reached_at = now;
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
            && matches!(self.offer, Offer::Closed { .. })
            && now >= self.reached_at + patience;
        // Clients that have no connection because they need none say nothing about the target.
        let is_idle = |it: &Client| {
            matches!(
                it.link,
                Link::Down {
                    on_demand: true,
                    ..
                }
            )
        };
        if is_due && self.clients.iter().any(is_idle) {
            self.reached_at = now;
            return false;
        }
        is_due
    }

    fn end_offering(&mut self, at: Instant, ended_by: EndedBy) {
        // What came until now is within the window as it was.
        self.settle_responses();
        let at = at.min(self.run_end).max(self.timeline.run_started_at);
        self.ended_by = ended_by;
        self.run_end = at;
        self.count_unoffered();
        self.timeline.run_ended_at = at;
        // A run by queries is measured until its last response: the drain is part of it.
        if ended_by != EndedBy::Queries {
            self.tally.cut_off(at);
        }
        self.phase = Phase::Draining;
    }

    fn finish_when_drained(&mut self, driver: &mut impl Driver, now: Instant) {
        let open = self.has_open_client();
        if self.control.is_interrupted() {
            self.cut_off_at = self.cut_off_at.min(now + INTERRUPTED_DRAIN);
        }
        // A query may wait for its connection for one time-out, and then for its response.
        let drained_at = self.run_end + 2 * self.plan.timeout + STOP_POLL;
        if open && now < drained_at.min(self.cut_off_at) {
            return;
        }
        let how = match now < drained_at {
            true => GivenUp::Interrupted,
            false => GivenUp::TimedOut,
        };
        self.give_up_open_queries(now, how);
        let mut standings = self.standings;
        self.close_all(driver, now);
        self.roll_intervals(driver, now.max(self.run_end));
        if self.ended_by == EndedBy::Queries {
            self.tally.close_window(driver.cpu_time());
        }
        self.settle_responses();
        self.tally.finish(now, driver.cpu_time(), &mut standings);
        self.timeline.drained_at = now;
        self.phase = Phase::Finished;
    }

    /// True if the drain waits for a client. Looks at the one that it waited for last first:
    /// there may be many thousands, and a turn comes with every delivery.
    fn has_open_client(&mut self) -> bool {
        let (last, end) = (self.drain_waits_for, self.clients.len());
        let mut from_last = (last..end).chain(0..last);
        let open = from_last.find(|index| self.is_open(&self.clients[*index]));
        self.drain_waits_for = open.unwrap_or(0);
        open.is_some()
    }

    /// True if the drain waits for this client.
    fn is_open(&self, client: &Client) -> bool {
        let is_connecting = match &client.link {
            // What becomes of each connection is what such a run is about.
            Link::Connected(connection) => {
                self.plan.connections.asks_nothing() && !connection.is_open()
            }
            _ => false,
        };
        is_connecting || client.open_queries() > 0
    }

    #[inline]
    fn roll_intervals(&mut self, driver: &impl Driver, now: Instant) {
        if now >= self.tally.roll_at() {
            self.roll(driver, now);
        }
    }

    /// An interval is over, or a tick of the timeline is.
    #[cold]
    fn roll(&mut self, driver: &impl Driver, now: Instant) {
        self.settle_responses();
        let run_end = match self.ended_by {
            EndedBy::Queries => Instant::FAR_FUTURE,
            _ => self.run_end,
        };
        while now >= self.tally.interval_end() {
            self.tally
                .roll(driver.cpu_time(), &mut self.standings, run_end);
        }
        self.tally.tick(now);
    }

    fn wake_up(&self, now: Instant) -> Instant {
        let timer = self
            .timers
            .peek()
            .map_or(Instant::FAR_FUTURE, |Reverse((at, _))| *at);
        let phase = match self.phase {
            Phase::Finished => return Instant::FAR_FUTURE,
            Phase::SettingUp | Phase::Draining => Instant::FAR_FUTURE,
            Phase::Ready => now + Duration::from_micros(200),
            Phase::Offering => {
                let offer = if now < self.joins_at {
                    self.joins_at
                } else if now >= self.leaves_at {
                    self.run_end
                } else {
                    self.offer.next_due().min(self.run_end)
                };
                offer.min(self.events.next_due())
            }
        };
        let again = match &self.stub {
            Some(stub) => stub.next_due(),
            None => Instant::FAR_FUTURE,
        };
        timer
            .min(phase)
            .min(again)
            .min(self.set_up.next_due())
            .min(self.tally.interval_end())
            .min(now + STOP_POLL)
    }

    fn own(&mut self, socket: driver::SocketId, client: u32) {
        let index = socket.index as usize;
        if self.owners.len() <= index {
            self.owners.resize(index + 1, u32::MAX);
        }
        self.owners[index] = client;
    }

    fn close_all(&mut self, driver: &mut impl Driver, now: Instant) {
        for index in 0..self.clients.len() {
            match &self.clients[index].link {
                Link::Datagram { socket, .. } => match &self.stub {
                    None => driver.close(*socket, Close::Graceful),
                    Some(stub) => (stub.sockets_of(index as u32).iter())
                        .for_each(|socket| driver.close(*socket, Close::Graceful)),
                },
                Link::Connected(connection) if connection.is_open() => {
                    self.close_connection(driver, index as u32, Reason::Done, now);
                }
                Link::Connected(connection) => {
                    driver.close(connection.socket, Close::Reset);
                    self.tally.of_event(now).counts.connections.abandoned += 1;
                    self.end_race(driver, index as u32, Losers::Abandoned, now);
                }
                Link::Down { .. } => {}
            }
        }
    }
}

/// The worker's clients, then, with TCP fallback, one fallback client for each of them.
fn make_clients(plan: &Plan, first: u32, primaries: u32) -> Vec<Client> {
    let local = |number: u32, role: Role| -> Option<SocketAddr> {
        let port = match (plan.local_port, role) {
            (0, _) | (_, Role::Fallback) => 0,
            (port, Role::Primary) => port.saturating_add(number as u16),
        };
        let addresses = &plan.local_addresses;
        if addresses.is_empty() {
            let any: std::net::IpAddr = match plan.target {
                SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
            };
            return (port != 0).then_some(SocketAddr::new(any, port));
        }
        Some(SocketAddr::new(
            addresses[number as usize % addresses.len()],
            port,
        ))
    };
    let roles: &[Role] = match plan.tcp_fallback {
        true => &[Role::Primary, Role::Fallback],
        false => &[Role::Primary],
    };
    let mut clients = Vec::with_capacity(primaries as usize * roles.len());
    for role in roles {
        for number in first..first + primaries {
            clients.push(Client::new(*role, local(number, *role)));
        }
    }
    clients
}

/// A list of clients in the order in which they became able to take a query.
pub(crate) type ClientQueue = VecDeque<u32>;
