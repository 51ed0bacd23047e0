//! Sums of snapshots, read back from the text that is scraped.

use std::sync::Arc;
use std::time::Duration;

use lab::live::{
    GROUPS_MAX, LastValue, Live, NewestSample, NewestScrape, Phase, Place, SeriesName, Shown,
    ShownAgent, ShownGroup,
};
use measure::Interval;
use measure::observation::{NoValue, Sample, SeriesKind};
use observe::{Reading, exposition};
use settings::Transport;

use super::*;

fn interval(number: u64) -> Arc<Interval> {
    let mut interval = Interval {
        start_ns: number * 1_000,
        end_ns: (number + 1) * 1_000,
        cpu_ns: 250_000_000,
        in_flight_ns: 500_000_000,
        open: Some(number),
        connections_open: 10,
        ..Interval::default()
    };
    let counts = &mut interval.counts;
    (counts.offered, counts.sent, counts.responses) = (10, 9, 7);
    (counts.timeouts, counts.not_sent.no_free_id) = (2, 1);
    counts.rcodes.record_many(0, 6);
    counts.rcodes.record_many(23, 1);
    counts.unexpected.wrong_id = 3;
    interval.distributions.latency.record_many(1_000_000, 7);
    Arc::new(interval)
}

fn shown(transport: Transport, number: u64) -> Shown {
    Shown {
        phase: Phase::Load,
        transport: Some(transport),
        left: Some(Duration::from_millis(1_500)),
        interval: Some(interval(number)),
        ..Shown::default()
    }
}

fn about() -> About {
    About {
        version: "1.2.3".to_owned(),
        command: "run".to_owned(),
    }
}

/// What a scraper reads once all of `live` was read.
fn scraped(live: &Live) -> Reading {
    let mut all = Accumulator::new(about());
    all.read(&live.after(0, Duration::ZERO));
    reading(&all)
}

fn reading(all: &Accumulator) -> Reading {
    let text = all.encode(Format::Text, ScrapeCounts::default());
    exposition::parse(std::str::from_utf8(&text).unwrap(), |_| true).unwrap()
}

/// The value of the one sample with that name and these labels among its own.
fn value(reading: &Reading, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let has = |sample: &&observe::RawSample| {
        let fits = |(name, value): &(&str, &str)| sample.label(name) == Some(value);
        sample.name == name && labels.iter().all(fits)
    };
    let found: Vec<_> = reading.samples.iter().filter(has).collect();
    assert!(found.len() <= 1, "{name} {labels:?}: {found:?}");
    found.first().map(|sample| sample.value)
}

#[test]
fn counters_add_up_over_intervals_and_runs_by_transport() {
    let live = Live::default();
    for number in 0..3 {
        live.publish(shown(Transport::Udp, number));
    }
    live.begin(Place::new("second", 2, Some(3)));
    live.publish(shown(Transport::Dot, 4));
    let all = scraped(&live);
    for (name, labels, expected) in [
        ("throng_queries_offered_total", ["transport", "udp"], 30.0),
        ("throng_queries_offered_total", ["transport", "dot"], 10.0),
        ("throng_queries_sent_total", ["transport", "udp"], 27.0),
        ("throng_queries_timed_out_total", ["transport", "udp"], 6.0),
        ("throng_latency_seconds_count", ["transport", "udp"], 21.0),
        ("throng_latency_seconds_sum", ["transport", "udp"], 0.021),
        ("throng_queries_open", ["transport", "dot"], 4.0),
        ("throng_run_phase", ["phase", "load"], 1.0),
        ("throng_run_phase", ["phase", "ended"], 0.0),
        ("throng_run_info", ["run", "second"], 1.0),
        ("throng_run_info", ["version", "1.2.3"], 1.0),
    ] {
        let label = [(labels[0], labels[1])];
        assert_eq!(value(&all, name, &label), Some(expected), "{name}");
    }
    let cpu = value(
        &all,
        "throng_generator_cpu_seconds_total",
        &[("transport", "udp")],
    );
    assert_eq!(cpu, Some(0.75));
    for (name, expected) in [
        ("throng_run_number", 2.0),
        ("throng_runs", 3.0),
        ("throng_run_left_seconds", 1.5),
        ("throng_snapshots_total", 4.0),
    ] {
        assert_eq!(value(&all, name, &[]), Some(expected), "{name}");
    }
}

#[test]
fn parts_of_a_counter_add_up_to_it() {
    let live = Live::default();
    live.publish(shown(Transport::Udp, 0));
    let all = scraped(&live);
    let sum = |name: &str| -> f64 {
        let parts = all.samples.iter().filter(|it| it.name == name);
        parts.map(|it| it.value).sum()
    };
    assert_eq!(sum("throng_responses_total"), 7.0);
    assert_eq!(sum("throng_queries_not_sent_total"), 1.0);
    assert_eq!(sum("throng_messages_unexpected_total"), 3.0);
    let rcode = |name| value(&all, "throng_responses_total", &[("rcode", name)]);
    assert_eq!(
        (rcode("BADCOOKIE"), rcode("SERVFAIL")),
        (Some(1.0), Some(0.0))
    );
    assert_eq!(rcode("BADVERS"), None);
}

