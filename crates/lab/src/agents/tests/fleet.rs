//! A simulated run of several agents, one of which something happens to.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agents::{
    AgentLink, Decoder, Event, Failure, FrameError, FromAgent, Hello, Lead, Order, Place, RunShape,
    STOP_MAX, ToAgent,
};
use driver::Driver;
use driver::sim::{Bounds, Link, SimDriver, Stepper, Turn, World, WorldConfig};
use engine::{AgentEvents, Collected, Control, Progress, RunInputs, ThreadWorkers, WorkerOutcome};
use load::arrival::Arrival;
use load::{Plan, names_file};
use measure::facts::HostFacts;
use measure::{Interval, RunRecord};
use proto::query::QueryOptions;
use proto::{Instant, Transport};
use responder::Delay;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use settings::{OnAgentLoss, Process as Arrivals};

use super::super::merged::merged;
use crate::run::simulation::target::Target;
use crate::run::{Description, RunRequest, Simulation, inputs, record};

/// How often messages are looked at.
pub(super) const STEP: Duration = Duration::from_millis(10);
/// The agent to which something happens.
pub(super) const VICTIM: usize = 1;
/// How long the victim takes to prepare, and how long the others do.
const PREPARES: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(1)];
/// How late the target answers.
const DELAY: Duration = Duration::from_millis(500);
pub(super) const WARMUP: Duration = Duration::from_secs(2);
/// No world goes on for longer.
const END: Duration = Duration::from_secs(600);

/// How far a run is when something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    Greeting,
    Inputs,
    Ready,
    Armed,
    WarmUp,
    Middle,
    Drain,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Nothing,
    AgentKilled,
    OutOfMemory,
    AgentStopped(Duration),
    CutBothWays,
    CutToAgent,
    CutFromAgent,
    /// Each way takes this long from then on.
    Slow(Duration),
    LeadKilled,
    LeadStopped(Duration),
    /// The next frame of the agent has a wrong octet.
    Corrupt,
    /// It is asked to end (SIGTERM).
    Leave,
}

/// To which agent, when, how much later, and what.
pub(super) type Happening = (usize, Stage, Duration, Fault);

/// A run, and what happens to it.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) agents: usize,
    pub(super) faults: Vec<Happening>,
    pub(super) on_loss: OnAgentLoss,
    pub(super) duration: Duration,
    pub(super) seed: u64,
    /// Of each client.
    pub(super) rate_qps: f64,
    /// How late the target answers.
    pub(super) delay: Delay,
    /// Groups of clients, all alike.
    pub(super) groups: usize,
    /// A reader shows them.
    pub(super) shows_groups: bool,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Came {
    /// None if the lead was killed.
    pub(super) result: Option<Result<RunRecord, Failure>>,
    /// Queries that the target received.
    pub(super) received: u64,
    /// When the fault happened, and when that agent sent last.
    pub(super) fault_at: Option<Instant>,
    pub(super) last_sent: Vec<Option<Instant>>,
    /// The greatest difference of their starts.
    pub(super) start_spread: Duration,
    /// What the first agent told of its run, each as a frame, and how long after the start.
    pub(super) told: Vec<(Duration, Vec<u8>)>,
    /// What the lead has shown.
    pub(super) shown: Vec<Progress>,
}

/// One direction between a lead and an agent.
struct Wire {
    octets: VecDeque<(Instant, Vec<u8>)>,
    decoder: Decoder,
    delay: Duration,
    is_cut: bool,
    corrupts: bool,
}

impl Wire {
    fn new() -> Self {
        Wire {
            octets: VecDeque::new(),
            decoder: Decoder::new(),
            delay: Duration::from_millis(1),
            is_cut: false,
            corrupts: false,
        }
    }

    fn send(&mut self, message: &impl Serialize, now: Instant) {
        if self.is_cut {
            return;
        }
        let mut octets = agents::encode(message).unwrap();
        if std::mem::take(&mut self.corrupts) {
            *octets.last_mut().unwrap() ^= 1;
        }
        // Nothing overtakes.
        let last = self.octets.back().map_or(now, |(at, _)| *at);
        self.octets.push_back((last.max(now + self.delay), octets));
    }

