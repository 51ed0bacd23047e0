//! Which value is tried next, and when the search is over: a state machine that runs nothing.
//!
//! The first *round* goes up by a factor until a trial fails (RFC 8219 and calidns do the same),
//! looks where the target's own answers say that the limit is, and bisects. Each further round
//! begins at the median of those before and looks for the limit again from there, in small steps
//! that grow. A round ends with two values that are hardly apart: one that passed and one that
//! failed twice, or near where an earlier round has failed. So a trial that failed by chance is
//! found out, and where chance strikes twice the median of the rounds stays where it is.
//!
//! Disturbances make trials fail and never pass: so a trial that passes is proof, and refutes
//! failures well below it. Their number gives the rate of random failures, and so how many trials
//! have to fail just above a limit before it counts as one ([`history`](super::history)). If that
//! is not reached, the search has no result.
//!
//! The result is confirmed by a trial of several times the length ([`LongTrials`]): a rate that a
//! target admits for a few seconds only is not its capacity.
//!
//! Call [`Search::next`] for what to try, then [`Search::learn`] with its outcome.

use super::history::History;

mod long_trials;

pub use long_trials::{LENGTH_FACTOR, LongTrials};

/// The range and the precision of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchPlan {
    /// Tried first.
    pub start: f64,
    /// Nothing below is tried.
    pub min: f64,
    /// Nothing above is tried.
    pub max: f64,
    /// From one trial to the next while nothing has failed; above 1.
    pub factor: f64,
    /// A round ends when what failed is at most this share above what passed.
    pub precision: f64,
    /// Rounds wanted, at least 1.
    pub rounds: u32,
    /// Only whole values are tried.
    pub whole: bool,
}

/// The outcome of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// It met the objective.
    Passed,
    /// It did not; `answered` is the value that the target's responses amount to.
    Failed {
        /// None if that cannot be told.
        answered: Option<f64>,
    },
    /// It did not, and the generator or its host was the cause: it says nothing about the target.
    Undecided,
}

/// Why nothing more is to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All rounds are done.
    Found,
    /// Above what passed, trials say nothing about the target.
    Undecided,
    /// Trials fail by chance so often that their failures do not show a limit.
    Contradictory,
    /// The highest value passed.
    RangeEnd,
    /// The lowest value failed.
    NothingPassed,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    /// Try this value.
    Try(f64),
    /// Nothing more.
    Done(Ending),
}

/// A finished round: what passed, and what failed just above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bracket {
    /// The highest value that passed below `failed`.
    pub passed: f64,
    /// The lowest value that failed.
    pub failed: f64,
}

/// Times that a value is tried again because the trial decided nothing.
const UNDECIDED_RETRIES: u32 = 2;
/// Once nothing is decided at one value, the search below it ends at this ratio.
const UNDECIDED_RATIO: f64 = 1.25;
/// Trials in a row that decide nothing before there are no more.
const UNDECIDED_MAX: u32 = 12;
/// Most trials to confirm a limit, alternately above and below it, and most trials in all; a quiet
/// host needs fewer.
const CONFIRMATIONS_MAX: u32 = 30;
const TRIALS_MAX: usize = 100;
/// A limit is confirmed by trials of values that are higher by this share.
const ABOVE: f64 = 0.05;
/// Rounds that may end without a result before no further one is begun.
const SPOILT_ROUNDS_MAX: u32 = 4;
/// Rounds that differ by more than this multiple of the precision are scattered ...
const SCATTER_MAX: f64 = 3.0;
/// ... and this number of further ones is made, for a more robust median.
const SCATTERED_ROUNDS: usize = 4;
/// Failures within this multiple of the precision from a limit confirm it.
const NEAR: f64 = 2.0;
/// From here on values are whole numbers: precision needs no fractions.
const WHOLE_FROM: f64 = 1_000.0;

