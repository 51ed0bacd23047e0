//! Intervals within what a figure can be: no rate below 0, no share outside 0 to 1.
//!
//! A mean and its standard error give an interval that is symmetrical on another scale: logarithms
//! for what is positive, log odds for shares. The error on that scale is the error divided by the
//! slope there (the delta method), so that the mean itself is that of the values, some of which may
//! be 0. Shares whose events were counted have an exact interval too, which zero events do not
//! close.

use statrs::distribution::{Beta, ContinuousCDF, Normal};

use super::ConfidenceInterval;

/// Where a figure can lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// Anywhere.
    Any,
    /// From 0 up: rates, times, counts.
    Positive,
    /// From 0 to 1.
    Share,
}

/// Events of all that could have been one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// How many there were.
    pub some: u64,
    /// How many there could have been.
    pub all: u64,
}

impl Range {
    /// The interval around `value` that reaches as far as `reach` would on a straight scale, at
    /// least near the value. It holds the value, and nothing that is impossible.
    pub fn around(self, value: f64, reach: f64, level: f64) -> ConfidenceInterval {
        let (low, high) = match self {
            Range::Any => (value - reach, value + reach),
            Range::Positive if value > 0.0 => {
                let factor = (reach / value).exp();
                (value / factor, value * factor)
            }
            Range::Share if value > 0.0 && value < 1.0 => {
                let odds = value / (1.0 - value);
                let factor = (reach / (value * (1.0 - value))).exp();
                let share = |odds: f64| match odds.is_finite() {
                    true => odds / (1.0 + odds),
                    false => 1.0,
                };
                (share(odds / factor), share(odds * factor))
            }
            // At an end of the range nothing varies, unless the figure is rough.
            Range::Positive | Range::Share => (value, value),
        };
        ConfidenceInterval {
            low: low.min(value),
            high: high.max(value),
            level,
        }
    }

    /// `value` if it can be, or the possible value that is nearest.
    pub fn clamp(self, value: f64) -> f64 {
        match self {
            Range::Any => value,
            Range::Positive => value.max(0.0),
            Range::Share => value.clamp(0.0, 1.0),
        }
    }
}

/// Events below which a share is calculated exactly; above, the score interval is as good.
const EXACT_MAX: u64 = 400;

/// The interval of a share by the number of its events, each independent of the others: that of
/// Clopper and Pearson (The Use of Confidence or Fiducial Limits, 1934), or with many events of
/// either kind that of Wilson (Probable Inference, 1927). Of none of 79,000 at 95 % it reaches to
/// 0.0047 %. None without anything that could have been one.
pub fn interval_of_share(events: Events, level: f64) -> Option<ConfidenceInterval> {
    let Events { some, all } = events;
    if all == 0 || some > all || !(0.0..1.0).contains(&level) {
        return None;
    }
    let tail = (1.0 - level) / 2.0;
    let (low, high) = match some.min(all - some) {
        EXACT_MAX.. => wilson(some as f64, all as f64, tail),
        _ if some <= all / 2 => exact(some, all, tail),
        // The fewer ones are calculated, because a share near 1 has lost its digits.
        _ => {
            let (low, high) = exact(all - some, all, tail);
            (1.0 - high, 1.0 - low)
        }
    };
    Some(ConfidenceInterval { low, high, level })
}

fn exact(some: u64, all: u64, tail: f64) -> (f64, f64) {
    let (events, others) = (some as f64, (all - some) as f64);
    let low = match some {
        0 => 0.0,
        _ => quantile_of_beta((events, others + 1.0), tail),
    };
    let high = match some {
        // 1 - tail^(1 / n)
        0 => -(tail.ln() / all as f64).exp_m1(),
        _ => quantile_of_beta((events + 1.0, others), 1.0 - tail),
    };
    (low, high)
}

