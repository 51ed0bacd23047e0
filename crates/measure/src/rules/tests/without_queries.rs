//! Runs that open connections and ask nothing.

use crate::counts::Connections;
use crate::facts::TcpFacts;
use crate::rules::situations::*;
use std::time::Duration;

/// Ten seconds of 1,000 connections each, all opened, by ten clients; `connects` in ns and times.
fn opening(connects: &[(u64, u64)]) -> RunRecord {
    opening_for(10, connects)
}

fn opening_for(seconds: u64, connects: &[(u64, u64)]) -> RunRecord {
    let mut record = record((0..seconds).map(|index| interval(index, &[])).collect());
    record.scenario.transport = Transport::Tcp.into();
    record.scenario.connections.queries_max = Some(0);
    for interval in &mut record.intervals {
        let connections = &mut interval.counts.connections;
        connections.attempted = 1_000;
        connections.established = 1_000;
        connections.closed_by_client = 1_000;
        connections.closed_by_client_for.without_query = 1_000;
        let times = &mut interval.distributions.connections;
        for &(connect_ns, times_a_second) in connects {
            times.tcp_connect.record_many(connect_ns, times_a_second);
        }
    }
    record.total = Interval::total(&record.intervals);
    record
}

fn asked(mut record: RunRecord, rate: f64) -> RunRecord {
    record.scenario.connections.rate_max = Some(rate);
    record
}

#[test]
fn connect_rate_that_was_held_is_the_limit() {
    let record = asked(opening(&[(MS, 1_000)]), 1_000.0);
    let evidence =
        "1,000 connections were opened a second, of the 1,000 that --connect-rate asks for";
    let verdict = judged(&record, Limit::Rate, evidence, "raise --connect-rate");
    assert_eq!(verdict.evidence.len(), 1, "{verdict:#?}");
}

#[test]
fn clients_that_are_all_setting_up_are_too_few() {
    let record = opening(&[(9 * MS, 1), (10 * MS, 999)]);
    let evidence = "10.0 of 10 clients on average were setting up a connection (1,000 a \
                    second), but nothing queued: TCP connect p50 9.9";
    judged(&record, Limit::Outstanding, evidence, "--clients 40");
}

#[test]
fn clients_that_queue_at_the_target_are_the_servers_limit() {
    let record = asked(opening(&[(MS / 10, 1), (10 * MS, 999)]), 1_500.0);
    let evidence = "10.0 of 10 clients on average were setting up a connection (1,000 a \
                    second), and they queued at the target: TCP connect p50 9.9";
    let verdict = judged(&record, Limit::Server, evidence, "--connect-rate 700");
    let shortfall =
        "1,000 of the 1,500 connections a second that --connect-rate asks for were opened";
    assert_eq!(verdict.evidence[1], shortfall);
}

#[test]
fn clients_that_wait_as_told_are_the_outstanding_limit() {
    let mut record = opening(&[(MS, 1_000)]);
    record.scenario.connections.reconnect_delay = Duration::from_millis(9);
    let evidence =
        "9.0 of 10 clients on average waited for --reconnect-delay (1,000 connections a second)";
    judged(&record, Limit::Outstanding, evidence, "--clients 40");
}

#[test]
fn busy_worker_is_the_generators_limit_unless_the_rate_was_held() {
    let mut record = asked(opening(&[(10 * MS, 1_000)]), 2_000.0);
    busy(&mut record, 0.985);
    let evidence = "worker 0 used 98.5 % of its CPU, with 1,000 connections a second: this \
                    tool, not the target, set the rate";
    judged(&record, Limit::Generator, evidence, "--workers 2");
    let record = asked(record, 1_000.0);
    judged(&record, Limit::Rate, "1,000 connections", "raise");
}

#[test]
fn want_of_ports_is_the_generators_limit() {
    let mut record = opening(&[(MS, 1_000)]);
    change_last(&mut record, |interval| {
        interval.counts.connections.attempted += 500;
        interval.counts.connections.failed.no_local_port = 500;
    });
    let evidence = "500 connection attempts failed because this host ran out of local ports";
    judged(&record, Limit::Generator, evidence, "--local-address");
}

#[test]
fn few_failed_attempts_do_not_limit_a_rate_that_was_held() {
    let mut record = asked(opening(&[(MS, 1_000)]), 1_000.0);
    change_last(&mut record, |interval| {
        let connections = &mut interval.counts.connections;
        connections.attempted += 9;
        connections.failed.no_local_port = 3;
        connections.failed.refused = 3;
        connections.failed.timed_out = 3;
    });
    assert_eq!(judge(&record).limit, Limit::Rate);
}

#[test]
fn refused_connections_are_the_servers_limit_though_the_rate_was_held() {
    let mut record = asked(opening(&[(MS, 1_000)]), 1_000.0);
    change_last(&mut record, |interval| {
        interval.counts.connections.attempted += 100;
        interval.counts.connections.failed.refused = 70;
        interval.counts.connections.failed.timed_out = 30;
    });
    let evidence = "0.99 % of 10,100 connection attempts failed: 70 refused, 30 timed out";
    judged(&record, Limit::Server, evidence, "--connect-rate 800");
}

/// Of 500 attempts a second, `admitted` succeed in each and the others are refused.
fn refusing(admitted: impl Fn(u64) -> u64) -> RunRecord {
    refusing_for(10, |second| (500, admitted(second)))
}

