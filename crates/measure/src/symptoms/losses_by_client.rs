//! Clients that lost most while the others lost next to nothing.

use super::Figures;
use super::losses::queries_lost;
use super::significance::EVENTS_MIN;
use crate::interval::per;

/// Clients that lost a smaller share of their queries are not apart from the others.
const LOST_MIN_PPM: u64 = 100_000;
/// Of the share that the worst of them lost, the others lost this part at most...
const OF_OTHERS: u64 = 20;
/// ... and each of them at least this one.
const OF_SOME: u64 = 2;
/// More clients than this share are no exception.
const SOME_MAX: f64 = 0.75;
/// With fewer clients, random losses are too often of a few of them.
const CLIENTS_MIN: u64 = 4;

/// Clients over datagrams, each with its source port, that lost most, while the others did not.
#[derive(Clone, Copy)]
pub(crate) struct LossesOfSomeClients {
    pub(crate) some: u64,
    pub(crate) all: u64,
    /// Share that the worst of them lost.
    pub(crate) lost: f64,
}

pub(super) fn losses_of_some_clients(figures: &Figures<'_>) -> Option<LossesOfSomeClients> {
    figures.once(find)
}

fn find(figures: &Figures<'_>) -> Option<LossesOfSomeClients> {
    let experience = figures.record.experience()?;
    let lost = &experience.unanswered_ppm;
    let (all, worst) = (lost.count(), lost.max_ns()?);
    let some = lost.count_from(worst / OF_SOME + 1);
    let are_apart = lost.count_from(worst / OF_OTHERS + 1) == some;
    let each = per(figures.counts.offered as f64, all as f64);
    let are_events = each * worst as f64 / 1e6 >= EVENTS_MIN as f64;
    let are_some = all >= CLIENTS_MIN && some as f64 <= SOME_MAX * all as f64;
    let is_shown = worst >= LOST_MIN_PPM && are_apart && are_events && are_some;
    // In a closed loop, who is answered first is answered again.
    let may_be = figures.record.is_open_loop()
        && !figures.record.scenario.transport.has_connections()
        && queries_lost(figures).is_some();
    (is_shown && may_be).then_some(LossesOfSomeClients {
        some,
        all,
        lost: worst as f64 / 1e6,
    })
}
