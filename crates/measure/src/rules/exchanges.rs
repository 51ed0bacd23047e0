//! Queries that HTTP or their stream ended: the target answers, but not with DNS. It turns queries
//! away, or cannot do them.

use crate::doctor::{Cure, Diagnosis, State};
use crate::notation::{count, share};
use crate::verdict::Limit;

use super::{Figures, Finding, Stage, enough};

/// From this share of the queries sent on, they matter.
const ENDED_MAX: f64 = 0.01;

/// They are so many that they decide.
pub(super) fn decides(figures: &Figures<'_>) -> bool {
    let ended = figures.counts.exchange_failures.total();
    enough::is_above(ended, figures.counts.sent, ENDED_MAX)
}

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let seen = seen(figures)?;
    let is_much = decides(figures);
    let state = match is_much {
        true => State::Problem,
        false => State::Warning,
    };
    let matters = "they are no DNS responses: the figures are those of the other queries";
    let diagnosis = Diagnosis::new("queries without a DNS message", state, seen, matters);
    let advice = is_much.then(|| Cure::words(advice(figures)));
    Some(
        Finding::met(diagnosis.cures(advice))
            .beside()
            .limits(Stage::Exchanges, Limit::Server)
            .only_if(is_much),
    )
}

/// How many, with all causes.
fn seen(figures: &Figures<'_>) -> Option<String> {
    let ended = &figures.counts.exchange_failures;
    if ended.total() == 0 {
        return None;
    }
    let causes = ended.by_cause(figures.record.scenario.transport);
    let causes: Vec<String> = causes
        .iter()
        .map(|(cause, number)| format!("{} {cause}", count(*number)))
        .collect();
    Some(format!(
        "{} of the queries were answered without a DNS message: {}",
        share(ended.total(), figures.counts.sent),
        causes.join(", ")
    ))
}

fn advice(figures: &Figures<'_>) -> &'static str {
    let ended = &figures.counts.exchange_failures;
    if 2 * ended.turned_away() >= ended.total() {
        "the target limits the rate of its clients, which is not what it can take: raise that \
         limit, or spread the clients over more addresses with --local-address"
    } else {
        "the figures are of the other queries alone: look at path and method of the request, and \
         at the target's log"
    }
}
