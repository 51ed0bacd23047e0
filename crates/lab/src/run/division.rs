//! How many agents a run needs, and which of its threads each of them has.
//!
//! A plan says how many workers there are, and each worker simulates its share of the clients
//! whatever agent it is in. So agents change nothing of what is asked, and when.

use std::ops::Range;

use load::Arrival;

use super::preflight::{DESCRIPTORS_OTHER, accepted_per_client, descriptors, sockets_per_client};
use super::{RunError, RunRequest};

#[cfg(test)]
mod tests;

/// Most agents of a run.
const AGENTS_MAX: u32 = 1_024;

/// What the lead has open for each agent: two pipes, and a third while it starts.
const DESCRIPTORS_PER_AGENT: u64 = 3;

/// A run by several agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// Agents that simulate clients.
    pub agents: u32,
    /// Threads of all of them.
    pub threads: u32,
    /// Processes of the built-in responder; at 1 it stays with the lead.
    pub responders: u32,
}

impl Division {
    /// Divides the workers of `groups` among that many agents: as many threads as they had
    /// together, and at least one each.
    pub fn into(groups: &mut [RunRequest], agents: u32) -> Self {
        let workers = groups.iter().map(|request| request.plan.workers);
        let threads = workers.max().unwrap_or(1).max(agents);
        for request in groups.iter_mut() {
            let plan = &mut request.plan;
            let outstanding = match plan.arrival {
                Arrival::Closed { outstanding, .. } => outstanding,
                _ => u32::MAX,
            };
            plan.workers = threads.min(plan.clients).min(outstanding);
            let cpus = request.cpus.iter().copied().cycle();
            request.cpus = cpus.take(threads as usize).collect();
        }
        Division {
            agents,
            threads,
            responders: responders(groups),
        }
    }

    /// The threads of one agent.
    pub fn threads_of(&self, agent: u32) -> Range<u32> {
        let before = |agent: u32| {
            let threads = u64::from(self.threads) * u64::from(agent);
            (threads / u64::from(self.agents)) as u32
        };
        before(agent)..before(agent + 1)
    }

    /// Descriptors of the clients of one agent.
    fn descriptors_of(&self, agent: u32, groups: &[RunRequest]) -> u64 {
        let of_group = |request: &RunRequest| {
            let threads = self.threads_of(agent);
            let own = threads.start..threads.end.min(request.plan.workers);
            let clients = own.map(|worker| u64::from(request.plan.worker_clients(worker)));
            clients.sum::<u64>() * sockets_per_client(&request.plan)
        };
        groups.iter().map(of_group).sum()
    }

    /// Most descriptors that a process needs, be it an agent or their lead.
    pub fn descriptors_max(&self, groups: &[RunRequest]) -> u64 {
        let each = (0..self.agents).map(|agent| self.descriptors_of(agent, groups));
        let processes = u64::from(self.agents) + u64::from(self.responders);
        let of_lead = processes * DESCRIPTORS_PER_AGENT;
        each.max().unwrap_or(0).max(of_lead) + DESCRIPTORS_OTHER
    }
}

/// Processes that accept the connections of a self-test. The kernel deals connections out by
/// their addresses, so that a process may get a few more than its share.
fn responders(groups: &[RunRequest]) -> u32 {
    let accepted = |request: &RunRequest| match request.asked.is_self_test() {
        true => u64::from(request.plan.clients) * accepted_per_client(&request.plan),
        false => 0,
    };
    let accepted: u64 = groups.iter().map(accepted).sum();
    let room = driver::cpu::open_files_max().saturating_sub(2 * DESCRIPTORS_OTHER);
    if accepted <= room {
        return 1;
    }
    u32::try_from((accepted + accepted / 10).div_ceil(room.max(1))).unwrap_or(AGENTS_MAX)
}

/// Divides a run if it is too large for one process, or if that many `agents` were asked for;
/// else none, and it runs in this one.
///
/// # Errors
/// The run cannot be divided, or not among that many agents.
pub fn divide(
    groups: &mut [RunRequest],
    agents: Option<u32>,
) -> Result<Option<Division>, RunError> {
    let limit = driver::cpu::open_files_max();
    let needed = groups.iter().map(descriptors).sum::<u64>() + DESCRIPTORS_OTHER;
    match agents {
        Some(1) => return Ok(None),
        None if needed <= limit => return Ok(None),
        _ => {}
    }
    let candidates = match agents {
        Some(agents) => agents..=agents,
        None => 1..=AGENTS_MAX,
    };
    let most = most_agents(groups);
    let mut fewest_descriptors = u64::MAX;
    for agents in candidates.take_while(|agents| *agents <= most) {
        let mut divided = groups.to_vec();
        let division = Division::into(&mut divided, agents);
        let descriptors = division.descriptors_max(&divided);
        fewest_descriptors = fewest_descriptors.min(descriptors);
        if descriptors <= limit && division.responders < AGENTS_MAX {
            groups.clone_from_slice(&divided);
            return Ok(Some(division));
        }
    }
    let Some(agents) = agents.filter(|agents| *agents > most) else {
        return Err(too_large(groups, (needed.min(fewest_descriptors), limit)));
    };
    Err(RunError::new(
        format!("the load can be divided among {most} agents, not {agents}"),
        "use fewer --agents, or more --clients (in closed loop also more --outstanding)",
    ))
}

/// The greatest number of agents that all have something to do.
fn most_agents(groups: &[RunRequest]) -> u32 {
    let mut divided = groups.to_vec();
    Division::into(&mut divided, AGENTS_MAX);
    let workers = divided.iter().map(|request| request.plan.workers);
    workers.max().unwrap_or(1)
}

fn too_large(groups: &[RunRequest], (needed, limit): (u64, u64)) -> RunError {
    let clients = groups.iter().map(|request| u64::from(request.plan.clients));
    let clients: u64 = clients.sum();
    RunError::new(
        format!(
            "{clients} clients need {needed} open files in a process, and the limit here is {limit}"
        ),
        format!(
            "use more --agents, fewer --clients, in closed loop more --outstanding, or raise \
             the limit: `ulimit -n {needed}`, as root where that is above `ulimit -Hn`"
        ),
    )
}
