//! What the host is and what its kernel counted, from /proc and /sys.
//!
//! The readers never fail: a fact that cannot be read is empty or missing, because a run is
//! worth more than a complete description of its host. The parsers are pure. [`Host`] is this host,
//! or a folder that stands for another one.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use measure::HostFacts;
use measure::facts::HostIdentity;

mod counters;
mod interfaces;
mod processors;
mod reading;
mod usage;

pub use counters::difference;
pub use interfaces::UnknownInterface;
pub(crate) use reading::pause;
pub use usage::CpuReading;
pub(crate) use usage::{HostWatch, is_of_this_host};

/// Settings that change what a load generator or a server on this host can do. None that moves
/// by itself: merged records list equal hosts once.
const SYSCTLS: [&str; 18] = [
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
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
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

/// A host: this one, or a folder that stands for the root of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    root: PathBuf,
}

/// The facts about this host, as in the record of a run.
pub fn facts() -> HostFacts {
    Host::this().facts()
}

/// The counters of this host, as in the record of a run.
pub fn counters() -> BTreeMap<String, u64> {
    Host::this().counters()
}

impl Host {
    /// This host.
    pub fn this() -> Host {
        Host::at("/")
    }

    /// The host whose `proc`, `sys` and `etc` are in the folder `root`.
    pub fn at(root: impl Into<PathBuf>) -> Host {
        Host { root: root.into() }
    }

    /// True unless a folder stands for another host.
    fn is_this(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Reads the facts about the host as this process sees it.
    ///
    /// Limits are soft limits, with `_hard` behind the name the hard ones, as the kernel prints
    /// them (`unlimited` included). Runs of blanks within a sysctl's value become one.
    pub fn facts(&self) -> HostFacts {
        let cpuinfo = self.text("proc/cpuinfo").unwrap_or_default();
        let limits = self.text("proc/self/limits").unwrap_or_default();
        let memory = self.text("proc/meminfo").unwrap_or_default();
        let os = self.text("etc/os-release");
        HostFacts {
            cpu_model: parse_cpu_model(&cpuinfo),
            cores: (self.text("proc/self/status"))
                .and_then(|status| Some(processors::parse_allowed(&status)?.len() as u64)),
            kernel: self.text("proc/sys/kernel/osrelease"),
            os: os.and_then(|text| parse_os_release(&text)),
            governor: self.text("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            memory_octets: parse_memory_octets(&memory, "MemTotal:"),
            sysctls: self.sysctls(),
            limits: parse_limits(&limits),
            clock_source: self
                .text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
            hypervisor: self.hypervisor(&cpuinfo),
            identity: self.identity(),
        }
    }

    /// What tells it from its equals.
    fn identity(&self) -> Option<HostIdentity> {
        let namespace = fs::metadata(self.root.join("proc/self/ns/net"));
        Some(HostIdentity {
            boot_id: self.text("proc/sys/kernel/random/boot_id")?,
            node: self.text("proc/sys/kernel/hostname")?,
            network_namespace: namespace.ok().map(|it| it.ino()),
            control_group: self.control_group(),
        })
    }

    /// Another name each time, that no run has had before.
    pub(crate) fn random_id(&self) -> Option<String> {
        self.text("proc/sys/kernel/random/uuid")
    }

    /// The file's text without the blanks around it; none if it cannot be read or is empty.
    fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path))
            .ok()?
            .trim()
            .to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// A file that holds one number.
    fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// The names in a folder, in order; none if there is no such folder.
    fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(path)).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn hypervisor(&self, cpuinfo: &str) -> Option<String> {
        if !has_hypervisor_flag(cpuinfo) {
            return None;
        }
        let firmware = [
            "sys/class/dmi/id/sys_vendor",
            "sys/class/dmi/id/product_name",
        ];
        let names: Vec<String> = firmware
            .into_iter()
            .filter_map(|it| self.text(it))
            .collect();
        let named = (!names.is_empty()).then(|| names.join(" "));
        named
            .or_else(|| self.text("sys/hypervisor/type"))
            .or_else(|| Some("unknown".to_owned()))
    }

    fn sysctls(&self) -> BTreeMap<String, String> {
        let value_of = |name: &&str| {
            let value = self.text(&format!("proc/sys/{}", name.replace('.', "/")))?;
            Some(((*name).to_owned(), one_blank(&value)))
        };
        SYSCTLS.iter().filter_map(value_of).collect()
    }
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

/// `PRETTY_NAME` from /etc/os-release, without its quotes.
fn parse_os_release(text: &str) -> Option<String> {
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim().trim_matches(['"', '\'']).to_owned())
}

/// A row of /proc/meminfo, such as `MemTotal:`.
fn parse_memory_octets(text: &str, row: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(row))?;
    let kibibytes: u64 = value.split_ascii_whitespace().next()?.parse().ok()?;
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

#[cfg(test)]
mod tests;