/// How the value of the last trial was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// The first one, or halfway.
    Plain,
    /// Responses of the target.
    Answered,
    /// A growing step up from what passed.
    Up,
    /// A growing step down from what failed.
    Down,
    /// What failed, once more.
    Again,
    /// Somewhat above the limit that was found, or below it.
    Confirmation,
}

/// The purpose of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// To find the limit, or to confirm it.
    Limit,
    /// To see whether less than the limit is sustained.
    BelowLimit,
    /// To see, by a trial that is longer, whether what was found is sustained. Of such a trial,
    /// [`Outcome::Failed`] has the rate that was admitted all the time, if there was one.
    ForLonger,
}

/// Shares of a limit that have to be sustained.
pub const SHARES_BELOW: [f64; 3] = [0.9, 0.7, 0.5];

/// From a first value to two that are hardly apart.
#[derive(Clone, Copy, Debug)]
struct Round {
    is_first: bool,
    start: f64,
    low: Option<f64>,
    high: Option<f64>,
    /// `high` is where trials decide nothing.
    is_high_undecided: bool,
    /// `high` failed twice.
    is_high_sure: bool,
    choice: Choice,
    /// Steps from where the limit is thought to be, once there is a `low` and a `high`.
    stepping: Option<Choice>,
    /// The ratio of the next step.
    step: f64,
    /// Rate answered at the last value that failed.
    answered: Option<f64>,
    /// Failed trials of the value.
    retries: u32,
    /// It confirms a limit by a value below.
    is_below: bool,
    /// It confirmed a limit, and there is nothing more to it.
    is_over: bool,
}

/// A search, from its first trial to its end.
#[derive(Clone, Debug)]
pub struct Search {
    plan: SearchPlan,
    rounds: Vec<Bracket>,
    current: Round,
    spoilt: u32,
    history: History,
    /// Trials in succession that decided nothing.
    undecided: u32,
    confirmations: u32,
    ending: Option<Ending>,
    pending: f64,
    /// Once trials of the usual length have ended as they did.
    long: Option<(Ending, LongTrials)>,
}

impl Search {
    /// A search that has tried nothing.
    ///
    /// # Panics
    /// If the plan is none: steps that do not go up, no precision, a start outside the range.
    pub fn new(plan: SearchPlan) -> Self {
        assert!(
            plan.factor > 1.0 && plan.precision > 0.0,
            "steps lead somewhere"
        );
        assert!(
            plan.min > 0.0 && plan.min <= plan.start && plan.start <= plan.max,
            "the range holds the start"
        );
        let mut search = Search {
            plan,
            rounds: Vec::new(),
            current: Round::new(plan.start, plan.factor, true),
            spoilt: 0,
            history: History::new(plan.precision),
            undecided: 0,
            confirmations: 0,
            ending: None,
            pending: plan.start,
            long: None,
        };
        search.choose();
        search
    }

    /// The next step; the same until [`Search::learn`] is called.
    pub fn next(&self) -> Next {
        match self.ending {
            Some(ending) => Next::Done(ending),
            None => Next::Try(self.pending),
        }
    }

    /// The rounds that are done.
    pub fn rounds(&self) -> &[Bracket] {
        &self.rounds
    }

    /// Between what the first round has found so far, while it is not done.
    pub fn so_far(&self) -> (Option<f64>, Option<f64>) {
        match self.rounds.is_empty() {
            true => (self.current.low, self.current.high),
            false => (None, None),
        }
    }

