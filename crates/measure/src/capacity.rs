//! Capacity: the highest load that a target sustains, and how it was found.
//!
//! Every figure comes from the record of one trial. The answer is the median over rounds of the
//! highest value that met the objective, each of which one trial has measured; its interval spans
//! what passed and what failed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::CpuUse;
use crate::interval::per;
use crate::limit::Limit;
use crate::notation::{chosen_fraction, counted, fraction, latency};
use crate::outcome::ConditionRecord;
use crate::record::RunRecord;
use crate::scenario::{Arrival, DriverKind, ScenarioRecord};
use crate::symptoms::Symptoms;

mod answer;
mod attribution;
pub mod history;
pub mod search;
#[cfg(test)]
mod tests;

pub use answer::{Answer, Confirmation};
use attribution::Excuse;
use search::{Ending, LENGTH_FACTOR, Outcome, Search, SearchPlan};

/// Version of the document's JSON form; changes when an older reader could misread it.
pub const CAPACITY_VERSION: &str = "1";

/// How much a target can take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capacity {
    /// Version of this form: [`CAPACITY_VERSION`].
    #[schemars(extend("const" = CAPACITY_VERSION))]
    pub capacity_version: String,
    /// Version of the binary that ran it.
    pub throng_version: String,
    /// When the first trial started, RFC 3339.
    pub started_at: String,
    /// What sent and received the data.
    pub driver: DriverKind,
    /// The target was the responder built into this binary.
    pub self_test: bool,
    /// The scenario of the first trial; those of the others differ in what was searched for.
    pub scenario: ScenarioRecord,
    /// What had to hold.
    pub objective: Objective,
    /// How it was searched for.
    pub search: SearchFacts,
    /// Whose the CPU time of this host was before the first trial; none in a simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<CpuUse>,
    /// What was found.
    pub answer: Answer,
    /// The rounds of the search.
    pub rounds: Vec<Round>,
    /// Latency at shares of what was found, in ascending order; empty if nothing was.
    pub latency: Vec<LatencyAt>,
    /// Every trial, in order.
    pub trials: Vec<Trial>,
    /// Why the search ended.
    pub ended_by: EndedBy,
    /// How long all trials took together.
    pub elapsed_ns: u64,
    /// Whether the result says what it was measured for: passed where it does, else undecided.
    #[serde(default)]
    pub decisions: Vec<ConditionRecord>,
    /// What a reader of the answer must know, one sentence each.
    pub notes: Vec<String>,
}

/// Conditions for a load to count as sustained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Objective {
    /// Maximum share of the offered queries without a response, 0 to 1.
    pub lost_share_max: f64,
    /// Highest 99th percentile of the latency from the scheduled instant, nanoseconds.
    pub latency_p99_ns_max: u64,
    /// Minimum share of responses with an RCODE of the goodput set, 0 to 1.
    pub goodput_share_min: f64,
}

impl Default for Objective {
    /// What `throng capacity` asks for unless told otherwise.
    fn default() -> Self {
        Objective {
            lost_share_max: 0.001,
            latency_p99_ns_max: 10_000_000,
            goodput_share_min: 0.999,
        }
    }
}

/// The quantity to search for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sought {
    /// The highest rate, in queries a second.
    Rate,
    /// The highest number of clients, each asking at the same rate.
    Clients,
}

impl Sought {
    /// A value with its unit: `37,000 qps`, `1,000 clients`.
    pub fn text(self, value: f64) -> String {
        match self {
            Sought::Rate => crate::notation::rate(value),
            Sought::Clients => counted(value as u64, "client"),
        }
    }
}

/// How it was searched for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchFacts {
    /// The quantity searched for.
    pub sought: Sought,
    /// Queries a second of each client, where clients were searched for.
    pub rate_per_client_qps: Option<f64>,
    /// Tried first.
    pub start: f64,
    /// Nothing below was to be tried.
    pub min: f64,
    /// Nothing above was to be tried.
    pub max: f64,
    /// From one trial to the next until one fails.
    pub factor: f64,
    /// A round ended when what failed was at most this share above what passed.
    pub precision: f64,
    /// Rounds wanted.
    pub rounds: u64,
    /// How long each trial offered load.
    pub trial_ns: u64,
    /// How long each trial offered load whose purpose was confirmation; none in documents of
    /// versions without such trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmation_ns: Option<u64>,
    /// No trial was to begin that could not end within this time.
    pub time_max_ns: u64,
}

