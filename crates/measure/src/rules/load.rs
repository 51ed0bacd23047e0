//! What the load itself says once generator, network and connections are cleared.
//!
//! Closed loop: places all in use while nothing queues (*outstanding*); all in use and queueing
//! (*server*). Where a connection may carry only so many queries at once, those are all the places
//! there are. With places to spare: a rate cap held, of queries or of connections (*rate*);
//! connections that take long to set up (*server* if they queue there, else *outstanding*).
//!
//! Open loop: a rate cap of connections held (*rate*); growing latency, or losses with a sign that
//! the load made them (*server*), without one (*unknown*); everything answered on time (*rate*).

use super::enough::{self, Share};
use super::figures::LATENESS_MAX_NS;
use super::losses::{self, LOSS_MAX};
use super::{Figures, Finding, Stage, set_up};
use crate::limit::Limit;
use crate::notation::{count, counted, decimal, latency, percent, rate, share};
use crate::scenario::Arrival;

#[cfg(test)]
mod tests;

/// From this share of the places on, all of them count as used.
const FULL: f64 = 0.95;
/// A rate counts as held from this share on.
const RATE_HELD: f64 = 0.99;

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let asks = !figures.record.asks_nothing();
    asks.then(|| judge(figures).concluding(Stage::Load))
}

/// The target kept up with what was asked.
pub(super) fn is_held(figures: &Figures<'_>) -> bool {
    let limit = found(figures).and_then(|it| it.limit());
    matches!(limit, None | Some(Limit::Rate))
}

fn judge(figures: &Figures<'_>) -> Finding {
    match figures.record.scenario.arrival {
        Arrival::Closed { outstanding, .. } => closed_loop(figures, outstanding),
        Arrival::Open { rate_qps, .. } => open_loop(figures, rate_qps),
        // Chance and shape decide how many queries come due: as many as were offered.
        Arrival::Clients { rate_qps: Some(_) } => open_loop(figures, figures.record.offered_qps()),
        Arrival::Clients { rate_qps: None } => {
            overloaded(figures).unwrap_or_else(|| waiting_clients(figures))
        }
    }
}

fn conclusion(limit: Limit, evidence: String, advice: &str) -> Finding {
    Finding::concluded(Stage::Load, limit, evidence, advice)
}

/// Clients that wait for their responses ask no faster than they get them.
fn waiting_clients(figures: &Figures<'_>) -> Finding {
    let clients = counted(figures.record.scenario.clients, "client");
    let evidence = format!(
        "{clients} waited for responses before they asked again, with {} queries in flight on \
         average",
        decimal(figures.in_flight, 1)
    );
    let advice = "add clients until the rate no longer grows, to find the target's limit";
    conclusion(Limit::Outstanding, evidence, advice)
}

fn closed_loop(figures: &Figures<'_>, places: u64) -> Finding {
    let carried = figures.carried_max().filter(|(all, _)| *all < places);
    let usable = carried.map_or(places, |(all, _)| all);
    if figures.in_flight < FULL * usable as f64 {
        return places_unused(figures, places, usable);
    }
    // Where queries wait for a stream, latency from the scheduled instant is mostly that wait.
    let p50 = match carried {
        Some(_) => figures.service_p50_ns,
        None => figures.latency_p50_ns,
    };
    let (p50, path) = (p50.unwrap_or(0), figures.path_ns.unwrap_or(0));
    let times = |ns: u64| latency(ns as f64);
    let all_used = match carried {
        Some((all, each)) => format!(
            "{} of at most {} queries were in flight: {} with {} at once carry no more than {}",
            decimal(figures.in_flight, 1),
            count(places),
            counted(figures.record.scenario.clients, "connection"),
            count(each),
            count(all)
        ),
        None => format!(
            "{} of at most {} queries were in flight, with CPU time to spare here",
            decimal(figures.in_flight, 1),
            count(places)
        ),
    };
    // A single query in flight never waits behind another one of ours.
    if places == 1 || p50 < 2 * path {
        let evidence = format!(
            "{all_used}, but nothing queued: p50 {} is near the shortest {}",
            times(p50),
            times(path)
        );
        let advice = match carried {
            Some(_) => format!(
                "open more connections: --clients {}",
                4 * figures.record.scenario.clients
            ),
            None => format!("raise it: --outstanding {}", 4 * places),
        };
        return conclusion(Limit::Outstanding, evidence, &advice);
    }
    let evidence = format!(
        "{all_used}, while queries queued at the target: p50 {} against the shortest {}",
        times(p50),
        times(path)
    );
    conclusion(Limit::Server, evidence, &below_the_limit(figures))
}

