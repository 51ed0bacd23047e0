use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::example::{SECOND, interval, record};

/// The measurements of each interval: latencies with their counts.
type Measured = Vec<Vec<(u64, u64)>>;

fn any_run(longest: usize) -> impl Strategy<Value = Measured> {
    let latencies = vec((1_u64..1 << 37, 1_u64..50), 0..3);
    vec(latencies, 1..longest)
}

fn base(run: &Measured) -> Vec<Interval> {
    let each = run.iter().zip(0..);
    let each = each.map(|(latencies, number)| {
        let mut interval = interval(number, latencies);
        interval.connections_open = number % 7;
        interval.connections_open_max = Some(number % 11);
        interval
    });
    each.collect()
}

fn pushed(intervals: &[Interval], buckets_max: usize, window_ns: u64) -> (Vec<Interval>, u64) {
    let mut kept = Intervals::with_buckets(buckets_max);
    intervals.iter().cloned().for_each(|it| kept.push(it));
    kept.finish(window_ns)
}

/// Nothing is lost, nothing overlaps, and all but the last of the window are equally wide.
fn check(intervals: &[Interval], (kept, merged): (Vec<Interval>, u64), window_ns: u64) {
    assert_eq!(Interval::total(&kept), Interval::total(intervals));
    assert!(merged.is_power_of_two());
    let within = kept.partition_point(|it| it.start_ns < window_ns);
    for (number, wide) in kept[..within].iter().enumerate() {
        let first = number * merged as usize;
        let of_it = &intervals[first..intervals.len().min(first + merged as usize)];
        let of_it = of_it.iter().filter(|it| it.start_ns < window_ns);
        let of_it: Vec<Interval> = of_it.cloned().collect();
        assert_eq!(
            *wide,
            Interval::total(&of_it),
            "number {number} of {merged}"
        );
        assert_eq!(wide.counts.check_identity(), Ok(()));
    }
    for pair in kept.windows(2) {
        assert_eq!(pair[0].end_ns, pair[1].start_ns);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn merged_and_unmerged_intervals_have_equal_totals(
        run in any_run(3_000), has_drain in any::<bool>(),
    ) {
        let intervals = base(&run);
        let window_ns = (intervals.len() as u64 - u64::from(has_drain)) * SECOND;
        let (kept, merged) = pushed(&intervals, BUCKETS_MAX, window_ns);
        prop_assert!(kept.len() <= INTERVALS_MAX + 1);
        check(&intervals, (kept, merged), window_ns);
    }

    #[test]
    fn large_histograms_are_merged_before_there_are_many(run in any_run(200)) {
        let intervals = base(&run);
        let window_ns = intervals.len() as u64 * SECOND;
        let buckets_max = 40_000;
        let (mut kept, merged) = pushed(&intervals, buckets_max, window_ns);
        let held: usize = kept.iter_mut().map(Interval::shrink_to_fit).sum();
        // One more of its kind: three histograms, of which one has a single value.
        prop_assert!(held <= buckets_max + 2 * crate::histogram::BUCKETS + 1, "{}", held);
        check(&intervals, (kept, merged), window_ns);
    }

    #[test]
    fn widening_what_was_kept_is_keeping_less(run in any_run(300), by in 0_u32..4) {
        let intervals = base(&run);
        let window_ns = (intervals.len() as u64 - 1) * SECOND;
        let mut wide = intervals.clone();
        widen(&mut wide, 1 << by, window_ns);
        check(&intervals, (wide, 1 << by), window_ns);
    }
}

#[test]
fn as_many_as_a_record_has_stay_as_they_are() {
    for (number, merged, kept) in [(1_024, 1, 1_024), (1_025, 2, 513), (86_400, 128, 675)] {
        let intervals = base(&vec![Vec::new(); number]);
        let found = pushed(&intervals, BUCKETS_MAX, number as u64 * SECOND);
        assert_eq!((found.1, found.0.len()), (merged, kept));
    }
}

#[test]
fn drain_stays_apart_however_many_intervals_were_merged() {
    let number = 3 * INTERVALS_MAX as u64;
    let mut intervals = base(&vec![vec![(1_000_000, 1)]; number as usize]);
    intervals.last_mut().expect("there are many").counts.late = 5;
    let (kept, merged) = pushed(&intervals, BUCKETS_MAX, (number - 1) * SECOND);
    assert_eq!(merged, 4);
    let drain = kept.last().expect("there are many");
    assert_eq!(
        (drain.start_ns, drain.counts.late),
        ((number - 1) * SECOND, 5)
    );
    assert_eq!(kept.iter().filter(|it| it.counts.late > 0).count(), 1);
}

#[test]
fn each_begins_where_the_one_before_ended() {
    let mut cut_short = base(&vec![Vec::new(); 3]);
    cut_short[1].end_ns -= 5;
    cut_short[2].end_ns = cut_short[1].end_ns - 7;
    let (kept, _) = pushed(&cut_short, BUCKETS_MAX, 3 * SECOND);
    let spans: Vec<(u64, u64)> = kept.iter().map(|it| (it.start_ns, it.end_ns)).collect();
    let end = 2 * SECOND - 5;
    assert_eq!(spans, [(0, SECOND), (SECOND, end), (end, end + 1)]);
}

/// Seconds in each of which latencies were anything from a microsecond to a minute.
#[test]
fn record_of_scattered_latencies_is_small_however_long_the_run() {
    const SECONDS: u64 = 20_000;
    let mut kept = Intervals::default();
    let mut total = Interval::default();
    for number in 0..SECONDS {
        let scattered = |place: u64| {
            let drawn = (number * 16 + place).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            (1_000 << (drawn % 26)) + drawn
        };
        let latencies: Vec<(u64, u64)> = (0..16).map(|place| (scattered(place), 60)).collect();
        let interval = interval(number, &latencies);
        total.append_in_time(&interval);
        kept.push(interval);
    }
    let (intervals, merged) = kept.finish(SECONDS * SECOND);
    assert_eq!(Interval::total(&intervals), total);
    let mut run = record(vec![total]);
    run.measured_ns = SECONDS * SECOND;
    (run.intervals, run.intervals_merged) = (intervals, merged);
    assert_eq!(run.check(), Ok(()));
    let octets = run.to_json_pretty().len();
    assert!(
        octets < 50_000_000,
        "{octets} bytes, {} intervals",
        run.intervals.len()
    );
}
