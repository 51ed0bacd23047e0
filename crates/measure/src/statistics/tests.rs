//! Published values, properties that hold for any input, and coverage on made-up samples.

use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

fn generator(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// A normally distributed number (Box and Muller, 1958).
fn normal(generator: &mut Xoshiro256PlusPlus) -> f64 {
    let uniform = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    let (one, other) = (uniform(generator.next_u64()), uniform(generator.next_u64()));
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}

fn normals(number: usize, generator: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    (0..number).map(|_| normal(generator)).collect()
}

/// `next = correlation * last + noise`.
fn correlated(number: usize, correlation: f64, seed: u64) -> Vec<f64> {
    let mut generator = generator(seed);
    let mut last = 0.0;
    let step = |_| {
        last = correlation * last + normal(&mut generator);
        last
    };
    (0..number).map(step).collect()
}

fn near(found: f64, expected: f64, tolerance: f64) {
    let distance = (found - expected).abs();
    assert!(distance <= tolerance, "{found} is not {expected}");
}

#[test]
fn middles_and_quantiles_are_those_of_the_literature() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0]), Some(3.0));
    assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    let to_ten: Vec<f64> = (1..=10).map(f64::from).collect();
    assert_eq!(quantile(&to_ten, 0.25), Some(3.25));
    assert_eq!(quantile(&to_ten, 1.0), Some(10.0));
    assert_eq!(mad(&[1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0]), Some(1.0));
    assert_eq!(median(&[f64::INFINITY, f64::INFINITY]), Some(f64::INFINITY));
}

/// Conover, Practical Nonparametric Statistics, table A3: B(n, 1/2) below k is 0.0156 (6, 1),
/// 0.0107 (10, 2), 0.0176 (15, 4), 0.0207 (20, 6).
#[test]
fn interval_of_the_median_has_the_coverage_of_the_binomial_table() {
    for (number, k, tail) in [
        (6, 1, 0.0156),
        (10, 2, 0.0107),
        (15, 4, 0.0176),
        (20, 6, 0.0207),
    ] {
        let values: Vec<f64> = (1..=number).map(f64::from).collect();
        let interval = interval_of_median(&values, 0.95).expect("enough values");
        assert_eq!(interval.low, f64::from(k), "of {number}");
        assert_eq!(interval.high, f64::from(number + 1 - k), "of {number}");
        near(interval.level, 1.0 - 2.0 * tail, 1e-4);
    }
    let five = [1.0, 2.0, 3.0, 4.0, 5.0];
    assert_eq!(interval_of_median(&five, 0.95), None);
    assert!(interval_of_median(&five, 0.9).is_some());
    assert_eq!(interval_of_median(&[], 0.9), None);
}

/// Student's t with 4 degrees of freedom at 0.975 is 2.776.
#[test]
fn interval_of_the_mean_is_student_s() {
    let interval =
        interval_of_mean(&[1.0, 2.0, 3.0, 4.0, 5.0], Range::Any, 0.95).expect("five values");
    near(interval.low, 3.0 - 2.776 * 0.5_f64.sqrt(), 1e-3);
    near(interval.high, 3.0 + 2.776 * 0.5_f64.sqrt(), 1e-3);
    assert_eq!(interval_of_mean(&[1.0], Range::Any, 0.95), None);
}

/// The example of the article on Welch's test in Wikipedia, samples A1 and A2: t = 2.46, 25 degrees
/// of freedom, p = 0.021.
#[test]
fn comparison_of_two_means_agrees_with_a_worked_example() {
    let first = [
        27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4,
    ];
    let second = [
        27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4,
    ];
    let test = welch(&first, &second, 0.95).expect("values");
    near(test.p_value, 0.021, 0.0005);
    assert!(test.interval.low > 0.0 && test.interval.contains(test.difference));
    let same = welch(&[1.0, 1.0], &[1.0, 1.0], 0.95).expect("values");
    assert_eq!((same.p_value, same.interval.half_width()), (1.0, 0.0));
    assert_eq!(welch(&[1.0], &[1.0, 2.0], 0.95), None);
}

