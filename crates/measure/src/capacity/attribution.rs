//! Whether a trial that missed the objective says anything about the target.
//!
//! A generator that waits for its CPU makes latency on both ways: it sends late, and responses wait
//! in its sockets until it reads them, which the time from sending to reading contains as well. It
//! makes losses too, by sending all at once what was due meanwhile. How often that happened is
//! known from the queries: responses come while the generator waits as often as queries come due.
//!
//! A target on the same host is in the same danger: what it could do with what others left of its
//! CPU is no limit of the target.

use super::{Objective, goodput_share};
use crate::histogram::Histogram;
use crate::interval::per;
use crate::limit::Limit;
use crate::notation::{fraction, latency, percent};
use crate::record::RunRecord;
use crate::symptoms::Symptoms;
use crate::symptoms::host::target_starved_from;
use crate::symptoms::losses::BURST_QUERIES;
use crate::symptoms::service::others_on_host;
use crate::timeline::outages::OutageKind;

/// Why a trial that missed the objective decides nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Excuse {
    /// The generator could do no more.
    Generator,
    /// The host was not quiet, in a sentence.
    Host(String),
    /// Nothing came back for a while, and before and after it all was well; in a sentence.
    Outage(String),
}

/// A worker that computes or waits for its CPU for that share of the time is short of it.
const BUSY: f64 = 0.9;
/// From this share of the time on, waiting for a CPU is not the worker's own doing.
const WAITED: f64 = 0.05;
/// A query is delayed if it left later than this share of the longest latency allowed: a delay on
/// either way, and the burst that follows it, together make the rest.
const DELAY_SHARE: u64 = 4;
/// Of a 99th percentile this share is later.
const LATE_MAX: f64 = 0.01;
/// Queries that left later than this left as a burst.
const BURST_NS: u64 = 1_000_000;
/// A delay hits the queries that are due in it, the responses that come in it, and those that are
/// served after the burst.
const QUERIES_PER_DELAYED: f64 = 3.0;
/// A target that waits for a CPU for more than this share of the time may miss a 99th percentile.
const TARGET_WAITED: f64 = 0.01;
/// Other processes that use less than this, in CPUs, hardly disturb a run.
const OTHERS: f64 = 0.1;

/// Looks for something on this host that explains the breaches of a run, if it has any.
pub(super) fn excuse(objective: &Objective, symptoms: &Symptoms<'_>) -> Option<Excuse> {
    let record = symptoms.figures.record;
    if let Some(excuse) = of_outage(objective, symptoms) {
        return Some(excuse);
    }
    // A host that is not quiet makes no constant rate.
    if symptoms.rate_limited.is_some() {
        return None;
    }
    // Wrong answers are always the target's.
    if goodput_share(record) < objective.goodput_share_min && record.total.counts.responses > 0 {
        return None;
    }
    let by_generator = of_saturated_generator(symptoms)
        .or_else(|| of_delayed_generator(objective, symptoms))
        .map(|excuse| with_others(excuse, symptoms));
    by_generator.or_else(|| of_starved_target(symptoms))
}

/// An outage is no overload if the objective was met outside of it.
fn of_outage(objective: &Objective, symptoms: &Symptoms<'_>) -> Option<Excuse> {
    let (record, outages) = (symptoms.figures.record, &symptoms.figures.outages);
    let longest = outages.each.iter().max_by_key(|it| it.length_ns())?;
    let outside = &outages.outside;
    if outside.due == 0 || per(outside.lost as f64, outside.due as f64) > objective.lost_share_max {
        return None;
    }
    let interval = record.outside_of(outages);
    let p99 = interval.distributions.latency.percentile(0.99);
    let goodput = interval.counts.goodput(&record.scenario.goodput_rcodes);
    let goodput = per(goodput as f64, interval.counts.responses as f64);
    // An outage may touch all intervals of a trial; the shorter bins give the mean.
    let (latency_ns, goodput) = match p99 {
        Some(p99) => (p99 as f64, goodput),
        None => (outside.latency_ns_mean?, goodput_share(record)),
    };
    if latency_ns > objective.latency_p99_ns_max as f64 || goodput < objective.goodput_share_min {
        return None;
    }
    let lasted = latency(longest.length_ns() as f64);
    Some(match longest.kind {
        OutageKind::OwnFreeze => {
            Excuse::Host(format!("the generator was not scheduled for {lasted}"))
        }
        OutageKind::Unsendable => Excuse::Host(format!("it could send nothing for {lasted}")),
        OutageKind::NoResources => Excuse::Host(format!(
            "it had no open file, memory or local port for new connections for {lasted}"
        )),
        _ if longest.lasts => Excuse::Outage(format!(
            "no usable response came for {lasted}, to the end, though all was well before: an \
                outage, or a limit that answers nothing while it is exceeded"
        )),
        _ => Excuse::Outage(format!(
            "no usable response came for {lasted}, though all was well before and after: an \
                outage, not overload"
        )),
    })
}

/// Other processes, if the generator had to wait for its CPU.
fn with_others(excuse: Excuse, symptoms: &Symptoms<'_>) -> Excuse {
    let others = others_on_host(&symptoms.figures);
    let others = others.filter(|cpu| cpu.others_cpus() >= OTHERS);
    match (excuse, others) {
        (Excuse::Host(why), Some(cpu)) => Excuse::Host(format!("{why}; {}", cpu.others_text())),
        (excuse, _) => excuse,
    }
}

