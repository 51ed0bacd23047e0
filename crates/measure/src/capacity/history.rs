//! Statistical evidence of all trials of a search.
//!
//! Interference makes a trial fail that would have passed, and none pass that would have failed. So
//! the highest value that passed is proof, and whatever failed well below it failed by chance: how
//! often is known from there, and how little a failure is worth.

use super::search::Outcome;

/// Values that are further apart than this share contradict each other if the higher one passes;
/// nearer ones are the width of a limit that is soft.
const WIDTH: f64 = 0.08;
/// Failures above a limit prove it once noise alone is less likely than the limit by this factor.
/// Likelihoods may be compared however the next trial was chosen. The factor is this small because
/// a limit may lie anywhere.
const CHANCE_MAX: f64 = 1e-6;
/// The same where some trials are known to have failed by chance: there are many searches in one,
/// with one limit after the other that is none.
const CHANCE_MAX_DISTURBED: f64 = 1e-9;

/// Where more of the trials below a value that passed fail, repetition does not help.
const ERRATIC: f64 = 0.25;
/// Fewer trials that failed by chance say nothing about how often that is.
const ERRATIC_MIN: usize = 3;

/// All trials of a search that decided something.
#[derive(Clone, Debug)]
pub struct History {
    decided: Vec<(f64, bool)>,
    undecided: usize,
    width: f64,
}

impl History {
    /// An empty history; limits are searched with this precision.
    pub(super) fn new(precision: f64) -> Self {
        History {
            decided: Vec::new(),
            undecided: 0,
            width: 1.0 + WIDTH.max(2.0 * precision),
        }
    }

    pub(super) fn add(&mut self, value: f64, outcome: Outcome) {
        match outcome {
            Outcome::Passed => self.decided.push((value, true)),
            Outcome::Failed { .. } => self.decided.push((value, false)),
            Outcome::Undecided => self.undecided += 1,
        }
    }

    /// Trials, those that decided nothing included.
    pub(super) fn len(&self) -> usize {
        self.decided.len() + self.undecided
    }

    /// Trials that passed.
    pub fn passes(&self) -> usize {
        self.decided.iter().filter(|(_, passed)| *passed).count()
    }

    /// The highest value that passed.
    pub fn proven(&self) -> Option<f64> {
        self.proven_below(f64::INFINITY)
    }

    /// The highest value that passed of those that are at most `most`.
    pub fn proven_below(&self, most: f64) -> Option<f64> {
        let passed = self.decided.iter().filter(|it| it.1 && it.0 <= most);
        passed.map(|(value, _)| *value).reduce(f64::max)
    }

    /// True if a value well above has passed.
    pub(super) fn refutes(&self, failed: f64) -> bool {
        self.proven()
            .is_some_and(|proven| failed * self.width < proven)
    }

    /// Trials that failed by chance: a value well above has passed.
    pub fn refuted(&self) -> usize {
        let failed = self.decided.iter().filter(|(_, passed)| !passed);
        failed.filter(|(value, _)| self.refutes(*value)).count()
    }

    /// True if trials fail by chance so often that their failures say nothing.
    pub(super) fn is_erratic(&self) -> bool {
        let failed = self.refuted();
        failed >= ERRATIC_MIN && failed as f64 > ERRATIC * (failed + self.passes()) as f64
    }

    /// Likelihood ratio of two models of the failures up to just above `passed`: noise with the
    /// same rate at any load, or a limit there, with rare failures well below it and separate rates
    /// just below and above it.
    fn chance(&self, passed: f64) -> f64 {
        let failed = self.decided.iter().filter(|(_, passed)| !passed);
        let above = failed
            .map(|(value, _)| *value)
            .filter(|value| *value > passed);
        // Neighbours among whole numbers may be further apart.
        let high = above.fold(f64::INFINITY, f64::min).max(passed * self.width);
        if self.proven().is_some_and(|proven| proven > high) {
            return 1.0;
        }
        let low = passed / self.width;
        let well_below = self.count(|value| value < low);
        let below = self.count(|value| (low..=passed).contains(&value));
        let above = self.count(|value| value > passed && value <= high);
        let parts = [well_below, below, above];
        let failed = parts.iter().map(|(failed, _)| failed).sum::<usize>();
        let passed = parts.iter().map(|(_, passed)| passed).sum::<usize>();
        let apart = parts.into_iter().map(likelihood_ln).sum::<f64>();
        (likelihood_ln((failed, passed)) - apart).exp()
    }

    /// How many failed and how many passed of such values.
    fn count(&self, is_counted: impl Fn(f64) -> bool) -> (usize, usize) {
        let counted = self.decided.iter().filter(|(value, _)| is_counted(*value));
        let (passed, failed): (Vec<bool>, Vec<bool>) = counted
            .map(|(_, passed)| *passed)
            .partition(|passed| *passed);
        (failed.len(), passed.len())
    }

    /// True if enough trials have failed just above a value that passed.
    pub fn confirms(&self, passed: f64) -> bool {
        let most = match self.refuted() {
            0 => CHANCE_MAX,
            _ => CHANCE_MAX_DISTURBED,
        };
        self.chance(passed) <= most
    }
}

/// Maximum log-likelihood of this number of failures and passes.
fn likelihood_ln((failed, passed): (usize, usize)) -> f64 {
    let all = (failed + passed) as f64;
    let part = |number: usize| match number {
        0 => 0.0,
        _ => number as f64 * (number as f64 / all).ln(),
    };
    part(failed) + part(passed)
}
