//! Agents that were late, beside others that were not: who they are, and what they cost.

use std::collections::BTreeMap;

use crate::agent_counts::AgentCounts;
use crate::facts::{HostFacts, HostIdentity, TcpFacts};
use crate::record::{Agent, Placement};
use crate::rules::situations::*;

/// A run of agents on one host, each with its own host name, with the given lateness of queries.
fn fleet(lateness_ns: &[u64]) -> RunRecord {
    let mut record = in_time(10_000.0);
    let (agent, worker) = (record.agents[0].clone(), record.workers[0].clone());
    (record.agents, record.workers) = (Vec::new(), Vec::new());
    for (position, lateness_ns) in lateness_ns.iter().enumerate() {
        record.agents.push(Agent {
            name: Some(format!("node-{position}")),
            ..agent.clone()
        });
        let mut worker = worker.clone();
        worker.send_lateness_p99_ns = Some(*lateness_ns);
        worker.agent = Some(position as u64);
        record.workers.push(worker);
    }
    record.generators = lateness_ns.len() as u64;
    record.agent_count = record.generators;
    record
}

/// The same, of the agents of one command on its host.
fn local_agents(lateness_ns: &[u64]) -> RunRecord {
    let mut record = fleet(lateness_ns);
    record.generators = 1;
    record.agents.iter_mut().for_each(|it| it.name = None);
    record
}

#[test]
fn a_late_agent_of_one_host_is_named_by_its_number() {
    let found = told(&local_agents(&[100_000, 41 * MS, 200_000]), "agents");
    for words in ["1 of 3 agents", "agent 2 by 41.00 ms", "at most 200.0 us"] {
        assert!(found.seen.contains(words), "{words}: {}", found.seen);
    }
    // There is not a host to leave out.
    assert!(found.cures[0].how.contains("--agents"), "{found:?}");
}

#[test]
fn losses_of_one_of_several_agents_on_a_host_are_not_its_links() {
    let mut record = local_agents(&[100_000; 3]);
    for agent in &mut record.agents {
        agent.counts = Some(AgentCounts {
            offered: 30_000,
            sent: 30_000,
            ..AgentCounts::default()
        });
    }
    record.agents[1]
        .counts
        .as_mut()
        .expect("it counted")
        .unanswered = 1_200;
    lose(&mut record, 1_200);
    assert_eq!(found_on(&record, "agents"), None);
    assert_ne!(judge(&record).limit, Limit::Network);
}

#[test]
fn the_agents_that_were_late_are_named() {
    let found = told(&fleet(&[100_000, 41 * MS, 200_000]), "agents");
    for words in ["1 of 3 agents", "node-1 by 41.00 ms", "at most 200.0 us"] {
        assert!(found.seen.contains(words), "{words}: {}", found.seen);
    }
    assert!(found.cures[0].how.contains("--hosts"), "{found:?}");
}

#[test]
fn agents_that_are_alike_are_not_told_apart() {
    for lateness_ns in [
        &[100_000, 900_000][..],
        &[5 * MS, 6 * MS, 7 * MS],
        &[9 * MS],
    ] {
        assert_eq!(found_on(&fleet(lateness_ns), "agents"), None);
    }
}

/// A run of 40 agents, each on a machine of its own, of which `node-7` is changed; and what the
/// kernels of all count.
fn forty(counters: &[(&str, u64)], of_seventh: &[(&str, u64)]) -> RunRecord {
    let mut record = fleet(&[100_000; 40]);
    let kernel = |counters: &[(&str, u64)]| -> BTreeMap<String, u64> {
        let counters = counters.iter();
        counters
            .map(|(name, count)| ((*name).into(), *count))
            .collect()
    };
    record.hosts.clear();
    for position in 0..40_u64 {
        record.agents[position as usize].host = position;
        record.workers[position as usize].host = position;
        record.hosts.push(HostFacts {
            identity: Some(HostIdentity {
                boot_id: format!("boot-{position}"),
                node: format!("machine-{position}"),
                network_namespace: Some(1),
                control_group: Some(1),
            }),
            ..HostFacts::default()
        });
        record.network.kernel_of_hosts.push(match position {
            7 => kernel(of_seventh),
            _ => kernel(counters),
        });
    }
    let each = &record.network.kernel_of_hosts;
    record.network.kernel = crate::scope::count_once(&record.hosts, each);
    record
}

