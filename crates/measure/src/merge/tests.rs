use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::example::{SECOND, interval, record};
use crate::facts::{HostIdentity, ResponderFacts};
use crate::limit::Limit;
use crate::record::EndedBy;
use crate::scenario::Arrival;
use crate::scenario::Transport;

/// Records with up to four intervals of a few latencies each.
fn any_record() -> impl Strategy<Value = RunRecord> {
    let latencies = vec((1_000_u64..1 << 37, 1_u64..50), 0..4);
    let codes = vec(any::<u64>(), 0..40);
    (vec((latencies, codes), 1..5), 1..4).prop_map(|(intervals, target)| {
        let intervals = intervals.iter().enumerate();
        let mut record = record(
            intervals
                .map(|(index, (latencies, codes))| {
                    let mut interval = interval(index as u64, latencies);
                    end_exchanges(&mut interval, codes);
                    interval
                })
                .collect(),
        );
        record.scenario.target = format!("192.0.2.{target}:53");
        record
    })
}

/// More queries, each ended by its stream with one of `codes`, and connections with them.
fn end_exchanges(interval: &mut Interval, codes: &[u64]) {
    let times = &mut interval.distributions.connections;
    let counts = &mut interval.counts;
    for &code in codes {
        counts.offered += 1;
        counts.sent += 1;
        counts.exchange_failures.stream_reset.record(code);
        counts.connections.quic_transport.record(code);
        counts.connections.handshakes.resumed += 1;
        let alert = format!("alert_{}", code % 256);
        counts.connections.failed.tls_alert.record(&alert);
        // A code may be any number, a time one of a run.
        times.quic_handshake_resumed.record(code >> 12);
        times.first_query.record(code >> 13);
    }
}

proptest! {
    #[test]
    fn merging_is_associative_for_counts_and_histograms(
        a in any_record(), b in any_record(), c in any_record(),
    ) {
        let two = |a: &RunRecord, b: &RunRecord| forced(vec![a.clone(), b.clone()]);
        let left = two(&two(&a, &b), &c);
        let right = two(&a, &two(&b, &c));
        let at_once = forced(vec![a, b, c]);
        prop_assert_eq!(&left.total, &right.total);
        prop_assert_eq!(&left.intervals, &right.intervals);
        prop_assert_eq!(&left.total, &at_once.total);
        prop_assert_eq!(&left.groups, &right.groups);
        prop_assert_eq!(&left.groups, &at_once.groups);
        prop_assert_eq!(&left.targets, &right.targets);
        prop_assert_eq!(&left.targets, &at_once.targets);
        prop_assert_eq!(left.responses_in_window, right.responses_in_window);
        prop_assert_eq!(left.check(), Ok(()));
    }

    #[test]
    fn merged_percentiles_are_those_of_all_values(a in any_record(), b in any_record()) {
        let mut all = a.total.distributions.latency.clone();
        all.merge(&b.total.distributions.latency);
        let merged = forced(vec![a, b]);
        prop_assert_eq!(merged.total.distributions.latency.percentile(0.99), all.percentile(0.99));
    }

    #[test]
    fn merging_one_record_gives_it_back(record in any_record()) {
        prop_assert_eq!(merge(vec![record.clone()], Misfits::Refused), Ok(record));
    }
}

/// Merged whatever speaks against it.
fn forced(records: Vec<RunRecord>) -> RunRecord {
    merge(records, Misfits::Forced).expect("their figures mean the same")
}

/// Two runs at the same time, on hosts that are each other's equal.
fn pair() -> (RunRecord, RunRecord) {
    let first = record(vec![
        interval(0, &[(1_000_000, 500)]),
        interval(1, &[(2_000_000, 400)]),
    ]);
    let mut second = record(vec![
        interval(0, &[(3_000_000, 50)]),
        interval(1, &[(4_000_000, 40)]),
        interval(2, &[(5_000_000, 30)]),
    ]);
    // The last interval is that of the drain.
    second.measured_ns = first.measured_ns;
    second.scenario.duration_ns = first.scenario.duration_ns;
    second.agents[0].window_us = first.agents[0].window_us;
    second.agents[0].id = "second".into();
    (on_host(first, "one"), on_host(second, "two"))
}

/// The same on a host with that boot identity.
fn on_host(mut record: RunRecord, boot_id: &str) -> RunRecord {
    record.hosts[0].identity = Some(HostIdentity {
        boot_id: boot_id.into(),
        node: "generator".into(),
        network_namespace: Some(4_026_531_840),
        control_group: Some(1),
    });
    record
}

