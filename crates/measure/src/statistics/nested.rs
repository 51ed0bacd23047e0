//! Runs within starts of a server: how much is due to the start, and how much to the run.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::interval::{degrees_of_freedom, error_of_mean};
use super::{ConfidenceInterval, Events, Range, mean, squares, variance};
use super::{interval_of_difference, interval_of_mean, interval_of_share};

/// The probability with which a difference that is there is to be found.
const POWER: f64 = 0.8;

/// One cell of an experiment: the start is what is repeated, runs after one start are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Nested {
    /// Mean of each start.
    pub means: Vec<f64>,
    /// Mean of those.
    pub mean: f64,
    /// Standard deviation that starts add, beyond what runs do.
    pub between_starts: f64,
    /// Standard deviation of runs after the same start; none with one run a start.
    pub within_starts: Option<f64>,
    /// Interval of the mean; none with one start.
    pub interval: Option<ConfidenceInterval>,
    /// Where it can lie.
    pub range: Range,
    /// Of a share, the events of all runs, where they were counted.
    events: Option<Events>,
    /// The width of the bucket of a histogram that the figure comes from; 0 if from none.
    step: f64,
}

impl Nested {
    /// From the values of each start, a figure that can lie in `range`. None without a value.
    pub fn new(starts: &[Vec<f64>], range: Range, level: f64) -> Option<Nested> {
        let starts: Vec<&Vec<f64>> = starts.iter().filter(|values| !values.is_empty()).collect();
        let means: Vec<f64> = starts.iter().filter_map(|values| mean(values)).collect();
        let mean = mean(&means)?;
        let within = within(&starts);
        // Runs alone let means differ by this much (one-way random effects; the harmonic mean of
        // the numbers of runs, where these differ).
        let reciprocals = starts.iter().map(|values| 1.0 / values.len() as f64);
        let by_runs = within.unwrap_or(0.0) * reciprocals.sum::<f64>() / starts.len() as f64;
        let between = (variance(&means).unwrap_or(0.0) - by_runs).max(0.0);
        Some(Nested {
            mean,
            between_starts: between.sqrt(),
            within_starts: within.map(f64::sqrt),
            interval: interval_of_mean(&means, range, level),
            means,
            range,
            events: None,
            step: 0.0,
        })
    }

    /// The same share with the events of all runs: what these leave open the interval holds too.
    pub fn with_events(mut self, events: Events) -> Nested {
        self.events = Some(events);
        self.interval = self.interval.map(|it| self.with_exact(it));
        self
    }

    /// The same figure, of buckets of a histogram that are that wide: starts that are equal only
    /// because all lie in one bucket leave that bucket open.
    pub fn with_step(mut self, step: f64) -> Nested {
        self.step = step;
        self.interval = self.interval.map(|it| self.with_exact(it));
        self
    }

    fn with_exact(&self, interval: ConfidenceInterval) -> ConfidenceInterval {
        let level = interval.level;
        let of_bucket = self.range.around(self.mean, self.step / 2.0, level);
        let interval = interval.joined(&of_bucket);
        let exact = (self.events).and_then(|events| interval_of_share(events, level));
        exact.map_or(interval, |exact| interval.joined(&exact))
    }

    /// The interval of the mean of `to` minus that of this one, neither of which leaves its range.
    /// None unless both have two starts.
    pub fn difference_to(&self, to: &Nested, level: f64) -> Option<ConfidenceInterval> {
        if self.means.len().min(to.means.len()) < 2 {
            return None;
        }
        let errors = [self, to].map(|it| error_of_mean(&it.means));
        let t = match errors {
            [0.0, 0.0] => 0.0,
            _ => StudentsT::new(0.0, 1.0, degrees_of_freedom(&self.means, &to.means))
                .ok()?
                .inverse_cdf(0.5 + level / 2.0),
        };
        let within = |it: &Nested, error: f64| {
            let interval = it.range.around(it.mean, t * error, level);
            (it.mean, it.with_exact(interval))
        };
        Some(interval_of_difference(
            within(self, errors[0]),
            within(to, errors[1]),
        ))
    }

    /// The least difference to another cell, as repeated and as variable as this one, that is
    /// found four times of five. None with one start, and if no such difference is possible.
    pub fn detectable(&self, level: f64) -> Option<f64> {
        let variance = variance(&self.means)?;
        let number = self.means.len() as f64;
        let t = StudentsT::new(0.0, 1.0, 2.0 * (number - 1.0)).ok()?;
        let error = (2.0 * variance / number).sqrt();
        let least = (t.inverse_cdf(0.5 + level / 2.0) + t.inverse_cdf(POWER)) * error;
        (self.range != Range::Share || least < 1.0).then_some(least)
    }
}

