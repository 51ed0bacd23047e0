use proptest::collection::vec;
use proptest::prelude::*;

use super::{BUCKETS, Histogram, RANGE_BITS, bucket_bounds, bucket_index, width_at};

fn of(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|&value| histogram.record(value));
    histogram
}

/// Values of every magnitude, a few beyond the range.
fn value() -> impl Strategy<Value = u64> {
    (0_u32..40).prop_flat_map(|bits| (1_u64 << bits) - 1..1_u64 << (bits + 1))
}

/// The definition: the smallest value with at least `ceil(per_mille * n / 1000)` values not above.
fn exact_percentile(values: &[u64], per_mille: u64) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() as u64 * per_mille).div_ceil(1000).max(1);
    sorted[rank as usize - 1]
}

proptest! {
    #[test]
    fn every_percentile_is_within_one_percent(values in vec(value(), 1..300), p in 0_u64..=1000) {
        let exact = exact_percentile(&values, p);
        prop_assume!(exact < 1 << super::RANGE_BITS);
        let found = of(&values).percentile(p as f64 / 1000.0).expect("has values");
        let error = (found as f64 - exact as f64).abs();
        prop_assert!(error <= 0.01 * exact as f64, "{found} instead of {exact}");
    }

    #[test]
    fn merged_histograms_equal_one_histogram_of_all_values(
        a in vec(value(), 0..100), b in vec(value(), 0..100), shrink: (bool, bool),
    ) {
        let (mut merged, mut other) = (of(&a), of(&b));
        if shrink.0 {
            merged.shrink_to_fit();
        }
        if shrink.1 {
            other.shrink_to_fit();
        }
        merged.merge(&other);
        let all = of(&[a, b].concat());
        prop_assert_eq!(merged.percentile(0.99), all.percentile(0.99));
        prop_assert_eq!(merged, all);
    }

    #[test]
    fn order_of_merging_does_not_matter(parts in vec(vec(value(), 0..30), 0..6)) {
        let merge = |parts: &mut dyn Iterator<Item = &Vec<u64>>| {
            parts.fold(Histogram::new(), |mut sum, part| {
                sum.merge(&of(part));
                sum
            })
        };
        prop_assert_eq!(merge(&mut parts.iter()), merge(&mut parts.iter().rev()));
    }

    #[test]
    fn json_round_trip_keeps_everything(values in vec(value(), 0..200)) {
        let histogram = of(&values);
        let json = serde_json::to_string(&histogram).expect("serializes");
        let back: Histogram = serde_json::from_str(&json).expect("reads its own output");
        prop_assert_eq!(&back, &histogram);
        prop_assert_eq!(serde_json::to_string(&back).expect("serializes"), json);
    }

    #[test]
    fn recording_after_shrinking_loses_nothing(a in vec(value(), 0..50), b in vec(value(), 0..50)) {
        let mut histogram = of(&a);
        histogram.shrink_to_fit();
        b.iter().for_each(|&value| histogram.record(value));
        prop_assert_eq!(histogram, of(&[a, b].concat()));
    }

    #[test]
    fn taking_out_a_part_leaves_the_rest(a in vec(value(), 0..60), b in vec(value(), 0..60)) {
        let all = of(&[a.clone(), b.clone()].concat());
        let (rest, expected) = (all.without(&of(&a)), of(&b));
        prop_assert_eq!(rest.count(), expected.count());
        prop_assert_eq!(rest.sum_ns(), expected.sum_ns());
        prop_assert_eq!(rest.overflow(), expected.overflow());
        prop_assert!(rest.buckets().eq(expected.buckets()));
        let close = |found: u64, exact: u64| {
            exact >= 1 << super::RANGE_BITS || found.abs_diff(exact) as f64 <= 0.01 * exact as f64
        };
        for p in [0.0, 0.1, 0.5, 0.99, 1.0] {
            match (rest.percentile(p), expected.percentile(p)) {
                (Some(found), Some(exact)) => prop_assert!(close(found, exact), "{found} {exact}"),
                (found, exact) => prop_assert_eq!(found, exact),
            }
        }
    }

    #[test]
    fn histogram_on_demand_and_clone_equal_one_with_all_buckets(values in vec(value(), 0..50)) {
        let mut late = Histogram::on_demand();
        values.iter().for_each(|&value| late.record(value));
        prop_assert_eq!(&late, &of(&values));
        prop_assert_eq!(&late.clone(), &late);
        let held = late.buckets.len();
        prop_assert!(held == BUCKETS || values.iter().all(|&value| value >= 1 << 36), "{held}");
        late.clear();
        prop_assert_eq!(late, Histogram::new());
    }

    #[test]
    fn bounds_of_a_bucket_enclose_its_values(value in value()) {
        let index = bucket_index(value);
        prop_assume!(index < BUCKETS);
        let (low, high) = bucket_bounds(index);
        prop_assert!(low <= value && value <= high);
        prop_assert_eq!((bucket_index(low), bucket_index(high)), (index, index));
    }

    #[test]
    fn mean_and_deviation_match_their_definitions(values in vec(0_u64..1 << 36, 1..100)) {
        let n = values.len() as f64;
        let mean = values.iter().map(|&v| v as f64).sum::<f64>() / n;
        let variance = values.iter().map(|&v| (v as f64 - mean).powi(2)).sum::<f64>() / n;
        let histogram = of(&values);
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-6 * (1.0 + b.abs());
        prop_assert!(close(histogram.mean_ns().expect("has values"), mean));
        prop_assert!(close(histogram.stddev_ns().expect("has values"), variance.sqrt()));
    }
}

