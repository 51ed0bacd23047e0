//! Whether events are enough to be more than chance.

use crate::histogram::Histogram;
use crate::symptoms::significance::{Share, median_between, share};

#[test]
fn three_events_tell_nothing_and_three_thousand_do() {
    assert_eq!(share(0, 3, 0.01), Share::TooFew);
    assert_eq!(share(1, 3, 0.01), Share::TooFew);
    assert_eq!(share(0, 300, 0.01), Share::NotAbove);
    assert_eq!(share(3, 1_000, 0.001), Share::TooFew);
    assert_eq!(share(6, 1_000, 0.001), Share::Above);
    assert_eq!(share(200, 1_000_000, 0.001), Share::NotAbove);
    assert_eq!(share(2_000, 1_000_000, 0.001), Share::Above);
    assert_eq!(share(0, 0, 0.001), Share::TooFew);
}

#[test]
fn median_of_few_values_is_anywhere() {
    let mut values = Histogram::new();
    values.record_many(1_000, 5);
    values.record_many(9_000, 5);
    assert_eq!(median_between(&values), None);
    values.record_many(1_000, 500);
    let (low, high) = median_between(&values).expect("has enough");
    assert!(low < 1_100 && high < 1_100, "{low} {high}");
}
