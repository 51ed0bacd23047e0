//! Connections: how fast they were opened, in runs that send no query and in those whose
//! connections are short-lived.

use super::Figures;
use super::connections::{listen_queue_full, number_in};
use super::load::RATE_HELD;
use super::losses::{WAITING_MIN, outages_of_generator};
use super::path::own_segments;
use super::plateau::{PLATEAU_RESPONSES, is_plateau};
use super::significance;
use super::steps::{ACCOUNTED, SlowestStep, slowest_step};
use crate::histogram::Histogram;
use crate::interval::{Interval, per};
use crate::statistics::{mean, variance};

/// More failed attempts than this share, and they are what the run shows.
const FAILED_MAX: f64 = 0.001;
/// From this share of the attempts on, those that were turned away are a symptom...
const TURNED_AWAY_MIN: f64 = 0.01;
/// ... if some were, and others were not, in this share of the seconds with attempts, and in as
/// many seconds: an outage turns all away, and a burst is soon over.
const SPREAD: f64 = 0.6;
const SPREAD_SECONDS: usize = 3;
/// What connections carry is answered at once if at most one of this many queries, for each attempt
/// that was turned away, was not.
const SELDOM: u64 = 10;
/// A segment without acknowledgement is sent again after 200 ms more than it usually takes.
const SEGMENT_AGAIN_NS: u64 = 190_000_000;
/// A SYN without an answer is sent again after a second, as the clock of the kernel has it.
const SYN_AGAIN_NS: u64 = 900_000_000;
/// Intervals that are enough to show a fixed rate of admitted connections, and how many times less
/// than random refusals they scatter: chance does that twice in a thousand times (chi-squared).
const PLATEAU_INTERVALS: usize = 12;
const PLATEAU_OF_INTERVALS: f64 = 5.0;
/// Attempts vary if they scatter this many times more than what was admitted of them: of a share,
/// both scatter alike.
const VARIED: f64 = 1.3;

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

/// True if over 0.1 % of the queries waited for a connection until they timed out.
pub(super) fn are_connections_missing(figures: &Figures<'_>) -> bool {
    let waited = figures.counts.not_sent.timed_out_waiting;
    significance::is_above(waited, figures.counts.offered, super::losses::LOSS_MAX)
}

/// Attempts to connect that were turned away at their SYN all through the run, while others were
/// admitted, and what these connections carried, if anything, was answered at once.
#[derive(Clone, Copy)]
pub(crate) struct AttemptsTurnedAway {
    pub(crate) attempted: u64,
    /// Those whose SYN had no answer: it was sent again, or the attempt timed out.
    pub(crate) unanswered: u64,
    pub(crate) refused: u64,
    /// Service time of the queries on connections that were admitted; none without queries.
    pub(crate) p50_ns: Option<u64>,
    /// Connections admitted a second, where as many were, however many were attempted.
    pub(crate) admitted: Option<f64>,
}

/// Of such a run, a fixed rate of admitted connections.
pub(crate) struct AdmissionsLimited;

pub(super) fn admissions_limited(figures: &Figures<'_>) -> Option<AdmissionsLimited> {
    attempts_turned_away(figures)?
        .admitted
        .map(|_| AdmissionsLimited)
}

pub(super) fn attempts_turned_away(figures: &Figures<'_>) -> Option<AttemptsTurnedAway> {
    figures.once(find_attempts_turned_away)
}

