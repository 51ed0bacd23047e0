//! Longer trials of what a search has found, and further down if they fail: a state machine.
//!
//! A token bucket that holds B queries and is refilled at a rate r admits the rate v for
//! B / (v - r). Trials of a length t pass at v where B >= (v - r) t, so a search with such trials
//! finds v = r + B / t, where the bucket has just run empty. A trial of k times that length, at the
//! same rate and from a bucket no fuller, loses (k - 1) / k of v - r, whatever B and r are.
//! With k = [`LENGTH_FACTOR`], what is admitted in the second half of such a trial is r.
//!
//! A trial that fails by chance is repeated before the value counts as failed.

use super::{Ending, Outcome, Search, SearchPlan, round_up};

/// These trials are so many times as long as those that found the value.
pub const LENGTH_FACTOR: u32 = 5;
/// Times that the first value has to fail on a quiet host, and on one where trials fail by chance.
const FAILURES: u32 = 2;
const FAILURES_DISTURBED: u32 = 4;
/// Times that a trial is repeated that decided nothing.
const UNDECIDED_RETRIES: u32 = 2;
/// More are not made: with steps that grow, the value is a fraction of the first one by then.
const TRIALS_MAX: u32 = 12;

/// What the longer trials of a search came to.
#[derive(Clone, Copy, Debug)]
pub struct LongTrials {
    /// What shorter trials had found.
    pub found: f64,
    /// The value that passed.
    pub passed: Option<f64>,
    /// The lowest value that failed.
    pub failed: Option<f64>,
    /// The constant rate, as a value, that a trial showed to be admitted.
    pub admitted: Option<f64>,
    value: f64,
    step: f64,
    trials: u32,
    failures: u32,
    failures_wanted: u32,
    undecided: u32,
    is_over: bool,
}

impl LongTrials {
    /// The first is of a value that is lower by the precision than `found`: trials let pass a
    /// little more the shorter they are.
    fn new(found: f64, is_disturbed: bool, plan: &SearchPlan) -> Self {
        let step = 1.0 + plan.precision;
        LongTrials {
            found,
            passed: None,
            failed: None,
            admitted: None,
            value: round_up(found / step, plan).clamp(plan.min, plan.max),
            step,
            trials: 0,
            failures: 0,
            failures_wanted: match is_disturbed {
                true => FAILURES_DISTURBED,
                false => FAILURES,
            },
            undecided: 0,
            is_over: false,
        }
    }

    /// True if nothing more is to be tried.
    fn is_over(&self) -> bool {
        self.is_over
    }

    /// Takes in how a trial of `value` ended.
    fn learn(&mut self, outcome: Outcome, plan: &SearchPlan) {
        self.trials += 1;
        match outcome {
            Outcome::Passed => {
                self.passed = Some(self.value);
                // What failed there failed by chance.
                self.failed = self.failed.filter(|failed| *failed > self.value);
                self.is_over = true;
            }
            Outcome::Undecided => {
                self.undecided += 1;
                self.is_over = self.undecided > UNDECIDED_RETRIES;
            }
            Outcome::Failed { answered } => {
                self.undecided = 0;
                self.fail(answered, plan);
            }
        }
        self.is_over |= self.trials >= TRIALS_MAX;
    }

    fn fail(&mut self, answered: Option<f64>, plan: &SearchPlan) {
        self.failures += 1;
        let is_first = self.failed.is_none_or(|failed| failed >= self.value);
        self.failed = Some(self.failed.map_or(self.value, |it| it.min(self.value)));
        self.admitted = answered.or(self.admitted);
        if answered.is_none() && is_first && self.failures < self.failures_wanted {
            return;
        }
        let unit = if plan.whole { 1.0 } else { 0.001 };
        let precise = 1.0 + plan.precision;
        let next = match answered.filter(|it| *it < self.value) {
            Some(admitted) => admitted / precise,
            None => self.value / self.step,
        };
        if answered.is_none() {
            self.step = (self.step * self.step).min(plan.factor);
        }
        self.is_over = self.value <= plan.min;
        let next = round_up(next, plan).min(self.value - unit);
        self.value = next.max(plan.min);
    }
}

impl Search {
    /// What passed is tried for longer, however the trials of the usual length have ended.
    pub(super) fn begin_long_trials(&mut self) {
        let found = match self.ending {
            Some(Ending::Found) => Some(self.median_passed()),
            _ => self.history.proven(),
        };
        if let Some((ending, found)) = self.ending.zip(found) {
            let is_disturbed = self.history.refuted() > 0;
            let long = LongTrials::new(found, is_disturbed, &self.plan);
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
        let may_be_lower = matches!(before, Ending::Found | Ending::RangeEnd);
        let is_shown = may_be_lower || long.admitted.is_some();
        self.ending = match (long.is_over(), long.passed, long.failed) {
            (false, ..) => None,
            // There is a limit below what shorter trials let pass.
            (true, Some(_), Some(_)) if is_shown => Some(Ending::Found),
            (true, None, Some(_)) => Some(Ending::Contradictory),
            (true, ..) => Some(*before),
        };
    }

    /// What trials of several times the length have shown, once they have begun.
    pub fn long_trials(&self) -> Option<&LongTrials> {
        self.long.as_ref().map(|(_, long)| long)
    }

    /// No time is left: ends the search as it would have ended without longer trials, unless one
    /// has failed.
    pub fn forgo_long_trials(&mut self) -> Option<Ending> {
        let (before, long) = self.long.as_ref()?;
        if long.failed.is_none() {
            self.ending = Some(*before);
        }
        self.ending
    }
}