#[test]
fn buckets_are_cumulative_and_end_with_the_count() {
    let live = Live::default();
    live.publish(shown(Transport::Udp, 0));
    let all = scraped(&live);
    let name = "throng_latency_seconds_bucket";
    let buckets = all.samples.iter().filter(|it| it.name == name);
    let buckets: Vec<(f64, f64)> = buckets
        .map(|it| (it.label("le").unwrap().parse().unwrap(), it.value))
        .collect();
    assert!(
        buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1),
        "{buckets:?}"
    );
    assert_eq!(buckets.last(), Some(&(f64::INFINITY, 7.0)));
    assert_eq!(value(&all, name, &[("le", "0.0005")]), Some(0.0));
    assert_eq!(value(&all, name, &[("le", "0.0025")]), Some(7.0));
}

#[test]
fn snapshots_that_were_not_read_are_counted() {
    let live = Live::default();
    for number in 0..lab::live::SNAPSHOTS_MAX as u64 + 5 {
        live.publish(shown(Transport::Udp, number));
    }
    let all = scraped(&live);
    assert_eq!(value(&all, "throng_snapshots_missed_total", &[]), Some(5.0));
    assert_eq!(value(&all, "throng_snapshots_total", &[]), Some(600.0));
}

#[test]
fn groups_above_the_maximum_are_dropped_and_counted() {
    let live = Live::default();
    for _ in 0..2 {
        let groups = (0..GROUPS_MAX + 3).map(|number| ShownGroup {
            name: format!("g{number:03}"),
            interval: interval(0),
        });
        live.publish(Shown {
            groups: groups.collect(),
            ..shown(Transport::Udp, 0)
        });
    }
    let all = scraped(&live);
    let of = |group| value(&all, "throng_group_responses_total", &[("group", group)]);
    assert_eq!(
        (of("g000"), of("g063"), of("g064")),
        (Some(14.0), Some(14.0), None)
    );
    let dropped = value(&all, "throng_group_intervals_dropped_total", &[]);
    assert_eq!(dropped, Some(6.0));
    let lost = value(
        &all,
        "throng_group_queries_lost_total",
        &[("group", "g000")],
    );
    assert_eq!(lost, Some(6.0));
}

#[test]
fn agents_are_up_until_they_are_lost() {
    let agent = |host: Option<&str>, is_at_work, is_lost| ShownAgent {
        host: host.map(str::to_owned),
        is_at_work,
        is_lost,
    };
    let live = Live::default();
    live.publish(Shown {
        agents: vec![agent(None, true, false), agent(Some("h1"), false, true)],
        ..Shown::default()
    });
    let all = scraped(&live);
    let of = |name, agent| value(&all, name, &[("agent", agent)]);
    assert_eq!(of("throng_agent_up", "0"), Some(1.0));
    assert_eq!(of("throng_agent_up", "1"), Some(0.0));
    assert_eq!(of("throng_agent_at_work", "0"), Some(1.0));
    assert_eq!(value(&all, "throng_agent_up", &[("host", "h1")]), Some(0.0));
}

#[test]
fn observed_series_keep_their_values_and_have_none_while_missing() {
    let sample = |name: &str, kind, sample| NewestSample {
        series: Arc::new(SeriesName {
            name: name.to_owned(),
            unit: "queries".to_owned(),
            kind,
        }),
        sample,
        last: Some(LastValue {
            value: 5.0,
            at: Duration::ZERO,
        }),
    };
    let live = Live::default();
    live.publish(Shown {
        observations: vec![Arc::new(NewestScrape {
            source: "http://127.0.0.1:8053/".into(),
            profile: "bind".into(),
            at: Duration::ZERO,
            has_failed: false,
            samples: vec![
                sample("queries", SeriesKind::Counter, Sample::Value(9.0)),
                sample("reset", SeriesKind::Counter, Sample::Reset { reset: 2.0 }),
                sample("memory", SeriesKind::Gauge, Sample::Value(1.5)),
                sample("gone", SeriesKind::Gauge, Sample::Without(NoValue::Missing)),
            ],
        })],
        ..Shown::default()
    });
    let all = scraped(&live);
    let counter = |series| {
        let labels = [("series", series), ("profile", "bind"), ("unit", "queries")];
        value(&all, "throng_observed_counter_total", &labels)
    };
    assert_eq!(
        (counter("queries"), counter("reset")),
        (Some(9.0), Some(2.0))
    );
    let gauge = |series| value(&all, "throng_observed_gauge", &[("series", series)]);
    assert_eq!((gauge("memory"), gauge("gone")), (Some(1.5), None));
    let source = [("source", "http://127.0.0.1:8053/")];
    assert_eq!(value(&all, "throng_observed_up", &source), Some(1.0));
}

#[test]
fn the_same_series_are_there_at_each_moment_of_a_run() {
    let names = |all: &Accumulator| -> Vec<String> {
        let samples = reading(all).samples.into_iter();
        samples.map(|it| it.full_name()).collect()
    };
    let live = Live::default();
    live.publish(shown(Transport::Udp, 0));
    let mut all = Accumulator::new(about());
    all.read(&live.after(0, Duration::ZERO));
    let first = names(&all);
    for number in 1..50 {
        live.publish(shown(Transport::Udp, number));
    }
    all.read(&live.after(1, Duration::ZERO));
    assert_eq!(names(&all), first);
}

#[test]
fn metrics_before_the_first_snapshot_say_that_no_run_has_begun() {
    let all = reading(&Accumulator::new(about()));
    assert_eq!(
        value(&all, "throng_run_phase", &[("phase", "before")]),
        Some(1.0)
    );
    assert_eq!(value(&all, "throng_snapshots_total", &[]), Some(0.0));
}
