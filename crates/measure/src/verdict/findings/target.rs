//! What the target did with the queries, and how to see whether it can do more.

use super::Figures;
use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::interval::per;
use crate::notation::share;
use crate::scenario::Transport;
use crate::verdict::{Limit, rules, target};

/// From this share of the responses on, truncation is more than long answers.
const TRUNCATED_MIN: f64 = 0.01;

pub(super) fn all(figures: &Figures<'_>) -> Vec<Diagnosis> {
    let found = [exchanges(figures), truncated(figures), busy(figures)];
    found.into_iter().flatten().collect()
}

/// Queries that HTTP or their stream ended.
fn exchanges(figures: &Figures<'_>) -> Option<Diagnosis> {
    let seen = target::ended_exchanges(figures)?;
    let finding = target::exchanges(figures);
    let state = match &finding {
        Some(_) => State::Problem,
        None => State::Warning,
    };
    // The decisive evidence of the verdict is the same sentence.
    let matters = "they are no DNS responses: the figures are those of the other queries";
    let advice = finding.into_iter().flat_map(|finding| finding.advice);
    Some(
        Diagnosis::new("queries without a DNS message", state, seen, matters)
            .cures(advice.map(Cure::words)),
    )
}

/// Truncated responses beside lost ones: as limits on the rate of responses make them.
fn truncated(figures: &Figures<'_>) -> Option<Diagnosis> {
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
    Some(match counts.timeouts > counts.sent / 100 {
        true => diagnosis.cure(Cure::named(
            "rate-limit { exempt-clients { GENERATOR; }; };",
        )),
        false => diagnosis
            .cure(Cure::throng("--edns-size 1232"))
            .cure(Cure::throng("--tcp-fallback")),
    })
}

/// A target that was driven to its limit: where its CPU time may go.
fn busy(figures: &Figures<'_>) -> Option<Diagnosis> {
    let record = figures.record;
    let decisive = record.verdict.evidence.first()?;
    let is_other = rules::all(figures).iter().any(|it| it.seen == *decisive)
        || target::exchanges(figures).is_some();
    let is_modelled = record
        .simulation
        .as_ref()
        .is_some_and(|it| it.server.is_some());
    if record.verdict.limit != Limit::Server || is_other || record.self_test || is_modelled {
        return None;
    }
    let seen = record.verdict.evidence.first()?.clone();
    let matters = "whether more threads or less work for each query help shows in the CPU time of \
                   the server: idle threads wait for locks, sockets or logs";
    let advice = record
        .verdict
        .advice
        .iter()
        .map(|words| Cure::words(words.clone()));
    let diagnosis = Diagnosis::new("limit: server", State::Ok, seen, matters).cures(advice);
    let top = "top -H -n 1 -b -p $(pgrep -o named) | head -20";
    let status = "rndc status | grep -E 'worker threads|query logging|tcp clients'";
    Some(
        diagnosis
            .cure(Cure::new(Place::Server, top))
            .cure(Cure::new(Place::Server, status))
            .cure(Cure::words(
                "label the runs (--label querylog=on), change one thing (rndc querylog off), \
                 measure again (--label querylog=off), and hand both records to throng doctor",
            )),
    )
}
