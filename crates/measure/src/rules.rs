//! The rules: what is concluded from the symptoms of a run.
//!
//! A rule reads [`Symptoms`] and no other rule. [`table`] has all of them in the order in
//! which they decide, with the symptoms that each needs and those that forbid it; it prints itself
//! as `docs/verdict.md`. The other modules have the words of the rules, by subject.
//!
//! A [`Judgement`] is what all rules say of one run. Verdict, doctor and reports read it; nothing
//! is concluded from a record anywhere else.
//!
//! A new rule is a row of the table and the function with its words.

use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::interval::per;
use crate::limit::{Limit, Verdict};
use crate::record::RunRecord;
use crate::symptoms::{Symptom, Symptoms};

mod answers;
mod by_agent;
pub(crate) mod connections;
mod document;
mod finding;
mod generator;
mod host;
mod in_force;
mod load;
mod losses;
mod losses_by_client;
mod losses_by_name;
#[cfg(test)]
pub(crate) mod observed_situations;
mod path;
mod phrases;
mod server;
mod set_up;
#[cfg(test)]
pub(crate) mod situations;
mod table;
mod tail;
#[cfg(test)]
mod tests;
mod unserved;
mod worth;

pub(crate) use by_agent::rules_of_agents;
pub use document::verdict_document;
use finding::{Conclusion, Finding};

/// The rule on losses that no other explains.
const WITHOUT_QUEUE: &str = "losses without a queue";
/// The rule on losses that a limit on the rate or a share of the queries may be.
const STEADY_LOSSES: &str = "steady losses";
/// Symptoms of a host that kept the generator or the target from its CPUs.
const OF_HOST: [Symptom; 3] = [Symptom::QuotaUsed, Symptom::TargetStarved, Symptom::Steal];

/// A row of the table.
pub(crate) struct Rule {
    name: &'static str,
    /// It speaks where all of these show.
    shows: &'static [Symptom],
    /// It speaks only where they are much.
    is_only_of_much: bool,
    /// It is silent where any of these is much: they explain the same.
    silent: &'static [Symptom],
    /// What it says limited the run, where all of `shows` are much.
    limit: Option<Limit>,
    /// It does not decide where any of these is much.
    unless: &'static [Symptom],
    said: Said,
    /// Where it decides, the verdict also says what the load shows.
    with_load: bool,
    says: Says,
    /// What it does not know.
    unknown: &'static str,
}

/// Where a rule is reported that does not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// Nowhere: it is a conclusion.
    WhereItDecides,
    /// By doctor and in reports.
    ByDoctor,
    /// In every verdict too.
    InEveryVerdict,
}