#[test]
fn one_host_of_forty_is_judged_by_its_own_counters_and_named() {
    let steal = forty(
        &[("Cpu.All", 1_000)],
        &[("Cpu.All", 1_000), ("Cpu.Steal", 80)],
    );
    told(&steal, "CPU steal").problem(
        "1 of 40 agents (node-7): the hypervisor took 8.0 % of its host's CPU time",
        "dedicated CPUs",
    );
    let backlog = forty(&[], &[("Softnet.Dropped", 50)]);
    let seen = "1 of 40 agents (node-7): the backlog of its host's CPUs was full and dropped 50";
    assert!(told(&backlog, "packet backlog").seen.contains(seen));
    let mut drops = forty(&[], &[]);
    drops.network.receive_drops = 30;
    drops.agents[7].receive_drops = Some(30);
    let seen = "1 of 40 agents (node-7): full receive buffers on its host dropped 30 datagrams";
    assert!(told(&drops, "receive buffers").seen.contains(seen));
    let flows = forty(&[], &[("Conntrack.Dropped", 5)]);
    let seen = "1 of 40 agents (node-7): conntrack of its host refused 5 new flows";
    assert!(told(&flows, "conntrack").seen.contains(seen));
}

/// As [`forty`], with what each agent counted of its 2,500 queries, and `node-7` by itself.
fn counted_forty(of_seventh: impl Fn(&mut AgentCounts)) -> RunRecord {
    let mut record = forty(&[], &[]);
    for (position, agent) in record.agents.iter_mut().enumerate() {
        let mut counts = AgentCounts {
            offered: 2_500,
            sent: 2_500,
            send_lateness_p99_ns: Some(100_000),
            segments_sent: 10_000,
            wait_to_send_us: 10,
            network_us: 1_000,
            wait_to_read_us: 10,
            ..AgentCounts::default()
        };
        if position == 7 {
            of_seventh(&mut counts);
        }
        agent.counts = Some(counts);
    }
    record
}

#[test]
fn an_agent_like_the_others_changes_nothing() {
    let record = counted_forty(|_| {});
    let verdict = judge(&record);
    assert_eq!(verdict.limit, Limit::Rate, "{verdict:#?}");
    assert_eq!(verdict, judge(&forty(&[], &[])));
    for topic in ["agents", "lateness", "waiting in this host", "path"] {
        assert_eq!(found_on(&record, topic), None);
    }
}

#[test]
fn one_late_agent_of_forty_is_the_generators_limit() {
    // Of the queries of all, 0.75 % left late: not their p99.
    let record = counted_forty(|it| it.send_lateness_p99_ns = Some(41 * MS));
    let verdict = judge(&record);
    assert_eq!(verdict.limit, Limit::Generator, "{verdict:#?}");
    let found = told(&record, "lateness");
    let seen = "1 of 40 agents (node-7): queries were sent up to 41.00 ms late (p99)";
    assert!(found.seen.starts_with(seen), "{}", found.seen);
    // By its workers, in a record of a version that did not count it.
    let mut older = forty(&[], &[]);
    older.workers[7].send_lateness_p99_ns = Some(41 * MS);
    assert_eq!(judge(&older).limit, Limit::Generator);
}

#[test]
fn queries_that_the_kernel_of_one_agent_refused_are_judged_by_its_own() {
    // 0.05 % of all.
    let refuse = |why: fn(&mut AgentCounts, u64)| {
        counted_forty(move |it| {
            (it.send_failed, it.sent) = (50, 2_450);
            why(it, 50);
        })
    };
    for (record, limit, why) in [
        (
            refuse(|it, number| it.send_failed_for.unreachable = number),
            Limit::Network,
            "there was no route",
        ),
        (
            refuse(|it, number| it.send_failed_for.forbidden = number),
            Limit::Generator,
            "a firewall on the host",
        ),
    ] {
        let verdict = judge(&record);
        assert_eq!(verdict.limit, limit, "{verdict:#?}");
        let seen = format!("1 of 40 agents (node-7): 2.00 % of its queries were not sent: {why}");
        let is_said = |it: &String| it.starts_with(&seen);
        assert!(verdict.evidence.iter().any(is_said), "{verdict:#?}");
    }
}

