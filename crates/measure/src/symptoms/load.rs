//! What the load itself shows: whether the target kept up with it.
//!
//! Closed loop: slots all in use while nothing queues, while queries queue, or while some take
//! long and others do not; with slots to spare, a rate cap that was reached, or connections that
//! take long to set up. Where a connection may carry only a number of queries at once, those are
//! all the slots there are.
//!
//! Open loop: growing latency, losses with a sign of load, or everything answered on time.

use super::Figures;
use super::losses::{self, SignOfLoad};
use super::set_up;
use super::significance::{self, Share};
use super::steps::{self, SlowestStep};
use crate::interval::per;
use crate::scenario::Arrival;

/// From this share of the slots on, all of them count as used.
const FULL: f64 = 0.95;
/// Half of the queries wait from this many times the shortest time on...
const QUEUED: f64 = 2.0;
/// ... and in a stream, where a segment may wait for the acknowledgement of another: two round
/// trips are no queue.
const QUEUED_IN_STREAM: f64 = 2.5;
/// Waiting for less is no queue at the target: 0.1 ms.
const QUEUED_NS_MIN: u64 = 100_000;
/// A rate counts as held from this share on.
pub(super) const RATE_HELD: f64 = 0.99;

/// How the target showed that it did not keep up.
#[derive(Clone, Copy)]
pub(crate) enum FellBehind {
    /// Queries queued while all slots were in use.
    Slots(SlotsInUse),
    /// Connections queued while they were set up.
    SetUp(SlowestStep),
    /// Median latency in the first and the last third.
    Latency { first_ns: u64, last_ns: u64 },
    /// Queries were lost with a sign of load.
    Losses(SignOfLoad),
}

/// Why no more queries were under way.
#[derive(Clone, Copy)]
pub(crate) enum FewSlots {
    /// All slots were in use while nothing queued.
    Slots(SlotsInUse),
    /// Clients were setting up connections, which did not queue.
    SetUp(SlowestStep),
    /// Each client waits for its response before it sends the next query.
    WaitingClients,
}

/// A recursive server got queries for generated names, which no cache has.
#[derive(Clone, Copy)]
pub(crate) struct GeneratedRecursed {
    /// Its responses to them.
    pub(crate) responses: u64,
}

/// The built-in responder only looks like such a server.
pub(super) fn generated_recursed(figures: &Figures<'_>) -> Option<GeneratedRecursed> {
    let responses = figures.counts.generated_recursed;
    (responses > 0 && !figures.record.self_test).then_some(GeneratedRecursed { responses })
}

/// The rate that was reached.
#[derive(Clone, Copy)]
pub(crate) enum RateHeld {
    /// The cap of a closed loop.
    Cap(f64),
    /// --connect-rate.
    Connections,
    /// That of the queries offered; some waited for their connection.
    Queries { has_waited: bool },
}

/// Slots of a closed loop that were all in use.
#[derive(Clone, Copy)]
pub(crate) struct SlotsInUse {
    pub(crate) slots: u64,
    /// What all connections, and one, may carry at once, where that is less.
    pub(crate) carried: Option<(u64, u64)>,
    pub(crate) p50_ns: u64,
    pub(crate) shortest_ns: u64,
}

impl SlotsInUse {
    /// Half of the queries took that many times as long as the shortest, and longer than what a
    /// scheduler or a batch of messages makes of it.
    fn have_waited(&self, times: f64) -> bool {
        let waited_ns = self.p50_ns.saturating_sub(self.shortest_ns);
        self.p50_ns as f64 >= times * self.shortest_ns as f64 && waited_ns >= QUEUED_NS_MIN
    }
}

/// All slots were in use, and the times of responses differ by more than a queue explains.
#[derive(Clone, Copy)]
pub(crate) struct UnevenTimes {
    pub(crate) in_use: SlotsInUse,
    /// The fastest tenth took no longer.
    pub(crate) fast_ns: u64,
}

pub(crate) struct TooFewToTell;

/// What the load shows, of which each symptom here is a case.
#[derive(Clone, Copy)]
enum Load {
    FellBehind(FellBehind),
    FewSlots(FewSlots),
    Uneven(UnevenTimes),
    RateHeld(RateHeld),
    TooFew,
    Unclear,
}

pub(super) fn fell_behind(figures: &Figures<'_>) -> Option<FellBehind> {
    match load(figures) {
        Load::FellBehind(it) => Some(it),
        _ => None,
    }
}

pub(super) fn few_slots(figures: &Figures<'_>) -> Option<FewSlots> {
    match load(figures) {
        Load::FewSlots(it) => Some(it),
        _ => None,
    }
}

pub(super) fn uneven_times(figures: &Figures<'_>) -> Option<UnevenTimes> {
    match load(figures) {
        Load::Uneven(it) => Some(it),
        _ => None,
    }
}

pub(super) fn rate_held(figures: &Figures<'_>) -> Option<RateHeld> {
    match load(figures) {
        Load::RateHeld(it) => Some(it),
        _ => None,
    }
}

pub(super) fn too_few_to_tell(figures: &Figures<'_>) -> Option<TooFewToTell> {
    matches!(load(figures), Load::TooFew).then_some(TooFewToTell)
}

fn load(figures: &Figures<'_>) -> Load {
    figures.once(find_load)
}

