//! What a search has found, and what was the limit.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::search::{LongTrials, Search};
use super::{CapacityPlan, EndedBy, Found, Purpose, Trial, TrialOutcome};
use crate::limit::Limit;
use crate::notation::{count, counted, latency, rate, seconds};
use crate::statistics::Bootstrap;
use crate::symptoms::LATENESS_MAX_NS;

/// The result of trials of several times the length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Confirmation {
    /// The value that shorter trials had found.
    pub found: f64,
    /// The value that passed; none if none did.
    pub passed: Option<f64>,
    /// The lowest value that failed; none if none did.
    pub failed: Option<f64>,
    /// The value that the target admitted all the time once a burst was over: its rate limit, such
    /// as the rate at which a token bucket is refilled. None if nothing shows one.
    pub rate_limit: Option<f64>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The highest value that was sustained; none if none was.
    pub value: Option<f64>,
    /// The target may sustain more: something else ended the search.
    pub is_lower_bound: bool,
    /// The limit is probably not below; none if nothing passed.
    pub low: Option<f64>,
    /// The limit is probably not above; none if nothing failed, or the generator did.
    pub high: Option<f64>,
    /// Coverage of `low` to `high`: they are ends of bootstrap intervals of the median of what
    /// passed and of what failed. None if there was one round or none.
    pub confidence: Option<f64>,
    /// The result of longer trials; none if none decided anything, or in a document of a version
    /// without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
    /// What limited the value.
    pub limit: Limit,
    /// Why it is unknown what the target sustains beyond `value`: disturbances of the trials, one
    /// sentence each. Empty if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cannot_tell: Vec<String>,
    /// How that is known.
    pub evidence: Vec<String>,
    /// What to do next, one short sentence each.
    pub advice: Vec<String>,
}

impl Answer {
    /// What `found` amounts to.
    pub fn of(plan: &CapacityPlan, found: &Found<'_>) -> Self {
        let mut answer = match found.ended_by {
            EndedBy::Found => of_rounds(found.search),
            _ => so_far(found),
        };
        answer.correct_by_long_trials(found.search);
        let sought = plan.search.sought;
        let value = answer.value;
        // The trial just above what was sustained says why it is not more.
        let above = |trial: &&Trial| {
            trial.outcome != TrialOutcome::Passed && value.is_none_or(|value| trial.value > value)
        };
        let is_decided = matches!(found.ended_by, EndedBy::Found | EndedBy::NothingPassed);
        let failed = found.trials.iter().filter(above);
        let failed = failed.filter(|trial| !(is_decided && trial.is_undecided()));
        let nearest = failed.min_by(|a, b| a.value.total_cmp(&b.value));
        match (found.ended_by, nearest) {
            (EndedBy::Contradictory, _) => answer.contradicted(plan, found),
            (_, None) => answer.without_failure(plan, found.ended_by),
            (EndedBy::Found | EndedBy::NothingPassed, Some(trial)) => answer.blame(trial, plan),
            (EndedBy::Generator, Some(_)) => {
                // Of the trials there those that decided nothing are to be told.
                let mut undecided = found.trials.iter().filter(|trial| trial.is_undecided());
                let nearest =
                    { undecided.clone().filter(above) }.min_by(|a, b| a.value.total_cmp(&b.value));
                if let Some(trial) = nearest.or_else(|| undecided.next_back()) {
                    answer.blame(trial, plan);
                }
            }
            (_, Some(trial)) => answer.unconfirmed(&sought.text(trial.value), trial, found),
        }
        answer.tell_rate_limit(plan, found);
        answer.tell_length(plan, found);
        answer
    }

