//! Longer trials of what a search has found: a state machine.
//!
//! A token bucket that holds B queries and is refilled at a rate r admits the rate v for
//! B / (v - r). Trials of a length t pass at v where B >= (v - r) t, so a search with such trials
//! finds v = r + B / t, where the bucket has just run empty. A trial of k times that length, at the
//! same rate and from a bucket no fuller, loses (k - 1) / k of v - r, whatever B and r are.
//! With k = [`LENGTH_FACTOR`], what is admitted in the second half of such a trial is r.
//!
//! Only a constant rate that a longer trial shows corrects what was found. One that fails without
//! it, and again when it is repeated, says that longer trials fail, and not what would pass: chance
//! that fails a trial strikes a longer one more often, at any rate.

use super::{Ending, Outcome, Search, SearchPlan, round_up};

/// How much longer these trials are than those that found the value.
pub const LENGTH_FACTOR: u32 = 5;
/// Times that a value has to fail, where no constant rate shows.
const FAILURES: u32 = 2;
/// Times that a trial is repeated that decided nothing.
const UNDECIDED_RETRIES: u32 = 2;
/// Constant rates that are tried, one lower than the other.
const RATES_MAX: u32 = 3;

/// The result of a search's longer trials.
#[derive(Clone, Copy, Debug)]
pub struct LongTrials {
    /// The result of the shorter trials.
    pub found: f64,
    /// The value that passed.
    pub passed: Option<f64>,
    /// The lowest value that failed.
    pub failed: Option<f64>,
    /// The constant rate, as a value, that a trial showed to be admitted.
    pub admitted: Option<f64>,
    value: f64,
    failures: u32,
    rates: u32,
    undecided: u32,
    is_over: bool,
}

impl LongTrials {
    /// The first is of a value that is lower by the precision than `found`: trials let pass a
    /// little more the shorter they are.
    fn new(found: f64, plan: &SearchPlan) -> Self {
        LongTrials {
            found,
            passed: None,
            failed: None,
            admitted: None,
            value: round_up(found / (1.0 + plan.precision), plan).clamp(plan.min, plan.max),
            failures: 0,
            rates: 0,
            undecided: 0,
            is_over: false,
        }
    }

    /// Takes in how a trial of `value` ended.
    fn learn(&mut self, outcome: Outcome, plan: &SearchPlan) {
        match outcome {
            Outcome::Passed => {
                self.passed = Some(self.value);
                // Failures there were random.
                self.failed = self.failed.filter(|failed| *failed > self.value);
                self.is_over = true;
            }
            Outcome::Undecided => {
                self.undecided += 1;
                self.is_over = self.undecided > UNDECIDED_RETRIES;
            }
            Outcome::Failed { answered } => {
                self.undecided = 0;
                self.failed = Some(self.value);
                match answered.filter(|admitted| *admitted < self.value) {
                    Some(admitted) => self.try_rate(admitted, plan),
                    None => {
                        self.failures += 1;
                        self.is_over = self.failures >= FAILURES;
                    }
                }
            }
        }
    }

    /// Tries what a constant rate leaves to be sustained.
    fn try_rate(&mut self, admitted: f64, plan: &SearchPlan) {
        self.admitted = Some(admitted);
        self.failures = 0;
        self.rates += 1;
        self.is_over = self.rates > RATES_MAX || self.value <= plan.min;
        let below = round_up(admitted / (1.0 + plan.precision), plan);
        let unit = if plan.whole { 1.0 } else { 0.001 };
        self.value = below.min(self.value - unit).max(plan.min);
    }
}

impl Search {
    /// A value that passed gets a longer trial, however the normal trials have ended.
    pub(super) fn begin_long_trials(&mut self) {
        let found = match self.ending {
            Some(Ending::Found) => Some(self.median_passed()),
            _ => self.history.proven(),
        };
        if let Some((ending, found)) = self.ending.zip(found) {
            let long = LongTrials::new(found, &self.plan);
            self.ending = None;
            self.pending = long.value;
            self.long = Some((ending, long));
        }
    }

    pub(super) fn learn_long(&mut self, outcome: Outcome) {
        let Some((before, long)) = &mut self.long else {
            return;
        };
        long.learn(outcome, &self.plan);
        self.pending = long.value;
        let is_limit = long.passed.is_some() && long.failed.is_some() && long.admitted.is_some();
        self.ending = long.is_over.then_some(match is_limit {
            true => Ending::Found,
            false => *before,
        });
    }

    /// The result of trials of several times the length, once they have begun.
    pub fn long_trials(&self) -> Option<&LongTrials> {
        self.long.as_ref().map(|(_, long)| long)
    }

    /// No time is left: ends the search as it would have ended without longer trials, unless one
    /// has shown a constant rate.
    pub fn forgo_long_trials(&mut self) -> Option<Ending> {
        let (before, long) = self.long.as_ref()?;
        if long.admitted.is_none() {
            self.ending = Some(*before);
        }
        self.ending
    }
}
