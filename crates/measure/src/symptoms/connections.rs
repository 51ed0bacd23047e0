//! Connections: which were refused, which ended early, which waited, and clients that got nothing.

use std::ops::Range;

use super::Figures;
use super::host::received_but_dropped;
use super::losses::LOSS_MAX;
use super::significance;
use crate::counts::{ConnectionFailures, Connections, EndedAfter};
use crate::experience::ClientExperience;
use crate::histogram::Histogram;
use crate::interval::{ConnectionTimes, per};
use crate::record::RunRecord;
use crate::scenario::Presence;

/// Chance may leave this share of the clients without a response.
const CHANCE_MAX: f64 = 0.05;
/// With fewer responses a connection, few of them live at a time, unless their number is held.
const RESPONSES_EACH_MIN: f64 = 4.0;
/// The number of connections is held if this share of the intervals ended with exactly that many,
/// and no fewer intervals than this.
const HELD: f64 = 0.8;
const HELD_INTERVALS_MIN: usize = 4;
/// A number of connections is level if that of one half of the window is this share of the other's.
const LEVEL: f64 = 0.9;
/// An interval that ends this long after the load is still of the load.
const END_NS: u64 = 10_000_000;
/// Clients' numbers of connections are uneven if they differ more than this many times as much as
/// their queries explain.
const UNEVEN: u64 = 2;
/// From this deviation on, as a share of the mean, and from this many connections on, numbers of
/// queries are those of ends by chance.
const BY_CHANCE: f64 = 0.75;
const BY_CHANCE_MIN: u64 = 20;
/// The same of fewer connections, where it is enough that they may be.
const PERHAPS_BY_CHANCE: f64 = 0.5;
/// A first response or a handshake that took this long waited for something.
const LONG_NS: u64 = 500_000_000;
/// A SYN that was dropped is sent again after that long (RFC 6298, section 2).
pub(super) const SYN_AGAIN_NS: u64 = 1_000_000_000;

/// Connections that waited too long for the target to accept them.
pub(crate) struct ListenQueueFull {
    pub(crate) syns_dropped: u64,
    pub(crate) timed_out: u64,
    /// The longest and the shortest time to connect, where some took as long as a second SYN.
    pub(crate) sent_again_ns: Option<(u64, u64)>,
}

impl ListenQueueFull {
    /// True if it is known to be why this many attempts to connect were turned away: each dropped
    /// SYN is counted, and those of other programs too.
    pub(super) fn explains(&self, attempts: u64) -> bool {
        self.syns_dropped > 0 && self.syns_dropped >= attempts.div_ceil(2)
    }
}

pub(super) fn listen_queue_full(figures: &Figures<'_>) -> Option<ListenQueueFull> {
    let record = figures.record;
    if !figures.connects_over_tcp() {
        return None;
    }
    let timed_out = record.connections().failed.timed_out;
    let times = record.connection_times().tcp_connect;
    let (shortest, longest) = (times.min_ns().unwrap_or(0), times.max_ns().unwrap_or(0));
    let is_again = longest >= SYN_AGAIN_NS && shortest < SYN_AGAIN_NS / 4;
    // The kernel counts those of all programs in the network namespace: of this run, each delays a
    // connection or loses what it carries.
    let may_be_of_run = is_again || waited(figures) > 0 || figures.unanswered() > 0;
    let overflows = match figures.target_is_local() && may_be_of_run {
        true => record.network.kernel_counter("TcpExt.ListenOverflows"),
        false => 0,
    };
    let modelled = record.simulation.as_ref().map(|it| it.network.syns_dropped);
    let syns_dropped = modelled.unwrap_or(0).max(overflows);
    (syns_dropped > 0 || timed_out > 0 || is_again).then(|| ListenQueueFull {
        syns_dropped,
        timed_out,
        sent_again_ns: is_again.then_some((longest, shortest)),
    })
}

/// Clients that wanted a response, and those of them that the target did not serve.
#[derive(Clone, Copy)]
pub(crate) struct UnservedClients {
    pub(crate) all: u64,
    pub(crate) without: u64,
    /// Clients that were served at the same time, at most.
    pub(crate) at_once: u64,
    /// The most in the first half of the run, where later ones were more: of a fixed limit there
    /// are as many from early on.
    pub(crate) at_first: Option<u64>,
    /// None asked twice: that those who were served would be served again is not known.
    pub(crate) asked_once: bool,
    pub(crate) how: Unserved,
}

