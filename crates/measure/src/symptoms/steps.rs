//! The steps of setting up a connection, and whether they take all the time of the clients.

use super::Figures;
use crate::histogram::Histogram;
use crate::interval::per;

/// From this share of what is possible on, set-up and queries together account for the clients.
pub(super) const ACCOUNTED: f64 = 0.9;
/// Times to set up a connection contain a queue from this many times the shortest on.
const QUEUED: u64 = 2;

/// The step of setting up connections on which clients spent most time.
#[derive(Clone, Copy)]
pub(crate) struct SlowestStep {
    pub(crate) name: &'static str,
    pub(crate) p50_ns: u64,
    pub(crate) shortest_ns: u64,
}

pub(crate) fn slowest_step(figures: &Figures<'_>) -> Option<SlowestStep> {
    let steps = figures.record.total.distributions.connections.steps();
    let (name, times) = steps.into_iter().max_by_key(|(_, times)| times.sum_ns())?;
    Some(SlowestStep {
        name,
        p50_ns: times.percentile(0.5)?,
        shortest_ns: times.min_ns()?,
    })
}

impl SlowestStep {
    pub(crate) fn is_queued(&self) -> bool {
        self.p50_ns >= QUEUED * self.shortest_ns
    }
}

/// True if the clients of an open loop, of one query a connection, spent all their time on setting
/// up connections and on those queries, none of which waited in a queue: others waited here, for a
/// client that had time.
pub(super) fn are_clients_too_few(figures: &Figures<'_>) -> bool {
    let scenario = &figures.record.scenario;
    let is_one_each = scenario.connections.queries_max == Some(1);
    let service = &figures.record.total.distributions.service;
    let asking = per(service.sum_ns() as f64, figures.record.measured_ns as f64);
    let are_all = figures.record.setting_up_mean() + asking >= ACCOUNTED * scenario.clients as f64;
    let has_waited = |times: &Histogram| {
        let both = times.percentile(0.5).zip(times.min_ns());
        both.is_none_or(|(p50_ns, shortest_ns)| p50_ns >= QUEUED * shortest_ns)
    };
    let is_queued = slowest_step(figures).is_none_or(|it| it.is_queued()) || has_waited(service);
    is_one_each && figures.record.is_open_loop() && are_all && !is_queued
}