fn find_attempts_turned_away(figures: &Figures<'_>) -> Option<AttemptsTurnedAway> {
    if !figures.connects_over_tcp() {
        return None;
    }
    let mut attempts = attempts_by_interval(figures);
    // A generator that stands still is late for an answer to a SYN, and refuses nothing.
    if outages_of_generator(figures).is_some_and(|it| it.are_much()) {
        attempts.iter_mut().for_each(|it| it.unanswered = 0);
    }
    let sum = attempts.iter().copied().reduce(Attempts::and)?;
    // A listen queue that is known to overflow is what turns them away.
    if listen_queue_full(figures).is_some_and(|it| it.explains(sum.turned_away())) {
        return None;
    }
    let attempted = figures.counts.connections.attempted;
    let are_many = significance::is_above(sum.turned_away(), attempted, TURNED_AWAY_MIN);
    let is_shown = are_many && are_spread(&attempts) && are_served(figures, sum.turned_away());
    is_shown.then(|| AttemptsTurnedAway {
        attempted,
        unanswered: sum.unanswered,
        refused: sum.refused,
        p50_ns: figures.service_p50_ns,
        admitted: admitted_per_second(&attempts),
    })
}

/// Attempts to connect that began in a span of time.
#[derive(Clone, Copy, Default)]
struct Attempts {
    start_ns: u64,
    end_ns: u64,
    number: u64,
    /// Connections that were established in it.
    admitted: u64,
    unanswered: u64,
    refused: u64,
}

impl Attempts {
    fn turned_away(&self) -> u64 {
        self.unanswered + self.refused
    }

    /// Those of two successive spans.
    fn and(self, next: Attempts) -> Attempts {
        Attempts {
            start_ns: self.start_ns,
            end_ns: next.end_ns,
            number: self.number + next.number,
            admitted: self.admitted + next.admitted,
            unanswered: self.unanswered + next.unanswered,
            refused: self.refused + next.refused,
        }
    }
}

/// Attempts by the interval of the window in which they began.
fn attempts_by_interval(figures: &Figures<'_>) -> Vec<Attempts> {
    let record = figures.record;
    let of_window: Vec<&Interval> = record.intervals_in_window().collect();
    let mut attempts: Vec<Attempts> = of_window.iter().map(|it| attempts_in(it)).collect();
    // Of attempts that timed out, those in a handshake had an answer to their SYN.
    let all = &figures.counts.connections;
    let unconnected = all.attempted.saturating_sub(all.established);
    let are_of_syns = 2 * unconnected >= all.failed.timed_out;
    for interval in &record.intervals {
        let timed_out = interval.counts.connections.failed.timed_out;
        let timed_out = (
            record.scenario.timeout_ns,
            if are_of_syns { timed_out } else { 0 },
        );
        let slow = slow_connects(&interval.distributions.connections.tcp_connect);
        for (took_ns, number) in slow.chain([timed_out]) {
            let began_ns = interval.end_ns.saturating_sub(took_ns);
            let place = attempts.partition_point(|it| it.end_ns <= began_ns);
            if let Some(place) = attempts.get_mut(place) {
                place.unanswered += number;
            }
        }
    }
    attempts
}

fn attempts_in(interval: &Interval) -> Attempts {
    let connections = &interval.counts.connections;
    Attempts {
        start_ns: interval.start_ns,
        end_ns: interval.end_ns,
        number: connections.attempted,
        admitted: connections.established,
        unanswered: 0,
        refused: connections.failed.refused,
    }
}

/// How long connections took whose SYN was sent again, with their number.
fn slow_connects(times: &Histogram) -> impl Iterator<Item = (u64, u64)> {
    let slow = times.buckets().filter(|(low, ..)| *low >= SYN_AGAIN_NS);
    slow.map(|(low, _, number)| (low, number))
}

/// SYNs that were sent again for connections that took so long: after 1, 3 and 7 seconds.
pub(super) fn syns_sent_again(times: &Histogram) -> u64 {
    let each = slow_connects(times).map(|(took_ns, number)| {
        let seconds = (took_ns + (1_000_000_000 - SYN_AGAIN_NS)) / 1_000_000_000;
        number * u64::from((seconds + 1).ilog2())
    });
    each.sum()
}

