//! Queries without response, and whether the load has to do with it.
//!
//! A server that is asked more than it can do lets queries wait, then drops what does not fit. A
//! path that loses takes the same share of any load.

use super::Figures;
use super::connections::unserved_clients;
use super::figures::LATENESS_MAX_NS;
use super::follows_time;
use super::generator::{self, worst_agents};
use super::host::{
    quota_used, received_but_dropped, target_starved, target_starved_from, target_throttled,
};
use super::plateau::{LIMITED_MIN, plateau_qps, turns, usual_qps};
use super::significance::{self, DEVIATIONS, EVENTS_MIN};
use super::stalls::{self, Host, Span};
use crate::agent_counts::AgentCounts;
use crate::interval::per;
use crate::scenario::{Arrival, Transport};
use crate::timeline::outages::MET_MIN as MET_BY_OUTAGE_MIN;
use crate::timeline::{Bin, Outage, OutageKind, Timeline};

/// More queries without response than this share matter.
pub(super) const LOSS_MAX: f64 = 0.001;
/// Queries that wait at a server before it drops one: receive buffers hold some hundred, queues of
/// servers more, and below this the unevenness of arrivals accounts for them.
pub(super) const WAITING_MIN: f64 = 8.0;
/// From this share of all lost queries on, they are of one agent.
const OF_ONE_AGENT: f64 = 0.95;
/// Queries wait if half of them take this many times as long as the fastest.
const QUEUED: u64 = 2;
/// From this share of the responses on, truncation belongs to such a limit.
const TRUNCATED_MIN: f64 = 0.01;
/// From this share of the queries that timed out on, the timeout is what lost them.
const MOST_LATE: f64 = 0.5;
/// Bins before responses ceased in which latency shows why.
const BINS_BEFORE: usize = 10;
/// Latency of this share of the timeout grows beyond it.
const OUTGROWN: f64 = 0.5;
/// From this share of the window on, outages decide.
const LENGTH_MAX: f64 = 0.01;
/// Outages do not decide if more than this many times what they met was lost outside of them.
const OUTSIDE_MAX: u64 = 3;
/// Queries that were due this many usual latencies before an outage were not under way when it
/// began.
const LATENCIES_BEFORE: u64 = 3;
/// A span is as long as the timeout if it differs by less than this part of it.
const OF_TIMEOUT: u64 = 5;
/// From this share of the slots on, those that lost queries hold are reported.
const HELD_MIN: f64 = 0.01;
/// From this share of the slots on, they set the rate.
const HELD_MAX: f64 = 0.1;
/// In this share of the slots, queries that were lost at once are all that there were.
const NEARLY_ALL: f64 = 0.9;
/// From this share of the slots on, most are left to lost queries...
const MOST_HELD: f64 = 0.5;
/// ... and with this share of the queries lost, it is what loses them that sets the rate.
const OF_ALL: f64 = 0.1;
/// Lost queries with fewer bins, or queries due, between them are of one span.
const DUE_APART: f64 = 2.0;
/// So few spans are events; more are what the run does all the time.
const BURSTS_MAX: usize = 3;
/// A target waits for its CPU up to that many times as long as the generator beside it.
const TIMES_STALLED: f64 = 4.0;
/// Queries that a receive buffer of Linux' default size holds: each takes 768 bytes of 212,992.
pub(crate) const BURST_QUERIES: f64 = 250.0;
/// How long the burst takes with which a closed loop may begin.
const BURST_NS: u64 = 100_000_000;

/// Queries that had to be answered and were not, without those that this host never sent.
pub(crate) fn number_lost(figures: &Figures<'_>) -> u64 {
    figures.unanswered() + figures.counts.not_sent.timed_out_waiting
}

/// More queries without response than matter.
pub(crate) struct QueriesLost {
    is_open_loop: bool,
}

impl QueriesLost {
    pub(crate) fn are_of_open_loop(&self) -> bool {
        self.is_open_loop
    }
}

pub(super) fn queries_lost(figures: &Figures<'_>) -> Option<QueriesLost> {
    let lost = number_lost(figures);
    let are_many = significance::is_above(lost, figures.counts.offered, LOSS_MAX);
    let arrival = figures.record.scenario.arrival;
    are_many.then_some(QueriesLost {
        is_open_loop: !matches!(arrival, Arrival::Closed { .. }),
    })
}

