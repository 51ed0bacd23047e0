//! How much the host disturbed what has no record of it: from proc(5), for the whole host.

use std::fs;
use std::time::Instant;

use testing::host::CpuTimes;
use testing::quiet::{Disturbance, Quiet};
use testing::timed::{Attempt, on_quiet_host};

/// The counters of the host at an instant.
pub(crate) struct Host {
    at: Instant,
    cpus: CpuTimes,
    /// Seconds in which threads were ready to run and had no CPU; none where the kernel does not
    /// count it.
    waited_s: Option<f64>,
}

impl Host {
    pub(crate) fn now() -> Host {
        Host {
            at: Instant::now(),
            cpus: CpuTimes::now(),
            waited_s: pressure().or_else(run_queue_wait),
        }
    }

    /// What the hypervisor has taken since.
    pub(crate) fn stolen(&self) -> Disturbance {
        Disturbance {
            stolen: CpuTimes::now().stolen_since(&self.cpus),
            ..Disturbance::default()
        }
    }

    /// What the hypervisor has taken since, and how long any thread of the host waited for a CPU:
    /// all of the time if that is unknown.
    pub(crate) fn disturbance(&self) -> Disturbance {
        let waited_s = Host::now().waited_s.zip(self.waited_s);
        let waited_s = waited_s.map(|(now, before)| now - before);
        let took_s = self.at.elapsed().as_secs_f64();
        Disturbance {
            generator_waited: waited_s.map_or(1.0, |it| it / took_s),
            ..self.stolen()
        }
    }
}

/// Time in which some thread waited for a CPU (PSI).
fn pressure() -> Option<f64> {
    let text = fs::read_to_string("/proc/pressure/cpu").ok()?;
    let some = text.lines().find(|line| line.starts_with("some "))?;
    let us: f64 = some.split("total=").nth(1)?.parse().ok()?;
    Some(us / 1e6)
}

/// Time in which threads waited for a CPU, the sum of all CPUs: the eighth of the numbers of each
/// (the kernel's sched-stats.rst).
fn run_queue_wait() -> Option<f64> {
    let text = fs::read_to_string("/proc/schedstat").ok()?;
    let cpus = text.lines().filter(|line| line.starts_with("cpu"));
    let waits = cpus.map(|line| line.split_whitespace().nth(8)?.parse::<f64>().ok());
    Some(waits.sum::<Option<f64>>()? / 1e9)
}

/// Tries a command that has no record of the host: `outcome` says what is wrong with it.
#[track_caller]
pub(crate) fn on_quiet_machine(quiet: Quiet, mut outcome: impl FnMut() -> Result<(), String>) {
    on_quiet_host(quiet, || {
        let host = Host::now();
        let outcome = outcome();
        Attempt {
            disturbance: host.disturbance(),
            outcome,
        }
    });
}

/// An error with `what` unless it is so.
pub(crate) fn wrong_unless(is_so: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    is_so.then_some(()).ok_or_else(what)
}
