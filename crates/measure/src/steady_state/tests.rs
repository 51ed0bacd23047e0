//! Courses of the articles, made up again with noise.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::example::{interval, record};

/// A run of two minutes: of each second rate, p50, p95 and p99 in nanoseconds, with noise of the
/// given percentage.
fn run(seed: u64, noise: f64, at: impl Fn(f64) -> [f64; 4]) -> RunRecord {
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut jitter = || {
        let sum: f64 = (0..12)
            .map(|_| generator.next_u64() as f64 / u64::MAX as f64)
            .sum();
        1.0 + noise * (sum - 6.0)
    };
    let intervals = (0..120).map(|second| {
        let [rate, p50, p95, p99] = at(second as f64);
        let rate = (rate * (1.0 + (jitter() - 1.0) / 10.0)) as u64;
        let latency = |ns: f64, jitter: f64| (ns * jitter) as u64;
        // 60 % at the median, 37 % up to p95, the rest at p99.
        let few = rate * 3 / 100;
        let some = rate * 10 / 100;
        let latencies = [
            (
                latency(p50, 1.0 + (jitter() - 1.0) / 5.0),
                rate - some - few,
            ),
            (latency(p95, jitter()), some),
            (latency(p99, jitter()), few),
        ];
        interval(second, &latencies)
    });
    record(intervals.collect())
}

fn of(course: &SteadyState, metric: Metric) -> Option<&Opening> {
    course
        .openings
        .iter()
        .find(|opening| opening.metric == metric)
}

fn udp(second: f64) -> [f64; 4] {
    // About 7.2 ms at first, quickly 4 ms, 2.8 ms after 60 to 90 s.
    let p99 = 2.8e6 + 4.4e6 * (-(second - 2.0).max(0.0) / 18.0).exp();
    [3_043.0, 970e3, 2.2e6, p99]
}

fn tcp(second: f64) -> [f64; 4] {
    [2_530.0, 3.0e6, 9.3e6, 12.5e6 + 1.7e6 * second / 119.0]
}

#[test]
fn falling_tail_over_udp_is_a_warm_up_of_p99_alone() {
    for seed in 0..20 {
        let course = SteadyState::of(&run(seed, 0.03, udp));
        let [opening] = course.openings.as_slice() else {
            panic!("{seed}: {course:?}");
        };
        assert_eq!(opening.metric, Metric::P99, "{seed}");
        assert!(
            (6.5e6..7.9e6).contains(&opening.from),
            "{seed}: {opening:?}"
        );
        assert!((2.7e6..3.0e6).contains(&opening.to), "{seed}: {opening:?}");
        let settled_s = opening.settled_ns as f64 / 1e9;
        assert!((30.0..=90.0).contains(&settled_s), "{seed}: {opening:?}");
        let sustained = course.sustained.as_ref().expect("enough intervals");
        assert_eq!(sustained.start_ns, opening.settled_ns);
        assert!(
            (sustained.achieved_qps - 3_043.0).abs() < 30.0,
            "{sustained:?}"
        );
    }
    let words = SteadyState::of(&run(1, 0.0, udp)).sentences();
    assert!(
        words[0].starts_with("p99 fell from 7.193 ms to 2.8"),
        "{words:?}"
    );
    assert!(words[1].starts_with("sustained part from"), "{words:?}");
}

#[test]
fn rising_tail_over_tcp_is_a_drift_and_no_warm_up() {
    for seed in 0..20 {
        let course = SteadyState::of(&run(seed, 0.02, tcp));
        assert_eq!(course.openings, [], "{seed}");
        let [drift] = course.drifts.as_slice() else {
            panic!("{seed}: {course:?}");
        };
        assert_eq!(drift.metric, Metric::P99);
        assert!((12.2e6..12.8e6).contains(&drift.from), "{seed}: {drift:?}");
        assert!((13.9e6..14.5e6).contains(&drift.to), "{seed}: {drift:?}");
    }
    let words = SteadyState::of(&run(1, 0.0, tcp)).sentences();
    assert!(words[0].starts_with("no warm-up"), "{words:?}");
    assert!(words[1].starts_with("drift: p99 rises 12.5"), "{words:?}");
}