/// How clients went without service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unserved {
    /// They got no response at all.
    Never,
    /// They waited while as many as could be served were served.
    Meanwhile,
}

pub(crate) struct UnservedByTarget;

/// The clients that got nothing while others did, if that is no chance: the target served a number
/// of connections at a time and let the others wait; or their queries had no response, or they
/// never had a connection.
pub(super) fn unserved_clients(figures: &Figures<'_>) -> Option<UnservedClients> {
    figures.once(find_unserved_clients)
}

fn find_unserved_clients(figures: &Figures<'_>) -> Option<UnservedClients> {
    let experience = figures.record.experience()?;
    let (asked, served) = (experience.asked(), experience.answered());
    let without_response = asked.saturating_sub(served);
    let unconnected = unconnected(figures, &experience);
    if served == 0 {
        return None;
    }
    let of = |all: u64, without: u64, how| UnservedClients {
        all,
        without,
        at_once: served_at_most(figures).min(all - without),
        at_first: served_at_first(figures),
        asked_once: figures.counts.offered + figures.record.warmup.counts.offered <= asked,
        how,
    };
    // Who is served after the load has ended, or takes turns, was not served at once.
    if let Some(at_once) = served_at_once(figures)
        && asked.saturating_sub(at_once) > without_response.max(unconnected)
        && waited(figures) + without_response >= asked - at_once
    {
        return Some(of(asked, asked - at_once, Unserved::Meanwhile));
    }
    if without_response.max(unconnected) == 0 {
        return None;
    }
    // Those without a connection may be among those without a response.
    if unconnected >= without_response {
        return Some(of(served + unconnected, unconnected, Unserved::Never));
    }
    let expected = expected_by_chance(figures, &experience, without_response);
    let is_chance = expected > CHANCE_MAX * without_response as f64;
    (!is_chance).then(|| of(asked, without_response, Unserved::Never))
}

/// The most clients that were served at the same time: clients that took turns were not.
fn served_at_most(figures: &Figures<'_>) -> u64 {
    let intervals = figures.record.intervals_in_window();
    let served = intervals.map(|it| it.connections_served.unwrap_or(it.connections_open));
    served
        .max()
        .filter(|served| *served > 0)
        .unwrap_or(u64::MAX)
}

/// The most connections that were served at the same time in the first half of the run, if later
/// ones were more.
fn served_at_first(figures: &Figures<'_>) -> Option<u64> {
    let record = figures.record;
    let mut scenarios = record.groups.iter().map(|it| &it.scenario);
    if scenarios.any(|it| it.presence != Presence::default()) {
        return None;
    }
    let during = record.intervals_in_window();
    let served: Option<Vec<u64>> = during.map(|it| it.connections_served).collect();
    let served = served?;
    let (early, late) = served.split_at(served.len() / 2);
    let (at_first, late) = (*early.iter().max()?, *late.iter().max()?);
    // While clients join or connect, the number grows whatever the target does.
    let is_more = at_first > 0 && (at_first as f64) < LEVEL * late as f64;
    (is_more && is_held(early, at_first)).then_some(at_first)
}

/// True if the number of connections served was this one in nearly all of these intervals.
fn is_held(served: &[u64], number: u64) -> bool {
    let held = served.iter().filter(|it| **it == number).count();
    held >= HELD_INTERVALS_MIN && held as f64 >= HELD * served.len() as f64
}