/// The words of a rule.
#[derive(Clone, Copy)]
enum Says {
    /// Of value only where no rule before it decides.
    Conclusion(fn(&Symptoms<'_>) -> Option<Conclusion>),
    One(fn(&Symptoms<'_>) -> Option<Finding>),
    Each(fn(&Symptoms<'_>) -> Vec<Finding>),
}

impl Rule {
    const fn new(name: &'static str, shows: &'static [Symptom], says: Says, said: Said) -> Self {
        Rule {
            name,
            shows,
            is_only_of_much: false,
            silent: &[],
            limit: None,
            unless: &[],
            said,
            with_load: false,
            says,
            unknown: "",
        }
    }

    const fn concludes(
        name: &'static str,
        shows: &'static [Symptom],
        says: fn(&Symptoms<'_>) -> Option<Conclusion>,
    ) -> Self {
        Rule::new(name, shows, Says::Conclusion(says), Said::WhereItDecides)
    }

    const fn says(
        name: &'static str,
        shows: &'static [Symptom],
        says: fn(&Symptoms<'_>) -> Option<Finding>,
    ) -> Self {
        Rule::new(name, shows, Says::One(says), Said::ByDoctor)
    }

    const fn says_each(
        name: &'static str,
        shows: &'static [Symptom],
        says: fn(&Symptoms<'_>) -> Vec<Finding>,
    ) -> Self {
        Rule::new(name, shows, Says::Each(says), Said::ByDoctor)
    }

    const fn where_much(mut self) -> Self {
        self.is_only_of_much = true;
        self
    }

    const fn limits(mut self, limit: Limit) -> Self {
        self.limit = Some(limit);
        self
    }

    const fn unless(mut self, symptoms: &'static [Symptom]) -> Self {
        self.unless = symptoms;
        self
    }

    const fn silent_if(mut self, symptoms: &'static [Symptom]) -> Self {
        self.silent = symptoms;
        self
    }

    const fn in_every_verdict(mut self) -> Self {
        self.said = Said::InEveryVerdict;
        self
    }

    const fn with_load(mut self) -> Self {
        self.with_load = true;
        self
    }

    const fn does_not_know(mut self, what: &'static str) -> Self {
        self.unknown = what;
        self
    }

    fn speaks(&self, symptoms: &Symptoms<'_>) -> bool {
        let is_shown = |it: &Symptom| match self.is_only_of_much {
            true => symptoms.are_much(*it),
            false => symptoms.show(*it),
        };
        self.shows.iter().all(is_shown) && !self.silent.iter().any(|it| symptoms.are_much(*it))
    }

    fn decides(&self, symptoms: &Symptoms<'_>) -> bool {
        self.limit.is_some()
            && self.shows.iter().all(|it| symptoms.are_much(*it))
            && !self.unless.iter().any(|it| symptoms.are_much(*it))
    }

    fn findings(&self, symptoms: &Symptoms<'_>) -> Vec<Finding> {
        match self.says {
            Says::Conclusion(says) => {
                let limit = self.limit.unwrap_or_default();
                says(symptoms)
                    .map(|it| it.about(limit))
                    .into_iter()
                    .collect()
            }
            Says::One(says) => says(symptoms).into_iter().collect(),
            Says::Each(says) => says(symptoms),
        }
    }
}

/// What one rule says of a run.
struct Spoken {
    rule: &'static Rule,
    finding: Finding,
    decides: bool,
}

/// What all rules say of one run.
pub(crate) struct Judgement<'a> {
    symptoms: Symptoms<'a>,
    /// In the order of the table.
    spoken: Vec<Spoken>,
}

impl<'a> Judgement<'a> {
    /// Judges the run that `record` describes; its own `verdict` is not read.
    pub(crate) fn of(record: &'a RunRecord) -> Self {
        Judgement::from_symptoms(Symptoms::of(record))
    }

    fn from_symptoms(symptoms: Symptoms<'a>) -> Self {
        let products = observed_products(symptoms.figures.record);
        let mut spoken: Vec<Spoken> = Vec::new();
        for rule in table::rules().filter(|it| it.speaks(&symptoms)) {
            let decides = rule.decides(&symptoms);
            for mut finding in rule.findings(&symptoms) {
                let cures = &mut finding.diagnosis.cures;
                let is_known = |it: &str| products.is_empty() || products.contains(&it);
                cures.retain(|it| it.place.product().is_none_or(is_known));
                cures.retain(|it| !in_force::is_in_force(it, &symptoms.figures.record.scenario));
                spoken.push(Spoken {
                    rule,
                    finding,
                    decides,
                });
            }
        }
        Judgement { symptoms, spoken }
    }

    /// What limited the run: the first rule of the table that decides; and what a reader must know
    /// whatever that was.
    pub(crate) fn verdict(&self) -> Verdict {
        let (figures, record) = (&self.symptoms.figures, self.symptoms.figures.record);
        let mut verdict = Verdict::default();
        if let Some(decisive) = self.decisive() {
            verdict.limit = decisive.rule.limit.unwrap_or_default();
            verdict.add(decisive);
            let of_load = self
                .spoken
                .iter()
                .find(|it| table::is_of_load(it.rule) && it.decides);
            if let Some(of_load) = of_load.filter(|_| decisive.rule.with_load) {
                verdict.add(of_load);
            }
        }
        verdict.evidence.extend(set_up::shortfall(figures));
        for line in self.context() {
            if !verdict.evidence.contains(&line) {
                verdict.evidence.push(line);
            }
        }
        if let Some(marking) = path::marking(figures) {
            verdict.evidence.push(marking);
        } else if record.self_test {
            verdict.evidence.push(
                "the target is the responder built into this tool: the result measures this tool, \
                 not a server"
                    .into(),
            );
            let advice = "measure your own server: --server HOST";
            verdict.advice.push(advice.into());
        }
        verdict
    }

    /// What the run's host did to the generator or to the target, where that is much.
    fn host_disturbance(&self) -> Option<&Spoken> {
        let is_of_host = |it: &&Spoken| {
            let mut shows = it.rule.shows.iter();
            let is_much = shows.any(|it| OF_HOST.contains(it) && self.symptoms.are_much(*it));
            is_much && it.finding.diagnosis.state == State::Problem
        };
        self.spoken.iter().find(is_of_host)
    }

    fn decisive(&self) -> Option<&Spoken> {
        self.spoken.iter().find(|it| it.decides)
    }

    /// What a reader must know whatever the limit was.
    fn context(&self) -> Vec<String> {
        let figures = &self.symptoms.figures;
        if figures.record.asks_nothing() {
            return Vec::new();
        }
        if figures.counts.responses == 0 {
            return vec![phrases::why_nothing_was_answered(figures)];
        }
        let always = self.spoken.iter();
        let always = always.filter(|it| it.rule.said == Said::InEveryVerdict);
        let always = always.map(|it| it.finding.evidence().to_owned());
        let lost = phrases::losses(figures).into_iter();
        lost.chain(always)
            .chain(phrases::littles_law(&self.symptoms))
            .collect()
    }

    /// What the run met, the limit that the record's verdict names first.
    fn diagnoses(self) -> Vec<Diagnosis> {
        let decisive = self.symptoms.figures.record.verdict.evidence.first();
        let met = self.spoken.iter();
        let met = met.filter(|it| it.rule.said != Said::WhereItDecides);
        let mut found: Vec<Diagnosis> = Vec::new();
        for diagnosis in met.map(|it| &it.finding.diagnosis) {
            if !found.contains(diagnosis) {
                found.push(diagnosis.clone());
            }
        }
        let limit = match found.iter().position(|it| Some(&it.seen) == decisive) {
            Some(place) => found.remove(place),
            None => self.of_verdict(),
        };
        found.insert(0, limit);
        found
    }

    /// The limit itself, where no other finding is about it.
    fn of_verdict(&self) -> Diagnosis {
        let verdict = &self.symptoms.figures.record.verdict;
        let seen = verdict.evidence.first().cloned().unwrap_or_default();
        let advice = verdict.advice.iter();
        let advice = advice.map(|words| Cure::words(words.clone()));
        let diagnosis = finding::of_limit(verdict.limit, seen).cures(advice);
        match self.is_busy_server() {
            true => server::where_its_time_goes(&self.symptoms, diagnosis),
            false => diagnosis,
        }
    }

    /// A real server was driven to its limit, by queries that it answered.
    fn is_busy_server(&self) -> bool {
        let record = self.symptoms.figures.record;
        let simulation = record.simulation.as_ref();
        let is_modelled = simulation.is_some_and(|it| it.server.is_some());
        let verdict = &record.verdict;
        let is_server = verdict.limit == Limit::Server && !verdict.evidence.is_empty();
        let is_answered = !self.symptoms.are_much(Symptom::ExchangesFailed);
        is_server && !record.self_test && !is_modelled && is_answered
    }
}

impl Verdict {
    fn add(&mut self, spoken: &Spoken) {
        self.evidence.push(spoken.finding.evidence().to_owned());
        self.advice.extend(spoken.finding.advice());
    }
}

/// Products that were observed and have cures in their own configuration.
fn observed_products(record: &RunRecord) -> Vec<&'static str> {
    let facts = record.observations.iter().map(|it| &it.facts);
    let observed: Vec<&str> = facts.filter_map(|it| it.product.as_deref()).collect();
    let known = Place::OF_PRODUCTS.into_iter().filter_map(Place::product);
    known.filter(|it| observed.contains(it)).collect()
}

/// Judges what limited the run that `record` describes; its own `verdict` is not read.
pub fn judge(record: &RunRecord) -> Verdict {
    Judgement::of(record).verdict()
}

/// What the host of a run did that makes its figures those of the host, in a sentence.
pub(crate) fn host_disturbance(record: &RunRecord) -> Option<String> {
    let judgement = Judgement::of(record);
    let spoken = judgement.host_disturbance()?;
    Some(spoken.finding.evidence().to_owned())
}

/// Share of the offered queries that got no response without a reason that the run shows; none
/// where it shows one, or lost few.
pub(crate) fn unexplained_losses(record: &RunRecord) -> Option<f64> {
    let judgement = Judgement::of(record);
    let mut rules = judgement.spoken.iter().map(|it| it.rule);
    rules.find(|it| [STEADY_LOSSES, WITHOUT_QUEUE].contains(&it.name))?;
    let counts = &record.total.counts;
    Some(per(counts.timeouts as f64, counts.sent as f64))
}

/// What one run met, the limit that the record's verdict names first.
pub fn of_run(record: &RunRecord) -> Vec<Diagnosis> {
    Judgement::of(record).diagnoses()
}
