//! Other servers for which an observed server waited: its latency is theirs.

use crate::observation::{Sample, SeriesKind};
use crate::rules::observed_situations::*;
use crate::rules::situations::*;

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
        !said(&record).contains("had CPU to spare"),
        "{}",
        said(&record)
    );
}

#[test]
fn a_mean_time_of_other_servers_is_as_good_as_their_sum() {
    let upstream = [
        ("upstream.queries", SeriesKind::Counter, 10_000.0),
        ("upstream.time", SeriesKind::Gauge, 0.009),
    ];
    let record = observing(saturated(), &[server(10_000.0, &upstream)]);
    tells(&record, &["9.000 ms on average: it waited for them"]);
}

#[test]
fn an_outage_of_other_servers_is_told_by_their_time_or_by_checks_that_failed() {
    let upstream = [
        ("upstream.queries", SeriesKind::Counter, 10_000.0),
        ("upstream.time", SeriesKind::Counter, 3.0),
    ];
    let mut behind = server(10_000.0, &upstream);
    let record = observing(in_time(10_000.0), &[behind.clone()]);
    assert!(
        !said(&record).contains("waited for them"),
        "{}",
        said(&record)
    );
    // In the sixth second upstream queries took 800 ms each.
    let times = &mut behind.series[2].samples;
    for sample in &mut times[6..] {
        *sample = Sample::Value(sample.value().unwrap() + 8_000.0);
    }
    behind.series[2].growth = behind.series[2].growth.map(|it| it + 8_000.0);
    let worst = observing(in_time(10_000.0), &[behind]).servers()[0].upstream_s_worst;
    assert!(
        worst.is_some_and(|it| (it - 0.8003).abs() < 1e-3),
        "{worst:?}"
    );
    let checks = [
        ("upstream.queries", SeriesKind::Counter, 10_000.0),
        ("upstream.checks_failed", SeriesKind::Counter, 0.3),
    ];
    let record = observing(in_time(10_000.0), &[server(10_000.0, &checks)]);
    tells(&record, &["3 checks whether they answer failed"]);
}
