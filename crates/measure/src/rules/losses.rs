//! Queries without response: whether the load has to do with it.
//!
//! A server that is asked more than it can do lets queries wait, then drops what does not fit. A
//! path that loses takes the same share of any load. Without a sign of the former no rate is
//! advised: nobody knows that it would help.

use crate::doctor::{Cure, Diagnosis, State};
use crate::interval::per;
use crate::limit::Limit;
use crate::notation::{count, counted, decimal, latency, percent, rate, share};
use crate::scenario::{Arrival, Transport, Transports};
use crate::timeline::{Bin, Timeline};

use super::buffers_of_target::dropped_by_local_target;
use super::figures::{ends, list};
use super::receive_buffers::{self, received_but_dropped};
use super::{
    Figures, Finding, Stage, ended, enough, handshakes, outage, path, unserved, violations,
};

#[cfg(test)]
mod tests;

/// More queries without response than this share matter.
pub(super) const LOSS_MAX: f64 = 0.001;
/// Queries that wait at a server before it drops one: receive buffers hold some hundred, queues of
/// servers more, and below this the unevenness of arrivals accounts for them.
const WAITING_MIN: f64 = 8.0;
/// Queries wait if half of them take so many times as long as the fastest.
const QUEUED: u64 = 2;

/// Deviations that are no chance.
const DEVIATIONS: f64 = 3.29;
/// Responses scatter so many times less than random losses would leave them: with as many bins as
/// below, chance does that less than once in a thousand times (chi-squared).
const PLATEAU: f64 = 3.0;
/// Bins that are enough to tell.
const PLATEAU_BINS: usize = 50;
/// Responses in a bin that are enough to tell.
const PLATEAU_RESPONSES: f64 = 5.0;

/// Queries that had to be answered and were not: without those that this host never sent.
fn lost(figures: &Figures<'_>) -> u64 {
    figures.unanswered() + figures.counts.not_sent.timed_out_waiting
}

/// True if more of them were lost than matter, by more than chance.
pub(super) fn matter(figures: &Figures<'_>) -> bool {
    enough::is_above(lost(figures), figures.counts.offered, LOSS_MAX)
}

/// Losses that nothing shows the load to be the cause of.
pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    without_load(figures).map(|it| it.only_if(false))
}

/// Open loop: losses with a sign that the load made them are the target's limit; without one, they
/// are said, and how to find out.
pub(super) fn judge(figures: &Figures<'_>) -> Option<Finding> {
    if !matter(figures) {
        return None;
    }
    let Some(sign) = sign_of_load(figures) else {
        return without_load(figures);
    };
    let evidence = format!("{} got no response, {sign}", of_offered(figures));
    let advice = lower_rate(figures, 0.8);
    Some(Finding::concluded(
        Stage::Load,
        Limit::Server,
        evidence,
        &advice,
    ))
}

fn of_offered(figures: &Figures<'_>) -> String {
    let offered = figures.counts.offered;
    format!("{} of the offered queries", share(lost(figures), offered))
}

/// How to ask for a share of what was answered.
pub(super) fn lower_rate(figures: &Figures<'_>, share: f64) -> String {
    match figures.record.scenario.replay.is_some() {
        true => "find its limit: lower --speed".to_owned(),
        false => format!(
            "find its limit: try --rate {}",
            plain(share * figures.achieved_qps)
        ),
    }
}

fn plain(rate_qps: f64) -> String {
    decimal(rate_qps.max(1.0), 0).replace(',', "")
}

/// What shows that queries waited at the target, and did not all fit in there.
pub(super) fn sign_of_queue(figures: &Figures<'_>) -> Option<String> {
    dropped_by_target(figures).or_else(|| waiting(figures))
}

/// What shows that the target could not keep up, if anything.
pub(super) fn sign_of_load(figures: &Figures<'_>) -> Option<String> {
    waiting(figures)
        .or_else(|| dropped_by_target(figures))
        .or_else(|| more_at_peaks(figures))
        .or_else(|| plateau(figures))
}

/// Bins of the window, without outages.
fn bins<'a>(figures: &'a Figures<'_>) -> impl Iterator<Item = &'a Bin> {
    let timeline = figures.record.timeline.as_ref();
    let width_ns = timeline.map_or(1, Timeline::width_ns);
    let whole = figures.record.measured_ns / width_ns;
    let each = timeline.map_or(&[][..], Timeline::bins).iter().enumerate();
    each.take(usize::try_from(whole).unwrap_or(usize::MAX))
        .filter(move |(index, _)| {
            let start_ns = *index as u64 * width_ns;
            !figures.outages.touch(start_ns, start_ns + width_ns)
        })
        .map(|(_, bin)| bin)
}

/// A larger share was lost where more was due: the bins above the mean against those below, by the
/// difference of two shares.
fn more_at_peaks(figures: &Figures<'_>) -> Option<String> {
    let due: Vec<(u64, u64)> = bins(figures).map(|bin| (bin.due, bin.lost)).collect();
    let mean = per(
        due.iter().map(|it| it.0).sum::<u64>() as f64,
        due.len() as f64,
    );
    let sum = |is_high: bool| {
        let part = due.iter().filter(|it| (it.0 as f64 > mean) == is_high);
        part.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
    };
    let ((high, lost_high), (low, lost_low)) = (sum(true), sum(false));
    let (above, below) = (
        per(lost_high as f64, high as f64),
        per(lost_low as f64, low as f64),
    );
    let both = per((lost_high + lost_low) as f64, (high + low) as f64);
    let error = (both * (1.0 - both) * (per(1.0, high as f64) + per(1.0, low as f64))).sqrt();
    // Bins of a constant rate differ by one query, which is no peak.
    let is_varied = due.iter().any(|it| it.0 as f64 > 1.1 * mean + 1.0);
    (is_varied && above - below > DEVIATIONS * error && above > 1.5 * below).then(|| {
        format!(
            "and more of them where more was due: {} at peaks, {} otherwise",
            percent(above),
            percent(below)
        )
    })
}

