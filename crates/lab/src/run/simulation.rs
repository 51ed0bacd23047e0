//! A run in virtual time: the production engine and responder over a simulated network.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use driver::Driver;
use driver::sim::{Bounds, Outage, SimDriver, Stepper, Turn, World, WorldConfig};
use engine::{Control, Gathering, Outcome, ThreadWorkers, WorkerOutcome};
use measure::Interval;
use measure::RunRecord;
use measure::facts::HostFacts;
use proto::Instant;
use responder::{Counters, ResponderConfig};

use target::Target;

mod account;
mod target;

use super::record::{Surroundings, from_outcome};
use super::{RunError, RunRequest, rfc3339};

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
    /// Whose address it bears; nobody needs to have it.
    pub from: SocketAddr,
    /// Where it arrives.
    pub to: SocketAddr,
    /// Its payload.
    pub octets: Vec<u8>,
    /// When it arrives.
    pub at: Instant,
}

/// One simulated thread with what its workers have measured, by group.
struct Simulated {
    thread_workers: ThreadWorkers,
    driver: SimDriver,
    totals: Vec<Option<Interval>>,
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
    simulate_until(groups, simulation, &super::control(groups))
}

/// As [`simulate_servers`], until `control` is stopped. A run that was stopped is not repeatable.
///
/// # Errors
/// The responder's configuration contradicts itself, or the run does not end.
pub fn simulate_until(
    groups: &[RunRequest],
    simulation: &Simulation,
    control: &Arc<Control>,
) -> Result<(RunRecord, Vec<Counters>), RunError> {
    let [request, ..] = groups else {
        return Err(RunError::plain("there is no group of clients"));
    };
    let world = World::new(simulation.world.clone());
    // The simulator's epoch: nothing of the host may enter a record that is to be repeatable.
    let started_at = rfc3339(SystemTime::UNIX_EPOCH + world.endpoint(ANYWHERE).unix_time());
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
            totals: vec![None; groups.len()],
        }));
    }
    let targets: Vec<RefCell<Target>> = targets.into_iter().map(RefCell::new).collect();
    let gathering = RefCell::new(Gathering::of(
        &inputs,
        &(0..ThreadWorkers::threads(&inputs)),
    ));
    run_world(&world, (&threads, &gathering), &targets, bounds(groups))?;
    let outcome = outcome(threads, gathering.into_inner());
    let targets: Vec<Target> = targets.into_iter().map(RefCell::into_inner).collect();
    let seen = targets.first().and_then(Target::service_counts);
    let stats = world.network_stats();
    let surroundings = Surroundings {
        started_at,
        started: None,
        host: HostFacts::default(),
        kernel: BTreeMap::new(),
        simulation: Some(account::account(simulation, stats, seen)),
    };
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

/// Time for the run and a day for what follows, such as queries that wait for their time-out.
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
    (threads, gathering): (&[RefCell<Simulated>], &RefCell<Gathering>),
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
                totals,
            } = &mut *simulated.borrow_mut();
            let until = thread_workers.step(driver);
            tell(
                (thread, &mut *thread_workers),
                totals,
                &mut gathering.borrow_mut(),
            );
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

/// Takes the intervals that have ended on a thread.
fn tell(
    (thread, thread_workers): (usize, &mut ThreadWorkers),
    totals: &mut [Option<Interval>],
    gathering: &mut Gathering,
) {
    while let Some((group, interval)) = thread_workers.poll_interval() {
        interval.append_to(&mut totals[group]);
        gathering.add((thread, group), interval);
    }
    while let Some(group) = thread_workers.poll_finished() {
        gathering.end((thread, group));
    }
    gathering.settle(|_| {});
}

fn outcome(threads: Vec<RefCell<Simulated>>, gathering: Gathering) -> Outcome {
    let mut workers = Vec::new();
    for (thread, simulated) in threads.into_iter().enumerate() {
        let Simulated {
            mut thread_workers,
            mut driver,
            mut totals,
        } = simulated.into_inner();
        for (group, summary) in thread_workers.summaries(&mut driver) {
            workers.push(WorkerOutcome {
                group,
                thread,
                cpu: None,
                driver: None,
                summary,
                total: totals[group].take().unwrap_or_default(),
            });
        }
    }
    Outcome::new(gathering, workers)
}
