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
    let matters = "responses that do not fit are to be asked for again over TCP; beside losses, \
                   that is what a limit on the rate of responses looks like";
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
