//! Clients that lost most while the others lost next to nothing.

use super::Figures;
use super::connections::{Unserved, unserved_by_target, unserved_clients};
use super::losses::{number_lost, outages_of_target, queries_lost};
use super::losses_by_name::{LooksAlike, looks_alike_in_turn};
use super::significance::EVENTS_MIN;
use super::unserved::whole_addresses;
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
/// From this share on, all queries of a client were lost: all but those before a change.
const WHOLE: f64 = 0.95;

/// Clients over datagrams, each with its source port, that lost most, while the others did not.
pub(crate) struct LossesOfSomeClients {
    pub(crate) some: u64,
    pub(crate) all: u64,
    /// Share that the worst of them lost.
    pub(crate) lost: f64,
    /// Local addresses, of how many, whose clients they are, and no others.
    pub(crate) addresses: Option<(u64, u64)>,
    /// What would lose all queries of the same clients, since clients send in turn.
    pub(crate) alike: Vec<LooksAlike>,
}

impl LossesOfSomeClients {
    /// True if they got no response at all.
    pub(crate) fn are_unserved(&self) -> bool {
        self.lost >= 1.0
    }
}

pub(super) fn losses_of_some_clients(figures: &Figures<'_>) -> Option<LossesOfSomeClients> {
    if figures.record.scenario.transport.has_connections() {
        return None;
    }
    let unserved = unserved_clients(figures).filter(|it| it.how == Unserved::Never);
    // In a closed loop, who is answered first is answered again.
    let apart = apart(figures).filter(|_| figures.record.is_open_loop());
    let apart = apart.filter(|_| !are_of_outages(figures));
    let (some, all, lost) = match apart {
        Some(apart) => apart,
        // Limits that answer nothing for a while answer those who ask first after it.
        None if outages_of_target(figures).is_some_and(|it| it.are_much() && it.0.may_be_limit) => {
            return None;
        }
        None => {
            unserved_by_target(figures)?;
            unserved.map(|it| (it.without, it.all, 1.0))?
        }
    };
    let are_unserved = unserved.is_some_and(|it| it.without == some);
    let is_whole = figures.record.is_open_loop() && lost >= WHOLE;
    Some(LossesOfSomeClients {
        some,
        all,
        lost,
        addresses: whole_addresses(figures, some).filter(|_| are_unserved),
        alike: match is_whole {
            true => looks_alike_in_turn(figures, (some, all)),
            false => Vec::new(),
        },
    })
}

/// True if most was lost while nothing came back: a buffer has room for the first of what comes at
/// once afterwards, which may be those of any client.
fn are_of_outages(figures: &Figures<'_>) -> bool {
    let lost: u64 = figures.outages.each.iter().map(|it| it.lost).sum();
    2 * lost > number_lost(figures)
}

/// Clients that lost much, of how many, and the share that the worst of them lost, if the others
/// lost next to nothing.
fn apart(figures: &Figures<'_>) -> Option<(u64, u64, f64)> {
    let experience = figures.record.experience()?;
    let lost = &experience.unanswered_ppm;
    let (all, worst) = (lost.count(), lost.max_ns()?);
    let some = lost.count_from(worst / OF_SOME + 1);
    let are_apart = lost.count_from(worst / OF_OTHERS + 1) == some;
    let each = per(figures.counts.offered as f64, all as f64);
    let are_events = each * worst as f64 / 1e6 >= EVENTS_MIN as f64;
    let are_some = all >= CLIENTS_MIN && some as f64 <= SOME_MAX * all as f64;
    let is_shown = worst >= LOST_MIN_PPM && are_apart && are_events && are_some;
    (is_shown && queries_lost(figures).is_some()).then_some((some, all, worst as f64 / 1e6))
}
