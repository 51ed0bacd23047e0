//! Truncated responses, and beside lost ones: as limits on the rate of responses make them.

use crate::doctor::{Cure, Diagnosis, State};
use crate::interval::per;
use crate::notation::share;
use crate::scenario::Transport;

use super::{Figures, Finding};

/// From this share of the responses on, truncation is more than long answers.
const TRUNCATED_MIN: f64 = 0.01;

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let counts = figures.counts;
    let (truncated, responses) = (counts.truncated, counts.responses);
    let is_udp = figures.record.scenario.transport == Transport::Udp;
    if !is_udp || per(truncated as f64, responses as f64) < TRUNCATED_MIN {
        return None;
    }
    let seen = format!(
        "{} of the responses were truncated, and {} of the queries got none",
        share(truncated, responses),
        share(counts.timeouts, counts.sent)
    );
    let matters = "truncated responses tell clients to retry over TCP; together with losses, they \
        are the sign of a limit on the rate of responses";
    let diagnosis = Diagnosis::new("truncated responses", State::Warning, seen, matters);
    Some(Finding::met(match counts.timeouts > counts.sent / 100 {
        true => diagnosis.cure(Cure::named(
            "rate-limit { exempt-clients { GENERATOR; }; };",
        )),
        false => diagnosis
            .cure(Cure::throng("--edns-size 1232"))
            .cure(Cure::throng("--tcp-fallback")),
    }))
}

#[cfg(test)]
mod tests {
    use crate::rules::situations::*;

    #[test]
    fn truncated_responses_are_avoided_by_larger_datagrams_or_exemption_from_limits() {
        let mut record = saturated();
        change_last(&mut record, |interval| interval.counts.truncated += 2_000);
        told(&record, "truncated responses").warning("2.00 %", "--edns-size 1232");
        lose(&mut record, 5_000);
        told(&record, "truncated responses").warning("2.00 %", "exempt-clients");
    }
}