    /// What passed and what failed.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Takes in the outcome of the trial that [`Search::next`] named.
    pub fn learn(&mut self, outcome: Outcome) {
        if self.ending.is_some() {
            return;
        }
        if self.long.is_some() {
            return self.learn_long(outcome);
        }
        let value = self.pending;
        self.history.add(value, outcome);
        if outcome == Outcome::Undecided {
            self.undecided += 1;
            let is_bounded = self.history.len() < TRIALS_MAX && self.undecided < UNDECIDED_MAX;
            if self.current.retries < UNDECIDED_RETRIES && is_bounded {
                self.current.retries += 1;
                return;
            }
        } else {
            self.undecided = 0;
        }
        self.current.retries = 0;
        match self.current.choice {
            Choice::Confirmation => self.learn_confirmation(outcome),
            _ => self.current.learn(value, outcome, &self.plan),
        }
        if outcome == Outcome::Passed {
            // A proof to the contrary.
            let history = &self.history;
            self.rounds.retain(|round| !history.refutes(round.failed));
        }
        self.choose();
    }

    fn learn_confirmation(&mut self, outcome: Outcome) {
        match outcome {
            _ if self.current.is_below => self.current.is_over = true,
            Outcome::Passed => {
                let step = 1.0 + self.plan.precision;
                self.current = Round::new(self.pending, step, false);
                self.current.choice = Choice::Up;
                self.current.pass(self.pending, &self.plan);
            }
            Outcome::Failed { .. } => self.current.is_over = true,
            Outcome::Undecided => {
                self.current.is_over = true;
                self.spoilt += 1;
            }
        }
    }

    /// Decides on the next trial; ends finished rounds.
    fn choose(&mut self) {
        while self.ending.is_none() {
            if self.undecided >= UNDECIDED_MAX {
                self.ending = Some(Ending::Undecided);
            } else if self.history.len() >= TRIALS_MAX || self.history.is_erratic() {
                self.ending = Some(Ending::Contradictory);
            } else if self.current.is_over {
                self.begin_round();
            } else if self.choose_in_round() {
                return;
            }
        }
        self.begin_long_trials();
    }

    /// True if there is something to be tried in this round.
    fn choose_in_round(&mut self) -> bool {
        let round = &mut self.current;
        if round.choice == Choice::Confirmation {
            return true;
        }
        if round.is_high_undecided && round.is_within(UNDECIDED_RATIO) {
            self.abandon(Ending::Undecided);
        } else if let Some(bracket) = round.done(&self.plan) {
            if !round.is_high_sure && !self.has_failed_near(bracket.failed) {
                self.current.choice = Choice::Again;
                self.pending = bracket.failed;
                return true;
            }
            self.rounds.push(bracket);
            self.begin_round();
        } else {
            match round.propose(&self.plan) {
                Ok(value) => {
                    self.pending = value;
                    return true;
                }
                Err(ending) => self.abandon(ending),
            }
        }
        false
    }

    /// True if an earlier round has found that values fail from about there on.
    fn has_failed_near(&self, value: f64) -> bool {
        let near = 1.0 + NEAR * self.plan.precision;
        let mut earlier = self.rounds.iter().map(|round| round.failed);
        earlier.any(|failed| failed <= value * near && value <= failed * near)
    }

    /// A round without a result: it ends the search if there is none with one.
    fn abandon(&mut self, ending: Ending) {
        self.spoilt += 1;
        if self.rounds.is_empty() {
            self.ending = Some(ending);
        } else {
            self.begin_round();
        }
    }

    /// Begins the next round, or confirms what the rounds have found.
    fn begin_round(&mut self) {
        let wanted = self.plan.rounds as usize;
        let wanted = match self.is_scattered() {
            true => wanted + SCATTERED_ROUNDS,
            false => wanted,
        };
        let step = 1.0 + self.plan.precision;
        let is_spoilt = self.spoilt >= SPOILT_ROUNDS_MAX;
        if self.rounds.len() < wanted && !is_spoilt {
            self.current = Round::new(self.median_passed(), step, false);
        } else if self.history.confirms(self.median_passed()) {
            self.ending = Some(Ending::Found);
        } else if is_spoilt {
            self.ending = Some(Ending::Undecided);
        } else if self.confirmations >= CONFIRMATIONS_MAX {
            self.ending = Some(Ending::Contradictory);
        } else {
            self.confirm();
        }
    }

