//! Connections: how fast they were opened, in runs that send no query and in those whose
//! connections are short-lived.

use super::Figures;
use super::load::RATE_HELD;
use super::significance;
use crate::interval::per;

/// More failed attempts than this share, and they are what the run shows.
const FAILED_MAX: f64 = 0.001;
/// From this share of what is possible on, set-up and queries together account for the clients.
const ACCOUNTED: f64 = 0.9;
/// Times to set up a connection contain a queue from this many times the shortest on.
const QUEUED: u64 = 2;

pub(crate) struct ConnectionsOnly;
pub(crate) struct NothingOpened;
pub(crate) struct AttemptsFailed;

/// Clients that did nothing but connect, or wait until they connect again.
pub(crate) struct ClientsInUse {
    /// Mean number of clients that waited for --reconnect-delay, where most of them did.
    pub(crate) waiting: Option<f64>,
}

/// The step of setting up a connection that took longest, and that it contained a queue.
pub(crate) struct SetUpQueued {
    pub(crate) step: SlowestStep,
}

/// The step of setting up connections on which clients spent most time.
#[derive(Clone, Copy)]
pub(crate) struct SlowestStep {
    pub(crate) name: &'static str,
    pub(crate) p50_ns: u64,
    pub(crate) shortest_ns: u64,
}

pub(super) fn connections_only(figures: &Figures<'_>) -> Option<ConnectionsOnly> {
    figures.record.asks_nothing().then_some(ConnectionsOnly)
}

pub(super) fn nothing_opened(figures: &Figures<'_>) -> Option<NothingOpened> {
    let is_none = figures.record.asks_nothing() && figures.record.connections_opened() == 0;
    is_none.then_some(NothingOpened)
}

pub(super) fn attempts_failed(figures: &Figures<'_>) -> Option<AttemptsFailed> {
    let connections = &figures.counts.connections;
    let (failed, attempted) = (connections.failed.total(), connections.attempted);
    let are_many = failed as f64 > FAILED_MAX * attempted as f64;
    (figures.record.asks_nothing() && are_many).then_some(AttemptsFailed)
}

/// True if connections were opened at the rate of --connect-rate: attempts, or in runs without
/// queries those that succeeded.
pub(super) fn is_connect_rate_held(figures: &Figures<'_>) -> bool {
    let reached = match figures.record.asks_nothing() {
        true => figures.record.opened_per_second(),
        false => figures.record.attempts_per_second(),
    };
    let asked = figures.record.scenario.connections.rate_max;
    asked.is_some_and(|asked| reached >= RATE_HELD * asked)
}

/// True if a run without queries asked for more connections than were opened.
pub(crate) fn is_short_of_connections(figures: &Figures<'_>) -> bool {
    let asked = figures.record.scenario.connections.rate_max;
    figures.record.asks_nothing() && asked.is_some() && !is_connect_rate_held(figures)
}

pub(super) fn clients_in_use(figures: &Figures<'_>) -> Option<ClientsInUse> {
    if !figures.record.asks_nothing() {
        return None;
    }
    let scenario = &figures.record.scenario;
    let setting_up = figures.record.setting_up_mean();
    let delay_s = scenario.connections.reconnect_delay.as_secs_f64();
    let waiting = figures.record.opened_per_second() * delay_s;
    let are_all = setting_up + waiting >= ACCOUNTED * scenario.clients as f64;
    let waiting = (waiting > setting_up).then_some(waiting);
    // Without a time of any step it is not known what they did.
    let is_known = waiting.is_some() || slowest_step(figures).is_some();
    (are_all && is_known).then_some(ClientsInUse { waiting })
}

/// True if most clients of a closed loop with `usable` slots were setting up a connection.
pub(super) fn is_set_up_limit(figures: &Figures<'_>, usable: u64) -> bool {
    let scenario = &figures.record.scenario;
    let setting_up = figures.record.setting_up_mean();
    // Slots that one client fills once it is connected.
    let most = scenario.connections.queries_max.unwrap_or(1).max(1);
    let filled = usable.min(scenario.clients.saturating_mul(most.into()));
    let each = per(filled as f64, scenario.clients as f64).max(1.0);
    let mostly = setting_up * each >= figures.in_flight;
    let are_all = figures.in_flight + setting_up * each >= ACCOUNTED * filled as f64;
    mostly && are_all && slowest_step(figures).is_some()
}

pub(super) fn set_up_queued(figures: &Figures<'_>) -> Option<SetUpQueued> {
    let is_busy = clients_in_use(figures).is_some_and(|it| it.waiting.is_none());
    let step = slowest_step(figures).filter(|_| is_busy)?;
    step.is_queued().then_some(SetUpQueued { step })
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

/// True if over 0.1 % of the queries waited for a connection until they timed out.
pub(super) fn are_connections_missing(figures: &Figures<'_>) -> bool {
    let waited = figures.counts.not_sent.timed_out_waiting;
    significance::is_above(waited, figures.counts.offered, super::losses::LOSS_MAX)
}
