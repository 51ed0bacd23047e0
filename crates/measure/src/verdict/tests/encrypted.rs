//! Situations of encrypted transports: HTTP statuses, stream limits, short-lived connections.

use super::*;

/// A tenth of the queries of the last second, 1,000 of 11,000, got `status` instead of a message.
fn ended_by_http(record: &mut RunRecord, status: u64) {
    record.scenario.transport = Transport::Doh2.into();
    change_last(record, |interval| {
        interval.counts.offered += 10_000;
        interval.counts.sent += 10_000;
        let ended = &mut interval.counts.exchange_failures;
        ended.http_status.record_many(status, 10_000);
    });
}

#[test]
fn http_429_and_503_are_the_servers_limit() {
    for (status, name) in [
        (429, "429 Too Many Requests"),
        (503, "503 Service Unavailable"),
    ] {
        for mut record in [saturated(), open_loop(&[(MS, 1_000)], 10_000.0)] {
            ended_by_http(&mut record, status);
            let evidence = format!(
                "9.09 % of the queries were answered without a DNS message: 10,000 HTTP {name}"
            );
            let verdict = check(&record, Limit::Server, &evidence, "--local-address");
            let said = verdict.evidence.iter().filter(|line| **line == evidence);
            assert_eq!(said.count(), 1);
        }
    }
}

#[test]
fn http_404_says_to_look_at_the_request() {
    let mut record = saturated();
    ended_by_http(&mut record, 404);
    check(
        &record,
        Limit::Server,
        "10,000 HTTP 404 Not Found",
        "path and method",
    );
}

#[test]
fn few_streams_that_were_reset_are_told_and_decide_nothing() {
    let mut record = saturated();
    record.scenario.transport = Transport::Doq.into();
    change_last(&mut record, |interval| {
        interval.counts.offered += 7;
        interval.counts.sent += 7;
        interval
            .counts
            .exchange_failures
            .stream_reset
            .record_many(4, 7);
    });
    let verdict = check(
        &record,
        Limit::Server,
        "queries were in flight",
        "--rate 7000",
    );
    let line = "0.01 % of the queries were answered without a DNS message: 7 streams reset with \
                DOQ_EXCESSIVE_LOAD";
    assert!(
        verdict.evidence.iter().any(|evidence| evidence == line),
        "{verdict:#?}"
    );
}

#[test]
fn run_in_which_every_query_got_an_http_error_says_so() {
    let mut record = record(vec![interval(0, &[])]);
    ended_by_http(&mut record, 415);
    let evidence = "no response to 10,000 queries: 10,000 HTTP 415 Unsupported Media Type";
    check(&record, Limit::Unknown, evidence, "over doh2");
}

/// Ten connections that carry ten queries each at once; the other 900 of 1,000 places wait.
fn limited_by_streams(latencies: &[(u64, u64)]) -> RunRecord {
    let mut record = run(latencies);
    record.scenario.transport = Transport::Doh2.into();
    record.scenario.arrival = Arrival::Closed {
        outstanding: 1_000,
        rate_qps_max: None,
    };
    record.workers[0].streams_max = Some(10);
    change_last(&mut record, |interval| {
        interval.counts.waited_for_stream = 50_000
    });
    record
}

#[test]
fn limit_of_streams_is_a_cap_of_concurrency() {
    let record = limited_by_streams(&[(9_900_000, 1), (10 * MS, 999)]);
    let evidence = "100.0 of at most 1,000 queries were in flight: 10 connections with 10 at once \
                    carry no more than 100, but nothing queued: p50 9.9";
    let verdict = check(&record, Limit::Outstanding, evidence, "--clients 40");
    let waited = "50.00 % of the queries waited until their connection had carried others: 10 \
                  connections with 10 queries at once carry 100";
    assert!(
        verdict.evidence.iter().any(|line| line == waited),
        "{verdict:#?}"
    );
}

#[test]
fn queue_behind_a_limit_of_streams_is_the_servers_limit() {
    let record = limited_by_streams(&[(200_000, 1), (10 * MS, 999)]);
    let evidence = "no more than 100, while queries queued at the target: p50 9.9";
    check(&record, Limit::Server, evidence, "--rate 7000");
}