#[test]
fn rate_that_starts_high_is_a_burst_and_the_sustained_rate_is_told_apart() {
    let burst = |second: f64| {
        let rate = if second < 10.0 { 3_300.0 } else { 3_000.0 };
        [rate, 970e3, 2.2e6, 2.8e6]
    };
    let course = SteadyState::of(&run(3, 0.02, burst));
    let opening = of(&course, Metric::Qps).expect("a burst");
    assert_eq!(opening.settled_ns, 10_000_000_000);
    let sustained = course.sustained.as_ref().expect("enough intervals");
    assert!((sustained.achieved_qps - 3_000.0).abs() < 20.0);
    assert!(
        course.sentences()[0].starts_with("initial burst: 3,"),
        "{:?}",
        course.sentences()
    );
}

#[test]
fn rate_that_ramps_up_is_a_warm_up() {
    let ramp = |second: f64| [(1_000.0 + 100.0 * second).min(3_000.0), 970e3, 2.2e6, 2.8e6];
    let course = SteadyState::of(&run(3, 0.02, ramp));
    let opening = of(&course, Metric::Qps).expect("a warm-up");
    let settled_s = opening.settled_ns as f64 / 1e9;
    assert!((15.0..=25.0).contains(&settled_s), "{opening:?}");
    assert!(
        course.sentences()[0].starts_with("warm-up: the rate rose"),
        "{course:?}"
    );
}

#[test]
fn steady_noise_is_seldom_anything_else() {
    let flat = |_| [2_000.0, 970e3, 2.2e6, 2.8e6];
    let odd = (0..200).filter(|&seed| {
        let course = SteadyState::of(&run(seed, 0.05, flat));
        !course.openings.is_empty() || !course.drifts.is_empty()
    });
    let odd = odd.count();
    assert!(odd <= 6, "{odd} of 200");
    let words = SteadyState::of(&run(1, 0.01, flat)).sentences();
    assert_eq!(
        words,
        [
            "no warm-up: level from the start, over 120 intervals",
            "no drift of rate, p50, p95 or p99"
        ]
    );
}

#[test]
fn too_few_intervals_say_so() {
    let short = record((0..10).map(|each| interval(each, &[(1_000, 50)])).collect());
    let course = SteadyState::of(&short);
    assert_eq!((course.intervals, course.sustained.is_none()), (10, true));
    assert!(course.sentences()[0].starts_with("10 intervals are too few"));
    let nothing = record((0..30).map(|each| interval(each, &[])).collect());
    let course = SteadyState::of(&nothing);
    assert_eq!((course.openings.len(), course.drifts.len()), (0, 0));
}

#[test]
fn hour_of_seconds_is_looked_at_in_batches() {
    let long = record(
        (0..3_600)
            .map(|each| interval(each, &[(1_000 + each, 5)]))
            .collect(),
    );
    let course = SteadyState::of(&long);
    assert!(course.openings.is_empty(), "{:?}", course.openings);
    assert_eq!(course.drifts.len(), 3, "{:?}", course.drifts);
}

#[test]
fn course_of_a_run_whose_intervals_were_merged_counts_whole_ones() {
    let mut record = run(3, 0.02, |_| [3_000.0, 1e6, 2e6, 3e6]);
    let fine = SteadyState::of(&record);
    record.widen_intervals(2);
    let wide = SteadyState::of(&record);
    assert_eq!((fine.intervals, wide.intervals), (120, 60));
    // What is left of a cut-off run is no whole interval any more.
    record.intervals.truncate(41);
    record.intervals[40].end_ns -= 3_000_000_000 / 2;
    record.measured_ns = record.intervals[40].end_ns;
    assert_eq!(SteadyState::of(&record).intervals, 40);
}

#[test]
fn no_line_ends_below_zero() {
    // Most of the fall is early: a straight line through it ends below zero.
    let falling: Vec<f64> = (0..20).map(|at| 1e6 / f64::from(1 + at)).collect();
    let (from, to) = ends_of_line(&falling).unwrap();
    assert!(from > to && to > 0.0 && from < 1e6, "{from} {to}");
    let mut with_zero = falling.clone();
    with_zero[19] = 0.0;
    let (from, to) = ends_of_line(&with_zero).unwrap();
    assert!(from > to && to >= 0.0, "{from} {to}");
    let level = ends_of_line(&[5.0; 8]).unwrap();
    assert!((level.0 - 5.0).abs() < 1e-9 && (level.1 - 5.0).abs() < 1e-9);
}
