//! The readings of a host, and its planned load.

use std::collections::BTreeMap;

use crate::facts::HostFacts;
use crate::interval::per;
use crate::notation::counted;

/// The planned load; limits are judged against it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aim {
    /// Clients at once; none if that is not said.
    pub clients: Option<u64>,
    /// The host is to serve them rather than to simulate them.
    pub is_server: bool,
}

/// The readings of a host. Unreadable values are none or missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostReading {
    /// The same as in the record of a run.
    pub facts: HostFacts,
    /// The kernel's counters since it started, named as in the record of a run.
    pub counters: BTreeMap<String, u64>,
    /// By how much they grew while they were watched; empty if they were not.
    pub growth: BTreeMap<String, u64>,
    /// Frequency governors, and how many CPUs have them.
    pub governors: BTreeMap<String, u64>,
    /// CPUs that this process may use.
    pub cpus_allowed: Vec<u32>,
    /// CPUs of those that share a core with an earlier one.
    pub second_threads: Vec<u32>,
    /// CPUs of the host that are on.
    pub cores_online: Option<u64>,
    /// CPUs' worth of time that the process's control group may use; none without a quota.
    pub quota_cpus: Option<f64>,
    /// Memory that is free for use, in bytes.
    pub memory_available_octets: Option<u64>,
    /// Clock sources that the kernel offers.
    pub clock_sources: Vec<String>,
    /// Flows that conntrack follows now.
    pub conntrack_entries: Option<u64>,
    /// The result of opening an io_uring; none if it was not tried.
    pub io_uring: Option<Result<(), String>>,
    /// The network interfaces to be judged.
    pub interfaces: Vec<Interface>,
}

/// A network interface, from /sys/class/net.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its driver; none of a virtual one.
    pub driver: Option<String>,
    /// Whether it is `up`, `down` or `unknown`.
    pub state: Option<String>,
    /// Mbit/s; none if it does not report it.
    pub speed_mbit_s: Option<u64>,
    /// Its largest packet in bytes.
    pub mtu_octets: Option<u64>,
    /// Receive queues.
    pub receive_queues: u64,
    /// Receive queues whose packets the kernel spreads over CPUs (RPS).
    pub receive_queues_spread: u64,
    /// Transmit queues.
    pub transmit_queues: u64,
    /// Its counters since it was created (`rx_missed_errors`, ...).
    pub counters: BTreeMap<String, u64>,
}

impl HostReading {
    /// A kernel parameter.
    pub(super) fn sysctl(&self, name: &str) -> Option<&str> {
        self.facts.sysctls.get(name).map(String::as_str)
    }

    /// A kernel parameter that is a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.sysctl(name)?.parse().ok()
    }

    /// A counter of the kernel since it started; 0 if it is unknown.
    pub(super) fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// The kernel's counters of losses in this network namespace.
    pub(super) fn losses(&self, names: &[&str]) -> Losses {
        let sum = |counters: &BTreeMap<String, u64>| {
            let each = names.iter().filter_map(|name| counters.get(*name));
            each.sum()
        };
        Losses {
            now: sum(&self.growth),
            ever: sum(&self.counters),
        }
    }

    /// Share of the CPUs' time, 0 to 1, that went to what the counter `name` counts, and whether it
    /// was watched just now rather than since the kernel started; none if the time is unknown.
    pub(super) fn cpu_share(&self, name: &str) -> Option<(f64, bool)> {
        let share = |counters: &BTreeMap<String, u64>| {
            let all = *counters.get("Cpu.All").filter(|all| **all > 0)?;
            Some(per(
                counters.get(name).copied().unwrap_or(0) as f64,
                all as f64,
            ))
        };
        let now = share(&self.growth).map(|share| (share, true));
        now.or_else(|| share(&self.counters).map(|share| (share, false)))
    }

    /// CPUs that this process may use.
    pub(super) fn cores(&self) -> u64 {
        self.facts.cores.unwrap_or(1)
    }
}

/// Losses while the host was observed, and since it started. The latter may be old and of any
/// program: they are shown, but not judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    now: u64,
    ever: u64,
}

impl Losses {
    /// True if something was lost while the host was watched.
    pub(super) fn go_on(self) -> bool {
        self.now > 0
    }

    /// True if something was lost since the host started.
    pub(super) fn are_there(self) -> bool {
        self.now > 0 || self.ever > 0
    }

    /// `; 3 datagrams dropped just now`; empty if there are none.
    pub(super) fn words(self, noun: &str, verb: &str) -> String {
        let lost = |number| format!("; {}{verb}", counted(number, noun));
        match (self.now, self.ever) {
            (0, 0) => String::new(),
            (0, ever) => format!("{} since the host started, by all processes", lost(ever)),
            (now, _) => format!("{} just now", lost(now)),
        }
    }
}
