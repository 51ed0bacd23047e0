use super::*;

const SECOND: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

/// Second `number` of a run: responses by latency in milliseconds, and the number of timeouts.
fn second(number: u64, responses: &[(u64, u64)], timeouts: u64) -> Interval {
    let mut interval = Interval {
        start_ns: number * SECOND,
        end_ns: (number + 1) * SECOND,
        ..Interval::default()
    };
    for &(ms, count) in responses {
        interval.counts.responses += count;
        interval.counts.rcodes.record_many(0, count);
        (0..count).for_each(|_| interval.distributions.latency.record(ms * MS));
    }
    interval.counts.timeouts = timeouts;
    interval.counts.offered = interval.counts.responses + timeouts;
    interval.counts.sent = interval.counts.offered;
    interval
}

fn watch(condition: &str) -> AbortWatch {
    AbortWatch::new(AbortCondition::parse(condition).expect(condition), &[0, 3])
}

/// The window in seconds in which the condition was met first.
fn met(condition: &str, intervals: &[Interval]) -> Option<(u64, u64)> {
    let mut watch = watch(condition);
    let found = intervals.iter().find_map(|it| watch.add_interval(it))?;
    Some((found.from_ns / SECOND, found.until_ns / SECOND))
}

#[test]
fn without_a_time_one_interval_is_enough() {
    let intervals = [
        second(0, &[(1, 100)], 0),
        second(1, &[(1, 95)], 5),
        second(2, &[(1, 90)], 10),
    ];
    assert_eq!(met("loss > 5%", &intervals), Some((2, 3)));
    assert_eq!(met("loss >= 5%", &intervals), Some((1, 2)));
    assert_eq!(met("loss > 10%", &intervals), None);
    assert_eq!(met("timeouts > 4", &intervals), Some((1, 2)));
    assert_eq!(met("qps < 95", &intervals), Some((2, 3)));
    assert_eq!(met("answered < 95%", &intervals), Some((2, 3)));
}

#[test]
fn condition_has_to_hold_in_every_interval_of_its_time() {
    let (slow, fast) = ([(60, 100)], [(1, 100)]);
    let all = |slow_ones: &[u64]| -> Vec<Interval> {
        let latency = |number: &u64| {
            if slow_ones.contains(number) {
                slow
            } else {
                fast
            }
        };
        (0..8).map(|it| second(it, &latency(&it), 0)).collect()
    };
    assert_eq!(
        met("p99 > 50ms for 3s", &all(&[1, 2, 4, 5, 6])),
        Some((4, 7))
    );
    // Four of five, merged, have the same p99 as all five.
    assert_eq!(met("p99 > 50ms for 5s", &all(&[1, 2, 4, 5])), None);
    assert_eq!(
        met("p99 > 50ms for 2500ms", &all(&[1, 2, 3, 4])),
        Some((1, 4))
    );
    assert_eq!(met("p99 > 50ms for 1s", &all(&[7])), Some((7, 8)));
}

#[test]
fn what_was_found_is_of_the_merged_window() {
    let mut watch = watch("p50 > 10ms for 2s");
    assert_eq!(watch.add_interval(&second(0, &[(20, 900)], 0)), None);
    let found = watch.add_interval(&second(1, &[(100, 100)], 0)).unwrap();
    // A mean of two medians would be 60 ms.
    assert!((20e6..21e6).contains(&found.value), "{found:?}");
    assert_eq!(found.condition, "p50 > 10ms for 2s");
    let sentence = found.sentence();
    let begins = "--abort-if 'p50 > 10ms for 2s' ended the run early: p50 is 20";
    assert!(sentence.starts_with(begins), "{sentence}");
    assert!(sentence.ends_with("from 0.0 s to 2.0 s"), "{sentence}");
    let check = watch.condition.check(Some(&found));
    assert_eq!(check.outcome, Outcome::Failed);
    assert!(check.found.starts_with("p50 is "), "{}", check.found);
    assert_eq!(watch.condition.check(None).outcome, Outcome::Passed);
}

#[test]
fn intervals_without_queries_fulfil_nothing() {
    let busy = |number| second(number, &[(1, 10)], 0);
    let idle = |number| second(number, &[], 0);
    assert_eq!(met("qps < 50", &[idle(0), idle(1)]), None);
    let paused = [busy(0), busy(1), idle(2), busy(3), busy(4), busy(5)];
    assert_eq!(met("qps < 50 for 3s", &paused), Some((3, 6)));
    // All slots wait for queries that no response comes to: nothing is due, but all are open.
    let mut open = idle(1);
    open.in_flight_ns = 100 * u128::from(SECOND);
    assert_eq!(
        met("qps < 50 for 2s", &[busy(0), open.clone()]),
        Some((0, 2))
    );
    // Without a response there is no percentile.
    assert_eq!(met("p99 > 1ns", &[open, second(2, &[], 9)]), None);
}

