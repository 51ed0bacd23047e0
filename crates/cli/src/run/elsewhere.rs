//! Agents on other hosts: started there by ssh (`--hosts`), or dialling in (`--listen`).

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use driver::clock::Clock;
use lab::agents::{
    Fleet, Gate, GreetingError, Hello, KeyFiles, Quorum, Side, own_hello, read_keys,
};
use lab::run::{Division, RunRequest};
use measure::notation::first_few;

use super::hosts::Hosts;
use super::identity;
use crate::failure::Failure;
use crate::inputs;
use crate::run::group::Group;
use crate::signals::Interrupt;

/// How long is waited for agents that dial, unless told otherwise.
const PATIENCE: Duration = Duration::from_mins(5);

/// Where the agents of a run are that other hosts have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// ssh starts them.
    Hosts(Hosts),
    /// They dial this address.
    Dialling {
        listen: SocketAddr,
        keys: KeyFiles,
        quorum: Quorum,
        patience: Duration,
    },
}

impl Elsewhere {
    /// As the run asks for; none if it has no other hosts. From now on all files that this process
    /// reads are kept for the agents.
    ///
    /// # Errors
    /// A file cannot be read, or options contradict each other.
    pub(super) fn of(groups: &[Group]) -> Result<Option<Elsewhere>, Failure> {
        let generator = &groups[0].run.generator;
        let flag = match (&generator.hosts, generator.listen) {
            (None, None) => return Ok(None),
            (Some(_), None) => "--hosts",
            (None, Some(_)) => "--listen",
            (Some(_), Some(_)) => {
                return Err(Failure::usage(
                    "--hosts cannot be used with --listen",
                    "leave out one of them: agents are started by ssh, or dial in",
                ));
            }
        };
        let has_key_log = |group: &Group| {
            let tls = group.run.tls.as_ref();
            tls.is_some_and(|tls| tls.key_log.is_some())
        };
        if groups.iter().any(has_key_log) {
            return Err(Failure::usage(
                format!(
                    "--tls-keylog cannot be used with {flag}: each agent would write secrets to \
                     its host"
                ),
                format!("leave it out, or run without {flag}"),
            ));
        }
        let elsewhere = match (&generator.hosts, generator.listen) {
            (Some(_), _) if generator.agents.is_some() => {
                return Err(Failure::usage(
                    "--agents cannot be used with --hosts, of which each line is an agent",
                    "leave it out, and name a host as often as it is to have agents",
                ));
            }
            (Some(path), _) => {
                Elsewhere::Hosts(Hosts::of(path.as_path(), generator.ssh.as_deref())?)
            }
            (None, listen) => Elsewhere::dialling(generator, listen)?,
        };
        inputs::keep_all();
        Ok(Some(elsewhere))
    }

    fn dialling(
        generator: &settings::Generator,
        listen: Option<SocketAddr>,
    ) -> Result<Elsewhere, Failure> {
        let needs = |flag: &str, cure: &str| {
            Failure::usage(
                format!("--listen needs {flag}"),
                format!("add {flag} {cure}"),
            )
        };
        let listen = listen.ok_or_else(|| needs("an address", "and a port"))?;
        let agents = generator.agents;
        let agents = agents.ok_or_else(|| needs("--agents", "N, as many as are to dial"))?;
        let quorum = quorum(agents, generator.min_agents)?;
        let folder = generator.keys.as_ref();
        let folder =
            folder.ok_or_else(|| needs("--keys", "FOLDER, made by `throng fleet keys`"))?;
        Ok(Elsewhere::Dialling {
            listen,
            keys: read_keys(folder.as_path(), Side::Lead)?,
            quorum,
            patience: generator.barrier_timeout.unwrap_or(PATIENCE),
        })
    }

    /// Starts the agents, or waits for them, until all have said who they are.
    ///
    /// # Errors
    /// One cannot be started, does not come, or is another program.
    pub(super) fn start(
        &self,
        clock: Clock,
        (interrupt, note): (&Interrupt, &dyn Fn(&str)),
    ) -> Result<Fleet, Failure> {
        match self {
            Elsewhere::Hosts(hosts) => hosts.start(clock, interrupt),
            Elsewhere::Dialling {
                listen,
                keys,
                quorum,
                patience,
            } => {
                let gate = Gate::open(*listen, keys, own_hello(identity::program()?), *quorum)?;
                note(&format!(
                    "waiting for {} agents at {} (`throng fleet agent`)",
                    quorum.agents,
                    gate.address()
                ));
                let is_interrupted = || interrupt.has_come();
                let greeted = gate.wait(*patience, clock, (is_interrupted, note));
                greeted.map_err(not_greeted)
            }
        }
    }
}

