use std::time::Duration;

use measure::facts::XdpFacts;
use measure::{ConnectionPolicy, Interval, ResponderFacts, Transport, judge};

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
fn doh_run_with_short_lived_connections_reads_as_expected() {
    check(&render(&example::doh2()), include_str!("expected/doh2.txt"));
}

#[test]
fn run_without_queries_tells_of_connections_alone() {
    let record = example::without_queries();
    check(
        &render(&record),
        include_str!("expected/without_queries.txt"),
    );
    let line = connections_line(&record.intervals[1], true);
    let expected = concat!(
        "   2.0 s  attempted       500  opened       494       494.0 a second  failed      6",
        "  TLS handshake p50 2.500 ms  p99 2.500 ms",
    );
    assert_eq!(line, expected);
    let nothing = connections_line(&Interval::default(), true);
    assert!(nothing.ends_with("opened         0         0.0 a second  failed      0"));
}

#[test]
fn run_without_queries_and_without_a_rate_has_none_that_was_asked() {
    let mut record = example::without_queries();
    record.scenario.connections.rate_max = None;
    record.scenario.connections.reconnect_delay = Duration::from_millis(500);
    let text = render(&record);
    let load = "  load         one connection after the other, no queries; 10 clients, 1 worker\n";
    assert!(text.contains(load), "{text}");
    assert!(
        text.contains("\nResult\n  attempted        1,000  connections"),
        "{text}"
    );
}

#[test]
fn fast_opened_and_abandoned_connections_are_told() {
    let mut record = example::doh2();
    record.scenario.connections.tcp_fast_open = true;
    record.total.counts.connections.fast_opened = 190;
    record.total.counts.connections.abandoned = 2;
    let text = render(&record);
    let fast = "  fast opened             190  the target accepted the first bytes with the SYN\n";
    assert!(text.contains(fast), "{text}");
    let abandoned = "  abandoned                 2  in progress when the run ended\n";
    assert!(text.contains(abandoned), "{text}");
}

#[test]
fn tickets_that_allow_no_early_data_are_told_where_it_was_asked_for() {
    let mut record = example::doh2();
    let connections = &mut record.total.counts.connections;
    connections.early_data = measure::counts::EarlyData::default();
    connections.handshakes.resumed = 90;
    record.warmup.counts.connections.early_data = measure::counts::EarlyData::default();
    let text = render(&record);
    let told = |line: &str| line.contains("early data (0-RTT)") && line.contains(" 0  none could");
    assert!(text.lines().any(told), "{text}");
    assert!(
        text.contains("the tickets of the target allow none"),
        "{text}"
    );
}

#[test]
fn quic_connections_show_no_tcp_and_their_ends_by_name() {
    let mut record = example::doh2();
    record.scenario.transport = Transport::Doq.into();
    record.scenario.http = None;
    let mut interval = Interval::default();
    let connections = &mut interval.counts.connections;
    connections.attempted = 20;
    connections.handshakes.full = 12;
    connections.failed.quic_version = 1;
    connections.failed.quic_transport.record_many(2, 3);
    connections
        .failed
        .tls_alert
        .record("no_application_protocol");
    connections.quic_application.record_many(4, 2);
    connections.quic_transport.record(0xa);
    connections.quic_idle_timeouts = 5;
    let times = &mut interval.distributions.connections;
    times.quic_handshake.record_many(3_000_000, 12);
    record.total = interval;
    record.intervals = Vec::new();
    record.warmup = Interval::default();
    let text = render(&record);
    let expected = "
Connections
  attempted           20
  QUIC handshakes     12  12 full
  failed               5  1 no common QUIC version, 1 TLS alert no_application_protocol, \
        3 QUIC transport error CONNECTION_REFUSED
  open at once, most   0  of 50 clients, at the end of an interval
  closed with a code   2  2 DOQ_EXCESSIVE_LOAD
  QUIC error           1  1 PROTOCOL_VIOLATION
  QUIC idle timeout    5  nothing heard from the target
                       times       p50       p99       max
  full QUIC handshake     12  3.000 ms  3.000 ms  3.000 ms
";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn policy_of_connections_and_tls_is_told_in_plain_words() {
    let mut record = example::doh2();
    let scenario = &mut record.scenario;
    scenario.edns_keepalive = true;
    scenario.connections = ConnectionPolicy {
        queries_max: Some(0),
        duration: Some(Duration::from_secs(3)),
        idle_timeout: None,
        reconnect_delay: Duration::from_millis(500),
        in_flight_max: Some(1),
        tcp_fast_open: true,
        stop_sending_allowed: false,
        rate_max: Some(1_000.0),
    };
    let tls = scenario.tls.as_mut().expect("has TLS");
    tls.verified = false;
    tls.settings.spki_pins = 2;
    tls.settings.resume_share = 1.0;
    tls.settings.client_certificate = true;
    tls.settings.key_log = true;
    tls.settings.stock_records = true;
    let text = render(&record);
    let connections = "  connections  opened and closed without a query; closed after 3.000 s; \
        reopened after 500.0 ms; 1 query at once; TCP Fast Open; at most 1,000 opened a \
        second\n";
    assert!(text.contains(connections), "{text}");
    let trust = "; certificate not verified, 2 key pins; client certificate; sessions resumed; \
        early data; secrets written to a file; stock records\n";
    assert!(text.contains(trust), "{text}");
    assert!(text.contains("; EDNS keepalive; "), "{text}");
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
        text.contains("  goodput              0.0  qps            -  of"),
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
    record.responder = Some(ResponderFacts {
        accepts_failed: 3,
        ..ResponderFacts::default()
    });
    record.network.xdp = Some(XdpFacts {
        peer_sent_dropped: 5,
        peer_received_dropped: 9,
        ..XdpFacts::default()
    });
    let text = render(&record);
    for row in [
        "  dropped before  5  frames to the interface, which had no room for them before AF_XDP \
            saw them\n",
        "  dropped beyond  9  frames from the interface, on leaving it or at the other end of a",
    ] {
        assert!(text.contains(row), "{text}");
    }
    let row = "  not accepted    3  times that the built-in responder had no file descriptor for a";
    assert!(text.contains(row), "{text}");
    let oddity =
        "  TCP fallback    7  queries retried over TCP: 6 answered, 1 timed out, 0 connection";
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
    let expected = "   1.0 s  sent     1,000      1,000 qps  responses     1,000      1,000 qps  \
        lost      0  p50 5.489 ms  p99 5.489 ms  in flight     5.0";
    assert_eq!(lines[0], expected);
    assert!(lines[1].contains("sent     1,012  ") && lines[1].contains("  lost     20  "));
    assert_eq!(lines[0].len(), lines[1].len());
    let nothing = interval_line(&Interval::default());
    assert!(nothing.ends_with("lost      0  p50        -  p99        -  in flight     0.0"));
}

