//! What a rule gives: evidence, cures and, where it set the rate, the limit.

use crate::doctor::{Cure, Diagnosis, State};
use crate::limit::Limit;

/// A verdict names the first of the cures; doctor has all of them.
const ADVICE_MAX: usize = 3;

/// What one rule found in a run.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// What was seen, why it matters and what cures it.
    pub(super) diagnosis: Diagnosis,
    /// Where that set the rate: how early it decides, and the limit.
    decides: Option<(Stage, Limit)>,
    /// The verdict's advice where it is not the first of the cures.
    advice: Option<String>,
    /// Where it is told if it does not decide.
    pub(super) said: Said,
}

/// How early a finding decides. The earlier ones say why the later ones could not be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Nothing was asked: the connections are what there is to judge.
    WithoutQueries,
    /// Nothing was answered, less than a second was measured, or a few queries.
    TooLittle,
    /// Most responses are no use: whatever the rate was, it is that of refusals or errors.
    NoUse,
    /// Connections that this tool closed for a broken rule, where that lost the queries.
    RuleBroken,
    /// For a while nothing came back, or this tool did not get to run; the rate outside of it is
    /// what was sustained.
    Outage,
    /// Clients without any answer, where this tool cannot be the reason.
    BeyondThisTool,
    /// An observed server that had no CPU time left, whatever else was slow meanwhile.
    ServersCpu,
    /// This tool or its host: resources, CPU, queries that left late or not at all. Lateness
    /// decides only if it can explain what was lost.
    Generator,
    /// Drops that this host counted explain the losses.
    Network,
    /// The modelled server, then the modelled network, of a simulation.
    Model,
    /// It was not the load that was asked for: message IDs used up, handshakes that failed, other
    /// clients that got no answer at all.
    NotTheLoad,
    /// Queries that HTTP or their stream ended: limits on the rate of one client.
    Exchanges,
    /// Connections that ended with queries on them.
    Ended,
    /// What an observed server tells of itself, where the load was not kept up.
    ServersOwn,
    /// What the load itself says, once all else is cleared.
    Load,
}

/// Where a finding is told that does not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// Nowhere: it is a conclusion, which nothing else may have come before.
    WhereDecisive,
    /// By doctor and in reports.
    ByDoctor,
    /// In every verdict too.
    InVerdict,
}

impl Finding {
    /// Something that a run met, whatever limited it.
    pub(super) fn met(diagnosis: Diagnosis) -> Self {
        Finding {
            diagnosis,
            decides: None,
            advice: None,
            said: Said::ByDoctor,
        }
    }

    /// A conclusion, of value only where nothing decides before it.
    pub(super) fn concluded(stage: Stage, limit: Limit, evidence: String, advice: &str) -> Self {
        let cure = Some(Cure::words(advice)).filter(|_| !advice.is_empty());
        let diagnosis = of_limit(limit, evidence).cures(cure);
        Finding::met(diagnosis)
            .limits(stage, limit)
            .concluding(stage)
    }

    /// The same, which decides that early that this was the limit.
    pub(super) fn limits(mut self, stage: Stage, limit: Limit) -> Self {
        self.decides = Some((stage, limit));
        self
    }

    /// The same, which decides only if that holds.
    pub(super) fn only_if(mut self, holds: bool) -> Self {
        self.decides = self.decides.filter(|_| holds);
        self
    }

    /// The same as a conclusion at another stage.
    pub(super) fn concluding(mut self, stage: Stage) -> Self {
        self.decides = self.decides.map(|(_, limit)| (stage, limit));
        self.said = Said::WhereDecisive;
        self
    }

    /// The same, told in every verdict.
    pub(super) fn beside(mut self) -> Self {
        self.said = Said::InVerdict;
        self
    }

    /// The same, for which the verdict has advice of its own.
    pub(super) fn advising(mut self, advice: &str) -> Self {
        self.advice = Some(advice.to_owned());
        self
    }

    /// True if it may say what limited the run.
    pub(super) fn is_decisive(&self) -> bool {
        self.decides.is_some()
    }

    pub(super) fn stage(&self) -> Option<Stage> {
        self.decides.map(|(stage, _)| stage)
    }

    /// The limit, if it decides.
    pub(crate) fn limit(&self) -> Option<Limit> {
        self.decides.map(|(_, limit)| limit)
    }

    /// What was seen.
    pub(crate) fn evidence(&self) -> &str {
        &self.diagnosis.seen
    }

    /// What the verdict advises.
    pub(crate) fn advice(&self) -> Vec<String> {
        match &self.advice {
            Some(advice) => vec![advice.clone()],
            None => {
                let cures = self.diagnosis.cures.iter().take(ADVICE_MAX);
                cures.map(Cure::sentence).collect()
            }
        }
    }

    /// True if every verdict tells it.
    pub(crate) fn is_in_every_verdict(&self) -> bool {
        self.said == Said::InVerdict
    }
}

/// A limit as a diagnosis, without its cures.
pub(super) fn of_limit(limit: Limit, seen: String) -> Diagnosis {
    let state = match limit {
        Limit::Server | Limit::Rate => State::Ok,
        Limit::Outstanding | Limit::Unknown => State::Warning,
        Limit::Generator | Limit::Network => State::Problem,
    };
    let topic = format!("limit: {}", limit.name());
    Diagnosis::new(topic, state, seen, limit.meaning())
}