impl Default for SearchFacts {
    /// The search of `throng capacity` unless told otherwise.
    fn default() -> Self {
        SearchFacts {
            sought: Sought::Rate,
            rate_per_client_qps: None,
            start: 1_000.0,
            // A trial below would be over before it has asked anything.
            min: 1.0,
            max: 10_000_000.0,
            factor: 2.0,
            precision: 0.01,
            rounds: 3,
            trial_ns: 2_000_000_000,
            confirmation_ns: Some(u64::from(LENGTH_FACTOR) * 2_000_000_000),
            time_max_ns: 120_000_000_000,
        }
    }
}

impl SearchFacts {
    /// How long trials of that purpose offer load.
    pub fn length_ns(&self, purpose: Purpose) -> u64 {
        match purpose {
            Purpose::Confirmation => self.confirmation_ns.unwrap_or(self.trial_ns),
            Purpose::Search | Purpose::Latency => self.trial_ns,
        }
    }
}

/// One round of the search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// The highest value that passed below `failed`.
    pub passed: f64,
    /// The lowest value that failed.
    pub failed: f64,
}

/// Why a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The limit was found in all rounds.
    Found,
    /// The generator, or its host, could do no more: above what passed nothing was decided.
    Generator,
    /// Trials contradicted each other too often to show a limit.
    Contradictory,
    /// The highest value allowed passed.
    RangeEnd,
    /// The lowest value allowed failed.
    NothingPassed,
    /// The time was over.
    Time,
    /// A trial could not be started.
    Refused,
    /// The user interrupted it.
    Interrupted,
}

impl From<Ending> for EndedBy {
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Found => EndedBy::Found,
            Ending::Undecided => EndedBy::Generator,
            Ending::Contradictory => EndedBy::Contradictory,
            Ending::RangeEnd => EndedBy::RangeEnd,
            Ending::NothingPassed => EndedBy::NothingPassed,
        }
    }
}

/// The purpose of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// To find the limit.
    Search,
    /// To see whether what was found is sustained for several times as long.
    Confirmation,
    /// For the latency below it.
    Latency,
}

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialOutcome {
    /// It met the objective.
    Passed,
    /// It did not.
    Failed,
    /// It did not, and the generator was the cause.
    Generator,
    /// It did not, and other load on this host may be the cause.
    Host,
    /// It did not, because nothing came back for a while, though before and after that responses
    /// came.
    Outage,
}

/// One trial: one run, in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// Its purpose.
    pub purpose: Purpose,
    /// Rate or clients, as searched for.
    pub value: f64,
    /// How it ended.
    pub outcome: TrialOutcome,
    /// Violations of the objective, one sentence each.
    pub breaches: Vec<String>,
    /// Why that says nothing about the target; none if it does, or if all held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excuse: Option<String>,
    /// Whose the CPU time of this host was meanwhile; none in a simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuUse>,
    /// Queries scheduled a second.
    pub offered_qps: f64,
    /// Responses a second, as a run's record counts them.
    pub achieved_qps: f64,
    /// Share of the offered queries that got no response.
    pub lost_share: f64,
    /// Share of responses with an RCODE of the goodput set.
    pub goodput_share: f64,
    /// Latency from the scheduled instant; none without a response.
    pub latency: Option<Quantiles>,
    /// 99th percentile of how late queries left, nanoseconds; none if none left.
    pub send_lateness_p99_ns: Option<u64>,
    /// What limited it, by its own verdict.
    pub limit: Limit,
    /// The decisive evidence for that.
    pub evidence: String,
    /// Its verdict's advice.
    pub advice: Vec<String>,
    /// Responses a second, if the target admitted a constant rate and dropped what exceeded it,
    /// from the start or after a burst; none if nothing shows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admitted_qps: Option<f64>,
    /// The file that keeps its record; none if none does.
    pub record: Option<String>,
}

/// Quantiles of a latency, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Quantiles {
    /// The median.
    pub p50_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

/// Latency at a share of the capacity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyAt {
    /// Of the capacity, 0 to 1.
    pub share: f64,
    /// The position of its trial among `trials`, from 1.
    pub trial: u64,
}