fn find_load(figures: &Figures<'_>) -> Load {
    if figures.record.asks_nothing() {
        return match set_up::is_connect_rate_held(figures) {
            true => Load::RateHeld(RateHeld::Connections),
            false => Load::Unclear,
        };
    }
    match figures.record.scenario.arrival {
        Arrival::Closed { outstanding, .. } => closed_loop(figures, outstanding),
        Arrival::Open { rate_qps, .. } => open_loop(figures, rate_qps),
        // Chance and shape decide how many queries come due: as many as were offered.
        Arrival::Clients { rate_qps: Some(_) } => open_loop(figures, figures.record.offered_qps()),
        Arrival::Clients { rate_qps: None } => match overloaded(figures) {
            Some(it) => Load::FellBehind(it),
            None => Load::FewSlots(FewSlots::WaitingClients),
        },
    }
}

fn closed_loop(figures: &Figures<'_>, slots: u64) -> Load {
    let carried = figures.carried_max().filter(|(all, _)| *all < slots);
    let usable = carried.map_or(slots, |(all, _)| all);
    if figures.in_flight < FULL * usable as f64 {
        return slots_unused(figures, usable);
    }
    // Where queries wait for a stream, latency from the scheduled instant is mostly that wait.
    let total = &figures.record.total.distributions;
    let times = match carried {
        Some(_) => &total.service,
        None => &total.latency,
    };
    let quantile = |p| times.percentile(p).unwrap_or(0);
    let in_use = SlotsInUse {
        slots,
        carried,
        p50_ns: quantile(0.5),
        shortest_ns: figures.path_ns.unwrap_or(0),
    };
    let queued = match figures.record.scenario.transport.has_connections() {
        true => QUEUED_IN_STREAM,
        false => QUEUED,
    };
    // A single query in flight never waits behind another one of ours.
    if slots == 1 || !in_use.have_waited(queued) {
        return Load::FewSlots(FewSlots::Slots(in_use));
    }
    match significance::delays_all(times, in_use.shortest_ns) {
        true => Load::FellBehind(FellBehind::Slots(in_use)),
        false => Load::Uneven(UnevenTimes {
            in_use,
            fast_ns: quantile(0.1),
        }),
    }
}

/// Closed loop with slots to spare: a rate cap, or the run was too small to fill them.
fn slots_unused(figures: &Figures<'_>, usable: u64) -> Load {
    let asked = figures.rate_asked();
    if let Some(asked) = asked.filter(|asked| figures.achieved_qps >= RATE_HELD * asked) {
        return Load::RateHeld(RateHeld::Cap(asked));
    }
    if set_up::is_connect_rate_held(figures) {
        return Load::RateHeld(RateHeld::Connections);
    }
    let step = steps::slowest_step(figures);
    match step.filter(|_| set_up::is_set_up_limit(figures, usable)) {
        None => Load::Unclear,
        Some(step) if step.is_queued() => Load::FellBehind(FellBehind::SetUp(step)),
        Some(step) => Load::FewSlots(FewSlots::SetUp(step)),
    }
}

fn open_loop(figures: &Figures<'_>, asked: f64) -> Load {
    if set_up::is_connect_rate_held(figures) && set_up::are_connections_missing(figures) {
        return Load::RateHeld(RateHeld::Connections);
    }
    let step = steps::slowest_step(figures);
    if let Some(step) = step.filter(|_| steps::are_clients_too_few(figures)) {
        return Load::FewSlots(FewSlots::SetUp(step));
    }
    if let Some(behind) = overloaded(figures) {
        return Load::FellBehind(behind);
    }
    let counts = figures.counts;
    if significance::share(counts.lost(), counts.offered, 1.0 - RATE_HELD) == Share::TooFew {
        return Load::TooFew;
    }
    let answered = counts.responses as f64 / counts.offered.max(1) as f64;
    // Over connections queries may have to wait for one; a worker without CPU has its own symptom.
    let has_waited = figures.lateness_p99_ns > figures.lateness_max_ns();
    let on_time = !has_waited || figures.record.scenario.transport.has_connections();
    let is_offered = figures.record.offered_qps() >= RATE_HELD * asked;
    let is_held = answered >= RATE_HELD && is_offered && on_time;
    match is_held && losses::queries_lost(figures).is_none() {
        true => Load::RateHeld(RateHeld::Queries { has_waited }),
        false => Load::Unclear,
    }
}

/// True if queries waited because lost ones held half of the clients until they timed out, each of
/// which sends one at a time: those that were sent were answered as fast as ever.
fn are_clients_held(figures: &Figures<'_>) -> bool {
    let scenario = &figures.record.scenario;
    let is_one_each = scenario.connections.queries_max == Some(1);
    let held = per(
        figures.counts.timeouts as f64 * scenario.timeout_ns as f64,
        figures.record.measured_ns as f64,
    );
    let is_fast = !matches!(
        losses::sign_of_load(figures),
        Some(SignOfLoad::Waiting { .. })
    );
    is_one_each && 2.0 * held >= scenario.clients as f64 && is_fast
}

/// Open loop: a growing queue or losses with a sign of load are the target's.
fn overloaded(figures: &Figures<'_>) -> Option<FellBehind> {
    let growth = significance::growing_latency(figures);
    if let Some((first_ns, last_ns)) = growth.filter(|_| !are_clients_held(figures)) {
        return Some(FellBehind::Latency { first_ns, last_ns });
    }
    losses::queries_lost(figures)?;
    losses::sign_of_load(figures).map(FellBehind::Losses)
}
