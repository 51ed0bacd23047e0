//! Whose the CPU time of this host is: this program's, the target's, or something else's.
//!
//! Read from /proc before and after; what was used between is a [`CpuUse`]. Processes that begin
//! and end between two readings are in its sum, without a name.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Instant;

use measure::RunRecord;
use measure::facts::{CpuUse, ProcessUse, QuotaUse};
use observe::proc::{Group, Root};

use super::Host;
use crate::run::RunRequest;

/// A tick of the times in /proc: a hundredth of a second, whatever the kernel's own.
const TICK_NS: u64 = 10_000_000;
/// Processes that are named.
const NAMED_MAX: usize = 3;
/// Less of a CPU than this share is not worth a name.
const NAMED_MIN: f64 = 0.05;
/// The kernel's threads are children of this process.
const KERNEL_THREADS: u32 = 2;
/// Generations of children that are looked through.
const GENERATIONS_MAX: usize = 64;

/// Who had used how much of the CPUs at one instant.
#[derive(Clone, Debug)]
pub struct CpuReading {
    at: Instant,
    busy_ticks: u64,
    stolen_ticks: u64,
    processes: BTreeMap<u32, Process>,
    target: Option<Target>,
}

/// A process as /proc/PID/stat has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) name: String,
    pub(super) parent: u32,
    pub(super) ticks: u64,
    /// Of children that have ended and been waited for.
    pub(super) children_ticks: u64,
}

/// The target, if it is on this host.
#[derive(Clone, Debug, Default)]
struct Target {
    pids: Vec<u32>,
    /// Its threads; none if this kernel does not tell when they run.
    threads: BTreeMap<u32, Thread>,
    /// Datagrams that each of its UDP sockets, by inode, had no room for.
    drops: Option<BTreeMap<u64, u64>>,
    /// What its CPU quota has counted.
    quota: Option<QuotaUse>,
}

/// A thread as schedstat and stat in /proc/PID/task/TID have it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Thread {
    ran_ns: u64,
    /// How long it was ready to run but waited for a CPU, each time until it ran.
    waited_ns: u64,
    turns: u64,
    /// It is ready to run, or runs.
    is_ready: bool,
}

impl Thread {
    /// How long it waited since `then`, `wall_ns` ago, at least. The kernel adds a wait when it is
    /// over: a thread that was ready and is, and has not run since, has waited all the time. Of
    /// one that was woken since and has not run yet, it is unknown when.
    fn waited_since(&self, then: &Thread, wall_ns: u64) -> u64 {
        let has_run = (self.ran_ns, self.turns) != (then.ran_ns, then.turns);
        match self.is_ready && then.is_ready && !has_run {
            true => wall_ns,
            false => (self.waited_ns.saturating_sub(then.waited_ns)).min(wall_ns),
        }
    }
}

/// Whose the CPU time of this host is while a run lasts.
pub(crate) struct HostWatch {
    target: Option<SocketAddr>,
    before: CpuReading,
    /// Agents that are no children of this process.
    agents: Vec<u32>,
}

impl HostWatch {
    /// From now on; a target that is one address is looked for on this host. `agents` are processes
    /// of this program that are no children of this one.
    pub(crate) fn begin(groups: &[RunRequest], agents: Vec<u32>) -> HostWatch {
        let mut targets = groups.iter().map(|it| it.plan.target);
        let first = targets.next();
        let target = first.filter(|first| targets.all(|it| it == *first));
        HostWatch {
            target,
            before: Host::this().cpu_reading(target),
            agents,
        }
    }

    /// Until now; `record` has it, and is not concluded yet.
    pub(crate) fn note(&self, record: &mut RunRecord) {
        let now = Host::this().cpu_reading(self.target);
        let has_figures = now.busy_ticks > 0;
        record.host_use = has_figures.then(|| self.before.until(&now, &self.agents));
    }
}

impl Host {
    /// Reads whose the CPU time was until now. `target` is looked for among the processes of this
    /// host if its address is one of this host's.
    pub fn cpu_reading(&self, target: Option<SocketAddr>) -> CpuReading {
        let stat = self.text("proc/stat").unwrap_or_default();
        let (busy_ticks, stolen_ticks) = parse_busy(&stat);
        let processes = self.processes();
        let target = target.and_then(|address| self.target_here(address, &processes));
        CpuReading {
            at: Instant::now(),
            busy_ticks,
            stolen_ticks,
            processes,
            target,
        }
    }