impl Quantiles {
    fn of(record: &RunRecord) -> Option<Self> {
        let latency = &record.total.distributions.latency;
        Some(Quantiles {
            p50_ns: latency.percentile(0.5)?,
            p95_ns: latency.percentile(0.95)?,
            p99_ns: latency.percentile(0.99)?,
            p999_ns: latency.percentile(0.999)?,
            max_ns: latency.max_ns()?,
        })
    }
}

impl Objective {
    /// What of it the record does not meet, one sentence each; empty if it meets all.
    pub fn breaches(&self, record: &RunRecord) -> Vec<String> {
        let mut breaches = Vec::new();
        let lost = record.lost_share();
        if lost > self.lost_share_max {
            breaches.push(format!(
                "{} lost, more than {}",
                beside(lost, self.lost_share_max),
                chosen_fraction(self.lost_share_max)
            ));
        }
        let p99_ns = record.total.distributions.latency.percentile(0.99);
        match p99_ns {
            None => breaches.push("no response".into()),
            Some(p99_ns) if p99_ns > self.latency_p99_ns_max => breaches.push(format!(
                "p99 {}, above {}",
                latency(p99_ns as f64),
                latency(self.latency_p99_ns_max as f64)
            )),
            Some(_) => {}
        }
        let goodput = goodput_share(record);
        if p99_ns.is_some() && goodput < self.goodput_share_min {
            breaches.push(format!(
                "goodput {} of the responses, less than {}",
                beside(goodput, self.goodput_share_min),
                chosen_fraction(self.goodput_share_min)
            ));
        }
        breaches
    }

    /// It in words: `at most 0.1 % lost, p99 at most 10.00 ms, ...`.
    pub fn text(&self) -> String {
        format!(
            "at most {} lost, p99 at most {}, goodput at least {}",
            chosen_fraction(self.lost_share_max),
            latency(self.latency_p99_ns_max as f64),
            chosen_fraction(self.goodput_share_min)
        )
    }
}

fn goodput_share(record: &RunRecord) -> f64 {
    per(
        record.goodput() as f64,
        record.total.counts.responses as f64,
    )
}

/// A share that is on the wrong side of a bound, so that it does not read like it.
fn beside(share: f64, bound: f64) -> String {
    match fraction(share) {
        text if text == fraction(bound) => format!("{:.4} %", 100.0 * share),
        text => text,
    }
}

impl Trial {
    /// What a run amounts to as a trial of `value`.
    pub fn new(
        (purpose, value): (Purpose, f64),
        record: &RunRecord,
        objective: &Objective,
        file: Option<String>,
    ) -> Self {
        let breaches = objective.breaches(record);
        let verdict = &record.verdict;
        let symptoms = Symptoms::of(record);
        let excuse = match breaches.is_empty() {
            true => None,
            false => attribution::excuse(objective, &symptoms),
        };
        let (outcome, excuse) = match (breaches.is_empty(), excuse) {
            (true, _) => (TrialOutcome::Passed, None),
            (false, None) => (TrialOutcome::Failed, None),
            (false, Some(Excuse::Generator)) => {
                (TrialOutcome::Generator, verdict.evidence.first().cloned())
            }
            (false, Some(Excuse::Host(why))) => (TrialOutcome::Host, Some(why)),
            (false, Some(Excuse::Outage(why))) => (TrialOutcome::Outage, Some(why)),
        };
        Trial {
            purpose,
            value,
            outcome,
            breaches,
            excuse,
            cpu: record.host_use.clone(),
            offered_qps: record.offered_qps(),
            achieved_qps: record.achieved_qps(),
            lost_share: record.lost_share(),
            goodput_share: goodput_share(record),
            latency: Quantiles::of(record),
            send_lateness_p99_ns: record.total.distributions.send_lateness.percentile(0.99),
            limit: verdict.limit,
            evidence: verdict.evidence.first().cloned().unwrap_or_default(),
            advice: verdict.advice.clone(),
            admitted_qps: symptoms.rate_limited.map(|it| it.admitted_qps),
            record: file,
        }
    }

    /// True if it says nothing about the target.
    pub fn is_undecided(&self) -> bool {
        !matches!(self.outcome, TrialOutcome::Passed | TrialOutcome::Failed)
    }

