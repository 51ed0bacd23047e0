//! Figures that no conclusion may be drawn from: nothing was answered, less than a second was
//! measured, or a few queries.

use crate::notation::latency;
use crate::verdict::Limit;

use super::{Figures, Finding, Stage, enough};

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    nothing_answered(figures)
        .or_else(|| too_short(figures))
        .or_else(|| too_few(figures))
}

fn nothing_answered(figures: &Figures<'_>) -> Option<Finding> {
    if figures.counts.responses > 0 {
        return None;
    }
    let advice = format!(
        "check that a DNS server answers at {} over {}",
        figures.record.scenario.target, figures.record.scenario.transport
    );
    Some(unknown(figures.why_nothing_was_answered(), &advice))
}

pub(super) fn too_short(figures: &Figures<'_>) -> Option<Finding> {
    if figures.window_s >= 1.0 {
        return None;
    }
    let evidence = format!(
        "only {} were measured: less than 1 s says little about a limit",
        latency(figures.record.measured_ns as f64)
    );
    Some(unknown(evidence, "run for longer: --duration 10s"))
}

fn too_few(figures: &Figures<'_>) -> Option<Finding> {
    let is_few = figures.counts.offered < enough::EVENTS_MIN;
    is_few.then(|| enough::too_few(figures).concluding(Stage::TooLittle))
}

fn unknown(evidence: String, advice: &str) -> Finding {
    Finding::concluded(Stage::TooLittle, Limit::Unknown, evidence, advice)
}
