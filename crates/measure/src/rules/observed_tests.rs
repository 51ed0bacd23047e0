//! What observed servers tell of themselves, in records that are made up: the evidence, and which
//! of it decides.

use crate::example::{SECOND, interval, record};
use crate::observation::{
    NoValue, Observation, ObservationMode, Observed, Recorder, Sample, Scrape, SeriesKind,
    ServerFacts,
};
use crate::record::RunRecord;
use crate::scenario::{Arrival, Process};
use crate::verdict::{Limit, judge};

const MS: u64 = 1_000_000;

/// A source that was asked before a run of ten seconds, each second of it, and after it. Counters
/// grow by so much in each second; gauges stay.
fn observation(name: &str, facts: ServerFacts, series: &[(&str, SeriesKind, f64)]) -> Observation {
    let mut recorder = Recorder::new(name, name, ObservationMode::During, SECOND);
    *recorder.facts() = facts;
    for second in 0..12 {
        let at_ns = i64::from(second) * SECOND as i64 - SECOND as i64 / 2;
        // Nothing happens before the run, nor after it.
        let passed = (at_ns as f64 / 1e9).clamp(0.0, 10.0);
        let values = series.iter().map(|(name, kind, value)| Observed {
            name: (*name).to_owned(),
            unit: "any".to_owned(),
            kind: *kind,
            value: match kind {
                SeriesKind::Counter => value * passed,
                SeriesKind::Gauge => *value,
            },
            is_stale: false,
        });
        recorder.push(Scrape::between(at_ns, at_ns + MS as i64), values.collect());
    }
    recorder.finish()
}

/// A program on two CPUs that used so many of them, its busiest thread so much of one.
fn program(cpus: f64, thread: f64, more: &[(&str, SeriesKind, f64)]) -> Observation {
    let facts = ServerFacts {
        binary: Some("/usr/sbin/named".to_owned()),
        cpus: Some("0-1".to_owned()),
        ..ServerFacts::default()
    };
    let mut series = vec![
        ("cpu.user", SeriesKind::Counter, 0.75 * cpus),
        ("cpu.system", SeriesKind::Counter, 0.25 * cpus),
        ("cpu.busiest_thread", SeriesKind::Gauge, thread),
    ];
    series.extend(more);
    observation("process", facts, &series)
}

/// A server that counted so many queries in each second.
fn server(queries: f64, more: &[(&str, SeriesKind, f64)]) -> Observation {
    let facts = ServerFacts {
        product: Some("BIND".to_owned()),
        ..ServerFacts::default()
    };
    let mut series = vec![("queries", SeriesKind::Counter, queries)];
    series.extend(more);
    observation("bind", facts, &series)
}

/// All 100 places of a closed loop in use at a queue: the load says that it is the server.
fn saturated() -> RunRecord {
    let latencies = [(200_000, 10), (10 * MS, 9_990)];
    record((0..10).map(|index| interval(index, &latencies)).collect())
}

/// So many places that nothing queued.
fn with_few_places() -> RunRecord {
    record(
        (0..10)
            .map(|index| interval(index, &[(10 * MS, 10_000)]))
            .collect(),
    )
}

fn kept_up() -> RunRecord {
    let mut record = record(
        (0..10)
            .map(|index| interval(index, &[(MS, 10_000)]))
            .collect(),
    );
    record.scenario.arrival = Arrival::Open {
        rate_qps: 10_000.0,
        process: Process::Constant,
        burst: 1,
    };
    record
}

fn observing(mut record: RunRecord, observations: &[Observation]) -> RunRecord {
    record.observations = observations.to_vec();
    record.verdict = judge(&record);
    record
}