#[test]
fn small_deviation_of_a_large_mean_is_not_cancelled_out() {
    let histogram = of(&[60_000_000_000, 60_000_000_001]);
    assert_eq!(histogram.stddev_ns(), Some(0.5));
}

#[test]
fn empty_histogram_has_no_figures() {
    let histogram = Histogram::new();
    let figures = (
        histogram.min_ns(),
        histogram.max_ns(),
        histogram.percentile(0.5),
    );
    assert_eq!(figures, (None, None, None));
    assert_eq!((histogram.mean_ns(), histogram.stddev_ns()), (None, None));
}

#[test]
fn rank_is_not_pushed_up_by_binary_fractions() {
    let values: Vec<u64> = (1..=100).collect();
    assert_eq!(of(&values).percentile(0.07), Some(7));
    assert_eq!(of(&values).percentile(0.99), Some(99));
}

#[test]
fn first_and_last_rank_are_exact() {
    let histogram = of(&[1_000_001, 5_000_000, 9_999_999]);
    assert_eq!(histogram.percentile(0.0), Some(1_000_001));
    assert_eq!(histogram.percentile(1.0), Some(9_999_999));
}

#[test]
fn values_beyond_the_range_overflow_and_still_count() {
    let histogram = of(&[10, 1 << 36, u64::MAX]);
    assert_eq!((histogram.count(), histogram.overflow()), (3, 2));
    assert_eq!(histogram.max_ns(), Some(u64::MAX));
    assert_eq!(histogram.percentile(0.5), Some(u64::MAX));
    assert_eq!(histogram.buckets().collect::<Vec<_>>(), [(10, 10, 1)]);
}

#[test]
fn cleared_histogram_equals_a_new_one_and_keeps_its_buckets() {
    let mut histogram = of(&[3, 1 << 20, 1 << 40]);
    histogram.clear();
    assert_eq!(histogram, Histogram::new());
    assert_eq!(histogram.buckets.len(), BUCKETS);
}

#[test]
fn recording_many_equals_recording_each() {
    let mut many = Histogram::new();
    many.record_many(6_497_400, 3);
    many.record_many(7, 0);
    assert_eq!(many, of(&[6_497_400; 3]));
}

#[test]
#[should_panic(expected = "quantile 99 is not within 0 to 1")]
fn quantile_given_in_percent_is_refused() {
    of(&[1]).percentile(99.0);
}

#[test]
fn json_is_compact_and_names_its_layout() {
    let json = serde_json::to_string(&of(&[5, 5, 7])).expect("serializes");
    let expected = concat!(
        r#"{"layout":"log-linear-128-ns-2^36","count":3,"sum_ns":"17","#,
        r#""sum_squares_ns2":"99","min_ns":5,"max_ns":7,"overflow":0,"buckets":[5,2,2,1]}"#
    );
    assert_eq!(json, expected);
}

#[test]
fn json_that_does_not_add_up_is_refused() {
    let good = serde_json::to_string(&of(&[5, 5, 7])).expect("serializes");
    let cases = [
        (("2^36", "2^40"), "histogram layout is"),
        (("\"count\":3", "\"count\":4"), "do not add up to 4"),
        (("[5,2,2,1]", "[5,2,2]"), "pairs"),
        (("[5,2,2,1]", "[5,2,0,1]"), "not ascending"),
        (("[5,2,2,1]", "[5,3,2,0]"), "one of them is empty"),
        (("[5,2,2,1]", "[5,2,3840,1]"), "bucket 3845 is out of range"),
        (("\"min_ns\":5", "\"min_ns\":6"), "outermost"),
        (("\"max_ns\":7", "\"max_ns\":null"), "null exactly when"),
        (("\"17\"", "\"18\""), "cannot come from its buckets"),
        (("\"17\"", "\"+17\""), "not a 128-bit decimal"),
        (
            ("\"overflow\":0", "\"overflow\":0,\"p99\":1"),
            "unknown field",
        ),
    ];
    for ((from, to), message) in cases {
        let bad = good.replace(from, to);
        assert_ne!(bad, good, "{from} does not occur");
        let error = serde_json::from_str::<Histogram>(&bad).expect_err(&bad);
        assert!(error.to_string().contains(message), "{error} for {bad}");
    }
}

#[test]
fn width_at_a_value_is_that_of_its_bucket() {
    for index in 0..BUCKETS {
        let (low, high) = bucket_bounds(index);
        for value in [low, high] {
            assert_eq!(width_at(value), high - low + 1, "{value}");
        }
    }
    assert_eq!(width_at(u64::MAX), width_at((1 << RANGE_BITS) - 1));
}