fn merged(first: RunRecord, second: RunRecord) -> RunRecord {
    merge(vec![first, second], Misfits::Refused).expect("one concurrent load on one target")
}

#[test]
fn targets_that_two_generators_asked_are_told_apart_and_one_is_not() {
    let (first, mut second) = pair();
    assert_eq!(merged(first.clone(), second.clone()).targets, []);
    // One name that leads to two addresses.
    second.scenario.target = "192.0.2.54:53".into();
    second
        .scenario
        .server_name
        .clone_from(&first.scenario.server_name);
    let both = forced(vec![first.clone(), second.clone()]);
    let third = on_host(second, "three");
    let three = forced(vec![both, third]);
    let responses = |it: &TargetRecord| (it.target.clone(), it.total.counts.responses, it.clients);
    assert_eq!(
        three.targets.iter().map(responses).collect::<Vec<_>>(),
        [
            (first.scenario.target, 900, 10),
            ("192.0.2.54:53".to_owned(), 240, 20)
        ]
    );
    assert_eq!(three.check(), Ok(()));
}

#[test]
fn scenario_fields_that_add_up_are_added() {
    let (mut first, mut second) = pair();
    second.ended_by = EndedBy::Interrupted;
    second.started_at = "2026-01-28T08:59:59Z".into();
    first.network.kernel.insert("Udp.NoPorts".into(), 1);
    second.network.kernel.insert("Udp.NoPorts".into(), 2);
    first.responder = Some(ResponderFacts {
        accepts_failed: 3,
        ..ResponderFacts::default()
    });
    second.responder = Some(ResponderFacts {
        accepts_failed: 4,
        ..ResponderFacts::default()
    });
    let merged = merged(first, second);
    let of_responders = ResponderFacts {
        accepts_failed: 7,
        ..ResponderFacts::default()
    };
    assert_eq!(merged.responder, Some(of_responders));
    let scenario = &merged.scenario;
    assert_eq!(
        (scenario.clients, scenario.workers, merged.generators),
        (20, 2, 2)
    );
    let closed = Arrival::Closed {
        outstanding: 200,
        rate_qps_max: None,
    };
    assert_eq!(scenario.arrival, closed);
    assert_eq!(
        (
            merged.hosts.len(),
            merged.workers.len(),
            merged.intervals.len()
        ),
        (2, 2, 3)
    );
    assert_eq!(merged.measured_ns, 2 * SECOND);
    assert_eq!(merged.ended_by, EndedBy::Interrupted);
    assert_eq!(merged.started_at, "2026-01-28T08:59:59Z");
    assert_eq!(merged.network.kernel_counter("Udp.NoPorts"), 3);
    assert_eq!(merged.total.counts.responses, 1_020);
    assert_eq!(merged.intervals[0].counts.responses, 550);
    assert_ne!(merged.verdict.evidence, Vec::<String>::new());
}

#[test]
fn open_loop_rates_add_up() {
    let (mut first, mut second) = pair();
    let open = |rate_qps| Arrival::Open {
        rate_qps,
        process: crate::Process::Poisson,
        burst: 1,
    };
    first.scenario.arrival = open(1_000.5);
    second.scenario.arrival = open(2_000.0);
    let merged = merged(first, second);
    assert_eq!(merged.scenario.arrival, open(3_000.5));
    assert_ne!(merged.verdict.limit, Limit::Outstanding);
}

/// Why a third record is refused that differs from the second only by `change`; true if insisting
/// does not help.
fn refusal(change: impl Fn(&mut RunRecord)) -> Vec<(String, bool)> {
    let (first, second) = pair();
    let mut third = on_host(second.clone(), "three");
    third.agents[0].id = "third".into();
    assert_eq!(
        merge(
            vec![first.clone(), second.clone(), third.clone()],
            Misfits::Refused
        )
        .map(|merged| merged.merged_by_force),
        Ok(Vec::new())
    );
    change(&mut third);
    let records = vec![first, second, third];
    let found = merge(records.clone(), Misfits::Refused).expect_err("it differs");
    let is_final = found.iter().any(|misfit| misfit.is_final);
    match merge(records, Misfits::Forced) {
        Err(misfits) => assert!(is_final && misfits.iter().all(|it| it.is_final)),
        Ok(merged) => {
            assert!(!is_final);
            let reasons: Vec<&String> = found.iter().map(|it| &it.reason).collect();
            assert_eq!(merged.merged_by_force.iter().collect::<Vec<_>>(), reasons);
            assert_eq!(merged.verdict.limit, Limit::Unknown);
            assert!(
                merged.verdict.evidence[0].starts_with("merged by force, its rates never existed")
            );
            assert_eq!(merged.check(), Ok(()));
        }
    }
    let each = found.into_iter();
    each.map(|misfit| (misfit.reason, misfit.is_final))
        .collect()
}