    /// What a target admits only as a burst is not sustained.
    fn correct_by_long_trials(&mut self, search: &Search) {
        let decided = |it: &&LongTrials| it.passed.is_some() || it.failed.is_some();
        let Some(long) = search.long_trials().filter(decided) else {
            return;
        };
        self.confirmation = Some(Confirmation {
            found: long.found,
            passed: long.passed,
            failed: long.failed,
            rate_limit: long.admitted,
        });
        if let Some(admitted) = long.admitted {
            // Less than what is admitted all the time needs no burst.
            let below = || search.history().proven_below(admitted);
            self.value = long.passed.or_else(below);
            self.low = self.value;
            self.high = Some(self.value.map_or(admitted, |value| admitted.max(value)));
            self.confidence = None;
        }
    }

    /// A rate at which the target admits queries is no capacity of it.
    fn tell_rate_limit(&mut self, plan: &CapacityPlan, found: &Found<'_>) {
        let sought = plan.search.sought;
        let long = self.confirmation.as_ref();
        let trials = found.trials.iter().rev();
        let mut limited = trials.filter(|it| it.outcome == TrialOutcome::Failed);
        let limited = limited.find(|it| it.admitted_qps.is_some());
        let burst = long.zip(long.and_then(|it| it.rate_limit));
        let is_blamed = self.limit.is_of_target() || burst.is_some();
        let Some(trial) = limited.filter(|_| is_blamed) else {
            return;
        };
        // A share of the queries would have been lost at the value that passed, too.
        let passed = self.value.filter(|_| trial.limit == Limit::Unknown);
        let seen = match passed.zip(trial.admitted_qps) {
            Some((passed, admitted_qps)) => format!(
                "{} were answered, as many in each second, and all of {}: a limit on the rate",
                rate(admitted_qps),
                sought.text(passed)
            ),
            None => trial.evidence.clone(),
        };
        if !self.evidence.contains(&seen) {
            let at = sought.text(trial.value);
            self.evidence.push(format!("at {at}: {seen}"));
        }
        if let Some((long, rate_limit)) = burst {
            self.limit = Limit::Policy;
            self.evidence.push(format!(
                "bursts are admitted, {} for {}; {} is sustained: a limit on the rate (token \
                 bucket) rather than capacity",
                sought.text(long.found),
                seconds(plan.search.trial_ns),
                sought.text(rate_limit)
            ));
        }
        // Its first advice is another rate, and the search had others.
        let advice = trial.advice.iter().skip(usize::from(passed.is_some()));
        for advice in advice.take(1).chain([&OBSERVE.to_owned()]) {
            if !self.advice.contains(advice) {
                self.advice.push(advice.clone());
            }
        }
    }

    /// Says for how long the value was not tried, or not sustained.
    fn tell_length(&mut self, plan: &CapacityPlan, found: &Found<'_>) {
        let facts = &plan.search;
        let length = seconds(facts.length_ns(Purpose::Confirmation));
        let shorter = seconds(facts.trial_ns);
        let (said, advice) = match &self.confirmation {
            None if self.value.is_some() && facts.confirmation_ns.is_some() => (
                format!(
                    "not confirmed by a trial of {length}: the target may admit for {shorter} \
                     what it does not sustain"
                ),
                Some("give it more time: --max-duration".to_owned()),
            ),
            Some(Confirmation {
                found: value,
                failed: Some(failed),
                passed,
                rate_limit,
            }) => {
                let is_long = |it: &&Trial| it.purpose == Purpose::Confirmation;
                let mut long = found.trials.iter().rev().filter(is_long);
                let why = long.find(|it| it.outcome == TrialOutcome::Failed);
                let is_open = passed.is_none() && rate_limit.is_none();
                let why = why.filter(|_| is_open).map(|it| it.breaches.join("; "));
                (
                    format!(
                        "trials of {shorter} passed at {}, one of {length} failed at {}{}",
                        facts.sought.text(*value),
                        facts.sought.text(*failed),
                        why.map_or_else(String::new, |why| format!(": {why}"))
                    ),
                    is_open.then(|| {
                        let length = length.replace(' ', "");
                        format!("search with longer trials: --trial-duration {length}")
                    }),
                )
            }
            _ => return,
        };
        self.evidence.push(said);
        self.advice
            .extend(advice.filter(|it| !self.advice.contains(it)));
    }

