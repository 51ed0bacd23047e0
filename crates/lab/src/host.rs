//! What the host is and what its network stack counted, from /proc and /sys.
//!
//! The readers never fail: a fact that cannot be read is empty or missing, because a run is
//! worth more than a complete description of its host. The parsers are pure.

use std::collections::BTreeMap;
use std::fs;

/// Settings that change what a load generator or a server on this host can do.
const SYSCTLS: [&str; 17] = [
    "fs.file-max",
    "fs.nr_open",
    "kernel.io_uring_disabled",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.netdev_max_backlog",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.udp_mem",
    "net.netfilter.nf_conntrack_count",
    "net.netfilter.nf_conntrack_max",
];

/// Rows of /proc/self/limits that matter, with the names they get.
const LIMITS: [(&str, &str); 3] = [
    ("Max open files", "open_files"),
    ("Max locked memory", "locked_memory"),
    ("Max processes", "processes"),
];

/// The machine a run was measured on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// The processor's marketing name; empty if unknown.
    pub cpu_model: String,
    /// Cores online, hardware threads counted singly.
    pub cores: u32,
    /// Kernel name and release, `Linux 6.1.0`.
    pub kernel: String,
    /// The distribution's own name for itself.
    pub os: String,
    /// Frequency governor of the first core; empty where the host has none (most virtual machines).
    pub governor: String,
    /// Physical memory.
    pub memory_octets: u64,
    /// The clock the kernel keeps time with, `tsc`.
    pub clock_source: String,
    /// What the firmware or the hypervisor calls the machine; empty on bare metal.
    pub hypervisor: String,
    /// Values as the kernel prints them, runs of blanks made one; absent where the kernel has none.
    pub sysctls: BTreeMap<String, String>,
    /// `NAME_soft` and `NAME_hard` in the kernel's units; absent when unlimited.
    pub limits: BTreeMap<String, u64>,
}

impl HostFacts {
    /// Reads the facts about this host as seen by this process.
    pub fn read() -> HostFacts {
        let cpuinfo = text_of("/proc/cpuinfo");
        HostFacts {
            cpu_model: parse_cpu_model(&cpuinfo),
            cores: parse_cpu_list(&text_of("/sys/devices/system/cpu/online")),
            kernel: kernel(),
            os: parse_os_release(&text_of("/etc/os-release")),
            governor: text_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            memory_octets: parse_memory_octets(&text_of("/proc/meminfo")),
            clock_source: text_of(
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
            ),
            hypervisor: hypervisor(&cpuinfo),
            sysctls: read_sysctls(),
            limits: parse_limits(&text_of("/proc/self/limits")),
        }
    }
}

/// Every counter of the kernel's IP stack in this network namespace, named `Group.Counter`.
///
/// Groups are those of /proc/net/snmp and /proc/net/netstat (`Udp.RcvbufErrors`,
/// `TcpExt.ListenDrops`) and, for IPv6, of /proc/net/snmp6 (`Udp6.RcvbufErrors`).
pub fn network_counters() -> BTreeMap<String, u64> {
    let mut counters = parse_counter_pairs(&text_of("/proc/net/snmp"));
    counters.append(&mut parse_counter_pairs(&text_of("/proc/net/netstat")));
    counters.append(&mut parse_snmp6(&text_of("/proc/net/snmp6")));
    counters
}

/// What was counted between two readings; counters that did not move are left out.
pub fn difference(
    before: &BTreeMap<String, u64>,
    after: &BTreeMap<String, u64>,
) -> BTreeMap<String, u64> {
    let moved = |(name, count): (&String, &u64)| {
        let earlier = before.get(name).copied().unwrap_or(0);
        // Gauges such as Tcp.CurrEstab go down too: those are not events, leave them out.
        let counted = count.checked_sub(earlier).filter(|counted| *counted > 0)?;
        Some((name.clone(), counted))
    };
    after.iter().filter_map(moved).collect()
}

/// The file's text without the blanks around it; empty if it cannot be read.
fn text_of(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| String::new(), |text| text.trim().to_owned())
}

fn kernel() -> String {
    let name = text_of("/proc/sys/kernel/ostype");
    format!("{name} {}", text_of("/proc/sys/kernel/osrelease"))
        .trim()
        .to_owned()
}