/// The worker that had least of its CPU left, and the share of the time that it waited for it.
fn most_waiting(record: &RunRecord) -> f64 {
    let shares = record.workers.iter().map(|worker| worker.cpu_wait_share());
    shares.fold(0.0, f64::max)
}

fn of_saturated_generator(symptoms: &Symptoms<'_>) -> Option<Excuse> {
    let record = symptoms.figures.record;
    let is_full = |share: f64| share >= BUSY;
    let mut workers = record.workers.iter();
    let is_saturated = workers.any(|worker| is_full(worker.busy_share() + worker.cpu_wait_share()));
    if record.verdict.limit != Limit::Generator || !is_saturated {
        return None;
    }
    let waited = most_waiting(record);
    Some(match waited >= WAITED {
        true => Excuse::Host(waited_text(waited)),
        false => Excuse::Generator,
    })
}

fn waited_text(waited: f64) -> String {
    format!(
        "the generator waited for its CPU {} of the time",
        percent(waited)
    )
}

/// Queries and responses that waited in the generator explain lateness and losses.
fn of_delayed_generator(objective: &Objective, symptoms: &Symptoms<'_>) -> Option<Excuse> {
    let record = symptoms.figures.record;
    let waited = most_waiting(record);
    let lateness = &record.total.distributions.send_lateness;
    let limit_ns = objective.latency_p99_ns_max;
    // A query over a connection also waits for the connection, which is the target's part.
    let has_connections = record.scenario.transport.has_connections();
    let delay_ns = limit_ns / DELAY_SHARE;
    let (delayed, in_bursts) = match has_connections {
        true if waited < WAITED => (0.0, 0.0),
        true => (waited, waited),
        false => (
            share_above(lateness, delay_ns),
            share_above(lateness, BURST_NS.min(limit_ns)),
        ),
    };
    if !is_latency_explained(objective, record, delayed) {
        return None;
    }
    let counts = &record.total.counts;
    let ours = counts.not_sent.total() + record.network.receive_drops;
    let unanswered = counts
        .lost()
        .max(counts.offered.saturating_sub(counts.responses));
    let share = |number: u64| per(number as f64, counts.offered as f64);
    let lost = share(unanswered.saturating_sub(ours));
    // A generator that has its CPU loses queries only by bursts that a receive buffer cannot hold.
    let burst = lateness.max_ns().unwrap_or(0) as f64 / 1e9 * record.offered_qps();
    let by_bursts = match waited >= WAITED || burst >= BURST_QUERIES {
        true => QUERIES_PER_DELAYED * in_bursts,
        false => 0.0,
    };
    if lost > objective.lost_share_max + by_bursts {
        return None;
    }
    let is_of_verdict = record.verdict.limit == Limit::Generator;
    if ours > 0 || has_connections && waited < WAITED {
        // Over connections nothing else shows whether the target or the generator was late.
        return is_of_verdict.then_some(Excuse::Generator);
    }
    let is_late = share_above(&record.total.distributions.latency, limit_ns) > LATE_MAX;
    let (late, than_ns) = match is_late {
        true => (share_above(lateness, delay_ns), delay_ns),
        false => (in_bursts, BURST_NS.min(limit_ns)),
    };
    let mut why = format!(
        "{} of the queries were sent more than {} late",
        fraction(late),
        latency(than_ns as f64)
    );
    if waited >= WAITED {
        why = format!("{}, and {why}", waited_text(waited));
    }
    Some(Excuse::Host(why))
}

/// True if the delayed queries explain all late responses.
fn is_latency_explained(objective: &Objective, record: &RunRecord, delayed: f64) -> bool {
    let distributions = &record.total.distributions;
    // Stamps of the kernel leave the generator out on both ways.
    let (times, explained) = match distributions.path.is_empty() {
        true => (&distributions.service, QUERIES_PER_DELAYED * delayed),
        false => (&distributions.path.network, delayed),
    };
    let limit_ns = objective.latency_p99_ns_max;
    let is_answered = !distributions.latency.is_empty();
    let late = share_above(times, limit_ns);
    // Delays that are short against the limit, or few, do not make the rest of them either. A
    // query that waits for its connection is another matter.
    let late_in_all = match record.scenario.transport.has_connections() {
        true => 0.0,
        false => share_above(&distributions.latency, limit_ns),
    };
    is_answered
        && late <= LATE_MAX + explained
        && late_in_all <= LATE_MAX + QUERIES_PER_DELAYED * delayed
}

/// A target on this host that had to wait for a CPU that others used.
fn of_starved_target(symptoms: &Symptoms<'_>) -> Option<Excuse> {
    let figures = &symptoms.figures;
    if let Some(starved) = target_starved_from(figures, TARGET_WAITED) {
        return Some(Excuse::Host(format!(
            "the target on it waited for a CPU {} of the time; {}",
            percent(starved.waited),
            starved.others
        )));
    }
    let host = others_on_host(figures)?;
    let is_here = host.is_target_here || figures.record.self_test;
    let is_unknown = figures.target_waited_ns().is_none();
    (is_here && is_unknown && host.others_cpus() >= OTHERS).then(|| {
        let others = host.others_text();
        Excuse::Host(format!("{others}, which the target on it may have needed"))
    })
}

/// Share of the values that are above `limit_ns`, to the width of a bucket; 0 without values.
fn share_above(histogram: &Histogram, limit_ns: u64) -> f64 {
    let above = histogram.buckets().filter(|(low, _, _)| *low >= limit_ns);
    let above = above.map(|(_, _, count)| count).sum::<u64>() + histogram.overflow();
    per(above as f64, histogram.count() as f64)
}
