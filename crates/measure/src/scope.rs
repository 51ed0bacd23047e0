//! Whose events a counter of the kernel counts, so that each is counted once when the records of
//! several agents are merged: agents on one machine have seen the same CPUs, those in one network
//! namespace the same sockets.

use std::collections::BTreeMap;

use crate::facts::HostFacts;

/// What a kernel counts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CounterScope {
    /// All CPUs and interfaces of a machine.
    Machine,
    /// All sockets of a network namespace.
    NetworkNamespace,
    /// The processes under one CPU quota.
    ControlGroup,
}

/// Scopes of counters by their group, the part of the name before the dot. All other groups are of
/// /proc/net: the kernel keeps those for each network namespace.
const SCOPES: [(&str, CounterScope); 3] = [
    ("Cpu", CounterScope::Machine),
    ("Softnet", CounterScope::Machine),
    ("Cgroup", CounterScope::ControlGroup),
];

/// What counters of several hosts have in common if they count the same events.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Identity<'a> {
    /// Of that kernel, and within it.
    Known(&'a str, u64),
    /// Not known, so it is no other's than of the host at that position.
    Host(usize),
}

impl CounterScope {
    /// The scope of the counter with that name, such as `Udp.RcvbufErrors`.
    pub fn of(counter: &str) -> CounterScope {
        let group = counter.split('.').next().unwrap_or_default();
        let row = SCOPES.iter().find(|(name, _)| *name == group);
        row.map_or(CounterScope::NetworkNamespace, |(_, scope)| *scope)
    }

    /// That of the host at `position`. The node's name is no part of it: containers of one machine
    /// have names of their own.
    fn identity(self, host: &HostFacts, position: usize) -> Identity<'_> {
        let known = host.identity.as_ref().and_then(|it| {
            let within = match self {
                CounterScope::Machine => Some(0),
                CounterScope::NetworkNamespace => it.network_namespace,
                CounterScope::ControlGroup => it.control_group,
            };
            Some(Identity::Known(&it.boot_id, within?))
        });
        known.unwrap_or(Identity::Host(position))
    }

    /// True if a counter of this scope is the same on both hosts.
    pub(crate) fn is_shared(self, host: &HostFacts, other: &HostFacts) -> bool {
        match (&host.identity, &other.identity) {
            (Some(_), Some(_)) => self.identity(host, 0) == self.identity(other, 1),
            _ => host.is(other),
        }
    }
}