    fn receive<T: DeserializeOwned>(&mut self, now: Instant) -> Result<Option<T>, FrameError> {
        while let Some((_, octets)) = self.octets.pop_front_if(|(at, _)| *at <= now) {
            self.decoder.push(&octets);
        }
        self.decoder.poll()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Life {
    Runs,
    StoppedUntil(Instant),
    Gone,
}

impl Life {
    fn runs(&mut self, now: Instant) -> bool {
        if let Life::StoppedUntil(until) = *self
            && until <= now
        {
            *self = Life::Runs;
        }
        *self == Life::Runs
    }
}

/// An agent's process.
struct Process {
    life: Life,
    how: &'static str,
    link: AgentLink,
    /// By how much its clock is ahead.
    ahead: Duration,
    control: Arc<Control>,
    /// What its workers say.
    said: Arc<Mutex<VecDeque<FromAgent>>>,
    prepared_at: Option<Instant>,
    prepares: Duration,
    collected: Option<Collected>,
    exits_at: Option<Instant>,
    to_lead: Wire,
    to_agent: Wire,
    last_sent: Option<Instant>,
    starts_at: Option<Instant>,
    told: Vec<(Instant, Vec<u8>)>,
    shows_groups: bool,
}

impl Process {
    fn new(agent: usize, inputs: &[RunInputs]) -> Process {
        let said: Arc<Mutex<VecDeque<FromAgent>>> = Arc::default();
        let says = |message: fn() -> FromAgent| -> Arc<dyn Fn() + Send + Sync> {
            let said = Arc::clone(&said);
            Arc::new(move || said.lock().unwrap().push_back(message()))
        };
        let events = AgentEvents {
            on_ready: says(|| FromAgent::Ready),
            on_vain: says(|| FromAgent::Vain),
        };
        let thread = agent as u32;
        let ahead = Duration::from_secs(86_400) * thread;
        let mut link = AgentLink::new(Instant::ZERO + ahead, agents::DeadMan::FAR);
        link.say(FromAgent::Hello(hello()));
        Process {
            life: Life::Runs,
            how: "exit code 0",
            link,
            ahead,
            control: Arc::new(Control::for_agent(inputs.len() as u32, events)),
            said,
            prepared_at: None,
            prepares: PREPARES[usize::from(agent != VICTIM)],
            collected: Some(Collected::of(inputs, &(thread..thread + 1))),
            exits_at: None,
            to_lead: Wire::new(),
            to_agent: Wire::new(),
            last_sent: None,
            starts_at: None,
            told: Vec::new(),
            shows_groups: false,
        }
    }

    fn end(&mut self, how: &'static str) {
        if self.life != Life::Gone {
            (self.life, self.how) = (Life::Gone, how);
        }
    }

    /// Hears and says what is due.
    fn step(&mut self, now: Instant) {
        let own = now + self.ahead;
        while let Ok(Some(message)) = self.to_agent.receive(now) {
            self.link.hear(message, own);
        }
        self.link.pass(own);
        let said = std::mem::take(&mut *self.said.lock().unwrap());
        for message in said {
            self.told.push((now, agents::encode(&message).unwrap()));
            self.link.say(message);
        }
        while let Some(order) = self.link.poll_order() {
            match order {
                Order::Setup(..) => self.prepared_at = Some(now + self.prepares),
                Order::StartAt(at) => {
                    let at = Instant::from_nanos(at.as_nanos() - self.ahead.as_nanos() as u64);
                    self.starts_at = Some(at);
                    self.control.start_at(at);
                }
                Order::PauseAt(at) => {
                    let ahead_ns = self.ahead.as_nanos() as u64;
                    let at = Instant::from_nanos(at.as_nanos() - ahead_ns);
                    self.control.pause_at(at);
                }
                Order::ShowGroups => self.shows_groups = true,
                Order::Seated { .. } | Order::Refused(_) => {}
                Order::RunOver | Order::End => {}
                Order::Stop => self.control.stop(),
                Order::Interrupt => self.control.interrupt(),
                Order::GiveUp => self.control.give_up(),
                Order::Abandon(_) => {
                    self.control.interrupt();
                    self.exits_at = Some(now + STOP_MAX);
                }
            }
        }
        while let Some(message) = self.link.poll_message() {
            self.to_lead.send(&message, now);
        }
        if self.exits_at.is_some_and(|at| at <= now) {
            self.end("exit code 97");
        }
    }
}

/// The lead's process.
struct LeadProcess {
    life: Life,
    lead: Lead,
    is_told_gone: Vec<bool>,
    start: Option<Instant>,
    armed: Option<Instant>,
    prepared: Option<Instant>,
    shown: Vec<Progress>,
}

/// Who takes part.
struct Cast {
    places: Vec<Place>,
    lead: RefCell<LeadProcess>,
    processes: Vec<RefCell<Process>>,
    threads: Vec<RefCell<Simulated>>,
    fault_at: Cell<Option<Instant>>,
}

impl Cast {
    fn of(scene: &Scene, groups: &[RunRequest], world: &World) -> Cast {
        let inputs = inputs(groups);
        let agents = 0..scene.agents;
        let places: Vec<Place> = (agents.clone())
            .map(|agent| Place::Host(format!("host-{agent}")))
            .collect();
        let processes: Vec<_> = (agents.clone())
            .map(|agent| RefCell::new(Process::new(agent, &inputs)))
            .collect();
        let thread = |agent: usize| {
            let address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 100 + agent as u8));
            let control = Arc::clone(&processes[agent].borrow().control);
            RefCell::new(Simulated {
                workers: ThreadWorkers::new(&inputs, agent as u32, &control),
                driver: world.endpoint(address),
                is_open: false,
            })
        };
        let threads = agents.map(thread).collect();
        let lead = LeadProcess {
            life: Life::Runs,
            lead: Lead::new(&places, Some(hello()), Instant::ZERO),
            is_told_gone: vec![false; scene.agents],
            start: None,
            armed: None,
            prepared: None,
            shown: Vec::new(),
        };
        Cast {
            places,
            lead: RefCell::new(lead),
            processes,
            threads,
            fault_at: Cell::new(None),
        }
    }