/// Connections that were served at the same time while the load lasted, where the target served as
/// many from early on and never more: none where clients or target close connections after a few
/// queries, for then few of them live at a time.
fn served_at_once(figures: &Figures<'_>) -> Option<u64> {
    let record = figures.record;
    let connections = record.connections();
    let usable = record.scenario.usable(&connections);
    let mut groups = record.groups.iter();
    if !groups.all(|it| it.scenario.transport.has_connections()) {
        return None;
    }
    let responses = figures.counts.responses + record.warmup.counts.responses;
    let are_long = per(responses as f64, usable as f64) >= RESPONSES_EACH_MIN;
    let during = record.intervals_in_window();
    let during = during.filter(|it| it.end_ns <= record.measured_ns + END_NS);
    let served: Option<Vec<u64>> = during.map(|it| it.connections_served).collect();
    let served = served?;
    let (early, late) = served.split_at(served.len() / 2);
    let (early_max, late_max) = (*early.iter().max()?, *late.iter().max()?);
    let is_level = early_max.min(late_max) as f64 >= LEVEL * early_max.max(late_max) as f64;
    // A limit that connections in a queue use up at once is met exactly, also where they soon end.
    let is_held = late_max >= early_max && is_held(late, late_max);
    let is_cap = early_max > 0 && (is_held || are_long && is_level);
    is_cap.then_some(early_max.max(late_max))
}

/// Connections that waited for the target: their first response or their handshake took long, or
/// they never became usable.
fn waited(figures: &Figures<'_>) -> u64 {
    let connections = figures.record.connections();
    let times = figures.record.connection_times();
    let long = LONG_NS..u64::MAX;
    let first = [
        &times.first_query,
        &times.tls_handshake,
        &times.tls_handshake_resumed,
        &times.quic_handshake,
        &times.quic_handshake_resumed,
    ];
    let slow: u64 = first.iter().map(|it| number_in(it, &long)).sum();
    let failed = &connections.failed;
    let refused = failed.refused + failed.reset + failed.closed;
    slow + failed.timed_out + connections.abandoned + refused
}

/// Such clients, where a generator that is short of time is not the reason: the target turned
/// them away; or as many queries and handshakes as there are such clients timed out, and not even
/// late responses came.
pub(super) fn unserved_by_target(figures: &Figures<'_>) -> Option<UnservedByTarget> {
    let UnservedClients { without, how, .. } = unserved_clients(figures)?;
    let (counts, warmup) = (figures.counts, &figures.record.warmup.counts);
    let connections = figures.record.connections();
    let failed = &connections.failed;
    let of_host = failed.no_local_port + failed.no_resources;
    let is_by_target = match of_host >= without || figures.has_no_time_left() {
        true => turned_away(&connections) >= without,
        false if how == Unserved::Meanwhile => true,
        false => {
            let read_late = counts.late + warmup.late + received_but_dropped(figures);
            let queries = figures.unanswered() + counts.not_sent.timed_out_waiting;
            let handshakes = failed.timed_out + connections.abandoned;
            queries + handshakes >= without && 2 * read_late < queries + handshakes
        }
    };
    is_by_target.then_some(UnservedByTarget)
}

/// Clients that tried to connect, and never had a usable connection.
fn unconnected(figures: &Figures<'_>, experience: &ClientExperience) -> u64 {
    if !figures.record.scenario.transport.has_connections() {
        return 0;
    }
    let connections = figures.record.connections();
    let usable = figures.record.scenario.usable(&connections);
    let failed = connections.attempted.saturating_sub(usable);
    let none = experience.without_connection().min(failed);
    // Old records have no connections by client: a client with a response had one.
    none.min(experience.clients().saturating_sub(experience.answered()))
}

/// Clients that would have got nothing if each query had been lost as often as one of a client
/// that got something.
fn expected_by_chance(figures: &Figures<'_>, experience: &ClientExperience, without: u64) -> f64 {
    let counts = figures.counts;
    // Those without response are the first of the worst.
    let unserved = experience.worst.iter().filter(|it| it.responses == 0);
    let queries: Vec<u64> = unserved.map(|it| it.queries).collect();
    let least = queries.iter().copied().min().unwrap_or(0);
    let mean = per(queries.iter().sum::<u64>() as f64, queries.len() as f64);
    // The worst of them had more queries than most.
    let responses = counts.responses as f64;
    let of_others = (counts.offered as f64 - mean * without as f64).max(responses);
    let lost = 1.0 - per(responses, of_others);
    // In a closed loop, those of a client's slots are sent at a time, and lost together.
    let slots = figures.outstanding.unwrap_or(1) / figures.record.scenario.clients.max(1);
    let least = i32::try_from(least.div_ceil(slots.max(1))).unwrap_or(i32::MAX);
    experience.asked() as f64 * lost.powi(least)
}