#[test]
fn limit_of_streams_that_no_query_met_is_no_limit() {
    let mut record = limited_by_streams(&[(200_000, 1), (10 * MS, 999)]);
    change_last(&mut record, |interval| {
        interval.counts.waited_for_stream = 0
    });
    check(
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
        check(&record, Limit::Unknown, words, "--clients 40");
    }
}

#[test]
fn pipelining_depth_of_the_scenario_is_a_cap_of_concurrency_too() {
    let mut record = limited_by_streams(&[(9_900_000, 1), (10 * MS, 999)]);
    record.scenario.transport = Transport::Tcp.into();
    record.workers[0].streams_max = None;
    record.scenario.connections.in_flight_max = Some(10);
    check(
        &record,
        Limit::Outstanding,
        "10 connections with 10 at once carry no more than 100",
        "--clients 40",
    );
}

/// One query a connection, 1,000 connections a second, each handshake taking `handshake_ns`.
fn churn(handshakes: &[(u64, u64)]) -> RunRecord {
    let mut record = record((0..10).map(|i| interval(i, &[(MS, 1_000)])).collect());
    record.scenario.transport = Transport::Dot.into();
    record.scenario.clients = 100;
    record.scenario.connections.queries_max = Some(1);
    for interval in &mut record.intervals {
        interval.counts.connections.attempted = 1_000;
        interval.counts.connections.established = 1_000;
        interval.counts.connections.handshakes.full = 1_000;
        interval.counts.connections.closed_by_client = 1_000;
        let times = &mut interval.distributions.connections;
        times.tcp_connect.record_many(2 * MS, 1_000);
        for &(handshake_ns, times_a_second) in handshakes {
            times
                .tls_handshake
                .record_many(handshake_ns, times_a_second);
        }
    }
    record.total = Interval::total(&record.intervals);
    record
}

#[test]
fn busy_worker_with_short_lived_connections_is_told_from_one_with_queries() {
    let mut record = churn(&[(90 * MS, 1_000)]);
    busy(&mut record, 0.985);
    let evidence = "worker 0 used 98.5 % of its CPU, with 1,000.0 handshakes a second beside the \
                    queries: this tool, not the target, set the rate";
    check(&record, Limit::Generator, evidence, "--workers 2");
}

#[test]
fn handshakes_that_queue_are_the_servers_limit() {
    let record = churn(&[(3 * MS, 1), (95 * MS, 999)]);
    let evidence = "96.9 of 100 clients on average were setting up a connection (1,000.0 a \
                    second), and they queued at the target: TLS handshake p50 95.00 ms";
    let verdict = check(&record, Limit::Server, evidence, "carry more queries");
    assert!(
        verdict.evidence[0].ends_with("against the shortest 3.000 ms"),
        "{verdict:#?}"
    );
}

#[test]
fn handshakes_that_wait_for_round_trips_alone_are_the_outstanding_limit() {
    let record = churn(&[(94 * MS, 1), (95 * MS, 999)]);
    let evidence = "but nothing queued: TLS handshake p50 95.00 ms is near the shortest 94.00 ms";
    check(&record, Limit::Outstanding, evidence, "--clients 400");
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
        let evidence = "1,000.0 connections were opened a second, as many as --connect-rate allows";
        check(&record, Limit::Rate, evidence, "raise --connect-rate");
    }
}

#[test]
fn cap_on_quic_clients_is_named_with_its_number() {
    let mut record = saturated();
    record.scenario.transport = Transport::Doq.into();
    record.scenario.clients = 200;
    serve(&mut record, 150, 50);
    change_last(&mut record, |interval| {
        interval.counts.connections.attempted = 200;
        interval.counts.connections.failed.refused = 50;
    });
    let evidence =
        "no more than 150 QUIC clients at once: 50 of 200 got no response at all (refused";
    check(&record, Limit::Server, evidence, "--clients 100");
}

#[test]
fn failed_handshakes_are_named_by_their_cause() {
    let mut record = record(vec![interval(0, &[])]);
    record.scenario.transport = Transport::Doq.into();
    let failed = &mut record.warmup.counts.connections.failed;
    failed.tls_alert.record("no_application_protocol");
    failed.quic_transport.record(2);
    let evidence = "no query could be sent: 1 connection attempts failed: TLS alert \
                    no_application_protocol, 1 connection attempts failed: QUIC transport error \
                    CONNECTION_REFUSED";
    check(
        &record,
        Limit::Unknown,
        evidence,
        "answers at 192.0.2.1:53 over doq",
    );
}