    /// What the search learns from it.
    pub fn outcome(&self, facts: &SearchFacts) -> Outcome {
        match self.outcome {
            TrialOutcome::Passed => Outcome::Passed,
            TrialOutcome::Generator | TrialOutcome::Host | TrialOutcome::Outage => {
                Outcome::Undecided
            }
            TrialOutcome::Failed => {
                let answered_qps = match self.purpose {
                    // Its first part may have been a burst.
                    Purpose::Confirmation => self.admitted_qps,
                    Purpose::Search | Purpose::Latency => Some(self.achieved_qps),
                };
                Outcome::Failed {
                    answered: answered_qps
                        .map(|qps| qps / facts.rate_per_client_qps.unwrap_or(1.0)),
                }
            }
        }
    }
}

/// Knowledge before the first trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CapacityPlan {
    /// What has to hold.
    pub objective: Objective,
    /// How it is searched for.
    pub search: SearchFacts,
}

/// Shares of the capacity at which latency is measured.
pub const LATENCY_SHARES: [f64; 3] = [0.5, 0.7, 0.9];

/// Trials that confirm a limit once it was found, on a quiet host.
const CONFIRMATIONS: u64 = 8;

/// Assumed number of trials of a search before its limit is known, which suffices for up to a
/// multiple of the first value.
const ESTIMATED_RANGE: f64 = 64.0;

impl CapacityPlan {
    /// The search that it asks for.
    pub fn search(&self) -> Search {
        let facts = &self.search;
        Search::new(SearchPlan {
            start: facts.start,
            min: facts.min,
            max: facts.max,
            factor: facts.factor,
            precision: facts.precision,
            rounds: u32::try_from(facts.rounds).unwrap_or(u32::MAX),
            whole: facts.sought == Sought::Clients,
        })
    }

    /// Trials that are probably needed, and one of several times the length.
    pub fn trials_estimated(&self) -> u64 {
        let facts = &self.search;
        let range = (facts.max / facts.start).clamp(1.0, ESTIMATED_RANGE);
        let up = (range.ln() / facts.factor.ln()).ceil() as u64 + 1;
        up + 2 + 2 * facts.rounds.saturating_sub(1) + CONFIRMATIONS
    }
}

/// The result of a search's trials.
pub struct Found<'a> {
    /// The search, ended or cut short.
    pub search: &'a Search,
    /// The record of the first trial.
    pub first: &'a RunRecord,
    /// Every trial, in order.
    pub trials: Vec<Trial>,
    /// Why the search ended.
    pub ended_by: EndedBy,
    /// How long all trials took together.
    pub elapsed_ns: u64,
    /// Why the last trial could not be started, if that is why it ended.
    pub refusal: Option<String>,
    /// Whose the CPU time of this host was before the first trial; none in a simulation.
    pub before: Option<CpuUse>,
}

impl Capacity {
    /// Puts together what was found.
    pub fn new(plan: &CapacityPlan, found: Found<'_>) -> Self {
        let answer = Answer::of(plan, &found);
        let notes = notes(plan, &answer, &found);
        let decision = decision(&answer, found.ended_by);
        let Found {
            search,
            first,
            trials,
            ..
        } = found;
        let rounds = search.rounds().iter().map(|bracket| Round {
            passed: bracket.passed,
            failed: bracket.failed,
        });
        let latency = answer.value.map(|value| latency_at(value, &trials));
        Capacity {
            capacity_version: CAPACITY_VERSION.into(),
            throng_version: first.throng_version.clone(),
            started_at: first.started_at.clone(),
            driver: first.driver,
            self_test: first.self_test,
            scenario: first.scenario.clone(),
            objective: plan.objective.clone(),
            search: plan.search.clone(),
            before: found.before,
            rounds: rounds.collect(),
            latency: latency.unwrap_or_default(),
            answer,
            trials,
            ended_by: found.ended_by,
            elapsed_ns: found.elapsed_ns,
            decisions: vec![decision],
            notes,
        }
    }

    /// The document as JSON with one field a line.
    pub fn to_json_pretty(&self) -> String {
        serde_json::to_string_pretty(self).expect("all keys are strings and memory takes it")
    }

    /// Its JSON Schema (2020-12).
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(Capacity).to_value()
    }
}

/// Whether the search found the target's limit, or that it is beyond the range.
fn decision(answer: &Answer, ended_by: EndedBy) -> ConditionRecord {
    let is_decided = match ended_by {
        EndedBy::Found => !answer.limit.is_doubtful(),
        EndedBy::RangeEnd | EndedBy::NothingPassed => true,
        EndedBy::Generator
        | EndedBy::Contradictory
        | EndedBy::Time
        | EndedBy::Refused
        | EndedBy::Interrupted => false,
    };
    let limit = (answer.limit, answer.evidence.as_slice());
    ConditionRecord::of_limit("the search found the capacity", is_decided, limit)
}

