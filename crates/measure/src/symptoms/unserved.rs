//! Clients without service that no limit on the number of clients explains: their attempts ended at
//! the SYN, or they are those of some source addresses.

use std::collections::BTreeSet;

use super::Figures;
use super::connections::{Unserved, listen_queue_full, unserved_clients};
use crate::experience::WORST_MAX;

/// A server that takes no more clients leaves some in its listen queue: their connections open, and
/// nothing comes on them. With no more than this many of them, there was no such queue.
const SILENT_MAX: u64 = 1;
/// Fewer clients, or fewer for each address, may be those of one address by chance.
const BY_SOURCE_MIN: u64 = 3;
const OF_EACH_MIN: u64 = 2;

/// Clients that never had a connection, as their SYNs were dropped or rejected, while all others
/// were served.
#[derive(Clone, Copy)]
pub(crate) struct NeverConnected {
    pub(crate) without: u64,
    pub(crate) all: u64,
    pub(crate) are_dropped: bool,
    pub(crate) are_rejected: bool,
}

pub(super) fn never_connected(figures: &Figures<'_>) -> Option<NeverConnected> {
    figures.once(find_never_connected)
}

fn find_never_connected(figures: &Figures<'_>) -> Option<NeverConnected> {
    let unserved = unserved_clients(figures).filter(|it| it.how == Unserved::Never)?;
    if !figures.connects_over_tcp() {
        return None;
    }
    let experience = figures.record.experience()?;
    let none = experience.without_connection();
    let connected = experience.clients().saturating_sub(none);
    // Old records have no connections by client: a client with a response had one.
    let silent = connected.checked_sub(experience.answered())?;
    let connections = figures.record.connections();
    let usable = figures.record.scenario.usable(&connections);
    let unfinished = connections.established.saturating_sub(usable);
    let failed = &connections.failed;
    let rejected = failed.refused + failed.unreachable;
    let dropped = failed.timed_out + connections.abandoned;
    // A listen queue that is known to overflow is what turns them away.
    if listen_queue_full(figures).is_some_and(|it| it.explains(dropped)) {
        return None;
    }
    let are_all = none >= unserved.without && silent.max(unfinished) <= SILENT_MAX;
    (are_all && rejected + dropped >= unserved.without).then_some(NeverConnected {
        without: unserved.without,
        all: unserved.all,
        are_dropped: failed.timed_out > 0 || rejected == 0,
        are_rejected: rejected > 0,
    })
}

/// All clients of some of several source addresses, where all clients of the others were served.
#[derive(Clone, Copy)]
pub(crate) struct UnservedBySource {
    pub(crate) without: u64,
    pub(crate) all: u64,
    /// Addresses without service, of so many.
    pub(crate) addresses: u64,
    pub(crate) of: u64,
}

pub(super) fn unserved_by_source(figures: &Figures<'_>) -> Option<UnservedBySource> {
    figures.once(find_unserved_by_source)
}

fn find_unserved_by_source(figures: &Figures<'_>) -> Option<UnservedBySource> {
    let unserved = unserved_clients(figures).filter(|it| it.how == Unserved::Never)?;
    if !figures.record.scenario.transport.has_connections() {
        return None;
    }
    let (addresses, of) = whole_addresses(figures, unserved.without)?;
    Some(UnservedBySource {
        without: unserved.without,
        all: unserved.all,
        addresses,
        of,
    })
}

/// Local addresses, of how many, whose clients are the ones without a response: `unserved` of them.
pub(super) fn whole_addresses(figures: &Figures<'_>, unserved: u64) -> Option<(u64, u64)> {
    let record = figures.record;
    let (of, clients) = (
        record.scenario.local_addresses.len() as u64,
        record.scenario.clients,
    );
    // Of several groups or agents, the number of a client does not tell its address.
    let is_one = record.groups.len() == 1 && record.generators <= 1 && record.agents.len() <= 1;
    if !is_one || of < 2 || clients < OF_EACH_MIN * of || unserved < BY_SOURCE_MIN {
        return None;
    }
    let experience = record.experience()?;
    let worst = &experience.worst;
    let addresses = |is_served: bool| -> BTreeSet<u64> {
        let known = worst.iter();
        let known = known.filter(|it| (it.responses > 0) == is_served);
        known.map(|it| it.client % of).collect()
    };
    let (mut without, served) = (addresses(false), addresses(true));
    // In a closed loop, clients without a connection ask nothing, and are not in the list.
    let are_enough =
        worst.len() as u64 >= experience.answered() || OF_EACH_MIN * of <= WORST_MAX as u64;
    if without.is_empty() && are_enough {
        without = (0..of).filter(|it| !served.contains(it)).collect();
    }
    let theirs: u64 = without.iter().map(|it| (clients - it).div_ceil(of)).sum();
    let are_whole = theirs == unserved && without.is_disjoint(&served);
    (are_whole && (without.len() as u64) < of).then_some((without.len() as u64, of))
}
