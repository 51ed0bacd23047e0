//! Finding for short-lived connections: their set-up, not the queries, took the time.

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