#[test]
fn choice_of_questions_is_told_where_it_is_not_the_default() {
    use measure::QuestionOrder;
    use measure::scenario::{GeneratedLabels, LabelForm, QtypeShare, RepeatedQuestions};
    let mut record = example::udp_self_test();
    let questions = &mut record.scenario.questions;
    questions.choice.order = QuestionOrder::Zipf { exponent: 0.9 };
    for (qtype, share) in [("A", 0.75), ("HTTPS", 0.25)] {
        let qtype = qtype.to_owned();
        questions.choice.qtypes.push(QtypeShare { qtype, share });
    }
    let text = render(&record);
    let line = "names.txt, 1,000 questions; Zipf, exponent 0.9; A 75.0 %, HTTPS 25.0 %\n";
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("asked before"), "{text}");

    let questions = &mut record.scenario.questions;
    questions.choice = measure::QuestionChoice::default();
    (questions.source, questions.count) = ("random labels under a.test".into(), 1);
    questions.choice.labels = Some(GeneratedLabels {
        form: LabelForm::Random,
        octets_min: 4,
        octets_max: 16,
        seed: 9,
    });
    questions.choice.repeats = Some(RepeatedQuestions {
        share: 0.8,
        ttl_ns: Some(60_000_000_000),
        names_max: 10_000,
    });
    record.total.counts.repeated = record.total.counts.offered / 2;
    let text = render(&record);
    for line in [
        "random labels under a.test; random labels of 4 to 16 bytes; \
         80.0 % repeat one of 10,000 asked before within 60.0 s\n",
        " of them asked before (50.00 %, 80.0 % wanted)\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn words_so_far_name_no_cause_without_a_verdict() {
    let mut interval = Interval::default();
    let mut counts = Counts::default();
    assert_eq!(so_far(&counts, &interval, None), None);
    (counts.offered, counts.timeouts) = (1_000, 31);
    let lost = so_far(&counts, &interval, None);
    assert_eq!(lost.as_deref(), Some("lost so far: 3.10 %"));
    let lateness = &mut interval.distributions.send_lateness;
    lateness.record_many(500_000_000, 10);
    let late = so_far(&counts, &interval, None).unwrap();
    assert!(late.starts_with("sent late: p99 50"), "{late}");
    let mut verdict = Verdict::default();
    let judged = so_far(&counts, &interval, Some(&verdict));
    assert_eq!(judged.as_deref(), Some("limit so far: undecided"));
    verdict.limit = Limit::Server;
    let judged = so_far(&counts, &interval, Some(&verdict));
    assert_eq!(judged.as_deref(), Some("limit so far: server"));
}