    fn processes(&self) -> BTreeMap<u32, Process> {
        let pids = self.names("proc").into_iter();
        let pids = pids.filter_map(|name| name.parse::<u32>().ok());
        let each = pids.filter_map(|pid| {
            let stat = self.text(&format!("proc/{pid}/stat"))?;
            Some((pid, parse_process(&stat)?))
        });
        each.collect()
    }

    /// The target, if it is in this network namespace, or in another one of this host.
    fn target_here(
        &self,
        address: SocketAddr,
        processes: &BTreeMap<u32, Process>,
    ) -> Option<Target> {
        if is_of_this_host(address.ip()) {
            return Some(self.target(address.port(), processes));
        }
        let pids = observe::auto::processes_at(address);
        let network = format!("proc/{}/net", pids.first()?);
        let drops = self.sockets(&network, ["udp", "udp6"], address.port());
        Some(Target {
            drops: Some(drops.into_iter().collect()),
            ..self.target_of(pids)
        })
    }

    /// Inodes of the sockets on that port, with the datagrams that each had no room for.
    fn sockets(&self, network: &str, tables: [&str; 2], port: u16) -> Vec<(u64, u64)> {
        let tables = tables.map(|name| self.text(&format!("{network}/{name}")));
        let rows = tables
            .iter()
            .flatten()
            .flat_map(|it| parse_sockets(it, port));
        rows.collect()
    }

    /// The processes that have a socket on that port.
    fn target(&self, port: u16, processes: &BTreeMap<u32, Process>) -> Target {
        let udp = self.sockets("proc/net", ["udp", "udp6"], port);
        let tcp = self.sockets("proc/net", ["tcp", "tcp6"], port);
        let inodes = udp.iter().chain(&tcp).map(|(inode, _)| *inode);
        let inodes: Vec<u64> = inodes.collect();
        let own = std::process::id();
        let others = processes.keys().copied().filter(|pid| *pid != own);
        let pids: Vec<u32> = others
            .filter(|pid| self.has_socket(*pid, &inodes))
            .collect();
        Target {
            drops: Some(udp.into_iter().collect()),
            ..self.target_of(pids)
        }
    }

    fn target_of(&self, pids: Vec<u32>) -> Target {
        Target {
            threads: pids.iter().flat_map(|pid| self.threads(*pid)).collect(),
            quota: pids.iter().find_map(|pid| self.quota(*pid)),
            pids,
            drops: None,
        }
    }

    /// What the CPU quota of a process has counted, if it is not the quota of this program.
    fn quota(&self, pid: u32) -> Option<QuotaUse> {
        let root = Root::at(&self.root);
        let group = Group::of(&root, pid)?;
        let own = Group::own(&root).and_then(|it| it.quota_inode(&root));
        let is_others = group.quota_inode(&root)? != own.unwrap_or(0);
        let counted = group.throttled(&root).filter(|_| is_others)?;
        Some(QuotaUse {
            periods: counted.periods? as u64,
            throttled: counted.throttled as u64,
            throttled_ns: (counted.seconds * 1e9).round() as u64,
        })
    }

    fn has_socket(&self, pid: u32, inodes: &[u64]) -> bool {
        let folder = self.root.join(format!("proc/{pid}/fd"));
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
        links.any(|link| {
            let link = link.to_string_lossy();
            let inode = link
                .strip_prefix("socket:[")
                .and_then(|rest| rest.strip_suffix(']'));
            inode.is_some_and(|inode| inode.parse().is_ok_and(|it| inodes.contains(&it)))
        })
    }

