//! A run in virtual time: the production engine and responder over a simulated network.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use driver::Driver;
use driver::sim::{Bounds, NetworkStats, Outage, SimDriver, Stepper, Turn, World, WorldConfig};
use engine::{
    Beat, Collected, Control, LOOK_EVERY, Outcome, Progress, RunInputs, ThreadWorkers, Watchdog,
    WorkerOutcome, WorkerSummary,
};
use measure::Interval;
use measure::RunRecord;
use measure::facts::HostFacts;
use measure::simulation::SimulationRecord;
use proto::Instant;
use responder::{Counters, ResponderConfig};

use target::Target;

mod account;
pub(crate) mod target;

use crate::live::{Live, Publisher};

use super::aborting::Aborting;
use super::record::{Started, Surroundings, from_outcome};
use super::{RunError, RunRequest};

/// The world of a simulated run.
#[derive(Clone, Debug, Default)]
pub struct Simulation {
    /// Network: delays, losses, stalls, outages.
    pub world: WorldConfig,
    /// The target. It listens on the plan's target address, whatever its own `listen` says.
    pub responder: ResponderConfig,
    /// When the target's process is dead: its sockets are closed, and opened again at the end.
    /// In order of time and apart from each other. Of several servers the first one dies.
    pub absences: Vec<Outage>,
    /// Datagrams that come from elsewhere, such as forged responses.
    pub injected: Vec<InjectedDatagram>,
}

/// A datagram that neither generator nor target sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectedDatagram {
    /// Its source address; no host needs to have it.
    pub from: SocketAddr,
    /// Where it arrives.
    pub to: SocketAddr,
    /// Its payload.
    pub octets: Vec<u8>,
    /// When it arrives.
    pub at: Instant,
}

/// What a simulation shares with its watchers while it runs.
struct SharedResults {
    /// Taken once, for the record.
    collected: Mutex<Option<Collected>>,
    network: Mutex<NetworkStats>,
    beat: Arc<Beat>,
    publishing: Mutex<Option<Publishing>>,
}

/// What publishes a simulation, and what records of its checkpoints need.
struct Publishing {
    publisher: Publisher,
    aborting: Aborting,
    control: Arc<Control>,
    groups: Vec<RunRequest>,
    simulation: Simulation,
}

impl SharedResults {
    fn new(inputs: &[RunInputs], publishing: Option<Publishing>) -> SharedResults {
        let threads = 0..ThreadWorkers::threads(inputs);
        SharedResults {
            collected: Mutex::new(Some(Collected::of(inputs, &threads))),
            network: Mutex::default(),
            beat: Arc::default(),
            publishing: Mutex::new(publishing),
        }
    }

    /// Counts the intervals that are complete now, and shows them.
    fn settle(&self, collected: &mut Collected) {
        let mut publishing = lock(&self.publishing);
        collected.settle(|progress| {
            if let Some(publishing) = &mut *publishing {
                publishing.show(progress, *lock(&self.network));
            }
        });
    }

    /// Nothing more is shown: a thread that was left behind would do so beside the next run.
    fn end(&self, record: Option<&mut RunRecord>) {
        if let Some((publishing, record)) = lock(&self.publishing).take().zip(record) {
            publishing.aborting.note(record, &publishing.control);
            publishing.publisher.end(record);
        }
    }

    /// All that was collected; none if it was taken, because the simulation did not end.
    fn take(&self) -> Option<Collected> {
        lock(&self.collected).take()
    }
}

impl Publishing {
    fn show(&mut self, progress: &Progress, network: NetworkStats) {
        self.aborting.look_at(progress, &self.control);
        self.publisher.show(progress);
        if let (Some(checkpoint), true) = (&progress.checkpoint, self.publisher.judges()) {
            let outcome = Outcome::clone(checkpoint);
            let (groups, simulation) = (self.groups.clone(), self.simulation.clone());
            self.publisher.judge(move |intervals| {
                let outcome = Outcome {
                    intervals,
                    ..outcome
                };
                let model = account::account(&simulation, network, None);
                let started = started(&World::new(simulation.world.clone()));
                Some(from_outcome(&groups, outcome, surroundings(started, model)))
            });
        }
    }
}

/// A panic of another thread ends the process, so a poisoned lock needs no handling.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One simulated thread.
struct Simulated {
    thread_workers: ThreadWorkers,
    driver: SimDriver,
}

