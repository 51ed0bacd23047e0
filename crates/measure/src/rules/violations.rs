//! Connections that we closed because the target broke a rule that makes us: no limit of the
//! target's.

use crate::doctor::{Cure, Diagnosis, State};
use crate::limit::Limit;
use crate::notation::{counted, share};

use super::figures::list;
use super::{Figures, Finding, Stage, enough};

/// From this share of the queries sent on, those lost with their connection decide.
const LOST_MAX: f64 = 0.001;

/// There are some, and they decide.
pub(super) fn decides(figures: &Figures<'_>) -> bool {
    let connections = figures.record.connections();
    !connections.closed_for_violation.is_empty() && are_reason(figures)
}

/// They are a habit, or cost queries.
fn are_reason(figures: &Figures<'_>) -> bool {
    let counts = figures.counts;
    let closed = figures.record.connections().closed_for_violation.total();
    let is_habit = closed > figures.record.scenario.clients;
    let is_much = is_habit || enough::is_above(counts.connection_losses, counts.sent, LOST_MAX);
    // Clients without a connection ask nothing, which is no outage of the target's.
    let explains = 2 * counts.connection_losses >= counts.lost() - counts.not_sent.total();
    is_much && explains
}

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let connections = figures.record.connections();
    let rules = &connections.closed_for_violation;
    if rules.is_empty() {
        return None;
    }
    let named = rules.named();
    let rules_broken = named.map(|(rule, number)| (number, rule.to_owned()));
    let mut seen = format!(
        "this tool closed {} because the target broke a rule: {}",
        counted(rules.total(), "connection"),
        list(rules_broken.collect())
    );
    let counts = figures.counts;
    if counts.connection_losses > 0 {
        seen.push_str(&format!(
            "; {} ({} of those sent) were lost with their connection",
            counted(counts.connection_losses, "query"),
            share(counts.connection_losses, counts.sent)
        ));
    }
    let matters = "the rate is that of connections which end too early, not of what the target can \
                   answer";
    let diagnosis = Diagnosis::new("rules broken", State::Problem, seen, matters);
    let mut names = rules.named();
    let cure = match names.any(|(rule, _)| rule.contains("STOP_SENDING from a server")) {
        true => Cure::throng("--doq-allow-stop-sending"),
        false => Cure::words("report it to the developers of the server: it breaks the protocol"),
    };
    let found = Finding::met(diagnosis.cure(cure)).beside();
    Some(
        found
            .limits(Stage::RuleBroken, Limit::Generator)
            .only_if(are_reason(figures)),
    )
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn connections_that_we_had_to_close_are_no_limit_of_the_server() {
        let mut record = saturated();
        record.scenario.transport = Transport::Doq.into();
        change_last(&mut record, |interval| {
            let rules = &mut interval.counts.connections.closed_for_violation;
            (0..50).for_each(|_| rules.record("STOP_SENDING from a server (RFC 9250)"));
        });
        let evidence =
            "this tool closed 50 connections because the target broke a rule: 50 STOP_SENDING";
        judged(
            &record,
            Limit::Generator,
            evidence,
            "--doq-allow-stop-sending",
        );
    }
}
