//! What a rule says: evidence, cures and advice.

use crate::doctor::{Cure, Diagnosis, State};
use crate::limit::Limit;

/// A verdict names the first of the cures; doctor has all of them.
const ADVICE_MAX: usize = 3;

/// What one rule says of a run.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// What was seen, why it matters and what cures it.
    pub(crate) diagnosis: Diagnosis,
    /// The verdict's advice where it is not the first of the cures.
    advice: Option<String>,
}

/// What a rule concludes where no rule before it decides.
pub(super) struct Conclusion {
    pub(super) evidence: String,
    /// Empty where there is none.
    pub(super) advice: String,
}

impl Conclusion {
    pub(super) fn new(evidence: impl Into<String>, advice: impl Into<String>) -> Self {
        Conclusion {
            evidence: evidence.into(),
            advice: advice.into(),
        }
    }

    /// The same as a finding about `limit`.
    pub(super) fn about(self, limit: Limit) -> Finding {
        let cure = Some(self.advice).filter(|it| !it.is_empty());
        Finding::from(of_limit(limit, self.evidence).cures(cure.map(Cure::words)))
    }
}

impl From<Diagnosis> for Finding {
    fn from(diagnosis: Diagnosis) -> Self {
        Finding {
            diagnosis,
            advice: None,
        }
    }
}

impl Finding {
    /// The same, for which the verdict has advice of its own.
    pub(super) fn advising(mut self, advice: &str) -> Self {
        self.advice = Some(advice.to_owned());
        self
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
}

/// A limit as a diagnosis, without its cures.
pub(crate) fn of_limit(limit: Limit, seen: String) -> Diagnosis {
    let state = match limit {
        Limit::Server | Limit::Rate => State::Ok,
        Limit::Outstanding | Limit::Unknown => State::Warning,
        Limit::Generator | Limit::Network => State::Problem,
    };
    let topic = format!("limit: {}", limit.name());
    Diagnosis::new(topic, state, seen, limit.meaning())
}