/// Losses of one of several agents alone.
pub(crate) struct LossesOfOneAgent {
    pub(crate) agent: usize,
    pub(crate) lost: u64,
    /// Of all agents.
    pub(crate) lost_of_all: u64,
    pub(crate) others: u64,
    are_many: bool,
}

impl LossesOfOneAgent {
    /// More than matter, of the queries of all agents.
    pub(crate) fn are_many(&self) -> bool {
        self.are_many
    }
}

pub(super) fn losses_of_one_agent(figures: &Figures<'_>) -> Option<LossesOfOneAgent> {
    let lost = |it: &AgentCounts| (it.unanswered > 0).then_some(it.unanswered as f64);
    let agent = *worst_agents(figures, lost).first()?;
    let own = figures.counts_of_agent(agent)?;
    let agents = &figures.record.agents;
    // Agents of one host have its link: what one of them lost alone is not the link's.
    let host = agents.get(agent)?.host;
    if agents.iter().filter(|it| it.host == host).count() > 1 {
        return None;
    }
    let each = agents.iter().filter_map(|it| it.counts);
    let (lost_of_all, sent) = each.fold((0, 0), |(lost, sent), it| {
        (lost + it.unanswered, sent + it.sent)
    });
    let is_lossy = significance::is_above(own.unanswered, own.sent, LOSS_MAX);
    let are_own = own.unanswered as f64 >= OF_ONE_AGENT * lost_of_all as f64;
    // That the others have so few is no chance: they sent as much as the one, or more.
    let is_beside_others = sent - own.sent >= own.sent / 2;
    (is_lossy && are_own && is_beside_others).then(|| LossesOfOneAgent {
        agent,
        lost: own.unanswered,
        lost_of_all,
        others: agents.len() as u64 - 1,
        are_many: queries_lost(figures).is_some(),
    })
}

/// What shows that the target could not keep up.
#[derive(Clone, Copy)]
pub(crate) enum SignOfLoad {
    /// This many queries waited at the target on average.
    Waiting {
        queries: u64,
        p50_ns: u64,
        shortest_ns: u64,
    },
    /// Datagrams that the receive buffers of a target on this host dropped.
    BuffersFull(u64),
    /// Shares lost at peaks and otherwise.
    MoreAtPeaks(f64, f64),
}

