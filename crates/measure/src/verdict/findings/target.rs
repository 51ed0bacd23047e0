//! What the target did with the queries, and how to see whether it can do more.

use super::{Figures, with_room};
use crate::doctor::{Cure, Diagnosis, Place, State};
use crate::interval::per;
use crate::notation::{count, share};
use crate::scenario::Transport;
use crate::verdict::{Limit, load, target};

/// RCODEs by number (RFC 6895, section 2.3).
const SERVFAIL: usize = 2;
const REFUSED: usize = 5;
/// From this share of the responses on, an RCODE is what the run shows.
const RCODE_MIN: f64 = 0.01;
/// From this share of the responses on, truncation is more than long answers.
const TRUNCATED_MIN: f64 = 0.01;
/// From this share of the places on, lost queries matter.
const HELD_MIN: f64 = 0.01;

pub(super) fn all(figures: &Figures<'_>) -> Vec<Diagnosis> {
    let found = [
        held_places(figures),
        exchanges(figures),
        servfail(figures),
        refused(figures),
        truncated(figures),
        busy(figures),
    ];
    found.into_iter().flatten().collect()
}

/// Places of the closed loop that lost queries held.
fn held_places(figures: &Figures<'_>) -> Option<Diagnosis> {
    let seen = load::held_by_lost(figures, HELD_MIN)?;
    let places = figures.outstanding?;
    let state = match figures.held_by_lost() >= 0.1 * places as f64 {
        true => State::Problem,
        false => State::Warning,
    };
    let matters = "a lost query holds its place until it times out, and nothing else is asked \
                   from there: the rate is lower than what the target takes";
    Some(
        Diagnosis::new("places held by lost queries", state, seen, matters)
            .cure(Cure::throng("--timeout 1s"))
            .cure(Cure::throng(format!("--outstanding {}", 2 * places)))
            .cure(Cure::words(format!(
                "or ask in open loop, where nothing is held: --rate {:.0}",
                figures.achieved_qps
            ))),
    )
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
    let advice = finding.and_then(|finding| finding.advice);
    Some(
        Diagnosis::new("queries without a DNS message", state, seen, matters)
            .cures(advice.map(Cure::words)),
    )
}

fn rcode(figures: &Figures<'_>, rcode: usize, name: &str) -> Option<String> {
    let rcodes = &figures.counts.rcodes;
    let (number, all) = (rcodes.by_rcode[rcode], rcodes.total());
    (per(number as f64, all as f64) >= RCODE_MIN).then(|| {
        format!(
            "{} of the responses were {name} ({})",
            share(number, all),
            count(number)
        )
    })
}

/// A recursive resolver that gives up.
fn servfail(figures: &Figures<'_>) -> Option<Diagnosis> {
    let seen = rcode(figures, SERVFAIL, "SERVFAIL")?;
    let matters = "a recursive resolver answers so when it cannot get an answer, or has too many \
                   questions open: they are fast, and no use";
    let in_flight = with_room(figures.in_flight as u64);
    Some(
        Diagnosis::new("SERVFAIL", State::Warning, seen, matters)
            .cure(Cure::new(Place::Server, "rndc recursing && rndc stats"))
            .cure(Cure::named(format!(
                "recursive-clients {};",
                10 * in_flight
            )))
            .cure(Cure::new(
                Place::UnboundConf,
                "num-queries-per-thread: 4096",
            )),
    )
}

/// A server that does not answer this client.
fn refused(figures: &Figures<'_>) -> Option<Diagnosis> {
    let seen = rcode(figures, REFUSED, "REFUSED")?;
    let matters = "the server does not answer the generator these names: the figures are those of \
                   refusals, which cost it next to nothing";
    Some(
        Diagnosis::new("REFUSED", State::Warning, seen, matters)
            .cure(Cure::named("allow-query { any; };"))
            .cure(Cure::named("allow-recursion { GENERATOR; };"))
            .cure(Cure::new(
                Place::UnboundConf,
                "access-control: GENERATOR/32 allow",
            )),
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
    let is_other = target::kept_away(figures).is_some() || target::exchanges(figures).is_some();
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
