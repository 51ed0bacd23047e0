//! Finding for short-lived connections: their set-up, not the queries, took the time.

use crate::histogram::Histogram;
use crate::rules::situations::*;

#[test]
fn handshakes_that_queue_are_the_servers_limit() {
    let record = churn(&[(3 * MS, 1), (95 * MS, 999)]);
    let evidence = "96.9 of 100 clients on average were setting up a connection (1,000 a \
                    second), and they queued at the target: TLS handshake p50 95.00 ms";
    let verdict = judged(&record, Limit::Server, evidence, "carry more queries");
    assert!(
        verdict.evidence[0].ends_with("against the shortest 3.000 ms"),
        "{verdict:#?}"
    );
}

#[test]
fn handshakes_that_wait_for_round_trips_alone_are_the_outstanding_limit() {
    let record = churn(&[(94 * MS, 1), (95 * MS, 999)]);
    let evidence = "but nothing queued: TLS handshake p50 95.00 ms is near the shortest 94.00 ms";
    judged(&record, Limit::Outstanding, evidence, "--clients 400");
}

#[test]
fn rate_of_connections_that_was_asked_for_is_the_limit() {
    let mut closed = churn(&[(3 * MS, 1_000)]);
    closed.scenario.connections.rate_max = Some(1_000.0);
    let mut open = churn(&[(3 * MS, 1_000)]);
    open.scenario.connections.rate_max = Some(1_000.0);
    open.scenario.arrival = Arrival::Open {
        rate_qps: 1_500.0,
        process: Process::Constant,
        burst: 1,
    };
    change_last(&mut open, |interval| {
        interval.counts.offered += 5_000;
        interval.counts.not_sent.timed_out_waiting += 5_000;
    });
    for record in [closed, open] {
        let evidence = "1,000 connections were opened a second, as many as --connect-rate allows";
        judged(&record, Limit::Rate, evidence, "raise --connect-rate");
    }
}

/// A path of 20 ms: two round trips for each connection and one for its query keep 100 clients busy
/// with 1,600 queries a second.
fn over_a_long_path(latencies_ms: [u64; 10]) -> RunRecord {
    let intervals = (0..).zip(latencies_ms);
    let intervals = intervals.map(|(at, ms)| interval(at, &[(ms * MS, 1_600)]));
    let mut record = crate::rules::situations::record(intervals.collect());
    record.scenario = churn(&[]).scenario;
    record.scenario.arrival = in_time(2_000.0).scenario.arrival;
    for (interval, ms) in record.intervals.iter_mut().zip(latencies_ms) {
        interval.counts.offered = 2_000;
        let all = &mut interval.distributions;
        all.service = Histogram::new();
        all.service.record_many(20 * MS, 1_600);
        all.send_lateness = Histogram::new();
        all.send_lateness.record_many((ms - 20) * MS, 1_600);
        let times = &mut all.connections;
        times.tcp_connect.record_many(20 * MS, 1_600);
        times.tls_handshake.record_many(21 * MS, 1_600);
        interval.counts.connections.attempted = 1_600;
        interval.counts.connections.established = 1_600;
        interval.counts.connections.handshakes.full = 1_600;
        interval.counts.connections.closed_by_client = 1_600;
    }
    record.total = Interval::total(&record.intervals);
    record
}

#[test]
fn queries_that_wait_for_a_client_with_time_need_more_clients() {
    let growing = [40, 220, 420, 620, 820, 1_020, 1_220, 1_420, 1_620, 1_820];
    let mut record = over_a_long_path(growing);
    let evidence = "clients on average were setting up a connection";
    judged(&record, Limit::Outstanding, evidence, "--clients 400");
    // A worker that waits a little for its CPU is not why.
    record.workers[0].cpu_wait_ns = Some(record.workers[0].wall_ns / 12);
    judged(&record, Limit::Outstanding, evidence, "--clients 400");
    record.workers[0].cpu_ns = record.workers[0].wall_ns;
    assert_eq!(judge(&record).limit, Limit::Generator);
    // A server that answers later and later is the limit, however busy that keeps the clients.
    let mut record = over_a_long_path(growing);
    for (interval, ms) in record.intervals.iter_mut().zip(growing) {
        interval.distributions.service = Histogram::new();
        interval.distributions.service.record_many(ms * MS, 1_600);
    }
    record.total = Interval::total(&record.intervals);
    assert_eq!(judge(&record).limit, Limit::Server);
    // With time left, the clients are not too few.
    let mut record = over_a_long_path(growing);
    record.scenario.clients = 1_000;
    assert_ne!(judge(&record).limit, Limit::Outstanding);
}