pub(super) fn sign_of_load(figures: &Figures<'_>) -> Option<SignOfLoad> {
    waiting(figures)
        .or_else(|| dropped_by_target(figures))
        .or_else(|| more_at_peaks(figures))
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
fn more_at_peaks(figures: &Figures<'_>) -> Option<SignOfLoad> {
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
    let is_shown = is_varied && above - below > DEVIATIONS * error && above > 1.5 * below;
    is_shown.then_some(SignOfLoad::MoreAtPeaks(above, below))
}

/// A fixed rate of responses: none waited, and the rest was lost. At one rate of queries, a fixed
/// share of them is a fixed rate too.
#[derive(Clone, Copy)]
pub(crate) struct RateLimited {
    /// Responses that were truncated: RRL sends them in place of some of those that it drops.
    pub(crate) truncated: u64,
    /// Queries a second that were answered; after the burst, if there was one.
    pub(crate) admitted_qps: f64,
    /// How long all queries were answered before that; none if the rate was fixed from the start.
    pub(crate) burst_ns: Option<u64>,
    /// Queries answered of how many, where the share is as exact as taking turns makes it.
    pub(crate) turns: Option<(u64, u64)>,
    pub(crate) p50_ns: u64,
    pub(crate) shortest_ns: u64,
    follows_time: bool,
}

/// Such a rate, which follows the time and not the queries: it is no share of them.
pub(crate) struct AdmittedByTime;

pub(super) fn admitted_by_time(figures: &Figures<'_>) -> Option<AdmittedByTime> {
    rate_limited(figures)
        .filter(|it| it.follows_time)
        .map(|_| AdmittedByTime)
}

pub(super) fn rate_limited(figures: &Figures<'_>) -> Option<RateLimited> {
    figures.once(find_rate_limited)
}

fn find_rate_limited(figures: &Figures<'_>) -> Option<RateLimited> {
    let share = per(number_lost(figures) as f64, figures.counts.offered as f64);
    let is_udp = figures.record.scenario.transport == Transport::Udp;
    let is_lossy = share >= LIMITED_MIN && queries_lost(figures).is_some();
    // Where queries waited, or found no room to do so, the target is slow, or a part of it is.
    let is_slow = || {
        waiting(figures)
            .or_else(|| dropped_by_target(figures))
            .is_some()
    };
    if !is_udp || !figures.record.is_open_loop() || !is_lossy || is_slow() {
        return None;
    }
    let timeline = figures.record.timeline.as_ref()?;
    let whole = (figures.record.measured_ns / timeline.width_ns()) as usize;
    let bins = timeline.bins().get(..whole.min(timeline.bins().len()))?;
    // A token bucket that is full admits all queries first.
    let burst = bins.iter().take_while(|bin| bin.lost == 0).count();
    let half = bins.len() / 2;
    let parts = [(0, bins), (half, &bins[half..])];
    let find = |fixed: fn(&[Bin], u64) -> Option<f64>| {
        let mut each = parts.iter();
        each.find_map(|(from, bins)| Some((*from, fixed(bins, timeline.width_ns())?)))
    };
    let (from, admitted_qps) = find(plateau_qps).or_else(|| find(usual_qps))?;
    let (truncated, responses) = (figures.counts.truncated, figures.counts.responses);
    let are_many = significance::is_above(truncated, responses, TRUNCATED_MIN);
    Some(RateLimited {
        truncated: if are_many { truncated } else { 0 },
        admitted_qps,
        burst_ns: (from > 0 && burst > 0).then(|| burst as u64 * timeline.width_ns()),
        turns: turns(&bins[from..]),
        follows_time: follows_time::is_shown(figures, &bins[from..]),
        p50_ns: figures.service_p50_ns.unwrap_or(0),
        shortest_ns: figures.path_ns.unwrap_or(0),
    })
}

/// Queries waited at the target, by Little's law at least `WAITING_MIN` on average: half of them
/// took longer than the way to it explains, and nearly all did.
fn waiting(figures: &Figures<'_>) -> Option<SignOfLoad> {
    let service = &figures.record.total.distributions.service;
    let (p50, _) = significance::median_between(service)?;
    let (mean, shortest_ns) = (service.mean_ns()?, figures.path_ns?);
    let waiting = (mean - shortest_ns as f64) / 1e9 * figures.achieved_qps;
    // A queue that grew over the run delays nearly all in the end.
    let is_queue = p50 >= QUEUED * shortest_ns
        && significance::delays_all(&figures.service_in_last_third(), shortest_ns);
    (is_queue && waiting >= WAITING_MIN).then(|| SignOfLoad::Waiting {
        queries: waiting as u64,
        p50_ns: figures.service_p50_ns.unwrap_or(p50),
        shortest_ns,
    })
}

/// A target on this host whose receive buffers overflowed: the kernel counts it. At an even rate
/// they do so in a few spans if it stands still.
fn dropped_by_target(figures: &Figures<'_>) -> Option<SignOfLoad> {
    let drops = dropped_by_local_target(figures);
    let is_half = drops > 0 && drops >= number_lost(figures).div_ceil(2);
    let stood_still = figures.outstanding.is_none()
        && !sends_bursts(figures)
        && (1..=BURSTS_MAX).contains(&spans_of_losses(figures).len());
    (is_half && !stood_still).then_some(SignOfLoad::BuffersFull(drops))
}

/// The spans in which most queries were lost; none where they were lost all the time.
fn spans_of_losses(figures: &Figures<'_>) -> Vec<Span> {
    let Some(timeline) = &figures.record.timeline else {
        return Vec::new();
    };
    let bins = timeline.bins();
    let lost: Vec<f64> = bins.iter().map(|it| it.lost as f64).collect();
    let due_each = per(timeline.total().due as f64, bins.len() as f64);
    let apart = per(DUE_APART, due_each).ceil().max(DUE_APART);
    stalls::concentrated(&lost, bins.len(), apart as usize, timeline.width_ns())
}

/// Datagrams that the receive buffers of a target on this host dropped.
pub(crate) struct TargetReceiveDrops {
    pub(crate) drops: u64,
}

pub(super) fn target_receive_drops(figures: &Figures<'_>) -> Option<TargetReceiveDrops> {
    let drops = dropped_by_local_target(figures);
    (drops > 0).then_some(TargetReceiveDrops { drops })
}

/// Datagrams that the receive buffers of an observed target, or of one on this host, dropped where
/// queries were lost.
fn dropped_by_local_target(figures: &Figures<'_>) -> u64 {
    if !figures.has_datagrams() {
        return 0;
    }
    if let Some(program) = figures.programs.first() {
        return program.udp_drops;
    }
    // Other programs of this host have sockets too.
    let host = figures.record.host_use.as_ref();
    if let Some(drops) = host.and_then(|it| it.target_udp_drops) {
        return drops;
    }
    let network = &figures.record.network;
    let all = figures.of_udp("RcvbufErrors");
    let of_others = all.saturating_sub(network.receive_drops);
    match figures.target_is_local() && figures.can_be_of_run(of_others) {
        true => of_others,
        false => 0,
    }
}

pub(crate) struct LossesBeyondGenerator;

/// A generator that is late sends late, and may fail to read what came: it does not make others
/// lose what it sent. A target on the same host may be kept from its CPU by the same.
pub(super) fn beyond_generator(figures: &Figures<'_>) -> Option<LossesBeyondGenerator> {
    let unanswered = figures.unanswered();
    let beyond = unanswered.saturating_sub(received_but_dropped(figures));
    let is_most = 2 * beyond > unanswered && beyond > figures.counts.not_sent.run_ended;
    let are_many = significance::is_above(beyond, figures.counts.sent, LOSS_MAX)
        || slots_held(figures).is_some_and(|it| it.are_many());
    let has_stalled =
        may_starve_target(figures) || sends_bursts(figures) || target_starved(figures).is_some();
    let is_explained =
        has_stalled && 2 * losses_of_stalls_max(figures) >= beyond && !are_beside_stalls(figures);
    (is_most && are_many && !is_explained).then_some(LossesBeyondGenerator)
}

/// Most queries were lost in a few spans, in which the host stalled no longer than at other times,
/// or too short for the queries of that time to fill a buffer.
fn are_beside_stalls(figures: &Figures<'_>) -> bool {
    let spans = spans_of_losses(figures);
    let has_not_waited = || stalls::has_not_waited(figures, &spans) && !sends_bursts(figures);
    let qps = figures.record.offered_qps();
    let fills_no_buffer =
        |stall_ns: u64| TIMES_STALLED * stall_ns as f64 / 1e9 * qps < BURST_QUERIES;
    !spans.is_empty()
        && (has_not_waited()
            || stalls::generator_ran(figures, &spans)
            || spans.len() <= BURSTS_MAX && stalls::all_short(figures, &spans, fills_no_buffer))
}

/// Queries that a host which stalls can have lost at most. Datagrams are dropped by full buffers,
/// which its kernel counts, or answered after their timeout; nothing else loses them while the
/// target waits for its CPU. Connections let queries time out, and are not closed by it.
fn losses_of_stalls_max(figures: &Figures<'_>) -> u64 {
    let counts = figures.counts;
    if figures.record.scenario.transport.has_connections() {
        return counts.timeouts;
    }
    let network = &figures.record.network;
    let is_counted = ["Udp.InDatagrams", "Udp6.InDatagrams"];
    let is_counted = is_counted.iter().any(|it| network.kernel.contains_key(*it));
    // Its sockets have a count of their own: that of the host is of other programs too.
    let of_target = figures
        .record
        .host_use
        .as_ref()
        .and_then(|it| it.target_udp_drops);
    let of_host = || figures.of_udp("RcvbufErrors");
    let is_known = is_counted && figures.target_is_local();
    match of_target.or_else(|| is_known.then(of_host)) {
        Some(dropped) => dropped + network.kernel_counter("Softnet.Dropped") + counts.late,
        None => counts.timeouts,
    }
}

/// A target on this host waits for the CPUs for which the generator waits. Where it is unknown how
/// long that was, queries that left late show it.
fn may_starve_target(figures: &Figures<'_>) -> bool {
    let (_, waited) = generator::longest_wait(figures);
    let mut workers = figures.record.workers.iter();
    let is_unknown = workers.any(|it| it.cpu_wait_ns.is_none());
    let is_late = figures.lateness_p99_ns > LATENESS_MAX_NS;
    let has_waited = waited >= generator::CPU_WAIT_SHARE_MAX
        || is_late && waited >= generator::CPU_WAIT_SHARE_LATE
        || is_late && is_unknown;
    figures.target_shares_cpus() && has_waited
}

/// Over UDP, queries that leave late leave at once: more than a receive buffer holds.
fn sends_bursts(figures: &Figures<'_>) -> bool {
    let is_udp = figures.record.scenario.transport == Transport::Udp;
    let late_s = figures.lateness_p99_ns as f64 / 1e9;
    let burst = late_s * figures.record.offered_qps();
    is_udp && figures.record.is_open_loop() && burst >= BURST_QUERIES
}

/// Responses that came after their queries had timed out.
pub(crate) struct LateResponses {
    are_all: bool,
}

impl LateResponses {
    pub(crate) fn are_all(&self) -> bool {
        self.are_all
    }
}

pub(super) fn late_responses(figures: &Figures<'_>) -> Option<LateResponses> {
    let counts = figures.counts;
    let are_most = per(counts.late as f64, counts.timeouts as f64) >= MOST_LATE;
    are_most.then_some(LateResponses {
        are_all: counts.responses == 0,
    })
}

/// Latency that grew beyond the timeout: from then on all responses came late.
pub(crate) struct TimeoutOutgrown {
    /// Mean latency before.
    pub(crate) latency_ns: f64,
    /// When responses in time ceased.
    pub(crate) from_ns: u64,
}

pub(super) fn timeout_outgrown(figures: &Figures<'_>) -> Option<TimeoutOutgrown> {
    if figures.counts.late < EVENTS_MIN {
        return None;
    }
    let outages = figures.outages.each.iter();
    let silent = outages.filter(|it| it.kind == OutageKind::Silence);
    let longest = silent.max_by_key(|it| it.length_ns())?;
    let timeline = figures.record.timeline.as_ref()?;
    let first = (longest.begin_ns / timeline.width_ns()) as usize;
    let before = timeline
        .bins()
        .get(first.saturating_sub(BINS_BEFORE)..first)?;
    let mut sum = Bin::default();
    before.iter().for_each(|bin| sum.add(bin));
    let latency_ns = sum.latency_ns_mean()?;
    let timeout_ns = figures.record.scenario.timeout_ns as f64;
    (latency_ns >= OUTGROWN * timeout_ns).then_some(TimeoutOutgrown {
        latency_ns,
        from_ns: longest.begin_ns,
    })
}

/// Spans in which nothing usable came back; the longest says what they were.
pub(crate) struct Outages {
    pub(crate) longest: Outage,
    /// Others of its kind, and how long all of the kind were together.
    pub(crate) alike: u64,
    pub(crate) alike_ns: u64,
    spans: Vec<stalls::Span>,
    /// A limit on the rate that lets nothing pass for a while looks the same.
    pub(crate) may_be_limit: bool,
    is_much: bool,
}

impl Outages {
    fn of_kinds(figures: &Figures<'_>, kinds: &[OutageKind]) -> Option<Outages> {
        let all = figures.outages.each.iter();
        let all: Vec<&Outage> = all
            .filter(|it| !is_of_unserved_clients(it, figures))
            .collect();
        let longest = all.iter().max_by_key(|it| it.length_ns())?;
        let is_longest = kinds.contains(&longest.kind);
        let alike = all.iter().filter(|it| it.kind == longest.kind);
        let spans: Vec<stalls::Span> = alike.map(|it| (it.begin_ns, it.end_ns)).collect();
        let met: u64 = all.iter().map(|it| it.lost + it.late).sum();
        let length_ns: u64 = all.iter().map(|it| it.length_ns()).sum();
        let is_long = per(length_ns as f64, figures.record.measured_ns as f64) >= LENGTH_MAX;
        let is_much = is_long || significance::is_above(met, figures.counts.offered, LOSS_MAX);
        // Most of what was lost was lost at other times: that is what the run shows first. A closed
        // loop loses what is in flight when an outage begins, and sends little in it.
        let in_flight = figures.outstanding.unwrap_or(0) * all.len() as u64;
        let is_outside = figures.outages.outside.lost > OUTSIDE_MAX * (met + in_flight);
        // Or after it, without an end: what was due in it has long been answered or lost.
        let due: u64 = all.iter().map(|it| it.due).sum();
        let goes_on = figures.counts.lost() > OUTSIDE_MAX * (due + in_flight);
        let is_beside = is_outside || goes_on;
        is_longest.then(|| Outages {
            longest: **longest,
            alike: spans.len() as u64 - 1,
            alike_ns: stalls::length_ns(&spans),
            spans,
            may_be_limit: may_be_limit(longest, figures),
            is_much: is_much && !is_beside,
        })
    }
}

/// True if the clients that are served were not due in it: next to none was sent in it because
/// those whose turn it was have no connection, or no client was due twice.
fn is_of_unserved_clients(outage: &Outage, figures: &Figures<'_>) -> bool {
    let is_silence = matches!(outage.kind, OutageKind::Silence | OutageKind::Reset);
    let (true, Some(timeline)) = (is_silence, &figures.record.timeline) else {
        return false;
    };
    let within = timeline.between(outage.begin_ns, outage.end_ns);
    let Some(unserved) = unserved_clients(figures) else {
        return false;
    };
    let has_connections = figures.record.scenario.transport.has_connections();
    let is_unsent = within.due >= MET_BY_OUTAGE_MIN && within.sent < MET_BY_OUTAGE_MIN;
    has_connections && (is_unsent || outage.lasts && unserved.asked_once)
}

/// A limit on the rate, such as RRL, lets nothing pass while it is exceeded: over UDP to the end,
/// or repeatedly, so that queries are lost before and after too, or there is silence each second,
/// over connections too, which it may close. In a closed loop it loses all queries in flight, and
/// none is sent until these have timed out.
fn may_be_limit(outage: &Outage, figures: &Figures<'_>) -> bool {
    let is_udp = figures.record.scenario.transport == Transport::Udp;
    let is_fitting = match outage.kind {
        OutageKind::Silence => true,
        OutageKind::Reset => !is_udp,
        _ => false,
    };
    let outside = &figures.outages.outside;
    let are_lost = significance::is_above(outside.lost, outside.due, LIMITED_MIN);
    let timeout_ns = figures.record.scenario.timeout_ns;
    let of_timeout = outage.length_ns().abs_diff(timeout_ns) <= timeout_ns / OF_TIMEOUT;
    let is_batch = figures.outstanding.is_some() && of_timeout;
    let is_to_the_end = is_udp && (outage.lasts || is_batch);
    is_fitting && (are_lost || is_to_the_end || is_repeated(figures))
}

/// Silence came again, and most of what was due in it was lost and not answered later: limits that
/// count by the second answer all queries of its beginning.
fn is_repeated(figures: &Figures<'_>) -> bool {
    let all = figures.outages.each.iter();
    let silent = all.filter(|it| matches!(it.kind, OutageKind::Silence | OutageKind::Reset));
    let (number, due, lost) = silent.fold((0, 0, 0), |(number, due, lost), it| {
        (number + 1, due + it.due, lost + it.lost)
    });
    number > 1 && 2 * lost > due
}

pub(super) fn outages_of_target(figures: &Figures<'_>) -> Option<OutagesOfTarget> {
    let kinds = [
        OutageKind::Refusal,
        OutageKind::Handshakes,
        OutageKind::Errors,
        OutageKind::Reset,
        OutageKind::Silence,
    ];
    Outages::of_kinds(figures, &kinds).map(OutagesOfTarget)
}

/// Outages of the target that a limit on the rate makes too.
pub(crate) struct OutagesOrLimit;

pub(super) fn outages_or_limit(figures: &Figures<'_>) -> Option<OutagesOrLimit> {
    let outages = outages_of_target(figures)?.0;
    outages.may_be_limit.then_some(OutagesOrLimit)
}

pub(super) fn outages_of_network(figures: &Figures<'_>) -> Option<OutagesOfNetwork> {
    Outages::of_kinds(figures, &[OutageKind::Unsendable]).map(OutagesOfNetwork)
}

pub(super) fn outages_of_generator(figures: &Figures<'_>) -> Option<OutagesOfGenerator> {
    let kinds = [OutageKind::OwnFreeze, OutageKind::NoResources];
    Outages::of_kinds(figures, &kinds).map(OutagesOfGenerator)
}

/// A quota that stopped the generator for at least half of the time that its outages took.
pub(crate) struct ThrottledOutages;

pub(super) fn throttled_outages(figures: &Figures<'_>) -> Option<ThrottledOutages> {
    let outages = Outages::of_kinds(figures, &[OutageKind::OwnFreeze])?;
    let throttled_ns = quota_used(figures)?.throttled_ns;
    (2.0 * throttled_ns >= outages.alike_ns as f64).then_some(ThrottledOutages)
}

/// A target that waited for a CPU in its outages, in which the generator did too.
pub(crate) struct StarvedOutages;

pub(super) fn starved_outages(figures: &Figures<'_>) -> Option<StarvedOutages> {
    target_starved(figures)?;
    (host_in_outages(figures)? == Host::Stopped).then_some(StarvedOutages)
}

/// Outages of a target that waited for a CPU as long in the run, at unknown times.
pub(crate) struct UnclearOutages {
    /// Seconds in each second of the run.
    pub(crate) waited: f64,
    /// Because its quota stopped it.
    pub(crate) is_quota: bool,
}

pub(super) fn unclear_outages(figures: &Figures<'_>) -> Option<UnclearOutages> {
    if starved_outages(figures).is_some() {
        return None;
    }
    if let Some(stopped) = stopped_by_quota(figures) {
        return Some(UnclearOutages {
            waited: stopped,
            is_quota: true,
        });
    }
    let waited = target_starved_from(figures, 0.0)?.waited;
    let is_unclear = host_in_outages(figures)? != Host::Ran;
    is_unclear.then_some(UnclearOutages {
        waited,
        is_quota: false,
    })
}

/// Seconds in each second of the run in which its quota stopped a target, if that is half as long
/// as its outages were. The kernel adds up the time of all CPUs, in periods that end alike.
fn stopped_by_quota(figures: &Figures<'_>) -> Option<f64> {
    let outages = outages_of_target(figures)?.0;
    let quota = target_throttled(figures)?.quota;
    let wall_ns = figures.record.host_use.as_ref()?.wall_ns as f64;
    let at_most_ns = wall_ns * per(quota.throttled as f64, quota.periods as f64);
    let stopped_ns = at_most_ns.min(quota.throttled_ns as f64);
    let is_silence = outages.longest.kind == OutageKind::Silence;
    let may_be = is_silence && !stalls::has_not_waited(figures, &outages.spans);
    (may_be && 2.0 * stopped_ns >= outages.alike_ns as f64).then(|| per(stopped_ns, wall_ns))
}

/// A port that refuses is closed, however long the process that had it waited for a CPU.
fn host_in_outages(figures: &Figures<'_>) -> Option<Host> {
    let outages = outages_of_target(figures)?.0;
    let is_refusal = outages.longest.kind == OutageKind::Refusal;
    (!is_refusal).then(|| stalls::host_in(figures, &outages.spans))
}

/// Silence over TCP to the end, before which queries had been lost: connections that stall one by
/// one, such as those of a path that drops long segments, are not told from a target that stops.
pub(crate) struct StalledConnections {
    /// Queries lost before it, of how many.
    pub(crate) lost: u64,
    pub(crate) due: u64,
    /// Connections that got no acknowledgement either: the kernel of a server that is stopped
    /// sends it.
    pub(crate) unacknowledged: u64,
}

pub(super) fn stalled_connections(figures: &Figures<'_>) -> Option<StalledConnections> {
    let outage = outages_of_target(figures)?.0.longest;
    let is_only = figures.outages.each.len() == 1 && outage.lasts;
    let is_silence = outage.kind == OutageKind::Silence && figures.connects_over_tcp();
    // Without those that were under way when it began.
    let under_way_ns = LATENCIES_BEFORE * figures.service_p50_ns.unwrap_or(0);
    let timeline = figures.record.timeline.as_ref()?;
    let until_ns = outage
        .begin_ns
        .saturating_sub(under_way_ns + timeline.width_ns());
    let Bin { lost, due, .. } = timeline.between(0, until_ns);
    let were_before = significance::is_above(lost, due, LOSS_MAX);
    let tcp = figures.record.network.tcp.as_ref();
    (is_only && is_silence && were_before).then_some(StalledConnections {
        lost,
        due,
        unacknowledged: tcp.map_or(0, |it| it.unacknowledged),
    })
}

/// Those of one side.
macro_rules! outages_of {
    ($($Type:ident)+) => {$(
        pub(crate) struct $Type(pub(crate) Outages);

        impl $Type {
            pub(crate) fn are_much(&self) -> bool {
                self.0.is_much
            }
        }
    )+};
}

outages_of!(OutagesOfTarget OutagesOfNetwork OutagesOfGenerator);

/// Slots of a closed loop that lost queries hold: no other query is sent from them until they
/// time out.
pub(crate) struct SlotsHeld {
    pub(crate) held: f64,
    pub(crate) slots: u64,
    /// A full queue at the target, over UDP: it drops the same repeatedly, and fewer queries at a
    /// time fit into it. Of a path that loses at random, more slots make up for those held.
    pub(crate) overflow: Option<SignOfLoad>,
    /// Queries lost of those sent in the first 0.1 s, and of all, where the record has it.
    pub(crate) of_burst: Option<(u64, u64)>,
    /// When the queries in all slots were lost, after which nothing came back.
    pub(crate) at_once_ns: Option<u64>,
}

impl SlotsHeld {
    pub(crate) fn are_many(&self) -> bool {
        self.held >= HELD_MAX * self.slots as f64
    }
}

pub(super) fn slots_held(figures: &Figures<'_>) -> Option<SlotsHeld> {
    let slots = figures.outstanding?;
    let held = figures.held_by_lost();
    let is_shown = held >= HELD_MIN * slots as f64 && held > 0.0;
    let is_udp = figures.record.scenario.transport == Transport::Udp;
    is_shown.then(|| SlotsHeld {
        held,
        slots,
        overflow: match is_udp {
            true => dropped_by_target(figures).or_else(|| waiting(figures)),
            false => None,
        },
        of_burst: of_burst(figures),
        at_once_ns: lost_at_once_ns(figures, slots),
    })
}

/// A full queue at the target drops queries that then hold slots: more slots would add no answer.
pub(crate) struct SlotsOverflow;

pub(super) fn slots_overflow(figures: &Figures<'_>) -> Option<SlotsOverflow> {
    slots_held(figures)?.overflow.map(|_| SlotsOverflow)
}

/// Such queries held most slots: what lost them, and not the number of slots, set the rate.
pub(crate) struct SlotsExhausted;

pub(super) fn slots_exhausted(figures: &Figures<'_>) -> Option<SlotsExhausted> {
    let it = slots_held(figures)?;
    let is_of_burst = it
        .of_burst
        .is_some_and(|(of_burst, all)| 2 * of_burst > all);
    // Of a path that loses few at random, more slots make up for those held.
    let are_most = it.held >= MOST_HELD * it.slots as f64
        && number_lost(figures) as f64 >= OF_ALL * figures.counts.offered as f64;
    let is_known = it.overflow.is_some() || is_of_burst;
    let is_shown = it.at_once_ns.is_some() || are_most && !is_known;
    is_shown.then_some(SlotsExhausted)
}

/// Where nearly all slots were lost in the time of a burst, after responses had come, and then
/// none came for half of the timeout: full buffers and paths that lose answer the others.
fn lost_at_once_ns(figures: &Figures<'_>, slots: u64) -> Option<u64> {
    let timeline = figures.record.timeline.as_ref()?;
    let width_ns = timeline.width_ns();
    let silent = (figures.record.scenario.timeout_ns / 2 / width_ns) as usize;
    let window = (BURST_NS / width_ns) as usize;
    let bins = timeline.bins();
    let lost_all = |from: &usize| {
        let (before, after) = bins.split_at(*from);
        let burst = after.get(..window)?;
        let then = after.get(window..window + silent)?;
        let has_answered = before.iter().any(|bin| bin.responses > 0);
        let lost: u64 = burst.iter().map(|bin| bin.lost).sum();
        let is_all = lost as f64 >= NEARLY_ALL * slots as f64;
        let is_silent = then.iter().all(|bin| bin.responses == 0);
        (has_answered && is_all && is_silent).then_some(())
    };
    let first = (0..bins.len()).find(|it| window > 0 && lost_all(it).is_some());
    Some(first? as u64 * width_ns)
}

/// Slots of a closed loop that queries of the warm-up hold, which got no response, or a late one.
pub(crate) struct SlotsStuck {
    pub(crate) stuck: f64,
    pub(crate) slots: u64,
    pub(crate) lost: u64,
    pub(crate) late: u64,
}

impl SlotsStuck {
    pub(crate) fn are_many(&self) -> bool {
        self.stuck >= HELD_MAX * self.slots as f64
    }
}

pub(super) fn slots_stuck(figures: &Figures<'_>) -> Option<SlotsStuck> {
    let slots = figures.outstanding?;
    let lost = figures.record.warmup.counts.timeouts;
    let of_run = figures.answered_in_flight() + figures.held_by_lost();
    let late = figures.record.answered_after_warmup();
    let stuck = (figures.in_flight - of_run).clamp(0.0, (lost + late) as f64);
    let is_shown = stuck >= HELD_MIN * slots as f64 && stuck > 0.0;
    is_shown.then_some(SlotsStuck {
        stuck,
        slots,
        lost,
        late,
    })
}

fn of_burst(figures: &Figures<'_>) -> Option<(u64, u64)> {
    let timeline = figures.record.timeline.as_ref()?;
    let width_ns = timeline.width_ns();
    let bins = timeline.bins().iter().zip(0..);
    let of_burst = bins.take_while(|(_, number)| width_ns.saturating_mul(*number) < BURST_NS);
    let of_burst: u64 = of_burst.map(|(bin, _)| bin.lost).sum();
    let all = timeline.total().lost;
    (all > 0).then_some((of_burst, all))
}
