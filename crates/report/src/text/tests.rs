use measure::{Interval, Transport, judge};

use super::*;
use crate::example;

/// Compares line by line, so that a difference is easy to find.
fn check(text: &str, expected: &str) {
    for (number, (line, wanted)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(line, wanted, "line {} of\n{text}", number + 1);
    }
    assert_eq!(text, expected);
}

#[test]
fn clean_self_test_reads_as_expected() {
    check(
        &render(&example::udp_self_test()),
        include_str!("expected/udp_self_test.txt"),
    );
}

#[test]
fn dot_run_with_every_kind_of_loss_reads_as_expected() {
    check(&render(&example::dot()), include_str!("expected/dot.txt"));
}

#[test]
fn run_without_a_response_shows_no_latency_and_says_why() {
    let mut record = example::udp_self_test();
    record.self_test = false;
    let mut interval = Interval {
        end_ns: 2_000_000_000,
        ..Interval::default()
    };
    interval.counts.offered = 10;
    interval.counts.sent = 10;
    interval.counts.timeouts = 10;
    record.intervals = vec![interval.clone()];
    record.total = interval;
    record.responses_in_window = 0;
    record.verdict = judge(&record);
    let text = render(&record);
    assert!(
        !text.contains("Latency") && !text.contains("RCODEs"),
        "{text}"
    );
    assert!(
        text.contains("  - no response to 10 queries: 10 timed out\n"),
        "{text}"
    );
    assert!(
        text.contains("  goodput              0.0  qps               -  of"),
        "{text}"
    );
}

#[test]
fn many_workers_are_summed_up() {
    let mut record = example::udp_self_test();
    let mut idle = record.workers[0].clone();
    idle.cpu_ns = 0;
    record.workers = [vec![record.workers[0].clone(); 8], vec![idle]].concat();
    let text = render(&record);
    assert!(
        text.contains("  9 workers      busy 0.0 % to 25.0 % of their CPUs\n"),
        "{text}"
    );
}

#[test]
fn tcp_fallback_shows_its_queries_and_connections() {
    let mut record = example::udp_self_test();
    assert_eq!(record.scenario.transport, Transport::Udp);
    let counts = &mut record.total.counts;
    counts.truncated = 7;
    counts.tcp_fallback.sent = 7;
    counts.tcp_fallback.responses = 6;
    counts.tcp_fallback.timeouts = 1;
    counts.connections.attempted = 3;
    counts.connections.established = 3;
    record
        .total
        .distributions
        .tcp_fallback
        .record_many(2_000_000, 6);
    let text = render(&record);
    let oddity = "  TCP fallback  7  queries again over TCP: 6 answered, 1 timed out, 0 connection";
    assert!(text.contains(oddity), "{text}");
    assert!(
        text.contains("  TCP fallback latency: p50 2.000 ms, p99 2.000 ms"),
        "{text}"
    );
    assert!(
        text.contains("\nConnections\n  attempted           3\n"),
        "{text}"
    );
}

#[test]
fn interval_line_is_one_aligned_line() {
    let record = example::dot();
    let lines: Vec<String> = record.intervals.iter().map(interval_line).collect();
    let expected = "   1.0 s  sent     1,000    1,000.0 qps  responses     1,000    1,000.0 qps  \
        lost      0  p50 5.489 ms  p99 5.489 ms  in flight     5.0";
    assert_eq!(lines[0], expected);
    assert!(lines[1].contains("sent     1,012  ") && lines[1].contains("  lost     20  "));
    assert_eq!(lines[0].len(), lines[1].len());
    let nothing = interval_line(&Interval::default());
    assert!(nothing.ends_with("lost      0  p50        -  p99        -  in flight     0.0"));
}