    /// Time was over, or the user's patience, before repetition confirmed what failed.
    fn unconfirmed(&mut self, at: &str, trial: &Trial, found: &Found<'_>) {
        self.is_lower_bound = self.value.is_some();
        self.evidence = vec![
            format!("at {at}: {}", trial.breaches.join("; ")),
            "the search ended before repetition confirmed that".into(),
        ];
        let disturbed = found.trials.iter().rev();
        let mut disturbed = disturbed.filter_map(disturbance);
        match disturbed.next() {
            Some(because) => self.cannot_tell(because),
            None => self.advice = vec!["give it more time: --max-duration".into()],
        }
    }

    /// The host, or something on the way, was in the way of an answer.
    fn cannot_tell(&mut self, (because, advice): (String, &str)) {
        self.limit = Limit::Unknown;
        self.is_lower_bound = self.value.is_some();
        self.high = None;
        self.cannot_tell.push(because);
        self.advice = vec![advice.into()];
    }

    fn blame(&mut self, trial: &Trial, plan: &CapacityPlan) {
        let at = plan.search.sought.text(trial.value);
        self.evidence = vec![format!("at {at}: {}", trial.breaches.join("; "))];
        if let Some(because) = disturbance(trial) {
            return self.cannot_tell(because);
        }
        let is_told = match trial.limit {
            // A generator that is late is not the reason why others do not answer.
            Limit::Generator => trial.outcome == TrialOutcome::Generator,
            limit => limit.is_of_target() || limit == Limit::Network,
        };
        let is_lossy = trial.lost_share > plan.objective.lost_share_max;
        let no_less_passed = self.value.is_none() && is_lossy;
        self.limit = match trial.limit {
            _ if trial.outcome == TrialOutcome::Generator => Limit::Generator,
            told if is_told => told,
            // Whether the load is the cause is open: less load was not answered either, or the
            // target is gone.
            _ if trial.lost_share >= 1.0 || no_less_passed => Limit::Unknown,
            // Everything was answered and sent in time, only not as soon as asked for.
            _ => Limit::Server,
        };
        if is_told || self.limit == Limit::Unknown {
            self.evidence.push(trial.evidence.clone());
        }
        if !self.limit.is_of_target() {
            self.advice.clone_from(&trial.advice);
        }
        if self.limit == Limit::Generator {
            self.is_lower_bound = self.value.is_some();
            self.high = None;
            let late = trial.send_lateness_p99_ns;
            // What a timer's granularity makes is no reason.
            if let Some(late) = late.filter(|late| *late > LATENESS_MAX_NS) {
                let late = latency(late as f64);
                let words = format!("queries were sent up to {late} late (p99)");
                if !self.evidence.iter().any(|line| line.contains(&words)) {
                    self.evidence.push(words);
                }
            }
        }
    }

    /// Trials failed although as much or more was sustained in others.
    fn contradicted(&mut self, plan: &CapacityPlan, found: &Found<'_>) {
        let Some(proven) = self.value else {
            return self.without_failure(plan, found.ended_by);
        };
        let below = found.trials.iter().filter(|trial| trial.value <= proven);
        let (passed, failed): (Vec<&Trial>, Vec<&Trial>) =
            below.partition(|trial| trial.outcome == TrialOutcome::Passed);
        let sustained = plan.search.sought.text(proven);
        self.evidence = vec![format!(
            "{} of {} at that load or less failed",
            count(failed.len() as u64),
            counted((passed.len() + failed.len()) as u64, "trial")
        )];
        let worst = failed.iter().min_by(|a, b| a.value.total_cmp(&b.value));
        if let Some(trial) = worst {
            let at = plan.search.sought.text(trial.value);
            let what = format!("at {at}: {}", trial.breaches.join("; "));
            self.evidence.push(what);
        }
        let because = failed.iter().find_map(|trial| disturbance(trial));
        self.cannot_tell(because.unwrap_or_else(|| {
            let what = "trials failed at times at rates that others sustained, up to";
            (format!("{what} {sustained}"), QUIET)
        }));
    }