#[test]
fn waits_segments_and_resources_of_one_agent_are_named() {
    let waits = counted_forty(|it| it.wait_to_read_us = 3_000);
    let found = told(&waits, "waiting in this host");
    let seen = "1 of 40 agents (node-7): 75.1 % of the latency was waiting in its host: ";
    assert!(found.seen.starts_with(seen), "{}", found.seen);
    let mut segments = counted_forty(|it| it.segments_lost = 900);
    segments.network.tcp = Some(TcpFacts {
        segments_sent: 400_000,
        segments_repeated: 900,
        ..TcpFacts::default()
    });
    let found = told(&segments, "path");
    let seen = "1 of 40 agents (node-7): 9.00 % of the TCP segments of its connections (900)";
    assert!(found.seen.starts_with(seen), "{}", found.seen);
    assert_eq!(judge(&segments).limit, Limit::Rate);
    let mut ports = counted_forty(|it| it.no_local_port = 12);
    ports.warmup.counts.connections.failed.no_local_port = 12;
    let found = told(&ports, "source ports");
    let seen = "1 of 40 agents (node-7): 12 connection attempts failed because its host ran out";
    assert!(found.seen.starts_with(seen), "{}", found.seen);
}

#[test]
fn losses_of_one_agent_are_its_links_and_not_the_servers() {
    let mut record = counted_forty(|it| it.unanswered = 1_200);
    lose(&mut record, 1_200);
    let verdict = judge(&record);
    assert_eq!(verdict.limit, Limit::Network, "{verdict:#?}");
    told(&record, "agents").problem(
        "all of the 1,200 lost queries were agent node-7's: its link or its host, not the server",
        "--hosts",
    );
    // The same, lost by all alike.
    let mut all = counted_forty(|_| {});
    for agent in &mut all.agents {
        agent.counts.as_mut().expect("it counted").unanswered = 30;
    }
    lose(&mut all, 1_200);
    assert_eq!(found_on(&all, "agents"), None);
    assert_ne!(judge(&all).limit, Limit::Network);
    // Too few to decide, of all; reported nevertheless.
    let mut few = counted_forty(|it| it.unanswered = 40);
    lose(&mut few, 40);
    assert_eq!(judge(&few).limit, Limit::Rate);
    assert!(told(&few, "agents").seen.contains("40 lost queries"));
}

#[test]
fn quota_of_an_agent_is_judged_beside_its_own_time() {
    // All together were throttled for longer than the run lasted.
    let little = [
        ("Cgroup.Throttled", 2),
        ("Cgroup.ThrottledMicroseconds", 20_000),
    ];
    assert_ne!(judge(&forty(&little, &little)).limit, Limit::Generator);
    let much = [
        ("Cgroup.Throttled", 57),
        ("Cgroup.ThrottledMicroseconds", 3_000_000),
    ];
    told(&forty(&[], &much), "CPU quota").problem(
        "1 of 40 agents (node-7): the CPU quota of its container was used up 57 times, and its \
         threads were throttled for 3",
        "limits.cpu",
    );
    let found = told(&forty(&little, &much), "CPU quota");
    let seen = "40 of 40 agents (node-7, node-0, node-1, node-2, node-3, ...), most at node-7: ";
    assert!(found.seen.starts_with(seen), "{}", found.seen);
    assert!(found.seen.contains("used up 57 times"), "{}", found.seen);
}

#[test]
fn a_quota_is_told_by_its_periods() {
    let much = [
        ("Cgroup.Periods", 60),
        ("Cgroup.Throttled", 57),
        ("Cgroup.ThrottledMicroseconds", 3_000_000),
    ];
    let found = told(&forty(&[], &much), "CPU quota");
    let seen = "1 of 40 agents (node-7): the CPU quota of its container was used up in 57 of 60 \
                periods, and its threads were throttled for 3";
    assert!(found.seen.starts_with(seen), "{}", found.seen);
}

#[test]
fn an_agent_is_named_with_the_node_that_it_was_placed_on() {
    let much = [
        ("Cgroup.Throttled", 57),
        ("Cgroup.ThrottledMicroseconds", 3_000_000),
    ];
    let mut record = forty(&[], &much);
    for (position, agent) in record.agents.iter_mut().enumerate() {
        agent.name = Some(format!("agents-{position}"));
        agent.placement = Some(Placement {
            node: Some(format!("node-{}", position / 2)),
            ..Placement::default()
        });
    }
    let found = told(&record, "CPU quota");
    let seen = "1 of 40 agents (agents-7 on node-3): the CPU quota";
    assert!(found.seen.starts_with(seen), "{}", found.seen);
}

/// The rule that names each agent, where one does.
fn limited(mut record: RunRecord) -> Vec<(usize, String)> {
    record.conclude();
    let agents = record.agents.into_iter().enumerate();
    agents
        .filter_map(|(position, it)| Some((position, it.limited_by?)))
        .collect()
}

