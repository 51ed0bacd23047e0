//! How many processes a run needs, and which of its threads each of them has.
//!
//! A plan says how many workers there are, and each worker simulates its share of the clients
//! whatever process it is in. So processes change nothing of what is asked, and when.

use std::ops::Range;

use load::Arrival;

use super::preflight::{DESCRIPTORS_OTHER, accepted_per_client, descriptors, sockets_per_client};
use super::{RunError, RunRequest};

#[cfg(test)]
mod tests;

/// Most processes of a run.
const PROCESSES_MAX: u32 = 1_024;

/// What the parent has open for each part: two pipes, and a third while it starts.
const DESCRIPTORS_OF_A_PART: u64 = 3;

/// A run in several processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// Processes that simulate clients.
    pub processes: u32,
    /// Threads of all of them.
    pub threads: u32,
    /// Processes of the built-in responder; at 1 it stays with the parent.
    pub responders: u32,
}

impl Division {
    /// Divides the workers of `groups` among so many processes: as many threads as they had
    /// together, and at least one each.
    pub fn into(groups: &mut [RunRequest], processes: u32) -> Self {
        let workers = groups.iter().map(|request| request.plan.workers);
        let threads = workers.max().unwrap_or(1).max(processes);
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
            processes,
            threads,
            responders: responders(groups),
        }
    }

    /// The threads of one process.
    pub fn threads_of(&self, process: u32) -> Range<u32> {
        let before = |process: u32| {
            let threads = u64::from(self.threads) * u64::from(process);
            (threads / u64::from(self.processes)) as u32
        };
        before(process)..before(process + 1)
    }

    /// Descriptors of the clients of one process.
    fn descriptors_of(&self, process: u32, groups: &[RunRequest]) -> u64 {
        let of_group = |request: &RunRequest| {
            let threads = self.threads_of(process);
            let own = threads.start..threads.end.min(request.plan.workers);
            let clients = own.map(|worker| u64::from(request.plan.worker_clients(worker)));
            clients.sum::<u64>() * sockets_per_client(&request.plan)
        };
        groups.iter().map(of_group).sum()
    }

    /// Most descriptors that a process needs, be it a part or their parent.
    pub fn descriptors_max(&self, groups: &[RunRequest]) -> u64 {
        let each = (0..self.processes).map(|process| self.descriptors_of(process, groups));
        let parts = u64::from(self.processes) + u64::from(self.responders);
        let of_parent = parts * DESCRIPTORS_OF_A_PART;
        each.max().unwrap_or(0).max(of_parent) + DESCRIPTORS_OTHER
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
    u32::try_from((accepted + accepted / 10).div_ceil(room.max(1))).unwrap_or(PROCESSES_MAX)
}

/// Divides a run if it is too large for one process, or if so many `processes` were asked for;
/// else none, and it runs in this one.
///
/// # Errors
/// It cannot be divided, or not into so many.
pub fn divide(
    groups: &mut [RunRequest],
    processes: Option<u32>,
) -> Result<Option<Division>, RunError> {
    let limit = driver::cpu::open_files_max();
    let needed = groups.iter().map(descriptors).sum::<u64>() + DESCRIPTORS_OTHER;
    match processes {
        Some(1) => return Ok(None),
        None if needed <= limit => return Ok(None),
        _ => {}
    }
    let candidates = match processes {
        Some(processes) => processes..=processes,
        None => 1..=PROCESSES_MAX,
    };
    let most = most_processes(groups);
    let mut fewest_descriptors = u64::MAX;
    for processes in candidates.take_while(|processes| *processes <= most) {
        let mut divided = groups.to_vec();
        let division = Division::into(&mut divided, processes);
        let descriptors = division.descriptors_max(&divided);
        fewest_descriptors = fewest_descriptors.min(descriptors);
        if descriptors <= limit && division.responders < PROCESSES_MAX {
            groups.clone_from_slice(&divided);
            return Ok(Some(division));
        }
    }
    let Some(processes) = processes.filter(|processes| *processes > most) else {
        return Err(too_large(groups, (needed.min(fewest_descriptors), limit)));
    };
    Err(RunError::new(
        format!("the load can be divided among {most} processes, not {processes}"),
        "use fewer --agents, or more --clients (in closed loop also more --outstanding)",
    ))
}

/// So many processes have something to do.
fn most_processes(groups: &[RunRequest]) -> u32 {
    let mut divided = groups.to_vec();
    Division::into(&mut divided, PROCESSES_MAX);
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