/// Runs the request against a responder, both in one simulated world; returns the record and what
/// the responder counted. The same request gives the same record, to the octet.
///
/// # Errors
/// The responder's configuration contradicts itself, or the run does not end.
pub fn simulate(
    request: &RunRequest,
    simulation: &Simulation,
) -> Result<(RunRecord, Counters), RunError> {
    let (record, servers) = simulate_servers(std::slice::from_ref(request), simulation)?;
    let mut all = Counters::default();
    servers.iter().for_each(|server| all += server);
    Ok((record, all))
}

/// Runs several groups of clients as [`simulate`] does; returns what the servers counted, one by
/// one in the order in which the groups name their addresses. All are configured alike.
///
/// # Errors
/// The responder's configuration contradicts itself, or the run does not end.
pub fn simulate_servers(
    groups: &[RunRequest],
    simulation: &Simulation,
) -> Result<(RunRecord, Vec<Counters>), RunError> {
    let shared = SharedResults::new(&super::inputs(groups), None);
    simulate_telling(groups, simulation, (&super::control(groups), &shared))
}

/// As [`simulate_servers`], until `control` is stopped, with each interval published as it ends: a
/// run that was stopped is not repeatable, unless a condition of `--abort-if` stopped it.
/// Where a worker takes no turn any more then, such as one in a function of a script that does not
/// return, the record has what was collected before.
///
/// # Errors
/// The responder's configuration contradicts itself, or the run does not end.
pub fn simulate_until_interrupted(
    groups: &[RunRequest],
    simulation: &Simulation,
    control: &Arc<Control>,
    live: &Live,
) -> Result<RunRecord, RunError> {
    let inputs = super::inputs(groups);
    let aborting = Aborting::of(groups)?;
    let publisher = Publisher::begin_in_virtual_time(live, groups);
    if publisher.judges() {
        control.tell_checkpoints();
    }
    let publishing = Publishing {
        publisher,
        aborting,
        control: Arc::clone(control),
        groups: groups.to_vec(),
        simulation: simulation.clone(),
    };
    let shared = Arc::new(SharedResults::new(&inputs, Some(publishing)));
    let mut watchdog = Watchdog::in_virtual_time(&inputs, Arc::clone(control), &shared.beat);
    drop(inputs);
    let (sender, receiver) = channel();
    let asked = (groups.to_vec(), simulation.clone(), Arc::clone(control));
    let of_thread = Arc::clone(&shared);
    let simulating = thread::spawn(move || {
        let (groups, simulation, control) = asked;
        let ended = simulate_telling(&groups, &simulation, (&control, &of_thread));
        // The receiver is gone only if the simulation was stuck.
        let _ = sender.send(ended);
    });
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(ended) => {
                let mut record = ended.map(|(record, _)| record);
                shared.end(record.as_mut().ok());
                return record;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                if let Err(panic) = simulating.join() {
                    std::panic::resume_unwind(panic);
                }
                return Err(RunError::plain("the simulation has ended without a result"));
            }
        }
        if watchdog.all_are_stuck()
            && let Some(collected) = shared.take()
        {
            let outcome = collected.outcome(&watchdog, |_| {});
            let model = account::account(simulation, *lock(&shared.network), None);
            let started = started(&World::new(simulation.world.clone()));
            let mut record = from_outcome(groups, outcome, surroundings(started, model));
            shared.end(Some(&mut record));
            return Ok(record);
        }
    }
}

/// The simulator's epoch: nothing of the host may enter a record that is to be repeatable.
fn started(new: &World) -> Started {
    Started::in_virtual_time(new.endpoint(ANYWHERE).unix_time())
}

/// What surrounds a run in virtual time.
fn surroundings(started: Started, model: SimulationRecord) -> Surroundings {
    Surroundings {
        started,
        host: HostFacts::default(),
        kernel: BTreeMap::new(),
        simulation: Some(model),
    }
}

