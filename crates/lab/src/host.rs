//! What the host is and what its network stack counted, from /proc and /sys.
//!
//! The readers never fail: a fact that cannot be read is empty or missing, because a run is
//! worth more than a complete description of its host. The parsers are pure.

use std::collections::BTreeMap;
use std::fs;

use measure::HostFacts;

/// Settings that change what a load generator or a server on this host can do. None that moves
/// by itself: merged records list equal hosts once.
const SYSCTLS: [&str; 16] = [
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
    "net.netfilter.nf_conntrack_max",
];

/// Rows of /proc/self/limits that matter, with the names they get.
const LIMITS: [(&str, &str); 3] = [
    ("Max open files", "open_files"),
    ("Max locked memory", "locked_memory"),
    ("Max processes", "processes"),
];

/// Reads the facts about this host as this process sees it.
///
/// Limits are soft limits, with `_hard` behind the name the hard ones, as the kernel prints them
/// (`unlimited` included). Runs of blanks within a sysctl's value become one.
pub fn facts() -> HostFacts {
    let cpuinfo = text_of("/proc/cpuinfo").unwrap_or_default();
    HostFacts {
        cpu_model: parse_cpu_model(&cpuinfo),
        cores: text_of("/proc/self/status").and_then(|status| parse_cpus_allowed(&status)),
        kernel: text_of("/proc/sys/kernel/osrelease"),
        os: text_of("/etc/os-release").and_then(|text| parse_os_release(&text)),
        governor: text_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        memory_octets: text_of("/proc/meminfo").and_then(|text| parse_memory_octets(&text)),
        sysctls: read_sysctls(),
        limits: parse_limits(&text_of("/proc/self/limits").unwrap_or_default()),
        clock_source: text_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        hypervisor: hypervisor(&cpuinfo),
    }
}

/// Every counter of the kernel's IP stack in this network namespace, named `Group.Counter`.
///
/// Groups are those of /proc/net/snmp and /proc/net/netstat (`Udp.RcvbufErrors`,
/// `TcpExt.ListenDrops`) and, for IPv6, of /proc/net/snmp6 (`Udp6.RcvbufErrors`).
pub fn network_counters() -> BTreeMap<String, u64> {
    let mut counters = parse_counter_pairs(&text_of("/proc/net/snmp").unwrap_or_default());
    counters.append(&mut parse_counter_pairs(
        &text_of("/proc/net/netstat").unwrap_or_default(),
    ));
    counters.append(&mut parse_snmp6(
        &text_of("/proc/net/snmp6").unwrap_or_default(),
    ));
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

/// The file's text without the blanks around it; none if it cannot be read or is empty.
fn text_of(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn hypervisor(cpuinfo: &str) -> Option<String> {
    if !has_hypervisor_flag(cpuinfo) {
        return None;
    }
    let firmware = [
        "/sys/class/dmi/id/sys_vendor",
        "/sys/class/dmi/id/product_name",
    ];
    let names: Vec<String> = firmware.into_iter().filter_map(text_of).collect();
    let named = (!names.is_empty()).then(|| names.join(" "));
    named
        .or_else(|| text_of("/sys/hypervisor/type"))
        .or_else(|| Some("unknown".to_owned()))
}

fn read_sysctls() -> BTreeMap<String, String> {
    let value_of = |name: &&str| {
        let value = text_of(&format!("/proc/sys/{}", name.replace('.', "/")))?;
        Some(((*name).to_owned(), one_blank(&value)))
    };
    SYSCTLS.iter().filter_map(value_of).collect()
}

fn one_blank(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first processor's name from /proc/cpuinfo.
fn parse_cpu_model(cpuinfo: &str) -> Option<String> {
    // x86 says "model name", most ARM kernels nothing better than "CPU part".
    let field = |wanted: &&str| {
        let values = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        let mut values = values.filter(|(name, _)| name.trim() == *wanted);
        values.next().map(|(_, value)| one_blank(value))
    };
    ["model name", "Model", "CPU part"].iter().find_map(field)
}

fn has_hypervisor_flag(cpuinfo: &str) -> bool {
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|flags| {
        flags
            .split_ascii_whitespace()
            .any(|flag| flag == "hypervisor")
    })
}

/// How many cores /proc/PID/status allows, from a list such as `0-3,8`.
fn parse_cpus_allowed(status: &str) -> Option<u64> {
    let list = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let count_of = |range: &str| -> Option<u64> {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    list.split(',')
        .map(count_of)
        .try_fold(0, |sum: u64, cores| sum.checked_add(cores?))
}

/// `PRETTY_NAME` from /etc/os-release, without its quotes.
fn parse_os_release(text: &str) -> Option<String> {
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim().trim_matches(['"', '\'']).to_owned())
}

/// `MemTotal` from /proc/meminfo.
fn parse_memory_octets(text: &str) -> Option<u64> {
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = total.split_ascii_whitespace().next()?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Soft and hard limits from /proc/PID/limits.
fn parse_limits(text: &str) -> BTreeMap<String, String> {
    let mut limits = BTreeMap::new();
    for (title, name) in LIMITS {
        let Some(row) = text.lines().find_map(|line| line.strip_prefix(title)) else {
            continue;
        };
        for (suffix, value) in ["", "_hard"].iter().zip(row.split_ascii_whitespace()) {
            limits.insert(format!("{name}{suffix}"), value.to_owned());
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