/// Connections that the target refused, reset or closed on its own.
pub(crate) fn turned_away(connections: &Connections) -> u64 {
    let failed = &connections.failed;
    let before = failed.refused + failed.reset + failed.closed;
    let after = connections.closed_by_target + connections.reset_by_target;
    before + after + connections.ended_by_goaway.total()
}

/// Handshakes of TLS or QUIC that one side refused.
pub(crate) struct HandshakesRefused {
    pub(crate) refused: ConnectionFailures,
    are_cause: bool,
}

impl HandshakesRefused {
    pub(crate) fn are_cause(&self) -> bool {
        self.are_cause
    }
}

pub(super) fn handshakes_refused(figures: &Figures<'_>) -> Option<HandshakesRefused> {
    let refused = refused(&figures.record.connections().failed);
    let counts = figures.counts;
    // Without a connection queries wait until they time out.
    let lost = counts.not_sent.timed_out_waiting + counts.not_sent.run_ended;
    let is_most = 2 * lost >= counts.lost();
    (refused.total() > 0).then(|| HandshakesRefused {
        refused,
        are_cause: is_most && significance::is_above(lost, counts.offered, LOSS_MAX),
    })
}

/// The failures that one side decided on in the handshake.
fn refused(failed: &ConnectionFailures) -> ConnectionFailures {
    ConnectionFailures {
        tls_alert: failed.tls_alert.clone(),
        tls_certificate: failed.tls_certificate,
        tls_certificate_faults: failed.tls_certificate_faults,
        tls_pin: failed.tls_pin,
        tls_alpn: failed.tls_alpn,
        tls_protocol: failed.tls_protocol,
        quic_version: failed.quic_version,
        quic_transport: failed.quic_transport.clone(),
        ..ConnectionFailures::default()
    }
}

/// Connections that the generator closed because the target broke a rule.
pub(crate) struct RulesBroken {
    are_cause: bool,
}

impl RulesBroken {
    pub(crate) fn are_cause(&self) -> bool {
        self.are_cause
    }
}

pub(super) fn rules_broken(figures: &Figures<'_>) -> Option<RulesBroken> {
    let (counts, scenario) = (figures.counts, &figures.record.scenario);
    let connections = figures.record.connections();
    let closed = connections.closed_for_violation.total();
    // Of connections that are short anyway, a few that end early do not set the rate.
    let usable = scenario.usable(&connections) as f64;
    let is_habit = closed > scenario.clients && closed as f64 > LOSS_MAX * usable;
    let lost = counts.connection_losses;
    let is_much = is_habit || significance::is_above(lost, counts.sent, LOSS_MAX);
    // Clients without a connection send nothing, which is no outage of the target's.
    let explains = 2 * lost >= counts.lost().saturating_sub(counts.not_sent.total());
    (closed > 0).then_some(RulesBroken {
        are_cause: is_much && explains,
    })
}

/// Connections that the target ended before they should.
pub(crate) struct ConnectionsEnded {
    pub(crate) number: u64,
    /// More than one a client: one each at the end is normal.
    pub(crate) is_habit: bool,
    /// The fewest and the most connections of a client, where these are further apart than if each
    /// ended after the same number of queries.
    pub(crate) uneven: Option<(u64, u64)>,
    /// Mean and standard deviation of their numbers of queries, where these differ as if each query
    /// ended its connection by chance.
    pub(crate) by_chance: Option<(f64, f64)>,
    cost_queries: bool,
}

impl ConnectionsEnded {
    pub(crate) fn cost_queries(&self) -> bool {
        self.cost_queries
    }
}

pub(super) fn connections_ended(figures: &Figures<'_>) -> Option<ConnectionsEnded> {
    let (record, counts) = (figures.record, figures.counts);
    let connections = record.connections();
    let number = connections.ended_by_target();
    let lost = counts.connection_losses;
    let is_habit = number > record.scenario.clients;
    (number > 0 && (is_habit || lost > 0)).then(|| ConnectionsEnded {
        number,
        is_habit,
        uneven: uneven(figures, number),
        by_chance: by_chance(&connections.ended_after),
        cost_queries: significance::is_above(lost, counts.sent, LOSS_MAX),
    })
}