/// Attempts in each of these seconds, and those of them that succeed; the others are refused.
fn refusing_for(seconds: u64, of: impl Fn(u64) -> (u64, u64)) -> RunRecord {
    let mut record = asked(opening_for(seconds, &[]), 500.0);
    for (second, interval) in (0..).zip(&mut record.intervals) {
        let ((attempted, admitted), connections) = (of(second), &mut interval.counts.connections);
        connections.attempted = attempted;
        connections.established = admitted;
        connections.closed_by_client = admitted;
        connections.closed_by_client_for.without_query = admitted;
        connections.failed.refused = attempted - admitted;
        interval
            .distributions
            .connections
            .tcp_connect
            .record_many(MS / 10, admitted);
    }
    record.total = Interval::total(&record.intervals);
    record
}

#[test]
fn attempts_refused_all_through_the_run_leave_the_cause_open() {
    let verdict = judged(
        &refusing(|_| 100),
        Limit::Unknown,
        "turned attempts away all through the run: of 5,000 attempts, 4,000 were refused",
        "--connect-rate 250",
    );
    assert!(!verdict.evidence[0].contains("p50"), "{verdict:#?}");
    // All of them at last: the server ended, or its port was closed.
    let closed = refusing(|second| if second < 5 { 500 } else { 0 });
    let evidence = "50.00 % of 5,000 connection attempts failed: 2,500 refused";
    judged(&closed, Limit::Server, evidence, "--connect-rate 200");
}

#[test]
fn as_many_admitted_of_more_and_of_fewer_attempts_are_a_limit_on_them() {
    let attempted = |second| 150 + 20 * scattered(second);
    let fixed = refusing_for(30, |second| (attempted(second), 100));
    let evidence = "100.0 new connections were admitted a second, however many were attempted";
    let verdict = judge(&fixed);
    assert_eq!(verdict.limit, Limit::Policy, "{verdict:#?}");
    assert!(verdict.evidence[0].contains(evidence), "{verdict:#?}");
    // A share of them is none.
    let share = refusing_for(30, |second| (attempted(second), attempted(second) / 3));
    assert_eq!(judge(&share).limit, Limit::Unknown);
}

#[test]
fn segments_sent_again_are_the_networks_limit() {
    let mut record = opening(&[(MS, 1_000)]);
    // Those of other connections of this host have nothing to do with it.
    record
        .network
        .kernel
        .insert("Tcp.RetransSegs".into(), 5_000);
    judged(&record, Limit::Unknown, "only 1.0 of 10 clients", "");
    record.network.tcp = Some(TcpFacts {
        closed: 3_000,
        read: 3_000,
        segments_sent: 10_000,
        segments_repeated: 600,
        segments_repeated_in_vain: 100,
        ..TcpFacts::default()
    });
    let evidence = "5.00 % of the TCP segments of this run's connections (500) were lost";
    judged(&record, Limit::Network, evidence, "drops on the path");
}

#[test]
fn handshakes_are_what_opens_connections_of_tls() {
    let mut record = opening(&[(MS, 1_000)]);
    record.scenario.transport = Transport::Dot.into();
    for interval in &mut record.intervals {
        interval.counts.connections.handshakes.full = 1_000;
        let times = &mut interval.distributions.connections;
        times.tls_handshake.record_many(9 * MS, 1_000);
    }
    record.total = Interval::total(&record.intervals);
    let evidence = "10.0 of 10 clients on average were setting up a connection (1,000 a \
                    second), but nothing queued: TLS handshake p50 9.000 ms";
    judged(&record, Limit::Outstanding, evidence, "--clients 40");
}

#[test]
fn idle_clients_without_a_cause_are_blamed_on_nobody() {
    let record = asked(opening(&[(MS, 1_000)]), 1_500.0);
    let evidence = "only 1.0 of 10 clients on average were setting up a connection (1,000 a \
                    second), with no worker out of CPU and 0 attempts failed";
    let verdict = judged(&record, Limit::Unknown, evidence, "idle host");
    assert!(verdict.evidence[1].contains("1,500"), "{verdict:#?}");
}

#[test]
fn run_that_opened_nothing_says_why() {
    let mut nothing = opening(&[]);
    for interval in &mut nothing.intervals {
        interval.counts.connections = measured_failures();
    }
    nothing.total = Interval::total(&nothing.intervals);
    let evidence = "no connection could be opened: 20 attempts failed: 20 refused";
    judged(
        &nothing,
        Limit::Unknown,
        evidence,
        "listens at 192.0.2.1:53 for tcp",
    );

    for interval in &mut nothing.intervals {
        interval.counts.connections = Default::default();
    }
    nothing.total = Interval::total(&nothing.intervals);
    let evidence = "the run was over before the first connection";
    judged(&nothing, Limit::Unknown, evidence, "listens at");
}

fn measured_failures() -> Connections {
    let mut connections = Connections {
        attempted: 2,
        ..Default::default()
    };
    connections.failed.refused = 2;
    connections
}

#[test]
fn short_run_is_not_judged() {
    let mut record = opening(&[(MS, 1_000)]);
    record.measured_ns = 400 * MS;
    judged(&record, Limit::Unknown, "only 400.0 ms", "--duration 10s");
}