    fn without_failure(&mut self, plan: &CapacityPlan, ended_by: EndedBy) {
        self.is_lower_bound = self.value.is_some();
        let max = plan.search.sought.text(plan.search.max);
        let (limit, evidence, advice) = match ended_by {
            EndedBy::RangeEnd => (
                Limit::Rate,
                format!("{max} is the highest load to be tried, and it passed"),
                "raise --max",
            ),
            EndedBy::Time => (
                Limit::Unknown,
                "time ran out before anything failed".into(),
                "give it more time: --max-duration",
            ),
            EndedBy::Interrupted => (
                Limit::Unknown,
                "interrupted before anything failed".into(),
                "let it finish",
            ),
            _ => (
                Limit::Unknown,
                "nothing that could be tried failed".into(),
                "see the notes",
            ),
        };
        self.limit = limit;
        self.evidence = vec![evidence];
        self.advice = vec![advice.into()];
    }
}

const OBSERVE: &str = "observe the server, or look for rate limits in its configuration";

const QUIET: &str =
    "stop other load on this host, or run the generator on another one, and search again";

/// Why a trial says nothing about the target, and the cure, if the generator is not the cause.
fn disturbance(trial: &Trial) -> Option<(String, &'static str)> {
    let why = trial.excuse.as_ref()?;
    match trial.outcome {
        TrialOutcome::Host => Some((format!("this host is not quiet, because {why}"), QUIET)),
        TrialOutcome::Outage => Some((
            why.clone(),
            "check the log of the target and the path to it at that time, and search again",
        )),
        _ => None,
    }
}

fn blank() -> Answer {
    Answer {
        value: None,
        is_lower_bound: false,
        low: None,
        high: None,
        confidence: None,
        confirmation: None,
        limit: Limit::Unknown,
        cannot_tell: Vec::new(),
        evidence: Vec::new(),
        advice: Vec::new(),
    }
}

/// Without a limit that was confirmed there is what has passed, which is proof, and what failed.
fn so_far(found: &Found<'_>) -> Answer {
    let proven = found.search.history().proven();
    let (_, high) = found.search.so_far();
    Answer {
        value: proven,
        low: proven,
        high: high.filter(|high| proven.is_none_or(|proven| *high > proven)),
        ..blank()
    }
}

fn of_rounds(search: &Search) -> Answer {
    let rounds = search.rounds();
    let passed: Vec<f64> = rounds.iter().map(|round| round.passed).collect();
    let failed: Vec<f64> = rounds.iter().map(|round| round.failed).collect();
    let (low, _) = interval(&passed);
    let (_, high) = interval(&failed);
    Answer {
        value: Some(search.median_passed()),
        low: Some(low),
        high: Some(high),
        confidence: (rounds.len() > 1).then_some(CONFIDENCE),
        ..blank()
    }
}

/// How likely the interval holds the limit.
const CONFIDENCE: f64 = 0.95;

/// Seeds the bootstrap: the same rounds have the same interval.
const SEED: u64 = 0x6361_7061_6369_7479; // "capacity"

/// Where the median lies, by bootstrap; of a single value that value.
fn interval(values: &[f64]) -> (f64, f64) {
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let bootstrap = Bootstrap {
        level: CONFIDENCE,
        ..Bootstrap::default()
    };
    match bootstrap.median(values, &mut generator) {
        Some(interval) => (interval.low, interval.high),
        None => {
            let only = values.first().copied().unwrap_or(0.0);
            (only, only)
        }
    }
}
