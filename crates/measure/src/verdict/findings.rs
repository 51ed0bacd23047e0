//! What runs met, as diagnoses with their cures; each only where the record has evidence for it.
//!
//! The verdict says what limited a run, in one word. Here is everything else that got in its way
//! too, and for all of it the exact statement or command. Sentences come from the rules of the
//! verdict where they have them, so that nothing is said twice in other words.

use super::figures::Figures;
use super::{Limit, Verdict, rules};
use crate::doctor::{Cure, Diagnosis, State};
use crate::record::RunRecord;

mod connections;
mod generator;
mod network;
mod several;
mod target;
#[cfg(test)]
mod tests;

pub(super) use network::BUFFER_OCTETS;
pub use several::of_runs;

/// What one run met, the limit that the record's verdict names first.
pub fn of_run(record: &RunRecord) -> Vec<Diagnosis> {
    let figures = Figures::of(record);
    let groups = [
        generator::all(&figures),
        network::all(&figures),
        connections::all(&figures),
        target::all(&figures),
    ];
    let groups = groups.into_iter().flatten();
    let mut found: Vec<Diagnosis> = groups.chain(rules::all(&figures)).collect();
    let decisive = record.verdict.evidence.first();
    let limit = match found.iter().position(|it| Some(&it.seen) == decisive) {
        Some(place) => found.remove(place),
        None => of_verdict(&record.verdict),
    };
    found.insert(0, limit);
    found
}

/// The limit itself, where no other finding is about it.
fn of_verdict(verdict: &Verdict) -> Diagnosis {
    let state = match verdict.limit {
        Limit::Server | Limit::Rate => State::Ok,
        Limit::Outstanding | Limit::Unknown => State::Warning,
        Limit::Generator | Limit::Network => State::Problem,
    };
    let topic = format!("limit: {}", verdict.limit.name());
    let seen = verdict.evidence.first().cloned().unwrap_or_default();
    let advice = verdict.advice.iter();
    Diagnosis::new(topic, state, seen, verdict.limit.meaning())
        .cures(advice.map(|words| Cure::words(words.clone())))
}

/// Traces the path to the (first) target by packets of that kind, hop by hop.
pub(super) fn look_at_path(protocol: &str, record: &RunRecord) -> Cure {
    let targets = &record.scenario.target;
    let target = targets.split(',').next().unwrap_or(targets);
    let address = target.parse::<std::net::SocketAddr>();
    let host = address.map_or_else(|_| target.to_owned(), |it| it.ip().to_string());
    Cure::shell(format!("mtr --report --{protocol} {host}"))
}

/// A number of clients or connections with room to spare, as a round number.
pub(super) fn with_room(number: u64) -> u64 {
    (number + number / 2).div_ceil(1_000).max(1) * 1_000
}