/// Two samples without ties in which `u` pairs have the greater value in the first.
fn with_u(first: usize, second: usize, u: usize) -> (Vec<f64>, Vec<f64>) {
    let others: Vec<f64> = (0..second).map(|each| 100.0 * (each + 1) as f64).collect();
    let place = |index: usize| {
        let above = u.saturating_sub(index * second).min(second);
        100.0 * above as f64 + 50.0 - index as f64
    };
    ((0..first).map(place).collect(), others)
}

/// Critical values of U, two-sided at 0.05 (Mann and Whitney, 1947; extended by Auble, 1953).
#[test]
fn rank_test_agrees_with_the_published_critical_values() {
    for (first, second, critical) in [
        (3, 5, 0),
        (4, 4, 0),
        (5, 5, 2),
        (8, 8, 13),
        (10, 10, 23),
        (10, 20, 55),
        (20, 20, 127),
    ] {
        let p_value = |u: usize| {
            let (one, other) = with_u(first, second, u);
            let test = mann_whitney(&one, &other).expect("both have values");
            assert_eq!((test.u, test.exact), (u as f64, true));
            test.p_value
        };
        assert!(p_value(critical) <= 0.05, "{first}, {second}");
        assert!(p_value(critical + 1) > 0.05, "{first}, {second}");
    }
}

/// Hollander and Wolfe, Nonparametric Statistical Methods (1973), page 69: permeability of human
/// chorioamnion at term and earlier. U is 35, one-sided p 0.1272, the shift 0.305.
#[test]
fn rank_test_and_shift_agree_with_a_worked_example() {
    let term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
    let earlier = [1.15, 0.88, 0.90, 0.74, 1.21];
    let test = mann_whitney(&term, &earlier).expect("both have values");
    assert_eq!(test.u, 35.0);
    near(test.p_value, 2.0 * 0.1272, 1e-4);
    near(
        hodges_lehmann(&earlier, &term).expect("values"),
        0.305,
        1e-9,
    );
    near(
        cliffs_delta(&earlier, &term),
        2.0 * 35.0 / 50.0 - 1.0,
        1e-12,
    );
}

#[test]
fn ties_are_counted_out_too() {
    // Two of the ranks 1, 3, 3, 3, 5 have the sums 4, 4, 4, 6, 6, 6, 6, 8, 8, 8.
    let test = mann_whitney(&[1.0, 2.0], &[2.0, 2.0, 3.0]).expect("both have values");
    assert_eq!(test.u, 1.0);
    near(test.p_value, 0.6, 1e-12);
    let same = mann_whitney(&[2.0; 9], &[2.0; 9]).expect("both have values");
    assert_eq!(same.p_value, 1.0);
    let same = mann_whitney(&[2.0; 90], &[2.0; 90]).expect("both have values");
    assert_eq!((same.p_value, same.exact), (1.0, false));
}

#[test]
fn normal_approximation_meets_the_exact_distribution() {
    for u in [180, 200, 230, 300] {
        let (one, other) = with_u(25, 25, u);
        let exact = mann_whitney(&one, &other).expect("values");
        let ranks = midranks(&[one, other].concat());
        let approximate = rank::normal_p_value(&ranks, 25);
        near(approximate, exact.p_value, 0.002);
    }
    let (one, other) = with_u(40, 40, 300);
    assert!(!mann_whitney(&one, &other).expect("values").exact);
}

/// The example of R's `p.adjust` and of most textbooks: 0.01, 0.04, 0.03, 0.005.
#[test]
fn holm_corrects_step_by_step() {
    let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
    for (found, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
        near(*found, expected, 1e-12);
    }
    assert_eq!(holm(&[]), Vec::<f64>::new());
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
}