/// A connection that was reset may have lost responses, and any number up to the target's limit
/// may have come back on it: such numbers differ less.
fn by_chance(ended: &EndedAfter) -> Option<(f64, f64)> {
    let (mean, deviation) = ended.mean_and_deviation()?;
    let is_sure = deviation >= BY_CHANCE && ended.connections >= BY_CHANCE_MIN;
    is_sure.then_some((mean, deviation * mean))
}

/// TCP connections that were reset as by chance: a device on the path may have done it.
pub(crate) struct ResetsByChance;

pub(super) fn resets_by_chance(figures: &Figures<'_>) -> Option<ResetsByChance> {
    let connections = figures.record.connections();
    let are_most = 2 * connections.reset_by_target > connections.ended_by_target();
    // Over QUIC the target alone knows how to (RFC 9000, section 10.3).
    let may_be_of_device = are_most && !figures.record.scenario.transport.is_quic();
    let ended = &connections.ended_after;
    let (_, deviation) = ended.mean_and_deviation().filter(|_| may_be_of_device)?;
    let differ = match ended.connections {
        BY_CHANCE_MIN.. => BY_CHANCE,
        _ => PERHAPS_BY_CHANCE,
    };
    (deviation >= differ).then_some(ResetsByChance)
}

/// The fewest and the most connections of a client, where as many as `ended` did not end after the
/// same number of queries each: clients would have had as many as that number goes into theirs.
fn uneven(figures: &Figures<'_>, ended: u64) -> Option<(u64, u64)> {
    let experience = figures.record.experience()?;
    let (least, most) = ends(&experience.connections)?;
    let (fewest, queries) = ends(&experience.queries)?;
    let each = (figures.counts.sent / ended.max(1)).max(1);
    let expected = (queries - fewest) / each + 1;
    // Old records have no connections by client.
    (least > 0 && most - least > UNEVEN * expected).then_some((least, most))
}

/// The least and the greatest value.
fn ends(values: &Histogram) -> Option<(u64, u64)> {
    values.min_ns().zip(values.max_ns())
}

/// Connections of QUIC on which nothing came back until this tool gave them up.
pub(crate) struct ConnectionsSilent {
    pub(crate) number: u64,
    cost_queries: bool,
}

impl ConnectionsSilent {
    pub(crate) fn cost_queries(&self) -> bool {
        self.cost_queries
    }
}

pub(super) fn connections_silent(figures: &Figures<'_>) -> Option<ConnectionsSilent> {
    let (record, counts) = (figures.record, figures.counts);
    let number = record.connections().quic_idle_timeouts;
    let lost = counts.connection_losses;
    let are_many = number > record.scenario.clients;
    (number > 0 && (are_many || lost > 0)).then(|| ConnectionsSilent {
        number,
        cost_queries: significance::is_above(lost, counts.sent, LOSS_MAX),
    })
}

/// Connections that may carry only a number of queries at once.
pub(crate) struct StreamsFull {
    pub(crate) all: u64,
    pub(crate) each: u64,
}

pub(super) fn streams_full(figures: &Figures<'_>) -> Option<StreamsFull> {
    let waited = figures.counts.waited_for_stream;
    let (all, each) = figures.carried_max().filter(|_| waited > 0)?;
    Some(StreamsFull { all, each })
}

const MS: u64 = 1_000_000;
/// Linux delays an acknowledgement by 40 ms or more (TCP_DELACK_MIN), in steps of its clock, of up
/// to 10 ms.
pub(crate) const DELAYED: Range<u64> = 38 * MS..56 * MS;
/// Ranges as wide to both sides of that.
const FASTER: Range<u64> = 20 * MS..38 * MS;
const SLOWER: Range<u64> = 56 * MS..74 * MS;
/// This many times as many responses as to either side are a peak.
const PEAK: u64 = 4;
/// From this share of the responses on, it is reported.
const SHARE_MIN: f64 = 0.005;
/// From this share of the responses on, they are what the run measured, if the way to the target
/// takes no longer than this.
const MOST_DELAYED: f64 = 0.3;
const NEAR_NS: u64 = 10 * MS;
const FAST_MIN: f64 = 0.01;
/// From this share on, all wait: what is first on a connection is held back behind what ended its
/// handshake.
const ALL_DELAYED: f64 = 0.9;

