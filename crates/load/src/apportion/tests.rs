use proptest::prelude::*;

use super::{exact, whole, whole_of_one_or_more};

#[test]
fn largest_remainders_get_what_is_left() {
    for (total, weights, shares) in [
        (100, vec![1.0, 1.0], vec![50, 50]),
        (100, vec![1.0, 1.0, 1.0], vec![34, 33, 33]),
        (10, vec![0.3, 0.7], vec![3, 7]),
        (7, vec![1.0, 2.0, 4.0], vec![1, 2, 4]),
        (1, vec![1.0, 99.0], vec![0, 1]),
        (0, vec![1.0, 2.0], vec![0, 0]),
        (3, vec![0.0, 2.0], vec![0, 3]),
    ] {
        assert_eq!(whole(total, &weights), shares, "{total} by {weights:?}");
    }
    assert_eq!(exact(2_000.0, &[1.0, 3.0]), [500.0, 1_500.0]);
}

#[test]
fn one_or_more_takes_from_the_largest() {
    assert_eq!(whole_of_one_or_more(10, &[1.0, 99.0]), Some(vec![1, 9]));
    assert_eq!(
        whole_of_one_or_more(3, &[1.0, 1.0, 98.0]),
        Some(vec![1, 1, 1])
    );
    assert_eq!(whole_of_one_or_more(2, &[1.0, 1.0, 1.0]), None);
}

proptest! {
    #[test]
    fn shares_add_up_to_the_total_and_are_next_to_the_exact_ones(
        total in 0_u64..5_000_000,
        weights in prop::collection::vec(1e-3_f64..1e6, 1..40),
    ) {
        let shares = whole(total, &weights);
        prop_assert_eq!(shares.iter().sum::<u64>(), total);
        for (share, exact) in shares.iter().zip(exact(total as f64, &weights)) {
            prop_assert!((*share as f64 - exact).abs() < 1.0 + 1e-6, "{share} for {exact}");
        }
    }

    #[test]
    fn greater_weight_never_gets_less(
        total in 0_u64..100_000,
        weights in prop::collection::vec(1_u32..1_000, 1..20),
    ) {
        let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
        let shares = whole(total, &weights);
        for (a, of_a) in weights.iter().zip(&shares) {
            for (b, of_b) in weights.iter().zip(&shares) {
                prop_assert!(a <= b || of_a >= of_b, "{a} gets {of_a}, {b} gets {of_b}");
            }
        }
    }

    #[test]
    fn of_one_or_more_nobody_is_left_without(
        total in 0_u64..10_000,
        weights in prop::collection::vec(1e-3_f64..1e6, 1..40),
    ) {
        match whole_of_one_or_more(total, &weights) {
            None => prop_assert!(total < weights.len() as u64),
            Some(shares) => {
                prop_assert_eq!(shares.iter().sum::<u64>(), total);
                prop_assert!(shares.iter().all(|share| *share > 0));
            }
        }
    }

    #[test]
    fn rates_add_up(
        total in 0.01_f64..1e8,
        weights in prop::collection::vec(1e-3_f64..1e6, 1..40),
    ) {
        let sum: f64 = exact(total, &weights).iter().sum();
        prop_assert!((sum / total - 1.0).abs() < 1e-12, "{sum} of {total}");
    }
}