/// Ten values that all rise: S = 45 and its variance 10 x 9 x 25 / 18 = 125 (Kendall, 1975).
#[test]
fn trend_of_a_monotonic_series_is_the_published_one() {
    let rising: Vec<f64> = (0..10).map(|each| f64::from(each * each)).collect();
    let trend = mann_kendall(&rising).expect("ten values");
    assert_eq!(trend.s, 45.0);
    near(trend.z, 44.0 / 125.0_f64.sqrt(), 1e-9);
    let falling: Vec<f64> = rising.iter().map(|value| -value).collect();
    assert_eq!(mann_kendall(&falling).expect("ten values").z, -trend.z);
    assert_eq!(mann_kendall(&[1.0; 20]).expect("values").p_value, 1.0);
    assert_eq!(mann_kendall(&[1.0, 2.0, 3.0]), None);
}

#[test]
fn slope_is_not_moved_by_an_outlier() {
    let mut line: Vec<f64> = (0..21).map(|each| 5.0 + 0.5 * f64::from(each)).collect();
    line[3] = 1e9;
    near(theil_sen(&line).expect("values"), 0.5, 1e-12);
    assert_eq!(theil_sen(&[1.0]), None);
}

#[test]
fn series_that_wanders_is_seldom_taken_for_a_trend() {
    let alarms = |correlation| {
        let trends = (0..400).filter_map(|seed| mann_kendall(&correlated(60, correlation, seed)));
        trends.filter(|trend| trend.p_value < 0.05).count()
    };
    // Uncorrected, a correlation of 0.6 gives 30 % false alarms.
    assert!((8..=32).contains(&alarms(0.0)), "{}", alarms(0.0));
    assert!(alarms(0.6) <= 60, "{}", alarms(0.6));
}

#[test]
fn blocks_are_as_long_as_the_memory_of_the_series() {
    let length = |correlation| {
        let lengths = (0..50).map(|seed| block_length(&correlated(400, correlation, seed)) as f64);
        median(&lengths.collect::<Vec<f64>>()).expect("fifty")
    };
    let (none, some, strong) = (length(0.0), length(0.5), length(0.9));
    assert!(none <= 4.0, "{none}");
    assert!(none < some && some < strong, "{none}, {some}, {strong}");
    near(autocorrelation(&correlated(5_000, 0.5, 1), 1), 0.5, 0.05);
    assert_eq!(block_length(&[1.0; 30]), 1);
    assert_eq!(autocorrelation(&[1.0, 2.0], 7), 0.0);
}

#[test]
fn drawn_blocks_are_circular_and_as_many_as_there_are_intervals() {
    let mut generator = generator(3);
    let drawn: Vec<usize> = Bootstrap::blocks(10, 4, &mut generator).collect();
    assert_eq!(drawn.len(), 10);
    for block in drawn.chunks(4) {
        assert!(
            block.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 10),
            "{drawn:?}"
        );
    }
    assert_eq!(Bootstrap::blocks(0, 4, &mut generator).count(), 0);
}

#[test]
fn bootstrap_of_a_ratio_holds_the_truth_about_as_often_as_it_says() {
    let bootstrap = Bootstrap {
        resamples: 500,
        level: 0.95,
    };
    let mut generator = generator(11);
    let (mut held, mut held_by_pairs) = (0, 0);
    for _ in 0..300 {
        // The second is 1.2 times the first; what disturbs both moves pairs together.
        let common = normals(12, &mut generator);
        let side = |factor: f64, generator: &mut Xoshiro256PlusPlus| -> Vec<f64> {
            let each = common.iter();
            each.map(|common| factor * (0.2 * common + 0.05 * normal(generator)).exp())
                .collect()
        };
        let (from, to) = (side(1.0, &mut generator), side(1.2, &mut generator));
        let free = bootstrap
            .ratio_of_medians(&from, &to, &mut generator)
            .expect("values");
        let pairs: Vec<(f64, f64)> = from.into_iter().zip(to).collect();
        let paired = bootstrap
            .paired_ratio_of_medians(&pairs, &mut generator)
            .expect("values");
        held += u32::from(free.contains(1.2));
        held_by_pairs += u32::from(paired.contains(1.2));
    }
    assert!(held >= 285, "{held} of 300");
    assert!(held_by_pairs >= 273, "{held_by_pairs} of 300");
}

