//! What the kernel counts: of its IP stack, its packet backlog, conntrack, the CPUs' time, and the
//! time in which the control group might not run.

use std::collections::BTreeMap;

use observe::proc::hexadecimal_column;

use super::Host;

impl Host {
    /// The kernel's counters that tell what stood in the way of load, named `Group.Counter`.
    ///
    /// * Those of /proc/net/snmp and /proc/net/netstat (`Udp.RcvbufErrors`, `TcpExt.ListenDrops`)
    ///   and, for IPv6, of /proc/net/snmp6 (`Udp6.RcvbufErrors`): of the calling
    ///   thread's network namespace.
    /// * `Softnet.Dropped`, `Softnet.TimeSqueezed` of /proc/net/softnet_stat.
    /// * `Conntrack.Dropped`, `Conntrack.EarlyDropped`, `Conntrack.InsertFailed`.
    /// * `Cpu.All`, `Cpu.Idle`, `Cpu.Steal` of /proc/stat, in ticks of all CPUs.
    /// * `Cgroup.Periods`, `Cgroup.Throttled` (periods) and `Cgroup.ThrottledMicroseconds` of the
    ///   control group.
    pub fn counters(&self) -> BTreeMap<String, u64> {
        let text = |path: &str| self.text(path).unwrap_or_default();
        let mut counters = parse_counter_pairs(&text("proc/thread-self/net/snmp"));
        counters.append(&mut parse_counter_pairs(&text(
            "proc/thread-self/net/netstat",
        )));
        counters.append(&mut parse_snmp6(&text("proc/thread-self/net/snmp6")));
        let named = parse_softnet(&text("proc/thread-self/net/softnet_stat"))
            .into_iter()
            .chain(parse_conntrack(&text(
                "proc/thread-self/net/stat/nf_conntrack",
            )))
            .chain(parse_cpu_time(&text("proc/stat")))
            .chain(self.throttled());
        counters.extend(named.map(|(name, count)| (name.to_owned(), count)));
        counters
    }
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

/// /proc/net/snmp and /proc/net/netstat: a line of names, then one of values, for each group.
pub(super) fn parse_counter_pairs(text: &str) -> BTreeMap<String, u64> {
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
pub(super) fn parse_snmp6(text: &str) -> BTreeMap<String, u64> {
    let counter_of = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let (name, value) = (fields.next()?, fields.next()?.parse().ok()?);
        let group_octets = name.find('6')? + 1;
        let (group, counter) = name.split_at(group_octets);
        Some((format!("{group}.{counter}"), value))
    };
    text.lines().filter_map(counter_of).collect()
}

/// /proc/net/softnet_stat: a row for each CPU, in hexadecimal; packets, dropped, time squeezed.
pub(super) fn parse_softnet(text: &str) -> Vec<(&'static str, u64)> {
    match text.is_empty() {
        true => Vec::new(),
        false => vec![
            ("Softnet.Dropped", hexadecimal_column(text, 1)),
            ("Softnet.TimeSqueezed", hexadecimal_column(text, 2)),
        ],
    }
}

/// /proc/net/stat/nf_conntrack: a row of names, then one for each CPU, in hexadecimal.
pub(super) fn parse_conntrack(text: &str) -> Vec<(&'static str, u64)> {
    let (names, rows) = text.split_once('\n').unwrap_or((text, ""));
    let place = |name: &str| {
        let mut names = names.split_ascii_whitespace();
        names.position(|known| known == name)
    };
    let known = [
        ("Conntrack.Dropped", "drop"),
        ("Conntrack.EarlyDropped", "early_drop"),
        ("Conntrack.InsertFailed", "insert_failed"),
    ];
    let found = known
        .into_iter()
        .filter_map(|(ours, theirs)| Some((ours, hexadecimal_column(rows, place(theirs)?))));
    found.collect()
}

/// The first row of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. What guests
/// used is in user and nice already.
pub(super) fn parse_cpu_time(text: &str) -> Vec<(&'static str, u64)> {
    let row = text.lines().find_map(|line| line.strip_prefix("cpu "));
    let cells = row.unwrap_or_default().split_ascii_whitespace();
    let ticks: Vec<u64> = cells.take(8).map_while(|cell| cell.parse().ok()).collect();
    match ticks.as_slice() {
        [_, _, _, idle, waiting, _, _, stolen] => vec![
            ("Cpu.All", ticks.iter().sum()),
            ("Cpu.Idle", idle + waiting),
            ("Cpu.Steal", *stolen),
        ],
        _ => Vec::new(),
    }
}