/// How to see the latency of a target that was driven to its limit.
fn below_the_limit(figures: &Figures<'_>) -> String {
    format!(
        "for its latency below that limit run with --rate {}",
        decimal(0.7 * figures.achieved_qps, 0).replace(',', "")
    )
}

/// Closed loop with places to spare: a rate cap, or the run was too small to fill them.
fn places_unused(figures: &Figures<'_>, places: u64, usable: u64) -> Finding {
    if let Some(asked) = figures.rate_asked()
        && figures.achieved_qps >= RATE_HELD * asked
    {
        let evidence = format!("the rate cap of {} was reached", rate(asked));
        return conclusion(
            Limit::Rate,
            evidence,
            "raise the cap to find the target's limit",
        );
    }
    if let Some(finding) = set_up::judge(figures, usable) {
        return finding;
    }
    let evidence = format!(
        "only {} of at most {} queries were in flight on average, though no worker was out of CPU \
         and {} were lost",
        decimal(figures.in_flight, 1),
        count(places),
        share(figures.counts.lost(), figures.counts.offered)
    );
    let stream_limits_met = figures.record.connections().quic_stream_limits_met;
    if stream_limits_met > 0 {
        let evidence = format!(
            "{evidence}; connections had used up the streams that the target allows them {}",
            times_met(stream_limits_met)
        );
        let clients = 4 * figures.record.scenario.clients;
        let advice = format!("open more connections: --clients {clients}");
        return conclusion(Limit::Unknown, evidence, &advice);
    }
    let advice = if figures.record.scenario.transport.has_connections() {
        "see how often connections end and how long they take to open: throng doctor RECORD"
    } else {
        "run for longer, on an idle host: --duration 30s"
    };
    conclusion(Limit::Unknown, evidence, advice)
}

fn times_met(times: u64) -> String {
    match times {
        1 => "once".to_owned(),
        _ => format!("{} times", count(times)),
    }
}

fn open_loop(figures: &Figures<'_>, asked: f64) -> Finding {
    let counts = figures.counts;
    let waited_in_vain = counts.not_sent.timed_out_waiting;
    let is_short = enough::is_above(waited_in_vain, counts.offered, LOSS_MAX);
    set_up::rate_held(figures)
        .filter(|_| is_short)
        .or_else(|| overloaded(figures))
        .unwrap_or_else(|| rate_held(figures, asked))
}

/// Open loop: a growing queue or losses with a sign of load are the target's.
pub(super) fn overloaded(figures: &Figures<'_>) -> Option<Finding> {
    if let Some((first, last)) = enough::growing_latency(figures) {
        let evidence = format!(
            "latency grew from {} to {} (p50 of the first and the last third): the target fell \
             behind",
            latency(first as f64),
            latency(last as f64)
        );
        let advice = losses::lower_rate(figures, 0.8);
        return Some(conclusion(Limit::Server, evidence, &advice));
    }
    losses::judge(figures)
}

/// Open loop without losses: the rate asked for was the limit, if it was reached on time.
fn rate_held(figures: &Figures<'_>, asked: f64) -> Finding {
    let counts = figures.counts;
    let answered = counts.responses as f64 / counts.offered.max(1) as f64;
    if enough::share(counts.lost(), counts.offered, 1.0 - RATE_HELD) == Share::TooFew {
        return enough::too_few(figures);
    }
    let lateness = latency(figures.lateness_p99_ns as f64);
    let offered_qps = figures.record.offered_qps();
    let scenario = &figures.record.scenario;
    // Over connections queries may have to wait for one; a worker without CPU was found before.
    let has_waited = figures.lateness_p99_ns > LATENESS_MAX_NS;
    let on_time = !has_waited || scenario.transport.has_connections();
    if answered >= RATE_HELD && offered_qps >= RATE_HELD * asked && on_time {
        let when = match has_waited {
            true => format!("answered, after waiting up to {lateness} (p99) for their connection"),
            false => format!("answered and sent on time (p99 {lateness} late)"),
        };
        let evidence = format!(
            "{} of the queries offered at {} were {when}",
            share(counts.responses, counts.offered),
            rate(offered_qps)
        );
        let advice = match scenario.arrival {
            _ if scenario.replay.is_some() => "raise --speed to find the target's limit",
            Arrival::Clients { .. } => {
                "raise --clients, or the rate of each, to find the target's limit"
            }
            _ => "raise --rate to find the target's limit",
        };
        return conclusion(Limit::Rate, evidence, advice);
    }
    let evidence = format!(
        "{} of {} asked were offered, {} of them were answered, and queries were sent up to \
            {lateness} late (p99), with no single cause to blame",
        rate(offered_qps),
        rate(asked),
        percent(answered)
    );
    conclusion(
        Limit::Unknown,
        evidence,
        "run again for longer, on an idle host",
    )
}