#[test]
fn same_seed_gives_the_same_interval() {
    let values = normals(20, &mut generator(5));
    let interval = |seed| Bootstrap::default().median(&values, &mut generator(seed));
    assert_eq!(interval(1), interval(1));
    let found = interval(1).expect("values");
    assert!(found.contains(median(&values).expect("values")));
    assert_eq!(Bootstrap::default().median(&[1.0], &mut generator(1)), None);
}

/// The difference of two normal values has sqrt(2) times their deviation: 95 % lie within 2.77.
#[test]
fn noise_floor_of_normal_runs_is_that_of_theory() {
    let values = normals(2_000, &mut generator(2));
    let bootstrap = Bootstrap {
        resamples: 20_000,
        level: 0.95,
    };
    let floor = |sizes| noise_floor(&[&values], sizes, &bootstrap, &mut generator(1));
    near(floor((1, 1)).expect("values"), 2.77, 0.1);
    // The median of n normal values has a deviation of about sqrt(pi / 2 n).
    near(
        floor((20, 20)).expect("values"),
        2.77 * (1.571_f64 / 20.0).sqrt(),
        0.06,
    );
    assert_eq!(
        noise_floor(&[&[1.0], &[]], (1, 1), &bootstrap, &mut generator(1)),
        None
    );
}

fn samples() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    // Few different values, so that there are ties.
    let sample = || prop::collection::vec((0_u32..12).prop_map(f64::from), 1..40);
    (sample(), sample())
}

proptest! {
    #[test]
    fn rank_test_is_symmetric_and_a_probability((one, other) in samples()) {
        let forth = mann_whitney(&one, &other).expect("values");
        let back = mann_whitney(&other, &one).expect("values");
        let pairs = (one.len() * other.len()) as f64;
        prop_assert!((forth.u + back.u - pairs).abs() < 1e-9);
        prop_assert!((forth.p_value - back.p_value).abs() < 1e-9);
        prop_assert!(forth.p_value > 0.0 && forth.p_value <= 1.0);
        let delta = cliffs_delta(&other, &one);
        prop_assert!((delta - (2.0 * forth.u / pairs - 1.0)).abs() < 1e-9);
    }

    #[test]
    fn quantiles_rise_and_stay_within_the_values((values, _) in samples(), p in 0.0..1.0_f64) {
        let at = |p| quantile(&values, p).expect("values");
        prop_assert!(at(0.0) <= at(p) && at(p) <= at(1.0));
        prop_assert!(at(p) <= at((p + 0.1).min(1.0)));
    }

    #[test]
    fn corrected_p_values_are_no_smaller_and_keep_their_order(
        p_values in prop::collection::vec(0.0..1.0_f64, 0..10)
    ) {
        let corrected = holm(&p_values);
        for (one, corrected_one) in p_values.iter().zip(&corrected) {
            prop_assert!(corrected_one >= one && *corrected_one <= 1.0);
            for (other, corrected_other) in p_values.iter().zip(&corrected) {
                prop_assert!(one > other || corrected_one <= corrected_other);
            }
        }
    }

    #[test]
    fn bootstrap_stays_within_the_values((values, other) in samples(), seed: u64) {
        let bootstrap = Bootstrap { resamples: 50, level: 0.9 };
        let found = bootstrap.median(&values, &mut generator(seed));
        prop_assert_eq!(found.is_some(), values.len() > 1);
        if let Some(found) = found {
            let at = |p| quantile(&values, p).expect("values");
            prop_assert!(at(0.0) <= found.low && found.low <= found.high && found.high <= at(1.0));
        }
        let difference = bootstrap.difference_of_medians(&values, &values, &mut generator(seed));
        prop_assert!(difference.is_none_or(|found| found.low <= 0.0 && found.high >= 0.0));
        let _ = (block_length(&other), mann_kendall(&other), theil_sen(&other));
    }
}