    fn threads(&self, pid: u32) -> Vec<(u32, Thread)> {
        let folder = format!("proc/{pid}/task");
        let names = self.names(&folder).into_iter();
        let each = names.filter_map(|name| {
            let text = self.text(&format!("{folder}/{name}/schedstat"))?;
            let cells = text.split_ascii_whitespace();
            let cells: Vec<u64> = cells.map_while(|it| it.parse().ok()).collect();
            let [ran_ns, waited_ns, turns, ..] = *cells.as_slice() else {
                return None;
            };
            let stat = self.text(&format!("{folder}/{name}/stat"));
            let is_ready = stat.as_deref().and_then(state_of) == Some("R");
            let thread = Thread {
                ran_ns,
                waited_ns,
                turns,
                is_ready,
            };
            Some((name.parse().ok()?, thread))
        });
        each.collect()
    }
}

/// What the counters that are there now have counted since then, one by one.
fn growth<K: Ord>(now: &BTreeMap<K, u64>, then: &BTreeMap<K, u64>) -> u64 {
    let of_one =
        |(key, count): (&K, &u64)| count.saturating_sub(then.get(key).copied().unwrap_or(0));
    now.iter().map(of_one).sum()
}

impl CpuReading {
    /// What was used from here to `later`, of which `agents` are this program too.
    pub fn until(&self, later: &CpuReading, agents: &[u32]) -> CpuUse {
        let roots: Vec<u32> = agents.iter().copied().chain([std::process::id()]).collect();
        let wall_ns = u64::try_from(later.at.duration_since(self.at).as_nanos());
        let wall_ns = wall_ns.unwrap_or(u64::MAX);
        let target = later
            .target
            .as_ref()
            .filter(|target| !target.pids.is_empty());
        let (mut own_ticks, mut target_ticks, mut kernel_ticks) = (0, 0, 0);
        let mut others: Vec<ProcessUse> = Vec::new();
        for (pid, process) in &later.processes {
            let before = self.processes.get(pid).filter(|it| it.name == process.name);
            let used = process
                .ticks
                .saturating_sub(before.map_or(0, |it| it.ticks));
            // This program starts the server of a cell itself.
            if target.is_some_and(|target| target.pids.contains(pid)) {
                target_ticks += used;
            } else if roots.contains(pid) || later.is_descendant(*pid, &roots) {
                let ended = before.map_or(0, |it| it.children_ticks);
                own_ticks += used + process.children_ticks.saturating_sub(ended);
            } else if process.parent == KERNEL_THREADS {
                kernel_ticks += used;
            } else {
                others.push(ProcessUse {
                    name: process.name.clone(),
                    pid: *pid,
                    cpu_ns: used * TICK_NS,
                });
            }
        }
        let found_ns: u64 = others.iter().map(|it| it.cpu_ns).sum();
        others.sort_by(|a, b| b.cpu_ns.cmp(&a.cpu_ns).then(a.pid.cmp(&b.pid)));
        others.retain(|it| it.cpu_ns as f64 >= NAMED_MIN * wall_ns as f64);
        others.truncate(NAMED_MAX);
        let busy = later.busy_ticks.saturating_sub(self.busy_ticks);
        let waits = later.target_waits_since(self, wall_ns);
        let waited = |waits: &Vec<u64>| waits.iter().filter(|it| **it > 0).count() as u64;
        let known = own_ticks + target_ticks + kernel_ticks;
        CpuUse {
            wall_ns,
            own_ns: own_ticks * TICK_NS,
            is_target_here: later.target.is_some(),
            target_ns: target.map(|_| target_ticks * TICK_NS),
            target_wait_ns: waits.as_ref().map(|it| it.iter().sum()),
            target_threads_waiting: waits.as_ref().map(waited),
            target_udp_drops: later.drops_since(self),
            target_quota: later.quota_since(self),
            // Sums of virtual machines lag behind at times; what was found was used.
            others_ns: (busy.saturating_sub(known) * TICK_NS).max(found_ns),
            stolen_ns: later.stolen_ticks.saturating_sub(self.stolen_ticks) * TICK_NS,
            busiest: others,
        }
    }

    /// For how long each of the target's threads waited for a CPU since then: those that are there,
    /// so that one that has ended takes nothing from the others. None if it is not told.
    fn target_waits_since(&self, before: &CpuReading, wall_ns: u64) -> Option<Vec<u64>> {
        let (now, then) = (self.target.as_ref()?, before.target.as_ref()?);
        let are_told = !now.threads.is_empty() && !then.threads.is_empty();
        let of_one = |(id, thread): (&u32, &Thread)| match then.threads.get(id) {
            Some(earlier) => thread.waited_since(earlier, wall_ns),
            None => thread.waited_ns,
        };
        are_told.then(|| now.threads.iter().map(of_one).collect())
    }