/// The verdict's evidence and advice as one text.
fn told(record: &RunRecord) -> String {
    let verdict = &record.verdict;
    let all = verdict.evidence.iter().chain(&verdict.advice);
    all.cloned().collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn tells(record: &RunRecord, words: &[&str]) {
    let told = told(record);
    for words in words {
        assert!(told.contains(words), "no `{words}` in:\n{told}");
    }
}

#[test]
fn a_server_that_has_used_its_cpus_is_told_with_its_figures() {
    let record = observing(saturated(), &[program(1.96, 0.99, &[])]);
    assert_eq!(record.verdict.limit, Limit::Server);
    tells(
        &record,
        &["named used 1.96 of its 2.00 CPUs (98.0 %): its CPU is the limit"],
    );
    // What the load shows by itself stands beside, with its advice.
    assert!(record.verdict.evidence[0].contains("its CPU is the limit"));
    tells(
        &record,
        &["queries queued at the target", "run with --rate 7000"],
    );
}

#[test]
fn a_server_without_cpu_left_is_the_limit_where_the_load_alone_does_not_tell() {
    let alone = observing(with_few_places(), &[]);
    assert_eq!(alone.verdict.limit, Limit::Outstanding);
    let record = observing(with_few_places(), &[program(1.96, 0.99, &[])]);
    assert_eq!(record.verdict.limit, Limit::Server, "{:#?}", record.verdict);
    let record = observing(kept_up(), &[program(1.96, 0.99, &[])]);
    assert_eq!(record.verdict.limit, Limit::Rate, "{:#?}", record.verdict);
}

#[test]
fn one_full_thread_is_told_from_a_full_server() {
    let record = observing(saturated(), &[program(1.1, 0.97, &[])]);
    tells(
        &record,
        &[
            "one of its threads was busy 97.0 % of the time",
            "named -n 2",
        ],
    );
}

#[test]
fn a_quota_that_stops_the_server_is_its_limit() {
    let periods = [
        ("group.periods", SeriesKind::Counter, 10.0),
        ("group.throttled_periods", SeriesKind::Counter, 9.0),
    ];
    let mut program = program(0.5, 0.3, &periods);
    program.facts.quota_cpus = Some(0.5);
    let record = observing(with_few_places(), &[program]);
    assert_eq!(record.verdict.limit, Limit::Server);
    tells(
        &record,
        &[
            "0.50 of its 0.50 CPUs",
            "its CPU quota stopped it in 90.0 % of the periods",
        ],
    );
}

#[test]
fn time_in_which_others_had_its_cpus_is_told() {
    let waited = [("cpu.wait", SeriesKind::Counter, 0.8)];
    let record = observing(saturated(), &[program(1.2, 0.6, &waited)]);
    tells(&record, &["had to wait for a CPU, 0.80 s in each second"]);
}

#[test]
fn an_idle_server_that_fell_behind_waited_for_something() {
    let record = observing(saturated(), &[program(0.2, 0.1, &[])]);
    tells(
        &record,
        &["had CPU to spare and dropped nothing: it waited for something else"],
    );
    let record = observing(kept_up(), &[program(0.2, 0.1, &[])]);
    assert!(!told(&record).contains("had CPU to spare"));
}

#[test]
fn a_server_that_waits_for_another_one_says_for_how_long() {
    let upstream = [
        ("upstream.queries", SeriesKind::Counter, 10_000.0),
        ("upstream.time", SeriesKind::Counter, 90.0),
    ];
    let observed = [program(0.2, 0.1, &[]), server(10_000.0, &upstream)];
    let record = observing(saturated(), &observed);
    tells(
        &record,
        &[
            "asked other servers 100,000 times",
            "9.000 ms on average: it waited for them",
        ],
    );
    assert!(
        !told(&record).contains("had CPU to spare"),
        "{}",
        told(&record)
    );
}

#[test]
fn full_sockets_of_the_server_are_counted_there() {
    let drops = [
        ("udp.drops", SeriesKind::Counter, 12.0),
        ("listen.overflows", SeriesKind::Counter, 3.0),
    ];
    let record = observing(saturated(), &[program(0.5, 0.3, &drops)]);
    tells(
        &record,
        &[
            "had no room for 120 datagrams",
            "was full for 30 connections",
        ],
    );
}

#[test]
fn both_ends_are_compared() {
    let same = observing(kept_up(), &[server(10_000.0, &[])]);
    assert!(!told(&same).contains("counted"), "{}", told(&same));
    let all = super::of_run(&same);
    let both = all.iter().find(|it| it.topic == "queries at both ends");
    assert!(both.is_some_and(|it| it.seen.contains("counted 100,000 of the 100,000 queries")));

    let more = observing(kept_up(), &[server(11_000.0, &[])]);
    tells(
        &more,
        &["counted 110,000 queries, 10,000 more than were sent to it"],
    );
    let fewer = observing(kept_up(), &[server(9_000.0, &[])]);
    tells(
        &fewer,
        &["counted 90,000 of the 100,000 queries that were sent, 10,000 fewer"],
    );
    // A server that tells nothing before its first query has no count to compare.
    let mut late = server(9_000.0, &[]);
    late.series[0].samples[0] = Sample::Without(NoValue::Missing);
    let unknown = observing(kept_up(), &[late]);
    assert!(!told(&unknown).contains("counted"), "{}", told(&unknown));
    let drops = program(0.5, 0.3, &[("udp.drops", SeriesKind::Counter, 1_000.0)]);
    let dropped = observing(kept_up(), &[server(9_000.0, &[]), drops]);
    tells(
        &dropped,
        &["10,000 fewer: its sockets had no room for 10,000"],
    );
}

#[test]
fn observed_figures_have_names() {
    let hits = [
        ("cache.hits", SeriesKind::Counter, 9.0),
        ("cache.misses", SeriesKind::Counter, 1.0),
    ];
    let observed = [program(1.5, 0.9, &[]), server(10_000.0, &hits)];
    let record = observing(kept_up(), &observed);
    let value = |name: &str| {
        let mut all = crate::Metric::ALL.iter();
        let metric = all.find(|it| it.name() == name).unwrap();
        metric.of(&record).unwrap()
    };
    assert!((value("server.cpu") - 0.75).abs() < 1e-3);
    assert!((value("server.cpus") - 1.5).abs() < 1e-3);
    assert!((value("server.cpu_per_query") - 150_000.0).abs() < 200.0);
    assert!((value("server.queries") - 100_000.0).abs() < 1e-6);
    assert!((value("server.cache_hits") - 0.9).abs() < 1e-9);
}

#[test]
fn scrapes_that_slow_the_server_down_are_told() {
    let mut record = kept_up();
    let mut timeline = crate::timeline::Timeline::new();
    for bin in 0..1_000_u64 {
        // Each second the server stands still for 100 ms, as long as the scrape takes.
        let slow = bin % 100 < 10;
        let what = crate::timeline::Bin {
            due: 100,
            responses: 100,
            latency_us: 100 * if slow { 50_000 } else { 1_000 },
            ..crate::timeline::Bin::default()
        };
        timeline.add(bin * SECOND / 100, &what);
    }
    record.timeline = Some(timeline);
    let mut recorder = Recorder::new("bind=x", "bind", ObservationMode::During, SECOND);
    for second in 0..10 {
        let at_ns = second * SECOND as i64;
        let value = Observed {
            name: "queries".to_owned(),
            unit: "queries".to_owned(),
            kind: SeriesKind::Counter,
            value: second as f64 * 11_111.1,
            is_stale: false,
        };
        recorder.push(Scrape::between(at_ns, at_ns + 100 * MS as i64), vec![value]);
    }
    let record = observing(record, &[recorder.finish()]);
    tells(&record, &["the scrapes slow it down"]);
    let all = super::of_run(&record);
    let cures = all.iter().flat_map(|it| &it.cures);
    assert!(
        cures.into_iter().any(|it| it.how.contains("mode=around")),
        "{all:#?}"
    );
}
