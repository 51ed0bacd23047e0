//! Made-up records for the tests of rules, with the expected verdicts and diagnoses.

use super::of_run;
pub(crate) use crate::doctor::{Diagnosis, State};
pub(crate) use crate::example::{SECOND, cap_tcp_clients, interval, record, serve};
pub(crate) use crate::interval::Interval;
pub(crate) use crate::limit::{Limit, Verdict};
pub(crate) use crate::record::RunRecord;
pub(crate) use crate::rules::judge;
pub(crate) use crate::scenario::{Arrival, Process, Transport};
use crate::timeline::{Bin, Timeline};

pub(crate) const MS: u64 = 1_000_000;

/// A run of ten intervals with 10,000 responses each, full at 100 slots: `latencies` in ns and
/// their share in thousandths.
pub(crate) fn run(latencies: &[(u64, u64)]) -> RunRecord {
    let scaled: Vec<_> = latencies
        .iter()
        .map(|&(ns, share)| (ns, 10 * share))
        .collect();
    record((0..10).map(|index| interval(index, &scaled)).collect())
}

/// Closed loop with all 100 slots in use: 10,000 qps x 10 ms; a queue of 10 ms over 0.2 ms.
pub(crate) fn saturated() -> RunRecord {
    run(&[(200_000, 1), (10 * MS, 999)])
}

pub(crate) fn open_loop(latencies: &[(u64, u64)], rate_qps: f64) -> RunRecord {
    let mut record = run(latencies);
    record.scenario.arrival = Arrival::Open {
        rate_qps,
        process: Process::Constant,
        burst: 1,
    };
    record
}

/// An open loop in which every query of 10,000 a second was answered within 1 ms.
pub(crate) fn in_time(rate_qps: f64) -> RunRecord {
    open_loop(&[(MS, 1_000)], rate_qps)
}

/// Turns responses that never came into timeouts: `number` more queries, all lost.
pub(crate) fn lose(record: &mut RunRecord, number: u64) {
    change_last(record, |interval| {
        interval.counts.offered += number;
        interval.counts.sent += number;
        interval.counts.timeouts += number;
    });
}

/// 1,000 queries a second for ten seconds, of which `answered` are in the bin of that number.
pub(crate) fn limited(answered: impl Fn(u64) -> u64) -> RunRecord {
    let mut timeline = Timeline::new();
    let mut all = 0;
    for bin in 0..1_000 {
        let responses = answered(bin).min(10);
        all += responses;
        let what = Bin {
            due: 10,
            sent: 10,
            responses,
            latency_us: responses * 100,
            lost: 10 - responses,
            ..Bin::default()
        };
        timeline.add(bin * 10_000_000, &what);
    }
    let mut record = crate::example::record((0..10).map(|i| interval(i, &[])).collect());
    record.scenario.arrival = open_loop(&[(MS, 1_000)], 1_000.0).scenario.arrival;
    let answered = interval(9, &[(100_000, all)]);
    change_last(&mut record, |it| *it = answered.clone());
    lose(&mut record, 10_000 - all);
    record.timeline = Some(timeline);
    record
}

/// A number that looks random.
pub(crate) fn scattered(bin: u64) -> u64 {
    let mixed = bin.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 60
}

pub(crate) fn change_last(record: &mut RunRecord, change: impl Fn(&mut Interval)) {
    change(record.intervals.last_mut().expect("has intervals"));
    record.total = Interval::total(&record.intervals);
}

pub(crate) fn busy(record: &mut RunRecord, share: f64) {
    let wall_ns = record.measured_ns;
    record.workers[0].cpu_ns = (share * wall_ns as f64) as u64;
    record.workers[0].wall_ns = wall_ns;
}

pub(crate) fn late(record: &mut RunRecord, lateness_ns: u64) {
    change_last(record, |interval| {
        interval
            .distributions
            .send_lateness
            .record_many(lateness_ns, 10_000);
    });
}

/// Ten connections that carry ten queries each at once; the other 900 of 1,000 slots wait.
pub(crate) fn limited_by_streams(latencies: &[(u64, u64)]) -> RunRecord {
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

/// One query a connection, 1,000 connections a second, each handshake taking `handshake_ns`.
pub(crate) fn churn(handshakes: &[(u64, u64)]) -> RunRecord {
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

/// Checks limit, a part of the first evidence and a part of the first advice.
#[track_caller]
pub(crate) fn judged(record: &RunRecord, limit: Limit, evidence: &str, advice: &str) -> Verdict {
    let verdict = judge(record);
    assert_eq!(verdict.limit, limit, "{verdict:#?}");
    assert!(verdict.evidence[0].contains(evidence), "{verdict:#?}");
    assert!(
        verdict.advice.iter().any(|line| line.contains(advice)),
        "{verdict:#?}"
    );
    verdict
}

/// The doctor's diagnoses of a run, after judging it.
pub(crate) fn met(record: &RunRecord) -> Vec<Diagnosis> {
    let mut record = record.clone();
    record.verdict = judge(&record);
    of_run(&record)
}

/// The doctor's diagnosis on `topic`, if any.
pub(crate) fn found_on(record: &RunRecord, topic: &str) -> Option<Diagnosis> {
    met(record).into_iter().find(|it| it.topic == topic)
}

/// The doctor's diagnosis on `topic`.
#[track_caller]
pub(crate) fn told(record: &RunRecord, topic: &str) -> Diagnosis {
    let found = found_on(record, topic);
    found.unwrap_or_else(|| panic!("nothing on {topic}: {:#?}", met(record)))
}
