//! What is said of runs from which nothing can be concluded.

use super::connections::first_handshake;
use super::finding::Conclusion;
use super::phrases::why_nothing_was_answered;
use crate::notation::{count, counted, latency, percent};
use crate::symptoms::losses_by_name::large_edns_size;
use crate::symptoms::significance::POSSIBLE;
use crate::symptoms::{Figures, Symptoms};

/// With none of this number lost, less than 1 % is lost, with 95 % confidence.
const QUERIES_WANTED: u64 = 300;

pub(super) fn nothing_answered(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let scenario = &symptoms.figures.record.scenario;
    let smaller = match large_edns_size(&symptoms.figures) {
        Some(_) => "; answers may be too large for the path: --edns-size 1232",
        None => "",
    };
    let advice = first_handshake(symptoms).unwrap_or_else(|| {
        format!(
            "check that a DNS server answers at {} over {}{smaller}",
            scenario.target, scenario.transport
        )
    });
    let evidence = why_nothing_was_answered(&symptoms.figures);
    Some(Conclusion::new(evidence, advice))
}

pub(super) fn short_window(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let evidence = format!(
        "only {} were measured: less than 1 s says little about a limit",
        latency(symptoms.figures.record.measured_ns as f64)
    );
    Some(Conclusion::new(evidence, "run for longer: --duration 10s"))
}

pub(super) fn too_few(symptoms: &Symptoms<'_>) -> Option<Conclusion> {
    let counts = symptoms.figures.counts;
    // The greatest share of losses of which as few as these are seen once in twenty times.
    let possible = match counts.lost() {
        0 => 1.0 - POSSIBLE.powf(1.0 / counts.offered.max(1) as f64),
        lost => (3.0 + lost as f64 + 2.0 * (lost as f64).sqrt()) / counts.offered.max(1) as f64,
    };
    let evidence = format!(
        "too few to tell: of {}, {} got no response, so that up to {} may be lost",
        counted(counts.offered, "query"),
        count(counts.lost()),
        percent(possible.min(1.0))
    );
    let advice = format!(
        "ask at least {} queries: --duration {}s",
        count(QUERIES_WANTED),
        seconds_for(QUERIES_WANTED, &symptoms.figures)
    );
    Some(Conclusion::new(evidence, advice))
}

/// Seconds in which the rate of the run sends that number of queries.
fn seconds_for(queries: u64, figures: &Figures<'_>) -> u64 {
    let rate_qps = figures.record.offered_qps();
    match rate_qps > 0.0 {
        true => (queries as f64 / rate_qps).ceil().max(1.0) as u64,
        false => 10,
    }
}