#[test]
fn shares_of_rcodes_and_goodput_end_runs_too() {
    let mut failing = second(0, &[(1, 100)], 0);
    failing.counts.rcodes = crate::counts::Rcodes::default();
    failing.counts.rcodes.record_many(0, 80);
    failing.counts.rcodes.record_many(2, 20);
    let failing = [failing];
    assert_eq!(met("SERVFAIL > 10%", &failing), Some((0, 1)));
    assert_eq!(met("rcode.servfail > 20%", &failing), None);
    assert_eq!(met("goodput < 81", &failing), Some((0, 1)));
}

#[test]
fn what_holds_in_each_of_several_intervals_holds_in_all_of_them_merged() {
    let intervals = [
        second(0, &[(1, 7), (30, 3)], 2),
        second(1, &[(2, 950), (80, 50)], 1_000),
        second(2, &[(9, 1), (200, 1)], 1),
        second(3, &[(3, 99_000), (70, 1_000)], 20_000),
    ];
    let all = Interval::total(&intervals);
    let known = Metric::ALL.iter().filter(|it| is_known_in_intervals(**it));
    for metric in known {
        let values = intervals.iter().map(|it| metric.of_interval(it, &[0]));
        let Some(values) = values.collect::<Option<Vec<f64>>>() else {
            continue;
        };
        let merged = metric.of_interval(&all, &[0]).unwrap();
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(merged >= least, "{}: {merged} {values:?}", metric.name());
        if metric.unit() != Unit::Count {
            let most = values.iter().copied().fold(0.0, f64::max);
            assert!(merged <= most, "{}: {merged} {values:?}", metric.name());
        }
    }
}

#[test]
fn counts_of_which_a_merged_window_has_more_are_bounded_from_above_only() {
    let known = Metric::ALL.iter().filter(|it| is_known_in_intervals(**it));
    for metric in known.filter(|it| it.unit() == Unit::Count) {
        let name = metric.name();
        assert!(
            AbortCondition::parse(&format!("{name} > 5")).is_ok(),
            "{name}"
        );
        assert!(
            AbortCondition::parse(&format!("{name} < 5")).is_err(),
            "{name}"
        );
    }
}

#[test]
fn times_are_read_with_their_units() {
    let hold = |text: &str| AbortCondition::parse(text).expect(text).hold_ns();
    assert_eq!(hold("loss > 5%"), None);
    assert_eq!(hold("loss>5% for 5s"), Some(5 * SECOND));
    assert_eq!(hold(" qps < 100  for  1.5 s "), Some(1_500 * MS));
    assert_eq!(hold("qps < 100 for 2m"), Some(120 * SECOND));
    assert_eq!(
        AbortCondition::parse(" p99 > 1s ").unwrap().text(),
        "p99 > 1s"
    );
}

#[test]
fn names_of_groups_may_look_like_anything() {
    let condition = AbortCondition::parse("p99 [wait for 5s] > 50ms for 2s").unwrap();
    assert_eq!(condition.hold_ns(), Some(2 * SECOND));
    let part = condition.condition().part.as_deref();
    assert_eq!(part, Some("wait for 5s"));
    assert_eq!(
        AbortCondition::parse("p99[for 5s] > 1s").unwrap().hold_ns(),
        None
    );
}

#[test]
fn conditions_that_cannot_end_a_run_are_refused_with_a_cure() {
    let cases = [
        ("p98 > 5ms", "unknown metric `p98`", "metrics are"),
        ("p99 for 5s", "no comparison after the metric", "p99 > 5ms"),
        ("p99 >", "no number", "p99 > 5ms"),
        ("for 5s", "unknown metric `for`", "metrics are"),
        ("p99 > 5ms for", "column 14: no time after `for`", "for 5s"),
        ("p99 > 5ms for 5", "no unit after the time", "ms"),
        ("p99 > 5ms for 5x", "column 16: unknown unit `x`", "ms"),
        ("p99 > 5ms for 0s", "the time is 0", "leave `for` out"),
        (
            "p99 > 5ms for 5s 6s",
            "`6s` after the end",
            "one condition a flag",
        ),
        ("p99 > +10%", "shows no change", "without a sign"),
        ("slower", "shows no change", "without a sign"),
        (
            "p99 < 5ms for 5s",
            "would end a run because its p99 is low",
            "with `>=`",
        ),
        (
            "qps > 5",
            "would end a run because its qps is high",
            "with `<=`",
        ),
        (
            "connect > 5ms",
            "connect cannot end a run early",
            "qps, goodput",
        ),
        ("fairness < 50%", "fairness cannot end a run early", "p99.9"),
        ("responses < 5", "responses cannot end a run early", "loss"),
        (
            "p99[] > 5ms",
            "column 4: no name in brackets",
            "p99[dot] > 5ms",
        ),
        ("p99[dot > 5ms", "no name in brackets", "p99[dot] > 5ms"),
        ("p99[dot] slower", "shows no change", "without a sign"),
        (
            "service.p99[dot] > 5ms",
            "service.p99[dot] cannot end a run early",
            "metrics of groups in intervals are",
        ),
    ];
    for (text, what, hint) in cases {
        let error = AbortCondition::parse(text).expect_err(text);
        assert!(error.what.contains(what), "{text}: {error:?}");
        assert!(error.hint.contains(hint), "{text}: {error:?}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,30}( for ?.{0,8})?") {
        let _ = AbortCondition::parse(&text);
    }
}