/// What the kernels counted together, each counter once in its scope: of agents that have seen the
/// same events the larger count, for one of them has seen more of the run. `each` is in the order
/// of `hosts`.
pub(crate) fn count_once(
    hosts: &[HostFacts],
    each: &[BTreeMap<String, u64>],
) -> BTreeMap<String, u64> {
    let mut by_scope: BTreeMap<(&str, Identity<'_>), u64> = BTreeMap::new();
    for (position, (host, kernel)) in hosts.iter().zip(each).enumerate() {
        for (name, count) in kernel {
            let identity = CounterScope::of(name).identity(host, position);
            let most = by_scope.entry((name, identity)).or_default();
            *most = (*most).max(*count);
        }
    }
    let mut all = BTreeMap::new();
    for ((name, _), count) in by_scope {
        let sum: &mut u64 = all.entry(name.to_owned()).or_default();
        *sum = sum.saturating_add(count);
    }
    all
}

/// CPUs that all hosts have for a run, those of a machine once: the most that one of its agents
/// may use.
pub(crate) fn count_cores(hosts: &[HostFacts]) -> u64 {
    let mut by_machine: BTreeMap<Identity<'_>, u64> = BTreeMap::new();
    for (position, host) in hosts.iter().enumerate() {
        let identity = CounterScope::Machine.identity(host, position);
        let most = by_machine.entry(identity).or_default();
        *most = (*most).max(host.cores.unwrap_or(0));
    }
    by_machine.into_values().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::HostIdentity;

    fn host(boot_id: &str, network_namespace: u64, control_group: u64) -> HostFacts {
        HostFacts {
            identity: Some(HostIdentity {
                boot_id: boot_id.into(),
                node: format!("pod-{network_namespace}-{control_group}"),
                network_namespace: Some(network_namespace),
                control_group: Some(control_group),
            }),
            ..HostFacts::default()
        }
    }

    /// 600 ticks of the machine, 50 datagrams dropped in the namespace, and 7 periods throttled.
    fn kernel() -> BTreeMap<String, u64> {
        let counters = [
            ("Cpu.All", 600),
            ("Softnet.Dropped", 3),
            ("Udp.RcvbufErrors", 50),
            ("Conntrack.Dropped", 2),
            ("Cgroup.Throttled", 7),
        ];
        counters
            .map(|(name, count)| (name.to_owned(), count))
            .into()
    }

    /// Of agents on these hosts: ticks, packets, datagrams, flows and periods.
    fn counted(hosts: &[HostFacts]) -> Vec<u64> {
        let all = count_once(hosts, &vec![kernel(); hosts.len()]);
        let names = kernel().into_keys();
        names.map(|name| all[&name]).collect()
    }

    #[test]
    fn each_counter_counts_once_in_its_scope() {
        let names: Vec<String> = kernel().into_keys().collect();
        let order = [
            "Cgroup.Throttled",
            "Conntrack.Dropped",
            "Cpu.All",
            "Softnet.Dropped",
            "Udp.RcvbufErrors",
        ];
        assert_eq!(names, order);
        let one = host("a", 1, 1);
        assert_eq!(counted(std::slice::from_ref(&one)), [7, 2, 600, 3, 50]);
        // Two pods on a node: namespaces and control groups of their own.
        let pods = [one.clone(), host("a", 2, 2)];
        assert_eq!(counted(&pods), [14, 4, 600, 3, 100]);
        // Containers of one pod share its network namespace.
        let containers = [one.clone(), host("a", 1, 2)];
        assert_eq!(counted(&containers), [14, 2, 600, 3, 50]);
        // Two namespaces made by hand, under one quota.
        let namespaces = [one.clone(), host("a", 2, 1)];
        assert_eq!(counted(&namespaces), [7, 4, 600, 3, 100]);
        // Numbers of one machine mean nothing on another.
        let machines = [one.clone(), host("b", 1, 1)];
        assert_eq!(counted(&machines), [14, 4, 1_200, 6, 100]);
        let all = [one, host("a", 2, 2), host("b", 1, 1)];
        assert_eq!(counted(&all), [21, 6, 1_200, 6, 150]);
    }

    #[test]
    fn cores_of_a_machine_count_once() {
        let with = |cores: u64, mut host: HostFacts| {
            host.cores = Some(cores);
            host
        };
        let one = with(8, host("a", 1, 1));
        assert_eq!(count_cores(&[one.clone(), with(4, host("a", 2, 2))]), 8);
        assert_eq!(count_cores(&[one.clone(), with(4, host("b", 1, 1))]), 12);
        let unknown = with(2, HostFacts::default());
        assert_eq!(count_cores(&[one, unknown.clone(), unknown]), 12);
        assert_eq!(count_cores(&[host("a", 1, 1)]), 0);
    }

    #[test]
    fn counters_of_unknown_scopes_are_not_taken_for_the_same() {
        let unknown = HostFacts::default();
        let hosts = [unknown.clone(), unknown];
        assert_eq!(counted(&hosts), [14, 4, 1_200, 6, 100]);
        let mut older = [host("a", 1, 1), host("a", 2, 1)];
        for host in &mut older {
            host.identity.as_mut().unwrap().control_group = None;
        }
        assert_eq!(counted(&older), [14, 4, 600, 3, 100]);
    }

    #[test]
    fn agents_of_one_namespace_share_its_loopback_whatever_their_control_group() {
        let scope = CounterScope::NetworkNamespace;
        assert!(scope.is_shared(&host("a", 1, 1), &host("a", 1, 2)));
        assert!(!scope.is_shared(&host("a", 1, 1), &host("a", 2, 1)));
        assert!(!scope.is_shared(&host("a", 1, 1), &host("b", 1, 1)));
        assert!(scope.is_shared(&HostFacts::default(), &HostFacts::default()));
    }
}