    /// True if nothing more happens.
    fn is_over(&self) -> bool {
        let lead = self.lead.borrow();
        let is_over = lead.life == Life::Gone || lead.lead.is_over();
        let all_are_gone = || {
            self.processes.iter().all(|it| {
                let life = it.borrow().life;
                life == Life::Gone || life == Life::StoppedUntil(Instant::FAR_FUTURE)
            })
        };
        is_over && all_are_gone()
    }

    fn came(self, now: Instant, groups: &[RunRequest], received: u64) -> Came {
        let lead = self.lead.into_inner();
        let lead_start = lead.start;
        let result = (lead.life != Life::Gone).then(|| {
            let outcome = lead.lead.finish(now)?;
            let of_host = (Duration::ZERO, BTreeMap::new());
            let record = merged(groups, &self.places, outcome, of_host).unwrap();
            record.check().unwrap();
            Ok(record)
        });
        let processes = self.processes.into_iter().map(RefCell::into_inner);
        let processes: Vec<Process> = processes.collect();
        let starts = || processes.iter().filter_map(|it| it.starts_at);
        let spread = starts().max().zip(starts().min());
        let started = lead_start.unwrap_or(Instant::ZERO);
        let told = processes[0].told.iter();
        let told = told.map(|(at, frame)| (at.duration_since(started), frame.clone()));
        Came {
            result,
            received,
            fault_at: self.fault_at.get(),
            last_sent: processes.iter().map(|it| it.last_sent).collect(),
            told: told.collect(),
            start_spread: spread.map_or(Duration::ZERO, |(last, first)| last.duration_since(first)),
            shown: lead.shown,
        }
    }
}

pub(super) fn hello() -> Hello {
    Hello::new("same".to_owned(), (1, 1_024), None, None)
}

/// One of the agents' threads.
struct Simulated {
    workers: ThreadWorkers,
    driver: SimDriver,
    is_open: bool,
}

/// One of each group, named by its position.
fn requests(scene: &Scene) -> Vec<RunRequest> {
    let group = |group: usize| RunRequest {
        group: group.to_string(),
        ..request(scene)
    };
    (0..scene.groups).map(group).collect()
}

