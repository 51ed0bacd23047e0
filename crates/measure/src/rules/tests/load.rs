//! Tests of the rules about the load, if nothing else limits.

use crate::rules::situations::*;
use crate::steady_state::{SteadyState, Sustained};

#[test]
fn northflank_latency_is_the_default_of_100_outstanding() {
    let per_interval = [(300_000, 1_000), (6_497_400, 9_193_742)];
    let mut record = record(vec![interval(0, &per_interval)]);
    // The article's 600 s in one interval: 15,324.57 qps, mean 6.497 ms.
    record.measured_ns = 600 * SECOND;
    record.intervals[0].end_ns = 600 * SECOND;
    let evidence = "99.6 of at most 100 queries were in flight, with CPU time to spare here, while \
                    queries queued at the target: p50 6.4";
    let verdict = judged(&record, Limit::Server, evidence, "--rate 10727");
    let law = "mean latency 6.497 ms x 15,325 qps = 99.6 in flight of 100: latency was set by \
               --outstanding, not by the target (run with --rate for honest latency)";
    assert!(
        verdict.evidence.iter().any(|line| line == law),
        "{verdict:#?}"
    );
}

#[test]
fn saturated_target_with_an_idle_generator_is_the_servers_limit() {
    let evidence = "99.9 of at most 100 queries were in flight, with CPU time to spare here, while";
    judged(&saturated(), Limit::Server, evidence, "--rate 7000");
}

#[test]
fn path_delay_with_all_places_in_use_is_the_outstanding_limit() {
    let record = run(&[(9_900_000, 1), (10 * MS, 999)]);
    let evidence = "but nothing queued: p50 9.9";
    judged(&record, Limit::Outstanding, evidence, "--outstanding 400");
}

#[test]
fn queue_that_stood_since_the_warm_up_is_still_a_queue() {
    let mut record = run(&[(9_900_000, 1), (10 * MS, 999)]);
    record.warmup.distributions.service.record(150_000);
    judged(
        &record,
        Limit::Server,
        "against the shortest 150.0 us",
        "--rate 7000",
    );
}

#[test]
fn answers_of_a_cache_beside_slow_ones_are_no_queue() {
    let record = run(&[(50_000, 400), (16_600_000, 600)]);
    let evidence = "a tenth of the responses took no longer than 50.";
    judged(&record, Limit::Unknown, evidence, "--outstanding 400");
    // Times of one target that differ, all the way from the shortest.
    let uniform: Vec<(u64, u64)> = (1..=100).map(|at| (at * MS / 5, 10)).collect();
    judged(
        &run(&uniform),
        Limit::Unknown,
        "which no queue of all",
        "the slots were",
    );
}

#[test]
fn two_round_trips_in_a_stream_are_no_queue() {
    let mut record = run(&[(5 * MS, 50), (10_100_000, 950)]);
    judged(&record, Limit::Server, "queued at the target", "--rate");
    record.scenario.transport = Transport::Tcp.into();
    judged(
        &record,
        Limit::Outstanding,
        "nothing queued",
        "--outstanding",
    );
}

#[test]
fn losses_beside_times_that_differ_have_no_sign_of_load() {
    let mut record = in_time(10_000.0);
    let uniform: Vec<(u64, u64)> = (1..=100).map(|ms| (ms * MS / 10 + MS, 1_000)).collect();
    record.intervals = vec![interval(0, &uniform)];
    record.intervals[0].end_ns = 10 * SECOND;
    record.total = Interval::total(&record.intervals);
    lose(&mut record, 2_000);
    judged(
        &record,
        Limit::Unknown,
        "nothing shows that the load is the cause",
        "",
    );
}

#[test]
fn another_level_of_latency_is_no_backlog() {
    let open = |latency_ns: &dyn Fn(u64) -> u64| {
        let intervals = (0..9).map(|it| interval(it, &[(latency_ns(it), 1_000)]));
        let mut record = record(intervals.collect());
        record.scenario.arrival = Arrival::Open {
            rate_qps: 1_000.0,
            process: Process::Constant,
            burst: 1,
        };
        judge(&record)
    };
    let step = open(&|it| if it < 4 { MS } else { 40 * MS });
    assert_eq!(step.limit, Limit::Rate, "{step:#?}");
    let growth = open(&|it| if it < 4 { MS } else { it * 10 * MS });
    assert_eq!(growth.limit, Limit::Server, "{growth:#?}");
}

#[test]
fn single_outstanding_query_is_always_the_outstanding_limit() {
    let mut record = record(
        (0..10)
            .map(|i| interval(i, &[(MS / 10, 100), (MS, 990)]))
            .collect(),
    );
    record.scenario.arrival = Arrival::Closed {
        outstanding: 1,
        rate_qps_max: None,
    };
    judged(
        &record,
        Limit::Outstanding,
        "1.0 of at most 1 queries were in flight",
        "--outstanding 4",
    );
}

#[test]
fn population_that_was_answered_on_time_is_to_grow() {
    let mut record = in_time(10_000.0);
    let rate_qps = Some(10_000.0);
    record.scenario.arrival = Arrival::Clients { rate_qps };
    let evidence = "100 % of the queries offered at 10,000 qps";
    judged(&record, Limit::Rate, evidence, "raise --clients");
}