/// Responses that wait for an acknowledgement: an end that holds small segments back while earlier
/// ones are not acknowledged (Nagle's algorithm, RFC 9293, section 3.7.4) meets one that delays its
/// acknowledgements (section 3.8.6.3). Neither is busy, and some responses take 40 ms.
pub(crate) struct DelayedAcknowledgements {
    pub(crate) delayed: u64,
    pub(crate) p50_ns: u64,
    pub(crate) queries_each: f64,
    /// Where nearly all wait: how long half of the connections took to open, handshakes included.
    /// A target that takes as long for each query looks the same.
    pub(crate) all_opened_in_ns: Option<u64>,
    /// This host acknowledges at once already: they wait for something else.
    pub(crate) are_acknowledged_at_once: bool,
    are_most: bool,
}

impl DelayedAcknowledgements {
    pub(crate) fn are_most(&self) -> bool {
        self.are_most
    }
}

pub(super) fn delayed_acknowledgements(figures: &Figures<'_>) -> Option<DelayedAcknowledgements> {
    let record = figures.record;
    // No model of a network delays acknowledgements.
    if !figures.connects_over_tcp() || record.simulation.is_some() {
        return None;
    }
    let connections = record.scenario.usable(&record.connections());
    let sent = (record.warmup.counts.sent + figures.counts.sent) as f64;
    let queries_each = per(sent, connections as f64);
    let service = &record.total.distributions.service;
    let delayed = number_in(service, &DELAYED);
    let beside = number_in(service, &FASTER).max(number_in(service, &SLOWER));
    let p50_ns = figures.service_p50_ns?;
    // Where most responses take as long, the way to the target shows that it is not its length.
    let times = record.connection_times();
    let connect_ns = times.tcp_connect.percentile(0.5);
    let is_near = connect_ns.is_some_and(|connect_ns| connect_ns < NEAR_NS);
    // A target that is slow by itself is slow to answer all.
    let fast = number_in(service, &(0..FASTER.start));
    let are_some_fast = per(fast as f64, service.count() as f64) >= FAST_MIN;
    let delayed_share = per(delayed as f64, service.count() as f64);
    let are_acknowledged_at_once = are_acknowledged_at_once(record);
    // Handshakes show that neither is the target slow: in theirs it computes more.
    let all_opened_in_ns = opened_in(&times)
        .zip(connect_ns.filter(|_| is_near && delayed_share >= ALL_DELAYED))
        .map(|(handshake_ns, connect_ns)| connect_ns + handshake_ns)
        .filter(|opened_ns| *opened_ns < FASTER.start && !are_acknowledged_at_once);
    let are_most =
        all_opened_in_ns.is_some() || is_near && are_some_fast && delayed_share >= MOST_DELAYED;
    let is_peak = delayed >= PEAK * beside && (p50_ns < FASTER.start || are_most);
    let is_much = significance::is_above(delayed, service.count(), SHARE_MIN);
    (is_peak && is_much).then_some(DelayedAcknowledgements {
        delayed,
        p50_ns,
        queries_each,
        all_opened_in_ns,
        are_acknowledged_at_once,
        are_most,
    })
}

/// How long half of the TLS handshakes took, full or resumed; nothing without TLS.
fn opened_in(times: &ConnectionTimes) -> Option<u64> {
    let mut handshakes = times.tls_handshake.clone();
    handshakes.merge(&times.tls_handshake_resumed);
    match handshakes.count() {
        0 => Some(0),
        _ => handshakes.percentile(0.5),
    }
}

/// True if this host acknowledges what comes on all of the run's connections at once.
fn are_acknowledged_at_once(record: &RunRecord) -> bool {
    // Of several groups, those with connections.
    let streams = record
        .asked
        .iter()
        .filter(|it| it.run.transport.has_connections());
    let mut quick = streams
        .map(|it| it.run.generator.sockets.tcp_quickack)
        .peekable();
    quick.peek().is_some() && quick.all(|is_quick| is_quick)
}

pub(super) fn number_in(times: &Histogram, range: &Range<u64>) -> u64 {
    let within = times.buckets().filter(|(low, ..)| range.contains(low));
    within.map(|(_, _, number)| number).sum()
}