/// How a record comes to differ, and the reason that is named.
type Difference = (fn(&mut RunRecord), &'static str);

/// Each is refused for its reason alone.
fn check_refused(differences: &[Difference], is_final: bool) {
    for (change, words) in differences {
        let found = refusal(change);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].0.contains(words), "{words}: {found:?}");
        assert_eq!(found[0].1, is_final, "{words}");
    }
}

#[test]
fn figures_that_do_not_mean_the_same_are_refused_whoever_insists() {
    let differences: [Difference; 5] = [
        (
            |r| r.schema_version = "2".into(),
            "schema_version of record 3 is 2, of record 1 4",
        ),
        (
            |r| r.scenario.transport = Transport::Dot.into(),
            "scenario.transport of record 3 is dot, of record 1 udp",
        ),
        (
            |r| r.scenario.interval_ns = 5,
            "scenario.interval_ns of record 3 is 5, of record 1 1000000000",
        ),
        (
            |r| r.scenario.goodput_rcodes = vec![0],
            "scenario.goodput_rcodes of record 3 is [0]",
        ),
        (
            |r| {
                r.scenario.arrival = Arrival::Open {
                    rate_qps: 1.0,
                    process: crate::Process::Constant,
                    burst: 1,
                }
            },
            "scenario.arrival of record 3 is open loop, Constant, of record 1 closed loop",
        ),
    ];
    check_refused(&differences, true);
}

#[test]
fn what_was_not_one_concurrent_load_on_one_target_is_refused_unless_forced() {
    let differences: [Difference; 11] = [
        (
            |r| r.agents[0].id = "second".into(),
            "record 3 has a run that is in record 2 already",
        ),
        (
            |r| r.agents[0].began_us += 5_000_000,
            "record 3 measured for 2.0 s, from 5.0 s after record 1, which measured for 2.0 s: \
             they share 0.0 % of their time",
        ),
        (
            |r| r.agents[0].began_us -= 1_000_000,
            "from 1.0 s before record 1",
        ),
        (
            |r| r.agents[0].window_us = 1_000_000,
            "record 3 measured for 1.0 s",
        ),
        (
            |r| r.agents.clear(),
            "when record 3 or record 1 measured is not known",
        ),
        (
            |r| {
                r.scenario.target = "192.0.2.9:53".into();
                r.scenario.server_name = Some("ns9.example".into());
            },
            "the target of record 3 is 192.0.2.9:53, of record 1 192.0.2.1:53",
        ),
        (
            |r| r.scenario.questions.source = "other.txt".into(),
            "scenario.questions of record 3 is 1000 of other.txt",
        ),
        (
            |r| r.scenario.timeout_ns = SECOND,
            "scenario.timeout_ns of record 3 is 1.0 s",
        ),
        (
            |r| r.scenario.warmup_ns = SECOND,
            "scenario.warmup_ns of record 3 is 1.0 s",
        ),
        (
            |r| r.scenario.duration_ns = Some(SECOND),
            "scenario.duration_ns of record 3 is 1.0 s",
        ),
        (
            |r| r.self_test = true,
            "the kind of record 3 is a self-test, of record 1 against a server",
        ),
    ];
    check_refused(&differences, false);
    let nothing = merge(Vec::new(), Misfits::Forced).expect_err("nothing to merge");
    assert_eq!(nothing, [Misfit::nothing()]);
}

