//! CPUs: their speed, who else has them, and the clock.

use super::{Cure, Diagnosis, HostReading, Place, State};
use crate::notation::{count, counted, decimal, percent};

/// Shares of the CPUs' time that the hypervisor may take.
pub(crate) const STEAL_WARNING: f64 = 0.01;
/// From this share on, no figure is worth much.
pub(crate) const STEAL_PROBLEM: f64 = 0.05;
/// Share of the CPUs' time that others may use before it matters.
const OTHERS_WARNING: f64 = 0.1;
/// From this share on, a run measures its neighbours.
const OTHERS_PROBLEM: f64 = 0.5;

/// Frequency scaling.
pub(super) fn governor(host: &HostReading) -> Diagnosis {
    const MATTERS: &str = "a power-saving governor lowers the clock between queries: the first \
        ones after a pause are slow, and so are light loads";
    let mut governors = host.governors.clone();
    if governors.is_empty() {
        governors.extend(host.facts.governor.clone().map(|name| (name, 1)));
    }
    if governors.is_empty() {
        let seen = match host.facts.hypervisor {
            Some(_) => "none: the hypervisor decides on the frequency",
            None => "none: the frequency is not scaled, or not shown",
        };
        return Diagnosis::new("CPU governor", State::Ok, seen, MATTERS);
    }
    let each = governors
        .iter()
        .map(|(name, cpus)| format!("{name} on {}", counted(*cpus, "CPU")));
    let seen = each.collect::<Vec<_>>().join(", ");
    if governors.keys().all(|name| name == "performance") {
        return Diagnosis::new("CPU governor", State::Ok, seen, MATTERS);
    }
    let cure = Cure::new(Place::Root, "cpupower frequency-set -g performance");
    Diagnosis::new("CPU governor", State::Warning, seen, MATTERS).cure(cure)
}

/// SMT siblings among the CPUs.
pub(super) fn second_threads(host: &HostReading) -> Diagnosis {
    const MATTERS: &str = "two threads of one core are not two cores: workers, or worker and \
                           server, that share one slow each other down";
    let cpus = host.cores();
    if host.second_threads.is_empty() {
        let mut seen = format!("{}, each a core of its own", counted(cpus, "CPU"));
        if host.facts.hypervisor.is_some() {
            seen.push_str(" as far as the hypervisor shows");
        }
        return Diagnosis::new("SMT", State::Ok, seen, MATTERS);
    }
    let second = &host.second_threads;
    let first = host.cpus_allowed.iter().filter(|cpu| !second.contains(cpu));
    let first: Vec<String> = first.map(u32::to_string).collect();
    let seen = format!(
        "{} of {} are second threads of a core",
        count(second.len() as u64),
        counted(cpus, "CPU")
    );
    Diagnosis::new("SMT", State::Ok, seen, MATTERS)
        .cure(Cure::throng(format!("--cpus {}", first.join(","))))
}

/// The CPUs and the time on them that the control group allows.
pub(super) fn quota(host: &HostReading) -> Diagnosis {
    const MATTERS: &str = "a container that has used up its quota is stopped for the rest of each \
        100 ms, which shows as latency of the target";
    let cpus = host.cores();
    let mut seen = match host.cores_online {
        Some(online) if online > cpus => format!("{} of {}", count(cpus), counted(online, "CPU")),
        _ => counted(cpus, "CPU"),
    };
    let throttled = host.counter("Cgroup.Throttled");
    let Some(quota) = host.quota_cpus else {
        seen.push_str(", no quota");
        return Diagnosis::new("CPU quota", State::Ok, seen, MATTERS);
    };
    seen.push_str(&format!(", quota of {} CPUs", decimal(quota, 2)));
    if throttled > 0 {
        let times = count(throttled);
        seen.push_str(&format!("; throttled in {times} periods so far"));
    }
    let state = match (throttled > 0, quota < cpus as f64) {
        (true, _) => State::Problem,
        (false, true) => State::Warning,
        (false, false) => State::Ok,
    };
    let diagnosis = Diagnosis::new("CPU quota", state, seen, MATTERS);
    if state == State::Ok {
        return diagnosis;
    }
    let workers = (quota.floor() as u64).max(1);
    diagnosis
        .cure(Cure::throng(format!("--workers {workers}")))
        .cure(Cure::words(
            "in Kubernetes: set limits.cpu and requests.cpu to the same whole number under the \
             static CPU manager policy, or leave out limits.cpu",
        ))
}

/// Stolen time: CPU time that the hypervisor gave to others.
pub(super) fn steal(host: &HostReading) -> Diagnosis {
    const MATTERS: &str = "while a virtual CPU is taken away, every query on it stalls; its time \
        is missing from the result";
    let Some((share, is_now)) = host.cpu_share("Cpu.Steal") else {
        let seen = "/proc/stat cannot be read";
        return Diagnosis::new("CPU steal", State::Unknown, seen, MATTERS);
    };
    let seen = format!("{} of the time {}", percent(share), when(is_now));
    let state = match share {
        share if share >= STEAL_PROBLEM => State::Problem,
        share if share >= STEAL_WARNING => State::Warning,
        _ => State::Ok,
    };
    let diagnosis = Diagnosis::new("CPU steal", state, seen, MATTERS);
    diagnosis.cures((state != State::Ok).then(Cure::dedicated_cpus))
}

fn when(is_now: bool) -> &'static str {
    match is_now {
        true => "just now",
        false => "since the host started",
    }
}

/// Time that other processes use.
pub(super) fn other_load(host: &HostReading) -> Diagnosis {
    const MATTERS: &str = "other processes here take CPU time from generator and server, at \
        unpredictable moments";
    let idle = host.cpu_share("Cpu.Idle").filter(|(_, is_now)| *is_now);
    let Some((idle, _)) = idle else {
        let seen = "it was not measured";
        return Diagnosis::new("other load", State::Unknown, seen, MATTERS);
    };
    let busy = (1.0 - idle).max(0.0);
    let seen = format!("{} of the CPUs' time just now", percent(busy));
    let state = match busy {
        busy if busy >= OTHERS_PROBLEM => State::Problem,
        busy if busy >= OTHERS_WARNING => State::Warning,
        _ => State::Ok,
    };
    let diagnosis = Diagnosis::new("other load", state, seen, MATTERS);
    diagnosis.cures((state != State::Ok).then(Cure::busiest_processes))
}

/// Clock sources that are read without a system call.
const FAST_CLOCKS: [&str; 5] = [
    "tsc",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "riscv_clocksource",
];

/// The kernel's clock source.
pub(super) fn clock(host: &HostReading) -> Diagnosis {
    const MATTERS: &str = "every query is timed several times; a slow clock costs a system call or \
                           a device access each time";
    let Some(name) = host.facts.clock_source.as_deref() else {
        let seen = "it cannot be read";
        return Diagnosis::new("clock source", State::Unknown, seen, MATTERS);
    };
    if FAST_CLOCKS.contains(&name) {
        return Diagnosis::new("clock source", State::Ok, name, MATTERS);
    }
    let better = FAST_CLOCKS
        .iter()
        .find(|fast| host.clock_sources.iter().any(|it| it == *fast));
    let cure = match better {
        Some(better) => Cure::new(
            Place::Root,
            format!(
                "echo {better} > \
                 /sys/devices/system/clocksource/clocksource0/current_clocksource"
            ),
        ),
        None => Cure::words("measure on another host: this one offers no fast clock"),
    };
    Diagnosis::new("clock source", State::Warning, name, MATTERS).cure(cure)
}
