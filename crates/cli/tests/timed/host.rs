//! How much the host disturbed what has no record of it: from proc(5), for the whole host.

use std::fs;
use std::time::Instant;

use testing::quiet::{Disturbance, Quiet};
use testing::timed::{Attempt, on_quiet_host};

/// The counters of the host at an instant.
pub(crate) struct Host {
    at: Instant,
    stolen_ticks: f64,
    all_ticks: f64,
    /// Microseconds in which some thread was ready to run and had no CPU; 0 where the kernel does
    /// not count it.
    waited_us: f64,
}

impl Host {
    pub(crate) fn now() -> Host {
        let stat = fs::read_to_string("/proc/stat").unwrap();
        let ticks = stat.lines().next().unwrap().split_whitespace().skip(1);
        let ticks: Vec<f64> = ticks.take(8).map(|it| it.parse().unwrap()).collect();
        let pressure = fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
        let total = pressure.lines().find(|line| line.starts_with("some "));
        let total = total.and_then(|line| line.split("total=").nth(1));
        Host {
            at: Instant::now(),
            stolen_ticks: ticks[7],
            all_ticks: ticks.iter().sum(),
            waited_us: total.map_or(0.0, |us| us.parse().unwrap()),
        }
    }

    /// What the hypervisor has taken since.
    pub(crate) fn stolen(&self) -> Disturbance {
        let now = Host::now();
        let all = (now.all_ticks - self.all_ticks).max(1.0);
        Disturbance {
            stolen: (now.stolen_ticks - self.stolen_ticks) / all,
            ..Disturbance::default()
        }
    }

    /// What the hypervisor has taken since, and how long any thread of the host waited for a CPU.
    pub(crate) fn disturbance(&self) -> Disturbance {
        let waited_us = Host::now().waited_us - self.waited_us;
        Disturbance {
            generator_waited: waited_us / 1e6 / self.at.elapsed().as_secs_f64(),
            ..self.stolen()
        }
    }
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