#[test]
fn all_reasons_are_named_at_once() {
    let found = refusal(|record| {
        record.agents[0].id = "first".into();
        record.agents[0].began_us += 60_000_000;
        record.scenario.timeout_ns = SECOND;
    });
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn a_loopback_target_is_another_one_on_each_host() {
    let (mut first, mut second) = pair();
    for record in [&mut first, &mut second] {
        record.scenario.target = "127.0.0.1:53".into();
    }
    let elsewhere = merge(vec![first.clone(), second.clone()], Misfits::Refused);
    assert!(elsewhere.is_err_and(|found| found[0].reason.contains("is its own host")));
    let second = on_host(second, "one");
    assert!(merge(vec![first, second], Misfits::Refused).is_ok());
}

#[test]
fn harmless_differences_are_named_as_warnings() {
    let (first, mut second) = pair();
    second.scenario.connections.rate_max = Some(5.0);
    second.scenario.tcp_fallback = true;
    second.agents[0].clock_error_us = None;
    let merged = merged(first, second);
    let warnings = [
        "scenario.tcp_fallback of record 2 differs from that of record 1",
        "the clock of a generating host is not synchronised: how concurrent the runs were is not \
         known",
    ];
    assert_eq!(merged.warnings, warnings);
}

#[test]
fn what_a_hosts_kernel_counted_counts_once() {
    let drops = |mut record: RunRecord, count: u64| {
        record.network.kernel.insert("Udp.InErrors".into(), count);
        record
    };
    let (first, second) = pair();
    let mut third = second.clone();
    third.agents[0].id = "third".into();
    let records = vec![drops(first, 100), drops(second, 7), drops(third, 9)];
    let merged = merge(records, Misfits::Refused).expect("one load");
    // Ten equal machines are ten hosts, two runs on one machine are on one.
    assert_eq!(merged.hosts.len(), 2);
    let hosts: Vec<u64> = merged.workers.iter().map(|worker| worker.host).collect();
    assert_eq!(hosts, [0, 1, 1]);
    let agents = merged.agents.iter();
    let agents: Vec<(&str, u64)> = agents.map(|it| (it.id.as_str(), it.host)).collect();
    assert_eq!(agents, [("first", 0), ("second", 1), ("third", 1)]);
    assert_eq!(merged.network.kernel_counter("Udp.InErrors"), 109);
    let of_hosts: Vec<u64> = (merged.network.kernel_of_hosts.iter())
        .map(|kernel| kernel["Udp.InErrors"])
        .collect();
    assert_eq!(of_hosts, [100, 9]);
    let (other, _) = pair();
    let mut other = drops(on_host(other, "two"), 50);
    other.agents[0].id = "fourth".into();
    let again = merge(vec![merged, other], Misfits::Refused).expect("one load");
    assert_eq!(again.network.kernel_counter("Udp.InErrors"), 150);
    assert_eq!(again.agents.len(), 4);
}

/// An agent's record of the machine, network namespace and control group with these identities, and
/// what each of them counted.
fn agent_in(id: &str, boot_id: &str, network_namespace: u64, control_group: u64) -> RunRecord {
    let (first, _) = pair();
    let mut record = on_host(first, boot_id);
    record.agents[0].id = id.into();
    let identity = record.hosts[0].identity.as_mut().expect("it has one");
    identity.node = format!("pod-{id}");
    identity.network_namespace = Some(network_namespace);
    identity.control_group = Some(control_group);
    let counters = [
        ("Cpu.All", 600),
        ("Softnet.Dropped", 3),
        ("Udp.RcvbufErrors", 50),
        ("Cgroup.Throttled", 7),
    ];
    let counters = counters.map(|(name, count)| (name.to_owned(), count));
    record.network.kernel.extend(counters);
    record
}

/// Ticks, packets, datagrams and periods of these agents together.
fn counted_once(records: Vec<RunRecord>) -> [u64; 4] {
    let merged = merge_remote_agents(records.clone()).expect("there are some");
    assert_eq!(merged.check(), Ok(()));
    let by_hand = merge(records, Misfits::Refused).expect("one load");
    assert_eq!(by_hand.network.kernel, merged.network.kernel);
    [
        "Cpu.All",
        "Softnet.Dropped",
        "Udp.RcvbufErrors",
        "Cgroup.Throttled",
    ]
    .map(|name| merged.network.kernel_counter(name))
}

#[test]
fn counters_of_merged_agents_count_once_in_their_scope() {
    let one = || agent_in("one", "a", 1, 1);
    let pods = vec![one(), agent_in("two", "a", 2, 2)];
    assert_eq!(counted_once(pods), [600, 3, 100, 14]);
    let machines = vec![one(), agent_in("two", "b", 1, 1)];
    assert_eq!(counted_once(machines), [1_200, 6, 100, 14]);
    let under_one_quota = vec![one(), agent_in("two", "a", 2, 1)];
    assert_eq!(counted_once(under_one_quota), [600, 3, 100, 7]);
    let three = vec![
        one(),
        agent_in("two", "a", 2, 2),
        agent_in("three", "b", 1, 1),
    ];
    assert_eq!(counted_once(three), [1_200, 6, 150, 21]);
}

#[test]
fn drops_in_the_buffers_of_an_agent_stay_its_own() {
    let mut second = agent_in("two", "b", 1, 1);
    second.network.receive_drops = 40;
    let records = vec![agent_in("one", "a", 1, 1), second];
    let merged = merge_remote_agents(records.clone()).expect("there are some");
    let drops = |it: &RunRecord| {
        it.agents
            .iter()
            .map(|it| it.receive_drops)
            .collect::<Vec<_>>()
    };
    assert_eq!(drops(&merged), [Some(0), Some(40)]);
    assert_eq!(merged.network.receive_drops, 40);
    let third = agent_in("three", "c", 1, 1);
    let three = merge(vec![merged, third], Misfits::Refused).expect("one load");
    assert_eq!(drops(&three), [Some(0), Some(40), Some(0)]);
    // What a single one dropped is in `network`.
    let alone = merge_remote_agents(records[1..].to_vec()).expect("there is one");
    assert_eq!(drops(&alone), [None]);
}

#[test]
fn counts_of_an_agent_stay_its_own() {
    let records = vec![agent_in("one", "a", 1, 1), agent_in("two", "b", 1, 1)];
    let merged = merge_remote_agents(records.clone()).expect("there are some");
    for (agent, record) in merged.agents.iter().zip(&records) {
        let (own, counts) = (agent.counts.expect("it is there"), &record.total.counts);
        assert_eq!((own.offered, own.sent), (counts.offered, counts.sent));
        let late = &record.total.distributions.send_lateness;
        assert_eq!(own.send_lateness_p99_ns, late.percentile(0.99));
    }
    let third = agent_in("three", "c", 1, 1);
    let three = merge(vec![merged.clone(), third], Misfits::Refused).expect("one load");
    assert_eq!(three.agents[..2], merged.agents[..]);
    assert_eq!(RunRecord::from_json(&three.to_json()), Ok(three));
    let alone = merge_remote_agents(records[1..].to_vec()).expect("there is one");
    assert_eq!(alone.agents[0].counts, None);
}

#[test]
fn sums_of_older_programs_are_counted_again_when_they_are_read() {
    let agents = vec![agent_in("one", "a", 1, 1), agent_in("two", "a", 2, 2)];
    let merged = merge_remote_agents(agents).expect("there are some");
    let mut older = merged.clone();
    older.network.kernel.insert("Cpu.All".into(), 1_200);
    older.network.kernel.insert("Softnet.Dropped".into(), 6);
    assert_eq!(RunRecord::from_json(&older.to_json()), Ok(merged));
    older.network.kernel.insert("Cpu.All".into(), 1_199);
    assert!(RunRecord::from_json(&older.to_json()).is_err());
}

#[test]
fn local_agents_add_up_clients_and_figures_and_nothing_else() {
    let (mut first, mut second) = pair();
    for agent in [&mut first, &mut second] {
        agent.scenario.arrival = Arrival::Open {
            rate_qps: 10.0 / 3.0,
            process: crate::scenario::Process::Poisson,
            burst: 1,
        };
        agent.scenario.queries_max = Some(7);
        for group in &mut agent.groups {
            group.scenario = agent.scenario.clone();
        }
    }
    let clients = first.scenario.clients + second.scenario.clients;
    let responses = first.total.counts.responses + second.total.counts.responses;
    let whole = first.scenario.clone();
    let merged = merge_local_agents(vec![first, second]).expect("there are two");
    assert_eq!((merged.generators, merged.agent_count), (1, 2));
    assert_eq!(merged.scenario.clients, clients);
    assert_eq!(merged.scenario.arrival, whole.arrival);
    assert_eq!(merged.scenario.queries_max, Some(7));
    assert_eq!(merged.groups[0].scenario.arrival, whole.arrival);
    assert_eq!(merged.groups[0].scenario.clients, clients);
    assert_eq!(merged.total.counts.responses, responses);
    assert_eq!(merged.check(), Ok(()));
    assert_eq!(merge_local_agents(Vec::new()), None);
}

#[test]
fn each_local_agent_has_a_row_with_counts_and_workers_of_its_own() {
    let (mut first, mut second) = pair();
    for record in [&mut first, &mut second] {
        record.workers.iter_mut().for_each(|it| it.agent = Some(0));
    }
    second.hosts = first.hosts.clone();
    first.agents[0].began_us += 3;
    second.agents[0].window_us += 7;
    second.network.receive_drops = 5;
    let records = [first, second];
    let merged = merge_local_agents(records.to_vec()).expect("there are two");
    assert_eq!((merged.generators, merged.agents.len()), (1, 2));
    assert_eq!((merged.hosts.len(), merged.check()), (1, Ok(())));
    for (agent, record) in merged.agents.iter().zip(&records) {
        let counts = agent.counts.expect("it counted");
        assert_eq!(counts.sent, record.total.counts.sent);
        assert_eq!(agent.id, record.agents[0].id);
        assert_eq!(agent.receive_drops, Some(record.network.receive_drops));
        // They made one run, by one clock.
        assert_eq!(agent.began_us, records[1].agents[0].began_us);
        assert_eq!(agent.window_us, records[1].agents[0].window_us);
    }
    let of_workers = merged.workers.iter().map(|it| it.agent);
    assert_eq!(of_workers.collect::<Vec<_>>(), [Some(0), Some(1)]);
    assert_eq!(merged.worker_name(1), "worker 1 (agent 2)");
    assert_eq!(RunRecord::from_json(&merged.to_json()), Ok(merged));
}

#[test]
fn each_interval_has_what_all_of_three_parts_measured() {
    let agent = |number: u64| {
        let latencies = |index: u64| (number * 1_000_000, number + 10 * index);
        record(vec![
            interval(0, &[latencies(0)]),
            interval(1, &[latencies(1)]),
        ])
    };
    for merge in [merge_local_agents, merge_remote_agents] {
        let merged = merge([1, 2, 4].map(agent).to_vec()).expect("there are three");
        for (index, times) in [(0, [1, 2, 4]), (1, [11, 12, 14])] {
            let latencies = [1_000_000, 2_000_000, 4_000_000];
            let all: Vec<(u64, u64)> = latencies.into_iter().zip(times).collect();
            let expected = interval(index, &all);
            let found = &merged.intervals[index as usize];
            assert_eq!(found.counts, expected.counts);
            assert_eq!(found.distributions, expected.distributions);
        }
        assert_eq!(merged.total.counts.responses, 7 + 37);
        assert_eq!(merged.check(), Ok(()));
    }
}

#[test]
fn records_whose_intervals_are_of_different_widths_are_merged_exactly() {
    let of = |seconds: u64, id: &str| {
        let intervals = (0..seconds).map(|at| interval(at, &[(1_000_000 + at, 1 + at % 3)]));
        let mut record = record(intervals.collect());
        record.agents[0].id = id.into();
        record
    };
    let (long, short) = (of(3_000, "long"), of(1_500, "short"));
    let whole = forced(vec![long.clone(), short.clone()]);
    let kept = |mut record: RunRecord| {
        let mut intervals = crate::Intervals::default();
        record.intervals.drain(..).for_each(|it| intervals.push(it));
        (record.intervals, record.intervals_merged) = intervals.finish(record.measured_ns);
        record
    };
    let (long, short) = (kept(long), kept(short));
    assert_eq!((long.intervals_merged, short.intervals_merged), (4, 2));
    for records in [vec![long.clone(), short.clone()], vec![short, long]] {
        let merged = forced(records);
        assert_eq!(merged.check(), Ok(()));
        assert_eq!(merged.total, whole.total);
        assert_eq!((merged.intervals.len(), merged.intervals_merged), (750, 4));
        let first = Interval::total(&whole.intervals[..4]);
        assert_eq!(merged.intervals[0].counts, first.counts);
        assert_eq!(merged.intervals[0].distributions, first.distributions);
    }
}

#[test]
fn records_that_count_more_together_than_one_may_are_refused() {
    let mut many = interval(0, &[(1_000, 1)]);
    many.counts.late = 1 << 53;
    let one = RunRecord::from_json(&record(vec![many]).to_json()).unwrap();
    let misfits = merge(vec![one.clone(), one], Misfits::Forced).unwrap_err();
    let reason = &misfits[0].reason;
    assert!(
        reason.starts_with("together they are not a valid run record: 18014398509481984"),
        "{reason}"
    );
}