/// The variance of runs after the same start, of all starts together.
fn within(starts: &[&Vec<f64>]) -> Option<f64> {
    let free: usize = starts.iter().map(|values| values.len() - 1).sum();
    let all: f64 = starts
        .iter()
        .filter_map(|values| Some(squares(values, mean(values)?)))
        .sum();
    (free > 0).then(|| all / free as f64)
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::super::welch;
    use super::*;

    /// About normally distributed, of variance 1: the sum of twelve even ones.
    fn noise(generator: &mut Xoshiro256PlusPlus) -> f64 {
        let even = |bits: u64| (bits >> 11) as f64 / (1_u64 << 53) as f64;
        (0..12).map(|_| even(generator.next_u64())).sum::<f64>() - 6.0
    }

    fn cell(
        generator: &mut Xoshiro256PlusPlus,
        at: f64,
        between: f64,
        runs: usize,
    ) -> Vec<Vec<f64>> {
        (0..6)
            .map(|_| {
                let start = at + between * noise(generator);
                (0..runs).map(|_| start + noise(generator)).collect()
            })
            .collect()
    }

    #[test]
    fn both_components_are_those_of_a_table_of_analysis_of_variance() {
        // Means 10, 14 and 12; within 2; between (4 - 2 / 2).
        let starts = [vec![9.0, 11.0], vec![13.0, 15.0], vec![11.0, 13.0]];
        let nested = Nested::new(&starts, Range::Any, 0.95).unwrap();
        assert_eq!((nested.mean, nested.means.len()), (12.0, 3));
        assert!((nested.within_starts.unwrap() - 2_f64.sqrt()).abs() < 1e-12);
        assert!((nested.between_starts - 3_f64.sqrt()).abs() < 1e-12);
        let interval = nested.interval.unwrap();
        // t of 2 degrees of freedom is 4.3027; 2 / sqrt(3).
        assert!((interval.high - 12.0 - 4.968).abs() < 1e-2, "{interval:?}");
        assert_eq!(Nested::new(&[], Range::Any, 0.95), None);
        assert_eq!(
            Nested::new(&[vec![1.0]], Range::Any, 0.95)
                .unwrap()
                .interval,
            None
        );
    }

    #[test]
    fn starts_in_one_bucket_leave_that_bucket_open() {
        let cell = |at: f64, step| {
            let starts = [vec![at], vec![at], vec![at]];
            let nested = Nested::new(&starts, Range::Positive, 0.95);
            nested.unwrap().with_step(step)
        };
        let (old, new) = (cell(1_000.0, 16.0), cell(1_104.0, 16.0));
        let interval = old.interval.as_ref().unwrap();
        assert!(
            interval.low < 992.5 && interval.high > 1_007.5,
            "{interval:?}"
        );
        let difference = old.difference_to(&new, 0.95).unwrap();
        assert!(
            difference.low < 95.0 && difference.high > 113.0,
            "{difference:?}"
        );
        let exact = cell(1_000.0, 0.0).difference_to(&cell(1_104.0, 0.0), 0.95);
        let exact = exact.unwrap();
        assert!((exact.high - exact.low).abs() < 1e-6, "{exact:?}");
    }

    #[test]
    fn forty_cells_against_their_twins_alarm_seldom_and_a_naive_test_often() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(1);
        let (mut alarms, mut naive_alarms) = (0, 0);
        for _ in 0..40 {
            let pair = [(); 2].map(|()| cell(&mut generator, 100.0, 3.0, 5));
            let means = pair
                .each_ref()
                .map(|it| Nested::new(it, Range::Any, 0.95).unwrap().means);
            let runs = pair.each_ref().map(|it| it.concat());
            let alarm = |it: &[Vec<f64>; 2]| {
                let test = welch(&it[0], &it[1], 0.95).unwrap();
                usize::from(test.p_value < 0.05)
            };
            alarms += alarm(&means);
            naive_alarms += alarm(&runs);
        }
        // 5 % of 40 is 2; with a probability of 98.6 % there are no more than 5.
        assert!(alarms <= 5, "{alarms}");
        assert!(naive_alarms > 10, "{naive_alarms}");
    }

    #[test]
    fn a_difference_that_can_be_detected_is_found_four_times_of_five() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(2);
        let (mut found, mut differences) = (0, 0.0);
        for _ in 0..200 {
            let one = Nested::new(&cell(&mut generator, 100.0, 2.0, 3), Range::Any, 0.95).unwrap();
            differences += one.detectable(0.95).unwrap() / 200.0;
        }
        for _ in 0..200 {
            let from = cell(&mut generator, 100.0, 2.0, 3);
            let to = cell(&mut generator, 100.0 + differences, 2.0, 3);
            let [from, to] = [from, to].map(|it| Nested::new(&it, Range::Any, 0.95).unwrap().means);
            found += usize::from(welch(&from, &to, 0.95).unwrap().p_value < 0.05);
        }
        assert!((130..=185).contains(&found), "{found}");
    }
}