fn hypervisor(cpuinfo: &str) -> String {
    if !has_hypervisor_flag(cpuinfo) {
        return String::new();
    }
    let names = [
        "/sys/class/dmi/id/sys_vendor",
        "/sys/class/dmi/id/product_name",
    ]
    .map(text_of);
    let name = names.join(" ").trim().to_owned();
    if !name.is_empty() {
        return name;
    }
    let kind = text_of("/sys/hypervisor/type");
    if kind.is_empty() {
        "unknown".to_owned()
    } else {
        kind
    }
}

fn read_sysctls() -> BTreeMap<String, String> {
    let value_of = |name: &&str| {
        let value = text_of(&format!("/proc/sys/{}", name.replace('.', "/")));
        (!value.is_empty()).then(|| ((*name).to_owned(), one_blank(&value)))
    };
    SYSCTLS.iter().filter_map(value_of).collect()
}

fn one_blank(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first processor's name from /proc/cpuinfo.
fn parse_cpu_model(cpuinfo: &str) -> String {
    // x86 says "model name", most ARM kernels nothing better than "CPU part".
    let field = |wanted: &str| {
        let values = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        values
            .into_iter()
            .find(|(name, _)| name.trim() == wanted)
            .map(|(_, value)| one_blank(value))
    };
    field("model name")
        .or_else(|| field("Model"))
        .or_else(|| field("CPU part"))
        .unwrap_or_default()
}

fn has_hypervisor_flag(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|flags| {
        flags
            .split_ascii_whitespace()
            .any(|flag| flag == "hypervisor")
    })
}

/// How many cores a list such as `0-3,8` names; 0 if it cannot be read.
fn parse_cpu_list(list: &str) -> u32 {
    let count_of = |range: &str| -> Option<u32> {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        last.checked_sub(first).map(|cores| cores.saturating_add(1))
    };
    list.split(',')
        .filter_map(count_of)
        .fold(0, u32::saturating_add)
}

/// `PRETTY_NAME` from /etc/os-release, without its quotes.
fn parse_os_release(text: &str) -> String {
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or_default()
        .trim()
        .trim_matches(['"', '\''])
        .to_owned()
}

/// `MemTotal` from /proc/meminfo.
fn parse_memory_octets(text: &str) -> u64 {
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = total.and_then(|total| total.split_ascii_whitespace().next()?.parse().ok());
    kibibytes.map_or(0, |kibibytes: u64| kibibytes.saturating_mul(1024))
}

/// Soft and hard limits from /proc/PID/limits.
fn parse_limits(text: &str) -> BTreeMap<String, u64> {
    let mut limits = BTreeMap::new();
    for (title, name) in LIMITS {
        let Some(row) = text.lines().find_map(|line| line.strip_prefix(title)) else {
            continue;
        };
        for (kind, value) in ["soft", "hard"].iter().zip(row.split_ascii_whitespace()) {
            if let Ok(value) = value.parse() {
                limits.insert(format!("{name}_{kind}"), value);
            }
        }
    }
    limits
}

/// /proc/net/snmp and /proc/net/netstat: a line of names, then one of values, for each group.
fn parse_counter_pairs(text: &str) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.chunks_exact(2) {
        let (Some((group, names)), Some((_, values))) =
            (pair[0].split_once(':'), pair[1].split_once(':'))
        else {
            continue;
        };
        for (name, value) in names
            .split_ascii_whitespace()
            .zip(values.split_ascii_whitespace())
        {
            // Tcp.MaxConn is -1, which says that there is no limit: not a count.
            if let Ok(value) = value.parse() {
                counters.insert(format!("{group}.{name}"), value);
            }
        }
    }
    counters
}

/// /proc/net/snmp6: `Udp6RcvbufErrors 0`, one counter a line.
fn parse_snmp6(text: &str) -> BTreeMap<String, u64> {
    let counter_of = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (name, value) = (fields.next()?, fields.next()?.parse().ok()?);
        let group_octets = name.find('6')? + 1;
        let (group, counter) = name.split_at(group_octets);
        Some((format!("{group}.{counter}"), value))
    };
    text.lines().filter_map(counter_of).collect()
}

#[cfg(test)]
mod tests;