/// True if some attempts were turned away while others were admitted, in most seconds.
fn are_spread(attempts: &[Attempts]) -> bool {
    let second = |it: &Attempts| it.start_ns / 1_000_000_000;
    let seconds = attempts.chunk_by(|a, b| second(a) == second(b));
    let seconds = seconds.filter_map(|it| it.iter().copied().reduce(Attempts::and));
    let seconds: Vec<Attempts> = seconds.filter(|it| it.number > 0).collect();
    let is_both = |it: &&Attempts| it.turned_away() > 0 && it.admitted > 0;
    let both = seconds.iter().filter(is_both).count();
    both >= SPREAD_SECONDS && both as f64 >= SPREAD * seconds.len() as f64
}

/// True if connections, once established, lost next to nothing and waited for nothing: neither the
/// path nor a busy server is why `turned_away` attempts were not.
fn are_served(figures: &Figures<'_>, turned_away: u64) -> bool {
    let total = &figures.record.total.distributions;
    let late = answered_later(figures) + figures.unanswered();
    let lost = own_segments(figures).map_or(0, |(lost, _)| lost);
    // A listen queue that is full has connections in it, which wait for the server.
    let times = &total.connections;
    let handshakes = [&times.tls_handshake, &times.tls_handshake_resumed];
    let next_step = match handshakes.iter().all(|it| it.is_empty()) {
        true => [&times.first_query].to_vec(),
        false => handshakes.to_vec(),
    };
    let waited_ns = next_step.iter().map(|it| {
        let least_ns = u128::from(it.min_ns().unwrap_or(0)) * u128::from(it.count());
        it.sum_ns().saturating_sub(least_ns)
    });
    let waiting = per(
        waited_ns.sum::<u128>() as f64,
        figures.record.measured_ns as f64,
    );
    SELDOM * late.max(lost) <= turned_away && waiting < WAITING_MIN
}

/// Responses that came as late as if a segment had been lost and sent again.
pub(super) fn answered_later(figures: &Figures<'_>) -> u64 {
    let service = &figures.record.total.distributions.service;
    let again_ns = figures.service_p50_ns.unwrap_or(0) + SEGMENT_AGAIN_NS;
    number_in(service, &(again_ns..u64::MAX)) + service.overflow()
}

/// Connections admitted a second, if as many were in each interval in which attempts were turned
/// away, and the number of attempts varied: of a share that is turned away, another number would
/// have been admitted. A token bucket that is full admits more at first.
fn admitted_per_second(attempts: &[Attempts]) -> Option<f64> {
    let exceeded = attempts.iter().skip(1).filter(|it| it.turned_away() > 0);
    let exceeded: Vec<Attempts> = exceeded.copied().collect();
    let later = exceeded.split_at(exceeded.len() / 2).1;
    [&exceeded, later].into_iter().find_map(|attempts| {
        let sum = attempts.iter().copied().reduce(Attempts::and)?;
        let mean = per(sum.admitted as f64, attempts.len() as f64);
        let length = (PLATEAU_RESPONSES / mean.max(f64::MIN_POSITIVE)).ceil();
        let chunks = attempts.chunks_exact(length.clamp(1.0, attempts.len() as f64) as usize);
        let sums = chunks.filter_map(|it| it.iter().copied().reduce(Attempts::and));
        let (admitted, attempted): (Vec<f64>, Vec<f64>) = sums
            .map(|it| (it.admitted as f64, it.number as f64))
            .unzip();
        let turned_away = per(sum.turned_away() as f64, sum.number as f64);
        let is_plateau = is_plateau(
            &admitted,
            turned_away.min(1.0),
            PLATEAU_INTERVALS,
            PLATEAU_OF_INTERVALS,
        );
        let is_fixed = is_plateau && scatter(&attempted) > VARIED * scatter(&admitted);
        let length_ns: u64 = attempts.iter().map(|it| it.end_ns - it.start_ns).sum();
        is_fixed.then(|| sum.admitted as f64 / (length_ns as f64 / 1e9))
    })
}

/// The standard deviation as a part of the mean.
fn scatter(values: &[f64]) -> f64 {
    let (mean, variance) = (mean(values), variance(values));
    per(variance.unwrap_or(0.0).sqrt(), mean.unwrap_or(0.0))
}
