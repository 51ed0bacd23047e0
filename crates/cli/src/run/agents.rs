//! The agents of a run on other hosts: those that ssh starts, or that have dialled this process.
//! They stay for the next run of the same command.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use driver::clock::Clock;
use lab::parts::{Hello, Parts};
use lab::run::{Division, RunRequest};

use super::hosts::Hosts;
use crate::failure::Failure;
use crate::run::group::Group;
use crate::signals::Interrupt;

/// Agents that are there and have nothing to do.
pub(crate) struct Agents {
    pub(crate) parts: Parts,
    /// Who each is.
    pub(crate) hellos: Vec<Hello>,
}

/// Where agents come from.
#[derive(PartialEq)]
pub(super) enum Source {
    /// They have dialled.
    Dialled,
    /// ssh starts them.
    Hosts(Hosts),
}

/// Those of the last run of this process.
static WARM: Mutex<Option<(Source, Agents)>> = Mutex::new(None);

fn warm() -> std::sync::MutexGuard<'static, Option<(Source, Agents)>> {
    // Nothing panics while it is held.
    WARM.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Agents dial this process.
static IS_LEAD: AtomicBool = AtomicBool::new(false);

/// From now on all runs of this process are theirs, who have dialled.
pub(crate) fn adopt(agents: Agents) {
    IS_LEAD.store(true, Ordering::Relaxed);
    *warm() = Some((Source::Dialled, agents));
}

/// True if all runs of this process are of agents that have dialled.
pub(super) fn is_lead() -> bool {
    IS_LEAD.load(Ordering::Relaxed)
}

/// Ends agents that wait for another run.
pub(crate) fn dismiss() {
    let Some((_, mut agents)) = warm().take() else {
        return;
    };
    agents.parts.say_to_all("end", "");
    agents.parts.wait_for_ends();
}

impl Source {
    /// That of a run; none if this host generates its load.
    ///
    /// # Errors
    /// A file with hosts cannot be read.
    pub(super) fn of(groups: &[Group]) -> Result<Option<Source>, Failure> {
        if is_lead() {
            return Ok(Some(Source::Dialled));
        }
        Ok(Hosts::of(groups)?.map(Source::Hosts))
    }

    /// The agents: those of the last run, if they come from there, or new ones.
    ///
    /// # Errors
    /// One cannot be started, does not answer, or is another program.
    pub(super) fn agents(&self, interrupt: &Interrupt) -> Result<Agents, Failure> {
        let warm = warm().take_if(|(source, _)| source == self);
        match (warm, self) {
            (Some((_, agents)), _) => Ok(agents),
            (None, Source::Hosts(hosts)) => {
                let (parts, hellos) = hosts.start(Clock::start(), interrupt)?;
                Ok(Agents { parts, hellos })
            }
            (None, Source::Dialled) => Err(Failure::in_operation(
                "an agent was lost in the run before this one",
            )),
        }
    }

    /// Keeps agents for the next run.
    pub(super) fn keep(self, agents: Agents) {
        *warm() = Some((self, agents));
    }
}

/// Decides how many workers all agents have together, and what each has to do: `groups` are what
/// they are told.
///
/// # Errors
/// One may not have as many open files as it needs.
pub(super) fn divide(
    requests: &mut [RunRequest],
    groups: &mut [Group],
    Agents { parts, hellos }: &Agents,
) -> Result<Division, Failure> {
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
                parts.name(index)
            ),
            "raise the limit there (`ulimit -n`), or name more hosts, or one of them more often",
        ));
    }
    for (request, group) in requests.iter().zip(groups.iter_mut()) {
        group.run.generator.workers = Some(request.plan.workers);
    }
    Ok(division)
}
