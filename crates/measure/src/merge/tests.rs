use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::example::{SECOND, interval, record};
use crate::facts::{HostFacts, ResponderFacts};
use crate::record::EndedBy;
use crate::scenario::Transport;
use crate::verdict::Limit;

/// Records with up to four intervals of a few latencies each.
fn any_record() -> impl Strategy<Value = RunRecord> {
    let latencies = vec((1_000_u64..1 << 37, 1_u64..50), 0..4);
    let codes = vec(any::<u64>(), 0..40);
    vec((latencies, codes), 1..5).prop_map(|intervals| {
        let intervals = intervals.iter().enumerate();
        record(
            intervals
                .map(|(index, (latencies, codes))| {
                    let mut interval = interval(index as u64, latencies);
                    end_exchanges(&mut interval, codes);
                    interval
                })
                .collect(),
        )
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
        times.quic_handshake_resumed.record(code);
        times.first_query.record(code / 2);
    }
}

proptest! {
    #[test]
    fn merging_is_associative_for_counts_and_histograms(
        a in any_record(), b in any_record(), c in any_record(),
    ) {
        let two = |a: &RunRecord, b: &RunRecord| merge(vec![a.clone(), b.clone()]).expect("alike");
        let left = two(&two(&a, &b), &c);
        let right = two(&a, &two(&b, &c));
        let at_once = merge(vec![a, b, c]).expect("alike");
        prop_assert_eq!(&left.total, &right.total);
        prop_assert_eq!(&left.intervals, &right.intervals);
        prop_assert_eq!(&left.total, &at_once.total);
        prop_assert_eq!(&left.groups, &right.groups);
        prop_assert_eq!(&left.groups, &at_once.groups);
        prop_assert_eq!(left.responses_in_window, right.responses_in_window);
        prop_assert_eq!(left.check(), Ok(()));
    }

    #[test]
    fn merged_percentiles_are_those_of_all_values(a in any_record(), b in any_record()) {
        let mut all = a.total.distributions.latency.clone();
        all.merge(&b.total.distributions.latency);
        let merged = merge(vec![a, b]).expect("alike");
        prop_assert_eq!(merged.total.distributions.latency.percentile(0.99), all.percentile(0.99));
    }

    #[test]
    fn merging_one_record_gives_it_back(record in any_record()) {
        prop_assert_eq!(merge(vec![record.clone()]), Ok(record));
    }
}

fn pair() -> (RunRecord, RunRecord) {
    let first = record(vec![
        interval(0, &[(1_000_000, 500)]),
        interval(1, &[(2_000_000, 400)]),
    ]);
    let second = record(vec![
        interval(0, &[(3_000_000, 50)]),
        interval(1, &[(4_000_000, 40)]),
        interval(2, &[(5_000_000, 30)]),
    ]);
    (first, second)
}

#[test]
fn scenario_fields_that_add_up_are_added() {
    let (mut first, mut second) = pair();
    second.hosts = vec![HostFacts::default()];
    second.ended_by = EndedBy::Interrupted;
    second.started_at = "2026-01-28T08:59:59Z".into();
    first.network.kernel.insert("Udp.NoPorts".into(), 1);
    second.network.kernel.insert("Udp.NoPorts".into(), 2);
    first.responder = Some(ResponderFacts { accepts_failed: 3 });
    second.responder = Some(ResponderFacts { accepts_failed: 4 });
    let merged = merge(vec![first, second]).expect("alike");
    let of_responders = ResponderFacts { accepts_failed: 7 };
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
    assert_eq!(merged.measured_ns, 3 * SECOND);
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
    let merged = merge(vec![first, second]).expect("alike");
    assert_eq!(merged.scenario.arrival, open(3_000.5));
    assert_ne!(merged.verdict.limit, Limit::Outstanding);
}

#[test]
fn records_that_do_not_mean_the_same_are_refused_by_position_and_field() {
    let check = |change: fn(&mut RunRecord), message: &str| {
        let (first, second) = pair();
        let mut third = second.clone();
        change(&mut third);
        let error = merge(vec![first, second, third]).expect_err(message);
        assert!(
            error.starts_with("record 3 cannot be merged with record 1: "),
            "{error}"
        );
        assert!(error.contains(message), "{error}");
    };
    check(
        |r| r.schema_version = "2".into(),
        "schema_version is 2, in record 1 3",
    );
    check(
        |r| r.scenario.transport = Transport::Dot,
        "scenario.transport is dot, in record 1 udp",
    );
    check(
        |r| r.scenario.interval_ns = 5,
        "scenario.interval_ns is 5, in record 1 1000000000",
    );
    check(
        |r| r.scenario.goodput_rcodes = vec![0],
        "scenario.goodput_rcodes is [0]",
    );
    check(
        |r| {
            r.scenario.arrival = Arrival::Open {
                rate_qps: 1.0,
                process: crate::Process::Constant,
                burst: 1,
            }
        },
        "scenario.arrival is open loop, Constant, in record 1 closed loop",
    );
    assert_eq!(merge(Vec::new()), Err("no record to merge".into()));
}

#[test]
fn harmless_differences_are_named_as_warnings() {
    let (first, mut second) = pair();
    second.scenario.timeout_ns = SECOND;
    second.scenario.connections.rate_max = Some(5.0);
    let merged = merge(vec![first, second]).expect("alike");
    let warnings = [
        "scenario.timeout_ns of record 2 differs from that of record 1",
        "record 2 measured for 3.0 s, those before it for 2.0 s: rates are of the longer",
    ];
    assert_eq!(merged.warnings, warnings);
}

#[test]
fn parts_of_a_run_add_up_clients_and_figures_and_nothing_else() {
    let (mut first, mut second) = pair();
    for part in [&mut first, &mut second] {
        part.scenario.arrival = Arrival::Open {
            rate_qps: 10.0 / 3.0,
            process: crate::scenario::Process::Poisson,
            burst: 1,
        };
        part.scenario.queries_max = Some(7);
        for group in &mut part.groups {
            group.scenario = part.scenario.clone();
        }
    }
    let clients = first.scenario.clients + second.scenario.clients;
    let responses = first.total.counts.responses + second.total.counts.responses;
    let whole = first.scenario.clone();
    let merged = merge_parts(vec![first, second]).expect("there are two");
    assert_eq!((merged.generators, merged.processes), (1, 2));
    assert_eq!(merged.scenario.clients, clients);
    assert_eq!(merged.scenario.arrival, whole.arrival);
    assert_eq!(merged.scenario.queries_max, Some(7));
    assert_eq!(merged.groups[0].scenario.arrival, whole.arrival);
    assert_eq!(merged.groups[0].scenario.clients, clients);
    assert_eq!(merged.total.counts.responses, responses);
    assert_eq!(merged.check(), Ok(()));
    assert_eq!(merge_parts(Vec::new()), None);
}