pub(super) fn request(scene: &Scene) -> RunRequest {
    let names: String = (0..50).map(|it| format!("www-{it}.example. A\n")).collect();
    let questions = names_file::parse_text(names.as_bytes(), &QueryOptions::default()).unwrap();
    let clients = 3 * scene.agents as u32;
    let target = "192.0.2.53:53".parse().unwrap();
    let plan = Plan {
        arrival: Arrival::Open {
            rate_qps: scene.rate_qps * f64::from(clients),
            process: Arrivals::Constant,
            burst: 1,
        },
        clients,
        workers: scene.agents as u32,
        duration: Some(scene.duration),
        warmup: WARMUP,
        timeout: Duration::from_secs(2),
        interval: Duration::from_secs(1),
        seed: scene.seed,
        ..Plan::new(target, Transport::Udp, Arc::new(questions))
    };
    RunRequest {
        group: "0".to_owned(),
        plan,
        tls: None,
        cpus: Vec::new(),
        driver: driver::kernel::DriverChoice::Auto,
        asked: Arc::new(settings::Run {
            servers: vec!["192.0.2.53".to_owned()],
            ..settings::Run::default()
        }),
        description: Description::default(),
        preflight: false,
        observer: None,
        observe: crate::observing::Sources::default(),
    }
}

fn surroundings(agent: usize) -> record::Surroundings {
    record::Surroundings {
        started: record::Started {
            id: Some(format!("agent-{agent}")),
            ..record::Started::in_virtual_time(Duration::ZERO)
        },
        host: HostFacts::default(),
        kernel: BTreeMap::new(),
        simulation: None,
    }
}

impl Scene {
    pub(super) fn new(fault: Fault, stage: Stage) -> Scene {
        Scene {
            agents: 3,
            faults: vec![(VICTIM, stage, Duration::ZERO, fault)],
            on_loss: OnAgentLoss::End,
            duration: Duration::from_secs(50),
            seed: 1,
            rate_qps: 10.0,
            delay: Delay::Constant(DELAY),
            groups: 1,
            shows_groups: false,
        }
    }

    /// When a stage is reached, as far as that can be said.
    fn reached(&self, stage: Stage, lead: &LeadProcess, victim: &Process) -> Option<Instant> {
        match stage {
            Stage::Greeting => Some(Instant::ZERO),
            Stage::Inputs => lead.prepared,
            Stage::Ready => victim.prepared_at.map(|at| at + 5 * STEP),
            Stage::Armed => lead.armed,
            Stage::WarmUp => lead.start.map(|at| at + WARMUP / 2),
            Stage::Middle => lead.start.map(|at| at + WARMUP + self.duration / 2),
            Stage::Drain => lead.start.map(|at| at + WARMUP + self.duration + DELAY / 4),
        }
    }

    /// Its network and its target.
    pub(super) fn simulation(&self) -> Simulation {
        let mut simulation = Simulation {
            world: WorldConfig {
                seed: self.seed,
                link: Link::constant(Duration::from_millis(1)),
                ..WorldConfig::default()
            },
            ..Simulation::default()
        };
        simulation.responder.behaviour.delay = self.delay;
        simulation
    }

    /// Plays it to its end, and for as long afterwards as an agent may go on.
    pub(super) fn play(&self) -> Came {
        let groups = requests(self);
        let simulation = self.simulation();
        let world = World::new(simulation.world.clone());
        // It is never started: the target only needs it to know when the run is.
        let of_target = Arc::new(Control::new(1));
        let targets = Target::open_all(&groups, &simulation, (&world, &of_target)).unwrap();
        let targets: Vec<_> = targets.into_iter().map(RefCell::new).collect();
        let cast = Cast::of(self, &groups, &world);
        self.run(&world, &groups, &targets, &cast);
        let received = targets.iter().map(|it| {
            let named = it.borrow().counters().named();
            let queries = named.into_iter().find(|(name, _)| *name == "queries");
            queries.map_or(0, |(_, count)| count)
        });
        cast.came(world.now(), &groups, received.sum())
    }

