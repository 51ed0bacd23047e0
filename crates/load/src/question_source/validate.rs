//! Checks a question source against its plan.

use proto::name;

use super::{HEADER_OCTETS, Labels, Order, QuestionSource, Repeats};
use crate::plan::Plan;
use crate::plan_error::PlanError;
use crate::questions::Template;

impl QuestionSource {
    /// Checks for settings that cannot be used or that contradict others of `plan`, whose source it
    /// is.
    ///
    /// # Errors
    /// The first one found.
    pub(crate) fn validate(&self, plan: &Plan) -> Result<(), PlanError> {
        self.validate_order(plan)?;
        if let Some(labels) = &self.labels {
            self.validate_labels(labels, plan)?;
        }
        if let Some(repeats) = &self.repeats {
            self.validate_repeats(repeats, plan)?;
        }
        Ok(())
    }

    fn validate_order(&self, plan: &Plan) -> Result<(), PlanError> {
        let setting = match self.order {
            Order::InOrder => return Ok(()),
            Order::Uniform | Order::Shuffled => "question-order",
            Order::Zipf { exponent } if exponent.is_finite() && exponent >= 0.0 => "zipf",
            Order::Zipf { exponent } => {
                let what = format!("{exponent} is not an exponent");
                return Err(PlanError::new("zipf", what, "give 0 or more, such as 0.9"));
            }
        };
        if self.repeats.is_some() {
            let what = "with a cache-hit ratio all names to repeat are equally likely";
            return Err(PlanError::new(setting, what, "leave out one of them"));
        }
        if plan.questions.len() < 2 {
            let what = "there is only one name to choose";
            let hint = "give a list with more names, or leave it out";
            return Err(PlanError::new(setting, what, hint));
        }
        Ok(())
    }

    fn validate_labels(&self, labels: &Labels, plan: &Plan) -> Result<(), PlanError> {
        let (min, max) = labels.octets();
        if min != max && plan.questions.edns_uses().padding {
            let what = "queries with labels of different lengths are not padded to one multiple";
            let hint = "give one length, such as 12, or leave out the padding";
            return Err(PlanError::new("label-octets", what, hint));
        }
        let unlabelled = match self.repeats {
            Some(_) => plan.questions.len() - 1,
            None => 0,
        };
        let added = self.label_octets_max();
        let is_labelled = |index: usize| match &self.ranked {
            Some(names) => names.is_labelled(index),
            None => index >= unlabelled,
        };
        let too_long = (plan.questions.iter().enumerate())
            .filter(|(index, _)| is_labelled(*index))
            .map(|(_, template)| template)
            .filter_map(|template| qname(template))
            .find(|qname| qname.len() + added > name::NAME_OCTETS_MAX);
        if let Some(qname) = too_long {
            let text = name::to_text(qname).unwrap_or_default();
            let what = format!("with a label of {max} bytes {text} is longer than a name can be");
            let hint = "give shorter labels, or leave out the name";
            return Err(PlanError::new("label-octets", what, hint));
        }
        Ok(())
    }

    fn validate_repeats(&self, repeats: &Repeats, plan: &Plan) -> Result<(), PlanError> {
        if !(repeats.share > 0.0 && repeats.share < 1.0) {
            let what = format!("{} is not a share of queries that repeat", repeats.share);
            let hint = "give a number above 0 and below 1, such as 0.8";
            return Err(PlanError::new("cache-hit-ratio", what, hint));
        }
        if !self.labels.as_ref().is_some_and(Labels::are_unique) {
            let what = "it needs names that were never asked before";
            let hint = "say under which zone, with random-labels";
            return Err(PlanError::new("cache-hit-ratio", what, hint));
        }
        if repeats.ttl.is_some_and(|ttl| ttl.is_zero()) {
            let hint = "give a time above zero, such as 60s";
            return Err(PlanError::new("cache-ttl", "must not be zero", hint));
        }
        let (setting, names) = match plan.questions.len() as u64 - 1 {
            0 => ("hot-names", u64::from(repeats.names_max)),
            listed => ("names", listed),
        };
        if names < u64::from(plan.workers) {
            let what = format!(
                "{names} to repeat are too few for {} workers, which repeat names of their own",
                plan.workers
            );
            return Err(PlanError::new(
                setting,
                what,
                "give more, or use fewer workers",
            ));
        }
        Ok(())
    }
}

/// The QNAME of a template; none if its question is malformed.
fn qname(template: Template<'_>) -> Option<&[u8]> {
    let question = &template.message[HEADER_OCTETS..][..template.question_octets];
    name::wire_length(question).map(|octets| &question[..octets])
}