/// By bisection of the logarithm, because the share may be tiny.
fn quantile_of_beta((a, b): (f64, f64), p: f64) -> f64 {
    let Ok(beta) = Beta::new(a, b) else {
        return f64::NAN;
    };
    let (mut low, mut high) = (-60.0_f64, 0.0_f64);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match beta.cdf(middle.exp()) < p {
            true => low = middle,
            false => high = middle,
        }
    }
    high.exp()
}

fn wilson(events: f64, all: f64, tail: f64) -> (f64, f64) {
    let z = Normal::standard().inverse_cdf(1.0 - tail);
    let share = events / all;
    let middle = share + z * z / (2.0 * all);
    let reach = z * (share * (1.0 - share) / all + (z / (2.0 * all)).powi(2)).sqrt();
    let whole = 1.0 + z * z / all;
    ((middle - reach) / whole, (middle + reach) / whole)
}

/// The interval of `to` minus `from`, of which each has one by itself (Zou and Donner,
/// Construction of Confidence Limits about Effect Measures, 2008): it takes neither figure to where
/// it cannot be.
pub fn interval_of_difference(
    (from, from_within): (f64, ConfidenceInterval),
    (to, to_within): (f64, ConfidenceInterval),
) -> ConfidenceInterval {
    let difference = to - from;
    ConfidenceInterval {
        low: difference - (to - to_within.low).hypot(from_within.high - from),
        high: difference + (to_within.high - to).hypot(from - from_within.low),
        level: to_within.level,
    }
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::statistics::{Nested, interval_of_mean};

    const LEVEL: f64 = 0.95;

    fn uniform(generator: &mut Xoshiro256PlusPlus) -> f64 {
        (generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About normally distributed, of variance 1.
    fn normal(generator: &mut Xoshiro256PlusPlus) -> f64 {
        (0..12).map(|_| uniform(generator)).sum::<f64>() - 6.0
    }

    fn near(found: f64, expected: f64) {
        let distance = (found / expected - 1.0).abs();
        assert!(distance < 1e-3, "{found} is not {expected}");
    }

    /// Values whose spread goes from none to far more than they are, zeroes among them.
    fn values(range: Range, generator: &mut Xoshiro256PlusPlus) -> Vec<f64> {
        let (middle, spread) = (6.0 * normal(generator), 5.0 * uniform(generator).powi(3));
        let number = 2 + (8.0 * uniform(generator)) as usize;
        let value = |_| {
            let positive = match uniform(generator) < 0.1 {
                true => 0.0,
                false => (middle + spread * normal(generator)).exp(),
            };
            match range {
                Range::Share => positive / (1.0 + positive),
                _ => positive,
            }
        };
        (0..number).map(value).collect()
    }

    #[test]
    fn no_interval_of_any_values_holds_what_cannot_be() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(1);
        for range in [Range::Positive, Range::Share] {
            for _ in 0..20_000 {
                let [from, to] = [(); 2].map(|()| values(range, &mut generator));
                let found = interval_of_mean(&to, range, LEVEL).expect("several");
                let mean = to.iter().sum::<f64>() / to.len() as f64;
                assert!(found.low >= 0.0 && found.contains(mean), "{to:?} {found:?}");
                assert!(
                    range != Range::Share || found.high <= 1.0,
                    "{to:?} {found:?}"
                );
                let [from, to] = [from, to].map(|values| {
                    let starts: Vec<Vec<f64>> = values.into_iter().map(|it| vec![it]).collect();
                    Nested::new(&starts, range, LEVEL).expect("several")
                });
                let difference = from.difference_to(&to, LEVEL).expect("several");
                assert!(difference.contains(to.mean - from.mean), "{difference:?}");
                let possible =
                    Range::Share != range || (-1.0 <= difference.low && difference.high <= 1.0);
                assert!(possible, "{from:?} {to:?} {difference:?}");
                let least = to.detectable(LEVEL);
                assert!(range != Range::Share || least < Some(1.0), "{to:?}");
            }
        }
    }

    #[test]
    fn interval_of_counted_events_is_possible_whatever_their_number() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(2);
        for _ in 0..3_000 {
            let all = 10_f64.powf(9.0 * uniform(&mut generator)) as u64;
            let some = (all as f64 * uniform(&mut generator).powi(9)) as u64;
            for some in [0, some, all - some, all] {
                let found = interval_of_share(Events { some, all }, LEVEL).expect("some");
                let (low, high) = (found.low, found.high);
                assert!(
                    0.0 <= low && low < high && high <= 1.0,
                    "{some} of {all} {found:?}"
                );
                assert!(
                    found.contains(some as f64 / all as f64),
                    "{some} of {all}: {found:?}"
                );
            }
        }
        for events in [Events { some: 0, all: 0 }, Events { some: 2, all: 1 }] {
            assert_eq!(interval_of_share(events, LEVEL), None);
        }
    }

    /// Clopper and Pearson (1934), as in tables: 5 of 20, and none of 20.
    #[test]
    fn interval_of_counted_events_is_the_published_one() {
        let of = |some, all| interval_of_share(Events { some, all }, LEVEL).expect("some");
        near(of(5, 20).low, 0.086_57);
        near(of(5, 20).high, 0.491_05);
        near(of(0, 20).high, 0.168_43);
        assert_eq!(of(0, 20).low, 0.0);
        near(of(20, 20).low, 1.0 - 0.168_43);
        // Three events of a Poisson distribution lie between 0.6187 and 8.767.
        near(of(3, 1_000_000_000).low, 0.618_7e-9);
        near(of(3, 1_000_000_000).high, 8.767e-9);
        let none = of(0, 79_000);
        assert!(none.contains(0.000_002), "{none:?}");
        near(none.high, 4.669e-5);
        // Where one method takes over from the other they agree.
        let (exact, score) = (of(399, 1_000_000), of(401, 1_000_000));
        assert!(exact.low < score.low && exact.high < score.high);
        assert!(
            (score.high / exact.high - 1.0) < 0.01,
            "{exact:?} {score:?}"
        );
    }

    #[test]
    fn counted_events_hold_the_truth_at_least_as_often_as_the_level_says() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(3);
        for share in [0.001, 0.02, 0.3, 0.995] {
            let mut held = 0;
            for _ in 0..1_000 {
                let some = (0..500).filter(|_| uniform(&mut generator) < share).count() as u64;
                let found = interval_of_share(Events { some, all: 500 }, LEVEL);
                held += u32::from(found.expect("some").contains(share));
            }
            assert!(held >= 940, "{share}: {held} of 1,000");
        }
    }

    /// Of 2,000 means of as many values as starts usually are.
    fn held(range: Range, number: usize, value: fn(&mut Xoshiro256PlusPlus) -> f64) -> u32 {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(4);
        let all = (0..200_000).map(|_| value(&mut generator)).sum::<f64>();
        let truth = all / 200_000.0;
        let mut held = 0;
        for _ in 0..2_000 {
            let values: Vec<f64> = (0..number).map(|_| value(&mut generator)).collect();
            let found = interval_of_mean(&values, range, LEVEL).expect("several");
            held += u32::from(found.contains(truth));
        }
        held
    }

    #[test]
    fn means_of_starts_are_held_about_as_often_as_the_level_says() {
        for number in [3, 5, 10] {
            for (range, value) in [
                (
                    Range::Positive,
                    (|it| 1e4 + 300.0 * normal(it)) as fn(&mut _) -> f64,
                ),
                (Range::Positive, |it| (0.3 * normal(it)).exp()),
                (Range::Share, |it| (0.5 + 0.1 * normal(it)).clamp(0.0, 1.0)),
                (Range::Share, |it| 0.01 * (0.3 * normal(it)).exp()),
            ] {
                let held = held(range, number, value);
                assert!(
                    (1_860..=1_960).contains(&held),
                    "{number} {range:?}: {held} of 2,000"
                );
            }
        }
    }
}