fn latency_at(value: f64, trials: &[Trial]) -> Vec<LatencyAt> {
    let each = trials.iter().zip(1..);
    let measured = each.filter(|(trial, _)| trial.purpose == Purpose::Latency);
    let mut rows: Vec<LatencyAt> = measured
        .filter(|(trial, _)| !trial.is_undecided())
        .map(|(trial, position)| LatencyAt {
            share: (100.0 * trial.value / value).round() / 100.0,
            trial: position,
        })
        .collect();
    // What was measured for a limit that was none is of no use, and each share is shown once.
    rows.retain(|row| LATENCY_SHARES.contains(&row.share));
    rows.sort_by(|a, b| a.share.total_cmp(&b.share).then(b.trial.cmp(&a.trial)));
    rows.dedup_by_key(|row| (100.0 * row.share) as u64);
    rows
}

/// Others that keep that many CPUs busy before the first trial are worth a warning.
const OTHERS_BEFORE: f64 = 0.2;

/// What is to be said of a host on which something else runs already; none if it is quiet.
pub fn not_quiet(before: &CpuUse) -> Option<String> {
    (before.others_cpus() >= OTHERS_BEFORE).then(|| {
        format!(
            "this host is not quiet: {}; trials that it disturbs decide nothing and are repeated",
            before.others_text()
        )
    })
}

/// From this number of generator-bound trials on, a note is added.
const DISTURBED_MAX: usize = 2;

/// What is to be said of trials with an outage: nothing else in the document tells that there was
/// one, where the answer does not depend on them.
fn outages(plan: &CapacityPlan, found: &Found<'_>) -> Option<String> {
    let trials = found.trials.iter();
    let met: Vec<&Trial> = trials
        .filter(|trial| trial.outcome == TrialOutcome::Outage)
        .collect();
    let first = met.first()?;
    let why = first.excuse.as_deref().unwrap_or_default();
    let at = plan.search.sought.text(first.value);
    Some(match met.len() as u64 {
        1 => format!("a trial at {at} decided nothing: {why}"),
        many => format!(
            "{} decided nothing: at {at}, for one, {why}",
            counted(many, "trial")
        ),
    })
}

fn notes(plan: &CapacityPlan, answer: &Answer, found: &Found<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(refusal) = &found.refusal {
        notes.push(format!("the last trial could not be started: {refusal}"));
    }
    let rounds = found.search.rounds().len() as u64;
    if answer.value.is_some() && rounds < plan.search.rounds && !answer.is_lower_bound {
        notes.push(format!(
            "{} of {} wanted were done: the interval says less than it could",
            rounds,
            counted(plan.search.rounds, "round")
        ));
    }
    let trials = found.trials.iter();
    let of_here = |it: &&Trial| it.is_undecided() && it.outcome != TrialOutcome::Outage;
    let disturbed = trials.filter(of_here).count();
    if disturbed >= DISTURBED_MAX && found.ended_by != EndedBy::Generator {
        notes.push(format!(
            "{} decided nothing, because the generator or its host was at fault: give it an idle \
                host of its own",
            counted(disturbed as u64, "trial")
        ));
    }
    notes.extend(outages(plan, found));
    notes.extend(found.before.as_ref().and_then(not_quiet));
    let mut late = found
        .trials
        .iter()
        .filter(|trial| trial.outcome == TrialOutcome::Passed && trial.limit == Limit::Generator);
    if let Some(trial) = late.next_back() {
        notes.push(format!(
            "at {} the objective was met although {}",
            plan.search.sought.text(trial.value),
            trial.evidence
        ));
    }
    if matches!(found.first.scenario.arrival, Arrival::Closed { .. }) {
        notes.push("this was not an open loop: please report this bug".into());
    }
    if found.first.driver == DriverKind::Sim {
        notes.push("SIMULATION: no server was measured, this is the capacity of a model".into());
    } else if found.first.self_test {
        notes.push(
            "the target is the responder built into this tool: this is not the capacity of a \
                server"
                .into(),
        );
    }
    for warning in &found.first.warnings {
        notes.push(warning.clone());
    }
    notes
}
