//! Processes, distinguishable from later ones of the same number, and process groups.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How long processes may take to end once they are killed, and how often they are checked.
const END_MAX: Duration = Duration::from_secs(2);
/// How long processes may take after SIGTERM: a line first ends the processes in its namespaces.
const POLITE_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// A process of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessId {
    /// Its number.
    pub id: u32,
    /// When it was started, ticks since the host was.
    pub started: u64,
    /// The process namespace in which the number counts: a container with the same folder for
    /// temporary files has another one. 0 if it is not known.
    #[serde(default)]
    pub namespace: u64,
}

/// Fields of a process in /proc.
struct Stat {
    is_ended: bool,
    group: u32,
    started: u64,
}

impl ProcessId {
    /// The process that has the number now.
    pub fn of(id: u32) -> Option<ProcessId> {
        let started = Stat::read(&id.to_string())?.started;
        let namespace = own_namespace();
        Some(ProcessId {
            id,
            started,
            namespace,
        })
    }

    /// This process.
    pub fn own() -> Option<ProcessId> {
        ProcessId::of(std::process::id())
    }

    /// True until it has ended, reaped or not; also true if it is not visible to this process.
    pub fn is_alive(self) -> bool {
        if self.namespace != 0 && self.namespace != own_namespace() {
            return true;
        }
        let stat = Stat::read(&self.id.to_string());
        stat.is_some_and(|stat| stat.started == self.started && !stat.is_ended)
    }

    /// True if the number has another process by now.
    pub(super) fn is_taken(self) -> bool {
        ProcessId::of(self.id).is_some_and(|now| now != self)
    }
}

fn own_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |it| it.ino())
}

impl Stat {
    fn read(id: &str) -> Option<Stat> {
        let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name may have any characters. State, parent and group follow it; the start is the
        // twentieth of them.
        let (_, rest) = text.rsplit_once(')')?;
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Stat {
            is_ended: matches!(*words.first()?, "Z" | "X"),
            group: words.get(2)?.parse().ok()?,
            started: words.get(19)?.parse().ok()?,
        })
    }
}

/// Kills all processes of a group; it may have ended by itself.
pub(super) fn kill_group(id: u32) {
    signal_group(id, Signal::KILL);
}

/// Sends a signal to all processes of a group that have not ended.
pub(super) fn signal_group(id: u32, signal: Signal) {
    if let Some(group) = pid_of(id) {
        let _ = kill_process_group(group, signal);
    }
}

/// Sends a signal to a single process.
pub(super) fn signal(id: u32, signal: Signal) {
    if let Some(process) = pid_of(id) {
        let _ = kill_process(process, signal);
    }
}

/// Asks all processes of a group to end, and kills those that do not.
pub(super) fn end_politely(id: u32) {
    signal_group(id, Signal::TERM);
    wait_at_most(id, POLITE_MAX);
    kill_group(id);
    wait_for_group(id);
}

/// Waits for the end of all processes of a group that was killed.
pub(super) fn wait_for_group(id: u32) {
    wait_at_most(id, END_MAX);
}

fn wait_at_most(id: u32, time: Duration) {
    let until = Instant::now() + time;
    while has_processes(id) && Instant::now() < until {
        thread::park_timeout(LOOK_EVERY);
    }
}

/// True if a process of the group has not ended; zombies count as ended.
pub(super) fn has_processes(id: u32) -> bool {
    if pid_of(id).is_none_or(|group| test_kill_process_group(group).is_err()) {
        return false;
    }
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let names = entries.filter_map(|it| it.ok()?.file_name().into_string().ok());
    let mut stats = names.filter_map(|name| Stat::read(&name));
    stats.any(|stat| !stat.is_ended && stat.group == id)
}

/// Never 1: a signal to group 1 is `kill(-1)`, which reaches every process.
fn pid_of(id: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(id).ok().filter(|id| *id > 1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_from_another_of_the_same_number() {
        let own = ProcessId::own().unwrap();
        assert!(own.is_alive() && !own.is_taken());
        let other = ProcessId {
            started: own.started + 1,
            ..own
        };
        assert!(!other.is_alive() && other.is_taken());
    }

    #[test]
    fn everybody_is_no_group() {
        assert_eq!((pid_of(0), pid_of(1), pid_of(u32::MAX)), (None, None, None));
        assert!(pid_of(2).is_some());
    }

    #[test]
    fn a_process_that_nobody_has_reaped_has_ended() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let id = ProcessId::of(child.id()).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while id.is_alive() && Instant::now() < until {
            thread::park_timeout(LOOK_EVERY);
        }
        assert!(!id.is_alive() && !id.is_taken());
        child.wait().unwrap();
        assert!(!id.is_alive());
    }
}