/// As many responses in each bin, whatever was lost: random losses would scatter them.
fn plateau(figures: &Figures<'_>) -> Option<String> {
    let bins: Vec<&Bin> = bins(figures).collect();
    let answered: Vec<f64> = bins
        .iter()
        .map(|bin| (bin.due - bin.lost.min(bin.due)) as f64)
        .collect();
    let number = answered.len() as f64;
    let mean = per(answered.iter().sum(), number);
    let share = per(lost(figures) as f64, figures.counts.offered as f64);
    let squares: f64 = answered.iter().map(|it| (it - mean).powi(2)).sum();
    let variance = per(squares, number - 1.0);
    // Of `due` queries, random losses leave a number whose variance is that of the binomial.
    let random = mean * share;
    let is_scattered_less = variance < random / PLATEAU;
    (answered.len() >= PLATEAU_BINS && mean >= PLATEAU_RESPONSES && is_scattered_less).then(|| {
        format!(
            "and as many were answered at any moment: the target stops at {}",
            rate(figures.achieved_qps)
        )
    })
}

/// Queries waited at the target: by Little's law so many on average, and half of them took longer
/// than the way to it explains.
fn waiting(figures: &Figures<'_>) -> Option<String> {
    let service = &figures.record.total.distributions.service;
    let (p50, _) = enough::median_between(service)?;
    let (mean, shortest) = (service.mean_ns()?, figures.path_ns?);
    let waiting = (mean - shortest as f64) / 1e9 * figures.achieved_qps;
    (p50 >= QUEUED * shortest && waiting >= WAITING_MIN).then(|| {
        format!(
            "while {} waited at the target on average: p50 {} against the shortest {}",
            counted(waiting as u64, "query"),
            latency(figures.service_p50_ns.unwrap_or(p50) as f64),
            latency(shortest as f64)
        )
    })
}

/// A target on this host whose receive buffers overflowed: the kernel counts it.
fn dropped_by_target(figures: &Figures<'_>) -> Option<String> {
    let dropped = dropped_by_local_target(figures);
    (dropped > 0 && dropped >= lost(figures).div_ceil(2)).then(|| {
        format!(
            "and the target's receive buffers were full: they dropped {}",
            counted(dropped, "datagram")
        )
    })
}

fn without_load(figures: &Figures<'_>) -> Option<Finding> {
    let scenario = &figures.record.scenario;
    let is_known = receive_buffers::explain_losses(figures)
        || handshakes::decides(figures)
        || unserved::clients(figures).is_some()
        || ended::decides(figures)
        || violations::decides(figures)
        || outage::decides(figures)
        || path::of_model(figures).is_some();
    if !matter(figures) || is_known || sign_of_load(figures).is_some() {
        return None;
    }
    let p50 = figures.service_p50_ns.unwrap_or(0);
    let seen = format!(
        "{} got no response, and nothing shows that the load is the cause: p50 {} and the shortest \
         {} leave no room for a queue",
        of_offered(figures),
        latency(p50 as f64),
        latency(figures.path_ns.unwrap_or(p50) as f64)
    );
    let matters = "a server that cannot keep up lets queries wait before it drops them; losses \
        without waiting come from the path, or from a limit on the rate of each client";
    let diagnosis = Diagnosis::new("losses without a queue", State::Warning, seen, matters)
        .cures(tenth(figures));
    let diagnosis = match scenario.transport {
        Transports::One(Transport::Udp) => diagnosis
            .cure(Cure::trace_path("udp", &scenario.target))
            .cure(Cure::words(
                "if BIND limits the rate of responses, exempt the generator: rate-limit { \
                 exempt-clients { GENERATOR; }; };",
            )),
        _ => diagnosis,
    };
    Some(Finding::met(diagnosis).limits(Stage::Load, Limit::Unknown))
}

/// The run that tells whether the loss depends on the rate.
fn tenth(figures: &Figures<'_>) -> Option<Cure> {
    let scenario = &figures.record.scenario;
    let asked = match scenario.arrival {
        _ if scenario.replay.is_some() => return None,
        Arrival::Closed { .. } => figures.achieved_qps,
        Arrival::Open { rate_qps, .. } => rate_qps,
        Arrival::Clients { rate_qps } => rate_qps.unwrap_or(figures.achieved_qps),
    };
    Some(Cure::words(format!(
        "run at a tenth of the rate to find out: --rate {}; if the same share is lost, the path \
         loses it (throng doctor RECORD RECORD compares them)",
        plain(asked / 10.0)
    )))
}

/// What was lost, in numbers: said whatever the verdict is.
pub(crate) fn said(figures: &Figures<'_>) -> Option<String> {
    let counts = figures.counts;
    let transport = figures.record.scenario.transport;
    let lost = counts.lost();
    if lost == 0 {
        return None;
    }
    Some(format!(
        "{} of {} got no response ({}): {}",
        count(lost),
        counted(counts.offered, "query"),
        share(lost, counts.offered),
        list(ends(counts, transport))
    ))
}

/// True if more queries that left got no response than matter, and what this host dropped on their
/// way back does not account for them, nor more that this tool had no time to send.
pub(super) fn are_beyond_this_tool(figures: &Figures<'_>) -> bool {
    let unanswered = figures.unanswered();
    let beyond = unanswered.saturating_sub(received_but_dropped(figures));
    let is_most = 2 * beyond > unanswered && beyond > figures.counts.not_sent.run_ended;
    is_most && enough::is_above(beyond, figures.counts.sent, LOSS_MAX)
}