/// As [`simulate_servers`]; tells each interval as it ends.
fn simulate_telling(
    groups: &[RunRequest],
    simulation: &Simulation,
    (control, shared): (&Arc<Control>, &SharedResults),
) -> Result<(RunRecord, Vec<Counters>), RunError> {
    let [request, ..] = groups else {
        return Err(RunError::plain("there is no group of clients"));
    };
    let world = World::new(simulation.world.clone());
    let started = started(&world);
    let targets = Target::open_all(groups, simulation, (&world, control));
    let targets = targets.map_err(RunError::plain)?;
    for datagram in &simulation.injected {
        let InjectedDatagram {
            from,
            to,
            octets,
            at,
        } = datagram;
        world.inject_datagram(*from, *to, octets, *at);
    }
    let inputs = super::inputs(groups);
    let mut threads = Vec::new();
    for index in 0..ThreadWorkers::threads(&inputs) {
        let mut driver = world.endpoint(generator_address(request));
        let mut thread_workers = ThreadWorkers::new(&inputs, index, control);
        thread_workers.open(&mut driver).map_err(RunError::plain)?;
        threads.push(RefCell::new(Simulated {
            thread_workers,
            driver,
        }));
    }
    let targets: Vec<RefCell<Target>> = targets.into_iter().map(RefCell::new).collect();
    run_world(&world, (&threads, shared), &targets, bounds(groups))?;
    let outcome = outcome(threads, shared)?;
    let targets: Vec<Target> = targets.into_iter().map(RefCell::into_inner).collect();
    let seen = targets.first().and_then(Target::service_counts);
    let stats = world.network_stats();
    let surroundings = surroundings(started, account::account(simulation, stats, seen));
    let counters = targets.iter().map(|target| target.counters().clone());
    let counters = counters.collect();
    Ok((from_outcome(groups, outcome, surroundings), counters))
}

/// An address outside the run, to ask the simulator for its time.
const ANYWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 254));

fn generator_address(request: &RunRequest) -> IpAddr {
    let own = request.plan.local_addresses.first().copied();
    own.unwrap_or(match request.plan.target.ip() {
        IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    })
}

/// Time for the run and a day for what follows, such as queries that wait for their timeout.
fn bounds(groups: &[RunRequest]) -> Bounds {
    let longest = groups.iter().filter_map(|group| group.plan.duration).max();
    let bounds = Bounds::default();
    Bounds {
        until: bounds.until + longest.unwrap_or_default(),
        ..bounds
    }
}

fn run_world(
    world: &World,
    (threads, shared): (&[RefCell<Simulated>], &SharedResults),
    targets: &[RefCell<Target>],
    bounds: Bounds,
) -> Result<(), RunError> {
    let mut steppers = Vec::new();
    for target in targets {
        let endpoint = target.borrow().endpoint();
        steppers.push(Stepper::serving(endpoint, || {
            target.borrow_mut().step();
            Turn::Waiting
        }));
    }
    for (thread, simulated) in threads.iter().enumerate() {
        let endpoint = simulated.borrow().driver.endpoint();
        steppers.push(Stepper::leading(endpoint, move || {
            let Simulated {
                thread_workers,
                driver,
            } = &mut *simulated.borrow_mut();
            shared.beat.count();
            let until = thread_workers.step(driver);
            tell(thread, thread_workers, (shared, world));
            if thread_workers.is_finished() {
                return Turn::Finished;
            }
            driver.wait(until);
            Turn::Waiting
        }));
    }
    world
        .run(&mut steppers, bounds)
        .map(drop)
        .map_err(|error| RunError::plain(format!("the simulation does not end: {error}")))
}

/// Tells the intervals that have ended on a thread.
fn tell(
    thread: usize,
    thread_workers: &mut ThreadWorkers,
    (shared, world): (&SharedResults, &World),
) {
    while let Some((group, interval)) = thread_workers.poll_interval() {
        let checkpoint = thread_workers.poll_checkpoint(group);
        *lock(&shared.network) = world.network_stats();
        if let Some(collected) = &mut *lock(&shared.collected) {
            collected.add((thread, group), interval);
            if let Some(summary) = checkpoint {
                collected.note_checkpoint(outcome_of((thread, group), summary));
            }
            shared.settle(collected);
        }
    }
    while let Some(group) = thread_workers.poll_finished() {
        if let Some(collected) = &mut *lock(&shared.collected) {
            collected.end((thread, group));
            shared.settle(collected);
        }
    }
}

fn outcome_of((thread, group): (usize, usize), summary: WorkerSummary) -> WorkerOutcome {
    WorkerOutcome {
        group,
        thread,
        cpu: None,
        driver: None,
        summary,
        total: Interval::default(),
    }
}

fn outcome(threads: Vec<RefCell<Simulated>>, shared: &SharedResults) -> Result<Outcome, RunError> {
    let left_behind = || RunError::plain("the simulation did not end");
    let mut collected = shared.take().ok_or_else(left_behind)?;
    for (thread, simulated) in threads.into_iter().enumerate() {
        let Simulated {
            mut thread_workers,
            mut driver,
        } = simulated.into_inner();
        for (group, summary) in thread_workers.summaries(&mut driver) {
            collected.finish(outcome_of((thread, group), summary));
        }
    }
    Ok(collected.whole())
}