#[test]
fn growing_latency_in_open_loop_is_the_servers_limit() {
    let mut record = record(
        (0..9)
            .map(|i| interval(i, &[((1 + i) * 10 * MS, 1_000)]))
            .collect(),
    );
    record.scenario.arrival = Arrival::Open {
        rate_qps: 1_000.0,
        process: Process::Constant,
        burst: 1,
    };
    judged(
        &record,
        Limit::Server,
        "latency grew from 19.99 ms to 79.95 ms",
        "--rate 800",
    );
    // Two lines of a report do not contradict each other.
    let settled = SteadyState {
        intervals: 20,
        sustained: Some(Sustained {
            start_ns: 0,
            end_ns: record.measured_ns,
            achieved_qps: 1_000.0,
            latency_p50_ns: None,
            latency_p95_ns: None,
            latency_p99_ns: None,
        }),
        openings: Vec::new(),
        drifts: Vec::new(),
    };
    record.steady_state = Some(settled);
    let said = judge(&record).evidence.join("; ");
    assert!(!said.contains("latency grew"), "{said}");
}

#[test]
fn rate_that_was_held_is_the_limit() {
    let verdict = judged(
        &in_time(10_000.0),
        Limit::Rate,
        "100 % of the queries offered at 10,000 qps were answered and sent on time (p99 10.0",
        "raise --rate",
    );
    assert!(
        !verdict
            .evidence
            .iter()
            .any(|line| line.contains("in flight of"))
    );
}

#[test]
fn rate_cap_of_the_closed_loop_is_the_limit() {
    let mut record = run(&[(MS, 1_000)]);
    record.scenario.arrival = Arrival::Closed {
        outstanding: 100,
        rate_qps_max: Some(10_000.0),
    };
    let verdict = judged(
        &record,
        Limit::Rate,
        "rate cap of 10,000 qps",
        "raise the cap",
    );
    assert_eq!(
        verdict.evidence[1],
        "mean latency 1.000 ms x 10,000 qps = 10.0 in flight of 100"
    );
}

#[test]
fn unused_places_without_a_cause_are_not_blamed_on_the_target() {
    let evidence =
        "only 10.0 of at most 100 queries were in flight on average, though no worker was";
    judged(
        &run(&[(MS, 1_000)]),
        Limit::Unknown,
        evidence,
        "run for longer",
    );
}

#[test]
fn limit_of_streams_is_a_cap_of_concurrency() {
    let record = limited_by_streams(&[(9_900_000, 1), (10 * MS, 999)]);
    let evidence = "100.0 of at most 1,000 queries were in flight: 10 connections with 10 at once \
                    carry no more than 100, but nothing queued: p50 9.9";
    judged(&record, Limit::Outstanding, evidence, "--clients 40");
}

#[test]
fn queue_behind_a_limit_of_streams_is_the_servers_limit() {
    let record = limited_by_streams(&[(200_000, 1), (10 * MS, 999)]);
    let evidence = "no more than 100, while queries queued at the target: p50 9.9";
    judged(&record, Limit::Server, evidence, "--rate 7000");
}

#[test]
fn limit_of_streams_that_no_query_met_is_no_limit() {
    let mut record = limited_by_streams(&[(200_000, 1), (10 * MS, 999)]);
    change_last(&mut record, |interval| {
        interval.counts.waited_for_stream = 0
    });
    judged(
        &record,
        Limit::Unknown,
        "only 99.9 of at most 1,000 queries",
        "connections",
    );
}

#[test]
fn places_that_wait_for_streams_of_quic_are_explained_by_them() {
    let mut record = limited_by_streams(&[(200_000, 1), (10 * MS, 999)]);
    record.scenario.transport = Transport::Doq.into();
    record.workers[0].streams_max = None;
    for (times, words) in [(1, "allows them once"), (2_000, "allows them 2,000 times")] {
        change_last(&mut record, |interval| {
            interval.counts.connections.quic_stream_limits_met = times
        });
        judged(&record, Limit::Unknown, words, "--clients 40");
    }
}

#[test]
fn pipelining_depth_of_the_scenario_is_a_cap_of_concurrency_too() {
    let mut record = limited_by_streams(&[(9_900_000, 1), (10 * MS, 999)]);
    record.scenario.transport = Transport::Tcp.into();
    record.workers[0].streams_max = None;
    record.scenario.connections.in_flight_max = Some(10);
    judged(
        &record,
        Limit::Outstanding,
        "10 connections with 10 at once carry no more than 100",
        "--clients 40",
    );
}

#[test]
fn generated_names_at_a_server_that_recurses_are_warned_of() {
    let mut record = in_time(10_000.0);
    change_last(&mut record, |interval| {
        interval.counts.generated_recursed = 9_000
    });
    told(&record, "recursion").warning("9,000 responses to generated names", "authoritative");
    assert_eq!(judge(&record).limit, Limit::Rate);
    record.self_test = true;
    assert!(found_on(&record, "recursion").is_none());
}
