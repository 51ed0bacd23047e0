//! The whole host: how busy each CPU is, and what the kernel could not take.

use std::collections::BTreeMap;
use std::time::Instant;

use measure::observation::ServerFacts;

use super::{Root, TICKS_PER_SECOND, row};
use crate::gap::Gap;
use crate::reading::{RawSample, Reading};
use crate::source::{Answer, Source};
use crate::stream::Allowance;

/// CPUs that have series of their own, at most; the others are in the sums.
const CPUS_MAX: usize = 64;

/// This host.
pub(crate) struct HostSource {
    root: Root,
    /// Busy time of each CPU at the scrape before, and when that was.
    before: Option<(Instant, BTreeMap<String, f64>)>,
}

impl HostSource {
    pub(crate) fn new(root: Root) -> HostSource {
        HostSource { root, before: None }
    }

    /// How much of its time the busiest CPU worked since the scrape before.
    fn busiest(&mut self, busy: BTreeMap<String, f64>) -> Option<f64> {
        let now = Instant::now();
        let (before_at, before) = self.before.replace((now, busy))?;
        let wall_s = now.duration_since(before_at).as_secs_f64();
        let (_, busy) = self.before.as_ref()?;
        let worked = busy
            .iter()
            .filter_map(|(cpu, now)| Some(now - before.get(cpu)?));
        let most = worked.reduce(f64::max)?;
        (wall_s > 0.0).then(|| (most / wall_s).clamp(0.0, 1.0))
    }
}

impl Source for HostSource {
    fn read(&mut self, _allowance: &Allowance) -> Result<Answer, Gap> {
        let stat = self.root.text("proc/stat");
        let stat = stat.ok_or_else(|| Gap::Gone("/proc/stat cannot be read".to_owned()))?;
        let mut reading = Reading::default();
        let busy = add_cpus(&stat, &mut reading);
        if let Some(share) = self.busiest(busy) {
            reading.samples.push(RawSample::plain("cpu.busiest", share));
        }
        let text = |path: &str| self.root.text(path).unwrap_or_default();
        add_softnet(&text("proc/thread-self/net/softnet_stat"), &mut reading);
        let memory = text("proc/meminfo");
        let snmp = text("proc/thread-self/net/snmp");
        let netstat = text("proc/thread-self/net/netstat");
        let snmp6 = text("proc/thread-self/net/snmp6");
        let kibibytes = |name: &str| Some(row(&memory, name)? * 1_024.0);
        for (name, value) in [
            ("memory.total", kibibytes("MemTotal")),
            ("memory.available", kibibytes("MemAvailable")),
            ("udp.receive_errors", counter(&snmp, "Udp", "RcvbufErrors")),
            ("udp6.receive_errors", row(&snmp6, "Udp6RcvbufErrors")),
            (
                "listen.overflows",
                counter(&netstat, "TcpExt", "ListenOverflows"),
            ),
            ("listen.drops", counter(&netstat, "TcpExt", "ListenDrops")),
            ("tcp.retransmissions", counter(&snmp, "Tcp", "RetransSegs")),
        ] {
            reading
                .samples
                .extend(value.map(|value| RawSample::plain(name, value)));
        }
        Ok(Answer { reading, octets: 0 })
    }

    fn facts(&mut self) -> ServerFacts {
        let text = |path: &str| self.root.text(path).map(|text| text.trim().to_owned());
        ServerFacts {
            product: text("proc/sys/kernel/ostype"),
            version: text("proc/sys/kernel/osrelease"),
            identity: text("proc/sys/kernel/hostname"),
            cpus: text("sys/devices/system/cpu/online"),
            ..ServerFacts::default()
        }
    }
}

/// The CPUs' times of /proc/stat, and how long each of them was busy.
pub(super) fn add_cpus(stat: &str, reading: &mut Reading) -> BTreeMap<String, f64> {
    let mut busy_of = BTreeMap::new();
    for line in stat.lines() {
        let mut cells = line.split_ascii_whitespace();
        let Some(cpu) = cells.next().and_then(|name| name.strip_prefix("cpu")) else {
            continue;
        };
        let ticks: Vec<f64> = cells.take(8).map_while(|cell| cell.parse().ok()).collect();
        let [user, nice, system, idle, waiting, irq, softirq, stolen] = ticks[..] else {
            continue;
        };
        let busy = user + nice + system + irq + softirq;
        let times = [
            ("user", user + nice),
            ("system", system + irq),
            ("softirq", softirq),
            ("idle", idle + waiting),
            ("steal", stolen),
            ("busy", busy),
        ];
        if !cpu.is_empty() {
            busy_of.insert(cpu.to_owned(), busy / TICKS_PER_SECOND);
        }
        for (name, ticks) in times {
            // Of each CPU what tells whether one of them is full.
            let (name, labels) = match cpu {
                "" => (format!("cpu.{name}"), Vec::new()),
                _ if !["busy", "softirq"].contains(&name) || busy_of.len() > CPUS_MAX => continue,
                cpu => (
                    format!("each_cpu.{name}"),
                    vec![("cpu".to_owned(), cpu.to_owned())],
                ),
            };
            reading.samples.push(RawSample {
                name,
                labels,
                value: ticks / TICKS_PER_SECOND,
                taken_s: None,
            });
        }
    }
    busy_of
}

/// /proc/net/softnet_stat: a row for each CPU, in hexadecimal; packets, dropped, time squeezed.
pub(super) fn add_softnet(text: &str, reading: &mut Reading) {
    if text.is_empty() {
        return;
    }
    for (at, name) in [(0, "packets"), (1, "dropped"), (2, "squeezed")] {
        let sum = hexadecimal_column(text, at) as f64;
        reading
            .samples
            .push(RawSample::plain(format!("softnet.{name}"), sum));
    }
}

/// The sum of a column in hexadecimal, a row for each CPU.
pub fn hexadecimal_column(text: &str, at: usize) -> u64 {
    let rows = text.lines();
    let cells = rows.filter_map(|row| row.split_ascii_whitespace().nth(at));
    let numbers = cells.filter_map(|cell| u64::from_str_radix(cell, 16).ok());
    numbers.sum()
}

/// A counter of /proc/net/snmp or netstat: a line of names, then one of values, for each group.
pub(super) fn counter(text: &str, group: &str, name: &str) -> Option<f64> {
    let mut lines = text.lines().filter(|line| {
        let rest = line.strip_prefix(group);
        rest.is_some_and(|rest| rest.starts_with(':'))
    });
    let names = lines.next()?.split_ascii_whitespace();
    let at = names.clone().position(|known| known == name)?;
    lines.next()?.split_ascii_whitespace().nth(at)?.parse().ok()
}
