//! The findings of rules: evidence, cures and advice.

use crate::doctor::{Cure, Diagnosis, State};
use crate::limit::Limit;

/// A verdict names the first of the cures; doctor has all of them.
const ADVICE_MAX: usize = 3;

/// The finding of one rule.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// The observation, why it matters and the cure.
    pub(crate) diagnosis: Diagnosis,
    /// The verdict's advice where it is not the first of the cures.
    advice: Vec<String>,
}

/// The limit, if no earlier rule decides.
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
            advice: Vec::new(),
        }
    }
}

impl Finding {
    /// The same, with separate advice for the verdict, added to earlier advice.
    pub(super) fn advising(mut self, advice: &str) -> Self {
        self.advice.push(advice.to_owned());
        self
    }

    /// The evidence.
    pub(crate) fn evidence(&self) -> &str {
        &self.diagnosis.seen
    }

    /// The verdict's advice.
    pub(crate) fn advice(&self) -> Vec<String> {
        match self.advice.is_empty() {
            false => self.advice.clone(),
            true => of_cures(&self.diagnosis.cures),
        }
    }
}

/// The first of the cures. Where they are of several products, which of them the server is was not
/// observed: one line has what each of them calls it.
fn of_cures(cures: &[Cure]) -> Vec<String> {
    let mut products: Vec<(&str, &Cure)> = Vec::new();
    for cure in cures {
        if let Some(product) = cure.place.product()
            && products.iter().all(|(known, _)| *known != product)
        {
            products.push((product, cure));
        }
    }
    if products.len() < 2 {
        return cures.iter().take(ADVICE_MAX).map(Cure::sentence).collect();
    }
    let named = products.iter();
    let named = named.map(|(product, cure)| format!("{product} `{}`", cure.how));
    let mut alternatives = Some(format!(
        "as your server has it: {}",
        named.collect::<Vec<String>>().join(", ")
    ));
    let advice = cures.iter().filter_map(|cure| match cure.place.product() {
        Some(_) => alternatives.take(),
        None => Some(cure.sentence()),
    });
    advice.take(ADVICE_MAX).collect()
}

/// A limit as a diagnosis, without its cures.
pub(crate) fn of_limit(limit: Limit, seen: String) -> Diagnosis {
    let state = match limit {
        Limit::Server | Limit::Rate => State::Ok,
        Limit::Outstanding | Limit::Unknown => State::Warning,
        Limit::Generator | Limit::Network | Limit::Policy => State::Problem,
    };
    let topic = format!("limit: {}", limit.name());
    Diagnosis::new(topic, state, seen, limit.meaning())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Place;

    #[test]
    fn statements_of_several_products_are_one_line_of_advice() {
        let cures = [
            Cure::named("tcp-clients 200;"),
            Cure::named("tcp-listen-queue 4096;"),
            Cure::words("send less"),
            Cure::new(Place::UnboundConf, "incoming-num-tcp: 200"),
        ];
        let several = "as your server has it: BIND `tcp-clients 200;`, Unbound \
                       `incoming-num-tcp: 200`";
        assert_eq!(of_cures(&cures), [several, "send less"]);
        let of_bind = "BIND, named.conf, options: tcp-clients 200;";
        assert_eq!(of_cures(&cures[..1]), [of_bind]);
        assert_eq!(of_cures(&cures[2..3]), ["send less"]);
    }
}