#[test]
fn each_agent_has_the_rule_that_names_it() {
    let only = |rule: &str| vec![(7, rule.to_owned())];
    assert_eq!(limited(forty(&[], &[])), []);
    let much = [
        ("Cgroup.Throttled", 57),
        ("Cgroup.ThrottledMicroseconds", 3_000_000),
    ];
    assert_eq!(limited(forty(&[], &much)), only("CPU quota"));
    let refused = counted_forty(|it| {
        (it.send_failed, it.sent) = (50, 2_450);
        it.send_failed_for.unreachable = 50;
    });
    assert_eq!(limited(refused), only("no route"));
    let late = counted_forty(|it| it.send_lateness_p99_ns = Some(41 * MS));
    assert_eq!(limited(late), only("queries left late"));
    let mut lossy = counted_forty(|it| it.unanswered = 1_200);
    lose(&mut lossy, 1_200);
    assert_eq!(limited(lossy), only("losses of one agent"));
    // Two of three that have no CPU left, of which one has less.
    let mut busy = fleet(&[100_000, 41 * MS, 40 * MS]);
    for (worker, of_wall) in [(1, 100), (2, 95)] {
        let worker = &mut busy.workers[worker];
        worker.cpu_ns = worker.wall_ns * of_wall / 100;
    }
    let rule = "worker out of CPU".to_owned();
    assert_eq!(limited(busy), [(1, rule.clone()), (2, rule)]);
    // Figures shared on one host do not distinguish the agents.
    let mut local = local_agents(&[100_000; 3]);
    let steal = [("Cpu.All", 1_000), ("Cpu.Steal", 80)];
    let steal = steal.map(|(name, count)| (name.to_owned(), count));
    local.network.kernel = BTreeMap::from(steal);
    assert_eq!(limited(local), []);
}

#[test]
fn one_late_agent_of_forty_is_out_of_cpu_by_its_own_lateness() {
    // Of all queries, too few left late for their p99.
    let mut record = forty(&[], &[]);
    record.workers[7].send_lateness_p99_ns = Some(41 * MS);
    record.workers[7].cpu_ns = record.workers[7].wall_ns;
    let found = told(&record, "generator's CPU");
    let seen = "worker 7 (node-7) used 100.0 % of its CPU and queries were sent up to 41.00 ms";
    assert!(found.seen.starts_with(seen), "{}", found.seen);
    // A busy worker whose own queries leave in time is not out of CPU.
    record.workers[7].send_lateness_p99_ns = Some(100_000);
    let found = told(&record, "generator's CPU");
    assert_eq!(found.state, State::Warning);
}

#[test]
fn cores_of_two_pods_on_one_machine_are_no_room_for_a_worker() {
    for (boot_ids, cure) in [
        (["boot-a", "boot-a"], "no core is left here"),
        (["boot-a", "boot-b"], "another worker: --workers 5"),
    ] {
        let mut record = fleet(&[100_000; 2]);
        record.scenario.workers = 4;
        record.scenario.clients = 100;
        record.workers[0].cpu_ns = record.workers[0].wall_ns;
        record.hosts.clear();
        for (position, boot_id) in boot_ids.into_iter().enumerate() {
            record.agents[position].host = position as u64;
            record.hosts.push(HostFacts {
                cores: Some(4),
                identity: Some(HostIdentity {
                    boot_id: boot_id.into(),
                    network_namespace: Some(position as u64),
                    ..HostIdentity::default()
                }),
                ..HostFacts::default()
            });
        }
        let found = told(&record, "generator's CPU");
        assert!(found.cures[0].how.contains(cure), "{found:?}");
    }
}

#[test]
fn wait_for_a_cpu_under_a_used_up_quota_is_the_quota() {
    let much = [
        ("Cgroup.Throttled", 57),
        ("Cgroup.ThrottledMicroseconds", 3_000_000),
    ];
    for (of_seventh, why) in [
        (&much[..], "the agent's CPU quota was used up"),
        (&[], "another process uses this CPU"),
    ] {
        let mut record = forty(&[], of_seventh);
        let worker = &mut record.workers[7];
        worker.send_lateness_p99_ns = Some(41 * MS);
        worker.cpu_wait_ns = Some(worker.wall_ns / 3);
        let found = told(&record, "generator's CPU");
        let seen = format!("worker 7 (node-7) waited for its CPU 33.3 % of the time: {why}, and");
        assert!(found.seen.starts_with(&seen), "{}", found.seen);
        let late = told(&record, "agents");
        let has_quota = late.seen.contains("the agent's CPU quota was used up");
        assert_eq!(has_quota, !of_seventh.is_empty(), "{}", late.seen);
    }
}