    fn run(&self, world: &World, groups: &[RunRequest], targets: &[RefCell<Target>], cast: &Cast) {
        let mut clockwork = world.endpoint(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)));
        let mut faults = self.faults.clone();
        let mut steppers = Vec::new();
        for target in targets {
            let endpoint = target.borrow().endpoint();
            steppers.push(Stepper::serving(endpoint, || {
                target.borrow_mut().step();
                Turn::Waiting
            }));
        }
        for (agent, (process, thread)) in cast.processes.iter().zip(&cast.threads).enumerate() {
            let endpoint = thread.borrow().driver.endpoint();
            steppers.push(Stepper::serving(endpoint, move || {
                let (process, thread) = (&mut process.borrow_mut(), &mut thread.borrow_mut());
                turn(agent, groups, process, thread)
            }));
        }
        let endpoint = clockwork.endpoint();
        steppers.push(Stepper::leading(endpoint, || {
            let now = clockwork.now();
            self.step(cast, &mut faults, now);
            if cast.is_over() || now >= Instant::ZERO + END {
                return Turn::Finished;
            }
            clockwork.wait(now + STEP);
            Turn::Waiting
        }));
        world.run(&mut steppers, Bounds::default()).unwrap();
        assert!(world.now() < Instant::ZERO + END, "{self:?} does not end");
    }

    /// Carries messages, and does what is due to happen.
    fn step(&self, cast: &Cast, faults: &mut Vec<Happening>, now: Instant) {
        let lead = &mut *cast.lead.borrow_mut();
        for process in &cast.processes {
            let mut process = process.borrow_mut();
            if process.life.runs(now) {
                process.step(now);
            }
        }
        if lead.life.runs(now) {
            self.lead(lead, &cast.processes, now);
        }
        faults.retain(|(agent, stage, later, fault)| {
            let mut victim = cast.processes[*agent].borrow_mut();
            let reached = self.reached(*stage, lead, &victim);
            let is_due = reached.is_some_and(|at| at + *later <= now);
            if is_due {
                cast.fault_at.set(Some(now));
                strike(*fault, &mut victim, lead, now);
            }
            !is_due
        });
        // What a lead leaves behind is closed.
        if lead.life == Life::Gone || lead.lead.is_over() {
            for process in &cast.processes {
                let mut process = process.borrow_mut();
                let is_stopped = matches!(process.life, Life::StoppedUntil(_));
                if !process.to_agent.is_cut && !is_stopped {
                    process.end("signal 9");
                }
            }
        }
    }

    fn lead(&self, process: &mut LeadProcess, agents: &[RefCell<Process>], now: Instant) {
        let lead = &mut process.lead;
        if lead.is_over() {
            return;
        }
        for (agent, other) in agents.iter().enumerate() {
            let mut other = other.borrow_mut();
            loop {
                match other.to_lead.receive(now) {
                    Ok(Some(message)) => lead.hear(agent, message, now),
                    Ok(None) => break,
                    Err(error) => {
                        lead.gone(agent, format!("it sent {error}"), now);
                        other.end("signal 9");
                        break;
                    }
                }
            }
            let is_closed = other.life == Life::Gone && other.to_lead.octets.is_empty();
            if is_closed && !other.to_lead.is_cut && !process.is_told_gone[agent] {
                process.is_told_gone[agent] = true;
                lead.gone(agent, other.how.to_owned(), now);
            }
        }
        lead.pass(now);
        while let Some(event) = lead.poll_event() {
            match event {
                Event::Greeted => {
                    for other in agents {
                        let setup = ToAgent::Setup(Value::Null);
                        other.borrow_mut().to_agent.send(&setup, now);
                    }
                    process.prepared = Some(now);
                    lead.prepare(RunShape {
                        plans: requests(self).into_iter().map(|it| it.plan).collect(),
                        on_loss: self.on_loss,
                        gives_up: true,
                        shows_groups: self.shows_groups,
                    });
                }
                Event::Starts(at) => process.start = Some(at),
                Event::Lost(agent) => {
                    let mut other = agents[agent].borrow_mut();
                    // Only a process of this host can be killed.
                    if !other.to_agent.is_cut && !matches!(other.life, Life::StoppedUntil(_)) {
                        other.end("signal 9");
                    }
                }
                Event::Progress(progress) => process.shown.push(*progress),
                Event::Checkpoint => {}
            }
        }
        while let Some((agent, message)) = lead.poll_message() {
            if matches!(message, ToAgent::Arm { .. }) {
                process.armed.get_or_insert(now);
            }
            agents[agent].borrow_mut().to_agent.send(&message, now);
        }
    }
}