    /// Datagrams that the target's UDP sockets had no room for since then; none without such
    /// sockets, or if one of those of then is gone with its count.
    fn drops_since(&self, before: &CpuReading) -> Option<u64> {
        let of = |reading: &'_ CpuReading| reading.target.as_ref()?.drops.clone();
        let (now, then) = (of(self)?, of(before)?);
        let is_whole = !now.is_empty() && then.keys().all(|inode| now.contains_key(inode));
        is_whole.then(|| growth(&now, &then))
    }

    fn quota_since(&self, before: &CpuReading) -> Option<QuotaUse> {
        let (now, then) = (self.target.as_ref()?.quota?, before.target.as_ref()?.quota?);
        Some(QuotaUse {
            periods: now.periods.saturating_sub(then.periods),
            throttled: now.throttled.saturating_sub(then.throttled),
            throttled_ns: now.throttled_ns.saturating_sub(then.throttled_ns),
        })
    }

    fn is_descendant(&self, pid: u32, of: &[u32]) -> bool {
        let mut at = pid;
        for _ in 0..GENERATIONS_MAX {
            match self.processes.get(&at) {
                Some(process) if of.contains(&process.parent) => return true,
                Some(process) if process.parent > 0 => at = process.parent,
                _ => return false,
            }
        }
        false
    }
}

/// True if packets to that address stay on this host. Connecting a UDP socket sends nothing, and
/// chooses the address itself for its own end exactly then.
pub(crate) fn is_of_this_host(address: IpAddr) -> bool {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    if address.is_loopback() {
        return true;
    }
    // Any port will do.
    let near = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 53))?;
        socket.local_addr()
    });
    near.is_ok_and(|near| near.ip() == address)
}

/// The first row of /proc/stat: ticks in which programs and the kernel for them ran or the
/// hypervisor took the CPU, and the latter alone. Interrupts come with traffic and are left out.
pub(super) fn parse_busy(stat: &str) -> (u64, u64) {
    let row = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    let cells = row.unwrap_or_default().split_ascii_whitespace();
    let ticks: Vec<u64> = cells.map_while(|cell| cell.parse().ok()).collect();
    match ticks.as_slice() {
        [user, nice, system, _, _, _, _, stolen, ..] => (user + nice + system + stolen, *stolen),
        _ => (0, 0),
    }
}

/// The state in a /proc/PID/stat or that of a thread: R is ready to run or runs.
fn state_of(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().next()
}

/// /proc/PID/stat. The name is in parentheses, and may contain anything.
pub(super) fn parse_process(stat: &str) -> Option<Process> {
    let (start, rest) = stat.rsplit_once(')')?;
    let (_, name) = start.split_once('(')?;
    let cells: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| cells.get(index)?.parse::<u64>().ok();
    // From the state on: 1 is the parent, 11 and 12 are the times, 13 and 14 those of children.
    Some(Process {
        name: name.to_owned(),
        parent: u32::try_from(number(1)?).ok()?,
        ticks: number(11)? + number(12)?,
        children_ticks: number(13)? + number(14)?,
    })
}

/// Inodes of the sockets in /proc/net/udp and the like that have that local port.
pub(super) fn parse_sockets(table: &str, port: u16) -> Vec<(u64, u64)> {
    let rows = table.lines().skip(1);
    let socket = |row: &str| {
        let cells: Vec<&str> = row.split_ascii_whitespace().collect();
        let (_, hexadecimal) = cells.get(1)?.rsplit_once(':')?;
        let is_it = u16::from_str_radix(hexadecimal, 16).ok()? == port;
        let inode = cells.get(9)?.parse().ok()?;
        let drops = cells.get(12).and_then(|cell| cell.parse().ok());
        (is_it && inode != 0).then_some((inode, drops.unwrap_or(0)))
    };
    rows.filter_map(socket).collect()
}