/// Why agents could not be started.
pub(super) fn not_greeted(error: GreetingError) -> Failure {
    match error {
        GreetingError::Interrupted => Failure::interrupted("interrupted before the run began"),
        GreetingError::Unreachable { name, how, .. } => {
            Failure::in_operation(format!("{name} died before the run: {how}"))
        }
        GreetingError::Absent { missing, patience } => Failure::usage(
            format!(
                "{} of the agents did not come within {} s: {}",
                missing.len(),
                patience.as_secs(),
                first_few(&missing)
            ),
            "start each with `throng fleet agent`, its --index from 0; --barrier-timeout waits \
             longer, and --min-agents N begins with N of them",
        ),
        GreetingError::Foreign { name, said } => Failure::usage(
            format!("{name}: it printed `{said}`, which is not from an agent"),
            "`ssh HOST true` must print nothing: .bashrc and the like may print in interactive \
             shells only",
        ),
        GreetingError::Other(error) => error.into(),
    }
}

/// How many agents are asked for, and how many of them are enough.
///
/// # Errors
/// More are to be enough than there are.
pub(crate) fn quorum(agents: u32, min: Option<u32>) -> Result<Quorum, Failure> {
    let min = min.unwrap_or(agents);
    match min <= agents {
        true => Ok(Quorum { agents, min }),
        false => Err(Failure::usage(
            format!("--min-agents {min} is more than --agents {agents}"),
            format!("give --min-agents at most {agents}, or more --agents"),
        )),
    }
}

/// Decides how many workers all agents have together, and what each has to do: `groups` is what
/// they get.
///
/// # Errors
/// One may not have as many open files as it needs.
pub(super) fn divide(
    requests: &mut [RunRequest],
    groups: &mut [Group],
    fleet: &Fleet,
) -> Result<Division, Failure> {
    let hellos: Vec<_> = fleet.hellos().collect();
    refuse_loopback(requests, &hellos, fleet)?;
    let agents = u32::try_from(hellos.len()).unwrap_or(u32::MAX);
    let cpus = hellos.iter().map(|hello| hello.cpus).min().unwrap_or(1);
    for (request, group) in requests.iter_mut().zip(groups.iter()) {
        if group.run.generator.workers.is_none() && group.run.generator.cpus.is_empty() {
            request.plan.workers = (cpus * agents).min(request.plan.clients);
        }
    }
    let division = Division::into(requests, agents);
    let workers = requests.iter().map(|it| it.plan.workers).max();
    if workers.unwrap_or(1) < agents {
        return Err(Failure::usage(
            format!(
                "the load can be divided among {} agents, not {agents}",
                workers.unwrap_or(1)
            ),
            "name fewer hosts, or use more --clients (in closed loop also more --outstanding)",
        ));
    }
    let needed = division.descriptors_max(requests);
    if let Some(index) = hellos.iter().position(|it| it.open_files_max < needed) {
        let limit = hellos[index].open_files_max;
        return Err(Failure::usage(
            format!(
                "{}: it needs {needed} open files, and may have {limit}",
                fleet.name(index)
            ),
            "raise the limit there (`ulimit -n`), or name more hosts, or one of them more often",
        ));
    }
    for (request, group) in requests.iter().zip(groups.iter_mut()) {
        group.run.generator.workers = Some(request.plan.workers);
    }
    Ok(division)
}

/// Refuses a target on loopback for an agent in another network, where that is another target.
fn refuse_loopback(
    requests: &[RunRequest],
    hellos: &[&Hello],
    fleet: &Fleet,
) -> Result<(), Failure> {
    let targets = requests.iter().map(|it| it.plan.target.ip());
    let Some(loopback) = targets.into_iter().find(IpAddr::is_loopback) else {
        return Ok(());
    };
    let own = own_hello(String::new()).network;
    let is_other = |it: &&Hello| it.network.is_some() && own.is_some() && it.network != own;
    match hellos.iter().position(is_other) {
        None => Ok(()),
        Some(agent) => Err(Failure::usage(
            format!(
                "{}: {loopback} is that host itself there, and not the server here",
                fleet.name(agent)
            ),
            "give --server an address that all agents reach",
        )),
    }
}