    /// One more trial that has to fail if the limit is one, or that has to pass.
    fn confirm(&mut self) {
        let (passed, turn) = (self.median_passed(), self.confirmations as usize);
        self.confirmations += 1;
        let failed = self.rounds.iter().map(|round| round.failed);
        let nearest = failed.fold(f64::INFINITY, f64::min);
        self.current = Round::new(passed, 1.0 + self.plan.precision, false);
        self.current.choice = Choice::Confirmation;
        self.current.is_below = turn % 2 == 1;
        let value = match self.current.is_below {
            true => passed * SHARES_BELOW[turn / 2 % SHARES_BELOW.len()],
            false => (passed * (1.0 + ABOVE)).max(nearest),
        };
        self.pending = self.current.rounded(value, &self.plan);
    }

    /// The purpose of the trial that [`Search::next`] returns.
    pub fn aim(&self) -> Aim {
        match (&self.long, self.current.is_below) {
            (Some(_), _) => Aim::ForLonger,
            (None, true) => Aim::BelowLimit,
            (None, false) => Aim::Limit,
        }
    }

    /// The middle of what passed in each round, of an even number the lower one; where a search
    /// without a round began.
    pub fn median_passed(&self) -> f64 {
        let mut passed: Vec<f64> = self.rounds.iter().map(|round| round.passed).collect();
        passed.sort_by(f64::total_cmp);
        let middle = passed.len().saturating_sub(1) / 2;
        passed.get(middle).copied().unwrap_or(self.plan.start)
    }

    /// True if the rounds disagree by more than their precision explains.
    fn is_scattered(&self) -> bool {
        let passed = self.rounds.iter().map(|round| round.passed);
        let least = passed.clone().fold(f64::INFINITY, f64::min);
        let most = passed.fold(0.0, f64::max);
        self.rounds.len() > 1 && most > least * (1.0 + SCATTER_MAX * self.plan.precision)
    }
}

impl Round {
    fn new(start: f64, step: f64, is_first: bool) -> Self {
        Round {
            is_first,
            start,
            low: None,
            high: None,
            is_high_undecided: false,
            is_high_sure: false,
            choice: Choice::Plain,
            stepping: None,
            step,
            answered: None,
            retries: 0,
            is_below: false,
            is_over: false,
        }
    }

    fn learn(&mut self, value: f64, outcome: Outcome, plan: &SearchPlan) {
        match outcome {
            Outcome::Passed => self.pass(value, plan),
            Outcome::Failed { answered } => self.fail(value, answered, plan),
            Outcome::Undecided => {
                // A value at which the target failed is within the generator's reach.
                let is_new = self.choice != Choice::Again;
                self.fail(value, None, plan);
                self.is_high_undecided = is_new;
            }
        }
    }

    fn is_within(&self, ratio: f64) -> bool {
        matches!((self.low, self.high), (Some(low), Some(high)) if high <= low * ratio)
    }

    fn done(&self, plan: &SearchPlan) -> Option<Bracket> {
        let (passed, failed) = (self.low?, self.high?);
        // Values are rounded: a billionth more is not apart.
        let is_near = self.is_within((1.0 + plan.precision) * (1.0 + 1e-9));
        let is_next = plan.whole && failed - passed <= 1.0;
        (is_near || is_next).then_some(Bracket { passed, failed })
    }

    fn grow_step(&mut self, plan: &SearchPlan) {
        self.step = (self.step * self.step).min(plan.factor);
    }

    fn pass(&mut self, value: f64, plan: &SearchPlan) {
        self.low = Some(value);
        match self.choice {
            Choice::Answered => self.step_from(Choice::Up, plan),
            Choice::Up => self.grow_step(plan),
            Choice::Down => self.stepping = None,
            Choice::Plain | Choice::Confirmation => {}
            Choice::Again => {
                // Its failure was random, and failures above it may have been too.
                self.high = None;
                self.stepping = None;
                self.step = 1.0 + plan.precision;
            }
        }
    }

