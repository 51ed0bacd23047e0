//! Queries without response: whether the load has to do with it.
//!
//! A server that is asked more than it can do lets queries wait, then drops what does not fit. A
//! path that loses takes the same share of any load. Without a sign of the former no rate is
//! advised: nobody knows that it would help.

use super::super::findings::look_at_path;
use super::super::target;
use super::enough;
use crate::doctor::{Cure, Diagnosis, State};
use crate::notation::{count, counted, decimal, latency, share};
use crate::scenario::{Arrival, Transport};
use crate::verdict::{Figures, Finding, Limit};

/// More queries without response than this share matter.
pub(in crate::verdict) const LOSS_MAX: f64 = 0.001;
/// Queries that wait at a server before it drops one: receive buffers hold some hundred, queues of
/// servers more, and below this the unevenness of arrivals accounts for them.
const WAITING_MIN: f64 = 8.0;
/// Queries wait if half of them take so many times as long as the fastest.
const QUEUED: u64 = 2;

/// Queries that had to be answered and were not: without those that this host never sent.
fn lost(figures: &Figures<'_>) -> u64 {
    figures.unanswered() + figures.counts.not_sent.timed_out_waiting
}

/// True if more of them were lost than matter, by more than chance.
pub(in crate::verdict) fn matter(figures: &Figures<'_>) -> bool {
    enough::is_above(lost(figures), figures.counts.offered, LOSS_MAX)
}

/// Open loop: losses with a sign that the load made them are the target's limit; without one, they
/// are said, and how to find out.
pub(in crate::verdict) fn judge(figures: &Figures<'_>) -> Option<Finding> {
    if !matter(figures) {
        return None;
    }
    let Some(sign) = sign_of_load(figures) else {
        return without_load(figures);
    };
    let evidence = format!("{} got no response, {sign}", of_offered(figures));
    Some(Finding::new(
        Limit::Server,
        evidence,
        &lower_rate(figures, 0.8),
    ))
}

fn of_offered(figures: &Figures<'_>) -> String {
    let offered = figures.counts.offered;
    format!("{} of the offered queries", share(lost(figures), offered))
}

/// How to ask for a share of what was answered.
pub(in crate::verdict) fn lower_rate(figures: &Figures<'_>, share: f64) -> String {
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

/// What shows that the target could not keep up, if anything.
pub(in crate::verdict) fn sign_of_load(figures: &Figures<'_>) -> Option<String> {
    waiting(figures).or_else(|| dropped_by_target(figures))
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
    let dropped = target::dropped_by_local_target(figures);
    (dropped > 0 && dropped >= lost(figures).div_ceil(2)).then(|| {
        format!(
            "and the target's receive buffers were full: they dropped {}",
            counted(dropped, "datagram")
        )
    })
}

/// Losses that nothing shows the load to be the cause of.
pub(in crate::verdict) fn without_load(figures: &Figures<'_>) -> Option<Finding> {
    let scenario = &figures.record.scenario;
    let is_known = target::receive_drops(figures).is_some()
        || super::handshakes::judge(figures).is_some()
        || super::unserved::clients(figures).is_some()
        || super::ended::judge(figures).is_some()
        || super::super::simulated::network(figures).is_some();
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
                   without waiting are those of the path, or of a limit on the rate of a client";
    let diagnosis = Diagnosis::new("losses without a queue", State::Warning, seen, matters)
        .cures(tenth(figures));
    let diagnosis = match scenario.transport {
        Transport::Udp => diagnosis
            .cure(look_at_path("udp", figures.record))
            .cure(Cure::words(
                "if BIND limits the rate of responses, leave the generator out of it: \
                 rate-limit { exempt-clients { GENERATOR; }; };",
            )),
        _ => diagnosis,
    };
    Some(Finding::diagnosed(Limit::Unknown, diagnosis))
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
pub(in crate::verdict) fn said(figures: &Figures<'_>) -> Option<String> {
    let counts = figures.counts;
    let transport = figures.record.scenario.transport;
    let lost = counts.lost();
    if lost == 0 {
        return None;
    }
    let mut causes = vec![
        (counts.timeouts, "timed out".to_owned()),
        (
            counts.connection_losses,
            "lost with their connection".into(),
        ),
        (counts.not_sent.total(), "not sent".into()),
    ];
    let exchanges = counts.exchange_failures.by_cause(transport);
    causes.extend(exchanges.into_iter().map(|(cause, number)| (number, cause)));
    Some(format!(
        "{} of {} got no response ({}): {}",
        count(lost),
        counted(counts.offered, "query"),
        share(lost, counts.offered),
        crate::verdict::figures::list(causes)
    ))
}

/// True if more queries that left got no response than matter, and what this host dropped on their
/// way back does not account for them.
pub(in crate::verdict) fn are_beyond_this_tool(figures: &Figures<'_>) -> bool {
    let unanswered = figures.unanswered();
    let beyond = unanswered.saturating_sub(target::received_but_dropped(figures));
    2 * beyond > unanswered && enough::is_above(beyond, figures.counts.sent, LOSS_MAX)
}