fn strike(fault: Fault, victim: &mut Process, lead: &mut LeadProcess, now: Instant) {
    match fault {
        Fault::Nothing => {}
        Fault::AgentKilled => victim.end("signal 9"),
        Fault::OutOfMemory => victim.end("signal 6"),
        Fault::AgentStopped(time) if time == Duration::MAX => {
            victim.life = Life::StoppedUntil(Instant::FAR_FUTURE);
        }
        Fault::AgentStopped(time) => victim.life = Life::StoppedUntil(now + time),
        Fault::CutBothWays => (victim.to_agent.is_cut, victim.to_lead.is_cut) = (true, true),
        Fault::CutToAgent => victim.to_agent.is_cut = true,
        Fault::CutFromAgent => victim.to_lead.is_cut = true,
        Fault::Slow(delay) => (victim.to_agent.delay, victim.to_lead.delay) = (delay, delay),
        Fault::LeadKilled => lead.life = Life::Gone,
        Fault::LeadStopped(time) => lead.life = Life::StoppedUntil(now + time),
        Fault::Corrupt => victim.to_lead.corrupts = true,
        Fault::Leave => victim.link.leave(),
    }
}

/// A turn of an agent's thread.
fn turn(
    agent: usize,
    groups: &[RunRequest],
    process: &mut Process,
    thread: &mut Simulated,
) -> Turn {
    let now = thread.driver.now();
    match process.life {
        Life::Gone => return Turn::Finished,
        Life::StoppedUntil(until) if until > now => return Turn::Stopped(until),
        _ => {}
    }
    if process.prepared_at.is_none_or(|at| at > now) {
        thread.driver.wait(now + STEP);
        return Turn::Waiting;
    }
    let Simulated {
        workers,
        driver,
        is_open,
    } = thread;
    if !std::mem::replace(is_open, true) {
        workers.open(driver).unwrap();
    }
    let sent = driver.stats().datagrams_sent;
    let until = workers.step(driver);
    if driver.stats().datagrams_sent > sent {
        process.last_sent = Some(now);
    }
    tell(agent, groups, process, (workers, driver));
    if workers.is_finished() {
        finish(agent, groups, process, (workers, driver));
        return Turn::Finished;
    }
    driver.wait(until);
    Turn::Waiting
}

fn outcome(agent: usize, (group, summary): (usize, engine::WorkerSummary)) -> WorkerOutcome {
    WorkerOutcome {
        group,
        thread: agent,
        cpu: None,
        driver: None,
        summary,
        total: Interval::default(),
    }
}

fn tell(
    agent: usize,
    groups: &[RunRequest],
    process: &mut Process,
    (workers, driver): (&mut ThreadWorkers, &mut SimDriver),
) {
    let Some(collected) = &mut process.collected else {
        return;
    };
    while let Some((group, interval)) = workers.poll_interval() {
        let checkpoint = workers.poll_checkpoint(group);
        collected.add((agent, group), interval);
        if let Some(summary) = checkpoint {
            collected.note_checkpoint(outcome(agent, (group, summary)));
        }
    }
    while let Some(group) = workers.poll_finished() {
        if let Some(summary) = workers.last_checkpoint(group, driver) {
            collected.note_last_checkpoint(outcome(agent, (group, summary)));
        }
        collected.end((agent, group));
    }
    let mut said = process.said.lock().unwrap();
    collected.settle(|progress| {
        said.push_back(FromAgent::of_progress(progress, process.shows_groups));
        if let Some(checkpoint) = &progress.checkpoint {
            let record = record::assemble_agent_record(
                groups,
                checkpoint.as_ref().clone(),
                surroundings(agent),
            );
            said.push_back(FromAgent::Checkpoint(raw(&record)));
        }
    });
}

/// Its run is over.
fn finish(
    agent: usize,
    groups: &[RunRequest],
    process: &mut Process,
    (workers, driver): (&mut ThreadWorkers, &mut SimDriver),
) {
    let Some(mut collected) = process.collected.take() else {
        return;
    };
    for summary in workers.summaries(driver) {
        collected.finish(outcome(agent, summary));
    }
    let record = record::assemble_agent_record(groups, collected.whole(), surroundings(agent));
    let mut said = process.said.lock().unwrap();
    said.push_back(FromAgent::Record(raw(&record)));
}

fn raw(record: &RunRecord) -> Box<RawValue> {
    RawValue::from_string(record.to_json()).unwrap()
}