    fn fail(&mut self, value: f64, answered: Option<f64>, plan: &SearchPlan) {
        self.high = Some(value);
        self.is_high_undecided = false;
        self.is_high_sure = self.choice == Choice::Again;
        match self.choice {
            Choice::Again | Choice::Confirmation => {}
            Choice::Answered => self.step_from(Choice::Down, plan),
            Choice::Down => self.grow_step(plan),
            Choice::Up | Choice::Plain => {
                self.stepping = None;
                // Later rounds know where the limit is.
                self.answered = answered.filter(|_| self.is_first);
            }
        }
    }

    fn step_from(&mut self, direction: Choice, plan: &SearchPlan) {
        self.stepping = Some(direction);
        self.step = 1.0 + plan.precision;
    }

    /// The next value, or why there is none.
    fn propose(&mut self, plan: &SearchPlan) -> Result<f64, Ending> {
        let (choice, value) = match (self.low, self.high) {
            (Some(low), None) if low >= plan.max => return Err(Ending::RangeEnd),
            (None, Some(high)) if high <= plan.min => {
                return Err(match self.is_high_undecided {
                    true => Ending::Undecided,
                    false => Ending::NothingPassed,
                });
            }
            (None, None) => (Choice::Plain, self.start),
            (Some(low), None) => (Choice::Up, low * self.step),
            (None, Some(high)) => {
                let answered = self.answered.take();
                match answered.filter(|it| (plan.min..high / self.step).contains(it)) {
                    Some(answered) => (Choice::Answered, answered),
                    None => (Choice::Down, high / self.step),
                }
            }
            (Some(low), Some(high)) => self.propose_between(low, high, plan),
        };
        self.choice = choice;
        Ok(self.rounded(value, plan))
    }

    fn propose_between(&mut self, low: f64, high: f64, plan: &SearchPlan) -> (Choice, f64) {
        let edge = 1.0 + plan.precision / 2.0;
        if let Some(answered) = self.answered.take() {
            if (low * edge..high / edge).contains(&answered) {
                return (Choice::Answered, answered);
            }
            // As good as at one of the ends.
            if (low / edge..low * edge).contains(&answered) {
                self.step_from(Choice::Up, plan);
            } else if (high / edge..high * edge).contains(&answered) {
                self.step_from(Choice::Down, plan);
            }
        }
        let middle = (low * high).sqrt();
        match self.stepping {
            Some(Choice::Up) if low * self.step < middle => (Choice::Up, low * self.step),
            Some(Choice::Down) if high / self.step > middle => (Choice::Down, high / self.step),
            _ => {
                self.stepping = None;
                (Choice::Plain, middle)
            }
        }
    }

    /// A value that can be typed, never beyond what bounds it; steps do not grow by rounding.
    fn rounded(&self, value: f64, plan: &SearchPlan) -> f64 {
        let unit = unit(value, plan);
        let scaled = value * unit;
        let rounded = match self.choice {
            Choice::Up => (scaled + 1e-6).floor(),
            Choice::Down => (scaled - 1e-6).ceil(),
            Choice::Plain | Choice::Answered | Choice::Again | Choice::Confirmation => {
                scaled.round()
            }
        };
        let least = self.low.map_or(plan.min, |low| low + 1.0 / unit);
        let most = self.high.map_or(plan.max, |high| high - 1.0 / unit);
        (rounded / unit)
            .min(most)
            .max(least)
            .clamp(plan.min, plan.max)
    }
}

/// In what fractions a value is given.
fn unit(value: f64, plan: &SearchPlan) -> f64 {
    match plan.whole || value >= WHOLE_FROM {
        true => 1.0,
        false => 1000.0,
    }
}

/// The next higher value that can be typed.
fn round_up(value: f64, plan: &SearchPlan) -> f64 {
    let unit = unit(value, plan);
    (value * unit - 1e-6).ceil() / unit
}
