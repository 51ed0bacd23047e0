//! The generator: its workers' CPU, queries that left late or not at all, and its agents.

use std::collections::BTreeSet;

use super::Figures;
use super::figures::BUSY_SHARE_WHEN_LATE;
use super::host::has_quota_used_up;
use super::losses::LOSS_MAX;
use super::significance;
use super::steps;
use crate::agent_counts::AgentCounts;
use crate::counts::{NotSent, SendFailures};
use crate::facts::WorkerFacts;
use crate::interval::{Distributions, PathTimes, per};
use crate::scenario::Arrival;

/// Above this share of a CPU a closed-loop worker has no headroom.
const BUSY_SHARE_MAX: f64 = 0.97;
/// From this share of its CPU on, a worker may soon be the limit.
const BUSY_WARNING: f64 = 0.9;
/// From this share of the connections on, ports that are used again are most that there are.
const RECYCLED_MIN: f64 = 0.3;
/// In this share of the time a worker sends this many times less than in its fastest quarter.
const SLOW_MIN: f64 = 0.1;
const SLOWER: u64 = 5;
/// Share of the time that a closed loop's worker may wait for its CPU before it shapes the result.
pub(super) const CPU_WAIT_SHARE_MAX: f64 = 0.10;
/// Share of the time from which on waiting for its CPU accounts for queries that left late.
pub(super) const CPU_WAIT_SHARE_LATE: f64 = 0.05;
/// With fewer queries, the p99 is the lateness of one of them.
const LATENESS_QUERIES_MIN: u64 = 200;
/// An agent is later than the others from this many times their lateness on.
const TIMES_LATER: u64 = 4;
/// From this share of the latency on, timestamps say that it is more this host's than the target's.
const WAITS_WARNING: f64 = 0.5;
/// From this share of the latency's p99 on, it says a third more than the target's own p99: more
/// than objectives leave to chance.
const TAIL_WARNING: f64 = 0.25;
/// Timestamps split the latency's p99 where at least this share of the responses is stamped: of
/// fewer, those without stamps may be the slow ones.
const STAMPED_MIN: f64 = 0.999;

/// A worker without CPU time to spare.
pub(crate) struct OutOfCpu {
    /// The one that had least.
    pub(crate) worker: usize,
    /// The agents of all such workers, by position.
    pub(crate) agents: Vec<usize>,
    pub(crate) shortage: Shortage,
    /// Its agent had used up its CPU quota meanwhile.
    pub(crate) has_quota_used_up: bool,
    /// 99th percentile of the lateness where queries of an open loop left late.
    pub(crate) late_ns: Option<u64>,
}

/// How a worker was short of CPU, with the share of the time.
pub(crate) enum Shortage {
    Used(f64),
    Waited(f64),
}

pub(super) fn out_of_cpu(figures: &Figures<'_>) -> Option<OutOfCpu> {
    let closed = matches!(figures.record.scenario.arrival, Arrival::Closed { .. });
    let late = |worker: usize| figures.lateness_p99_ns_of(worker) > figures.lateness_max_ns();
    let limit = match closed {
        true => BUSY_SHARE_MAX,
        false => BUSY_SHARE_WHEN_LATE,
    };
    let is_out = |worker: usize, it: &WorkerFacts| {
        let (busy, waited) = (it.busy_share(), it.cpu_wait_share());
        let is_short = waited >= CPU_WAIT_SHARE_LATE && busy + waited >= limit;
        // In a closed loop every wait holds up the next query, however idle the worker is
        // otherwise; in an open loop those that it held up left late.
        let is_hindered =
            waited >= CPU_WAIT_SHARE_MAX || late(worker) && waited >= CPU_WAIT_SHARE_LATE;
        busy >= limit || is_short || is_hindered
    };
    // In an open loop, a worker whose queries left in time is short of nothing. Those that waited
    // for a client left late without it.
    let waits_for_clients = steps::are_clients_too_few(figures);
    let all = figures.record.workers.iter().enumerate();
    let workers = all.filter(|(worker, it)| {
        closed || late(*worker) && (!waits_for_clients || it.busy_share() >= limit)
    });
    let agents = || {
        let out = workers.clone().filter(|(worker, it)| is_out(*worker, it));
        let agents = out.filter_map(|(_, it)| it.agent.map(|agent| agent as usize));
        let agents: BTreeSet<usize> = agents.collect();
        agents.into_iter().collect()
    };
    let out = |worker, shortage| OutOfCpu {
        worker,
        agents: agents(),
        late_ns: (late(worker) && !closed).then(|| figures.lateness_p99_ns_of(worker)),
        has_quota_used_up: has_quota_used_up(figures, worker),
        shortage,
    };
    let shares = workers
        .clone()
        .map(|(worker, it)| (worker, it.busy_share()));
    let (worker, busy) = shares.max_by(|a, b| a.1.total_cmp(&b.1))?;
    if busy >= limit {
        return Some(out(worker, Shortage::Used(busy)));
    }
    let by_wait = |a: &WorkerFacts, b: &WorkerFacts| {
        let (a, b) = (a.cpu_wait_share(), b.cpu_wait_share());
        a.total_cmp(&b)
    };
    let (worker, it) = workers.clone().max_by(|a, b| by_wait(a.1, b.1))?;
    is_out(worker, it).then(|| out(worker, Shortage::Waited(it.cpu_wait_share())))
}

/// Position of the worker that waited longest for its CPU, and the share of the time.
pub(super) fn longest_wait(figures: &Figures<'_>) -> (usize, f64) {
    let shares = figures.record.workers.iter().map(|it| it.cpu_wait_share());
    let longest = shares.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
    longest.unwrap_or((0, 0.0))
}

/// A worker that has little CPU time left, without harm that shows.
pub(crate) struct BusyWorker {
    pub(crate) worker: usize,
    pub(crate) busy: f64,
}

pub(super) fn busy_worker(figures: &Figures<'_>) -> Option<BusyWorker> {
    let (worker, busy) = figures.busiest_worker().filter(|it| it.1 >= BUSY_WARNING)?;
    out_of_cpu(figures)
        .is_none()
        .then_some(BusyWorker { worker, busy })
}

/// Local ports that the kernel gave to new connections while earlier ones still had them in
/// TIME_WAIT (`TcpExt.TWRecycled`), and looked for them at length.
pub(crate) struct PortsRecycled {
    pub(crate) recycled: u64,
    pub(crate) worker: usize,
    pub(crate) busy: f64,
    /// Share of the time in which the worker was slow.
    pub(crate) slow: f64,
}

/// Where most ports are in use, each connect(2) looks at all of them: the worker is busy and hardly
/// sends until some have been left for a second, and sends as fast as before then.
pub(super) fn ports_recycled(figures: &Figures<'_>) -> Option<PortsRecycled> {
    let record = figures.record;
    let (worker, busy) = figures.busiest_worker().filter(|it| it.1 >= BUSY_WARNING)?;
    let recycled = record.network.kernel_counter("TcpExt.TWRecycled");
    let opened = record.connections().established;
    let are_most = figures.connects_over_tcp() && recycled as f64 >= RECYCLED_MIN * opened as f64;
    let bins = record.timeline.as_ref().filter(|_| are_most)?.bins();
    let mut sent: Vec<u64> = bins.iter().map(|it| it.sent).collect();
    sent.sort_unstable();
    let usual = sent.get(sent.len() * 3 / 4)?;
    let slow = sent.iter().take_while(|it| SLOWER * **it < *usual).count();
    let slow = per(slow as f64, sent.len() as f64);
    (slow >= SLOW_MIN).then_some(PortsRecycled {
        recycled,
        worker,
        busy,
        slow,
    })
}

/// Queries that left late though no worker was out of CPU; the figures are those of the latest
/// agent, where some are later than the others.
pub(crate) struct LateSends {
    pub(crate) lateness_ns: u64,
    /// The late agents among several, by position, the latest first.
    pub(crate) agents: Vec<usize>,
    pub(crate) busy: f64,
    pub(crate) waited: f64,
    /// The agent of the worker that waited longest had used up its CPU quota meanwhile.
    pub(crate) has_quota_used_up: bool,
}

/// UDP queries leave when they are due unless the host stalls the worker: over connections they
/// may have to wait for one, which is not the generator's fault.
pub(super) fn late_sends(figures: &Figures<'_>) -> Option<LateSends> {
    let scenario = &figures.record.scenario;
    let open = !matches!(scenario.arrival, Arrival::Closed { .. });
    let sent = figures.record.total.distributions.send_lateness.count();
    let is_late =
        figures.lateness_p99_ns > figures.lateness_max_ns() && sent >= LATENESS_QUERIES_MIN;
    let is_known = out_of_cpu(figures).is_some();
    if !open || scenario.transport.has_connections() || is_known {
        return None;
    }
    let late = late_agents(figures).map_or_else(Vec::new, |it| it.late);
    let enough = |it: &&(usize, AgentLoad)| it.1.queries >= LATENESS_QUERIES_MIN;
    let agents = late.iter().filter(enough).map(|it| it.0).collect();
    if let Some((_, worst)) = late.iter().find(enough) {
        return Some(LateSends {
            lateness_ns: worst.lateness_ns,
            agents,
            busy: worst.busy,
            waited: worst.waited,
            has_quota_used_up: worst.has_quota_used_up,
        });
    }
    is_late.then(|| LateSends {
        lateness_ns: figures.lateness_p99_ns,
        agents,
        busy: figures.busiest_worker().unwrap_or((0, 0.0)).1,
        waited: longest_wait(figures).1,
        has_quota_used_up: has_quota_used_up(figures, longest_wait(figures).0),
    })
}

/// Agents that sent late, beside others that did not.
pub(crate) struct LateAgents {
    /// The late ones by position, the latest first.
    pub(crate) late: Vec<(usize, AgentLoad)>,
    /// All agents.
    pub(crate) all: usize,
    /// The greatest lateness of the others.
    pub(crate) others_ns: u64,
}

/// How late the queries of an agent left, and how busy it was, by its worst worker.
#[derive(Clone, Default)]
pub(crate) struct AgentLoad {
    pub(crate) lateness_ns: u64,
    pub(crate) busy: f64,
    pub(crate) waited: f64,
    pub(crate) has_quota_used_up: bool,
    queries: u64,
}

impl AgentLoad {
    fn add(&mut self, worker: &WorkerFacts) {
        self.queries += worker.queries;
        let lateness_ns = worker.send_lateness_p99_ns.unwrap_or_default();
        self.lateness_ns = self.lateness_ns.max(lateness_ns);
        self.busy = self.busy.max(worker.busy_share());
        self.waited = self.waited.max(worker.cpu_wait_share());
    }
}

pub(super) fn late_agents(figures: &Figures<'_>) -> Option<LateAgents> {
    let record = figures.record;
    let mut each = vec![AgentLoad::default(); record.agents.len()];
    for (position, worker) in record.workers.iter().enumerate() {
        let agent = each.get_mut(worker.agent? as usize)?;
        agent.add(worker);
        agent.has_quota_used_up |= has_quota_used_up(figures, position);
    }
    // Of all its queries, where the agent has counted that.
    for (load, agent) in each.iter_mut().zip(&record.agents) {
        let own = agent.counts.and_then(|it| it.send_lateness_p99_ns);
        load.lateness_ns = own.unwrap_or(load.lateness_ns);
    }
    let mut sorted: Vec<u64> = each.iter().map(|it| it.lateness_ns).collect();
    sorted.sort_unstable();
    let usual_ns = *sorted.get((sorted.len().checked_sub(1)?) / 2)?;
    let limit_ns = figures.lateness_max_ns().max(TIMES_LATER * usual_ns);
    let all = each.len();
    let each = each.into_iter().enumerate();
    let (mut late, others): (Vec<_>, Vec<_>) = each.partition(|(_, it)| it.lateness_ns > limit_ns);
    late.sort_by_key(|(_, it)| std::cmp::Reverse(it.lateness_ns));
    let others = others.iter().map(|(_, it)| it.lateness_ns);
    (!late.is_empty() && all > 1).then(|| LateAgents {
        late,
        all,
        others_ns: others.max().unwrap_or_default(),
    })
}

/// Latency that passed within this host, by the timestamps of datagrams.
pub(crate) struct WaitsInHost {
    /// Shares of the mean latency until queries left and until responses were read, where they
    /// are half of it.
    pub(crate) of_mean: Option<(f64, f64)>,
    /// The same of its 99th percentile, where they are a quarter of it.
    pub(crate) of_tail: Option<TailWaits>,
    /// Responses waited longer to be read than queries to leave.
    pub(crate) is_late_reader: bool,
    /// The agents among several at whose hosts that is so of the mean, by position, that with the
    /// greatest share first; `of_mean` is of it.
    pub(crate) agents: Vec<usize>,
}

/// 99th percentiles of the latency and of its parts.
pub(crate) struct TailWaits {
    pub(crate) share: f64,
    pub(crate) whole_ns: u64,
    pub(crate) generator_ns: u64,
    pub(crate) network_ns: u64,
    pub(crate) reader_ns: u64,
}

pub(super) fn waits_in_host(figures: &Figures<'_>) -> Option<WaitsInHost> {
    let distributions = &figures.record.total.distributions;
    let path = &distributions.path;
    let (of_all, of_tail) = (waits_in_mean(path), waits_in_tail(distributions));
    let waits = |it: &AgentCounts| {
        let (sending, reading) = it.waits_in_host();
        sending + reading
    };
    let agents = worst_agents(figures, |it| {
        Some(waits(it)).filter(|it| *it >= WAITS_WARNING)
    });
    let worst = agents.first().and_then(|it| figures.counts_of_agent(*it));
    let of_mean = worst.map(AgentCounts::waits_in_host).or(of_all);
    let is_late_reader = match of_mean {
        Some((sending, reading)) if worst.is_some() => reading > sending,
        _ => path.reader.percentile(0.99) > path.generator.percentile(0.99),
    };
    (of_mean.is_some() || of_tail.is_some()).then_some(WaitsInHost {
        of_mean,
        of_tail,
        is_late_reader,
        agents,
    })
}

/// The agents among several that have an amount, by position, that with the largest first: a sum
/// over all agents would hide one.
pub(super) fn worst_agents(
    figures: &Figures<'_>,
    amount: impl Fn(&AgentCounts) -> Option<f64>,
) -> Vec<usize> {
    let all = 0..figures.record.agents.len();
    let each = all.filter_map(|it| Some((it, amount(figures.counts_of_agent(it)?)?)));
    let mut each: Vec<(usize, f64)> = each.collect();
    each.sort_by(|a, b| b.1.total_cmp(&a.1));
    each.into_iter().map(|(agent, _)| agent).collect()
}

fn waits_in_mean(path: &PathTimes) -> Option<(f64, f64)> {
    let [generator, network, reader] =
        [&path.generator, &path.network, &path.reader].map(|part| part.sum_ns() as f64);
    let all = generator + network + reader;
    let is_much = per(generator + reader, all) >= WAITS_WARNING;
    is_much.then(|| (per(generator, all), per(reader, all)))
}

/// Percentiles of parts do not add up; but of no response does the part between take longer than
/// all of it, so that what its p99 is below that of the latency is the doing of the others.
fn waits_in_tail(distributions: &Distributions) -> Option<TailWaits> {
    let (all, path) = (&distributions.latency, &distributions.path);
    if (path.network.count() as f64) < STAMPED_MIN * all.count() as f64 {
        return None;
    }
    let [whole, generator, network, reader] =
        [all, &path.generator, &path.network, &path.reader].map(|part| part.percentile(0.99));
    let (whole_ns, network_ns) = (whole?, network?);
    let share = per(whole_ns.saturating_sub(network_ns) as f64, whole_ns as f64);
    let is_much = share >= TAIL_WARNING;
    is_much.then_some(TailWaits {
        share,
        whole_ns,
        generator_ns: generator?,
        network_ns,
        reader_ns: reader?,
    })
}

/// Connection attempts that failed for lack of something on this host.
pub(crate) struct NoResources {
    pub(crate) number: u64,
    /// Local ports were missing; else files or memory.
    pub(crate) are_ports: bool,
    /// The agents among several that this happened to, by position, the one with most first.
    pub(crate) agents: Vec<usize>,
    are_many: bool,
}

impl NoResources {
    pub(crate) fn are_many(&self) -> bool {
        self.are_many
    }
}

pub(super) fn no_resources(figures: &Figures<'_>) -> Option<NoResources> {
    let connections = figures.record.connections();
    let failed = connections.failed;
    let (others, ports) = (failed.no_resources, failed.no_local_port);
    if others + ports == 0 {
        return None;
    }
    let are_ports = ports > others;
    let number = others.max(ports);
    let of_agent = |it: &AgentCounts| match are_ports {
        true => it.no_local_port,
        false => it.no_resources,
    };
    let failed = |it: &AgentCounts| Some(of_agent(it) as f64).filter(|number| *number > 0.0);
    Some(NoResources {
        number,
        are_ports,
        agents: worst_agents(figures, failed),
        are_many: (others + ports) as f64 > LOSS_MAX * connections.attempted as f64,
    })
}

/// Queries that were not sent because their client had no message ID left.
pub(crate) struct NoMessageId {
    pub(crate) number: u64,
    are_many: bool,
}

impl NoMessageId {
    pub(crate) fn are_many(&self) -> bool {
        self.are_many
    }
}

pub(super) fn no_message_id(figures: &Figures<'_>) -> Option<NoMessageId> {
    let number = figures.counts.not_sent.no_free_id;
    (number > 0).then(|| NoMessageId {
        number,
        are_many: significance::is_above(number, figures.counts.offered, LOSS_MAX),
    })
}

/// Queries that the kernel refused to send: of all agents, or of the one with the greatest share.
pub(crate) struct RefusedQueries {
    pub(crate) number: u64,
    pub(crate) offered: u64,
    /// The agents among several, by position, the one with the greatest share first.
    pub(crate) agents: Vec<usize>,
}

pub(crate) struct NoRoute(pub(crate) RefusedQueries);
pub(crate) struct PortClosed(pub(crate) RefusedQueries);

/// Queries that this host refused to send.
pub(crate) struct SendsRefused {
    pub(crate) is_forbidden: bool,
    pub(crate) queries: RefusedQueries,
}

/// The most frequent reason for which the kernel refused datagrams.
#[derive(PartialEq)]
enum Refusal {
    NoRoute,
    Forbidden,
    PortClosed,
    NoBuffer,
}

/// Each agent is judged by its own share, and the kernel's counter of its host.
fn refusal(figures: &Figures<'_>) -> Option<(Refusal, RefusedQueries)> {
    let of_agent = |position: usize| {
        let host = figures.record.agents.get(position)?.host as usize;
        let kernel = figures.kernels().get(host)?;
        let counted = kernel.get("Udp.SndbufErrors").copied().unwrap_or(0);
        let it = figures.counts_of_agent(position)?;
        let why = refusal_of((it.send_failed, it.offered), it.send_failed_for, counted)?;
        Some((why, it, position))
    };
    let mut each: Vec<_> = (0..figures.record.agents.len())
        .filter_map(of_agent)
        .collect();
    let share = |it: &AgentCounts| per(it.send_failed as f64, it.offered as f64);
    each.sort_by(|a, b| share(b.1).total_cmp(&share(a.1)));
    let agents = each.iter().map(|it| it.2).collect();
    if let Some((why, worst, _)) = each.into_iter().next() {
        let queries = RefusedQueries {
            number: worst.send_failed,
            offered: worst.offered,
            agents,
        };
        return Some((why, queries));
    }
    let counts = figures.counts;
    let (number, offered) = (counts.not_sent.send_failed, counts.offered);
    let counted = figures.record.network.kernel_counter("Udp.SndbufErrors");
    let why = refusal_of((number, offered), counts.not_sent.send_failed_for, counted)?;
    let queries = RefusedQueries {
        number,
        offered,
        agents,
    };
    Some((why, queries))
}

/// Why `send_failed` queries of those offered were refused, if they are many; not where the
/// kernel's own counter names its send buffer.
fn refusal_of(
    (send_failed, offered): (u64, u64),
    why: SendFailures,
    buffer_errors: u64,
) -> Option<Refusal> {
    let is_counted = buffer_errors >= send_failed / 2;
    if !significance::is_above(send_failed, offered, LOSS_MAX) || is_counted {
        return None;
    }
    // Names every field, so that a new one cannot be forgotten here.
    let SendFailures {
        unreachable,
        forbidden,
        refused,
        no_resources,
        other,
    } = why;
    let causes = [
        (unreachable, Refusal::NoRoute),
        (forbidden, Refusal::Forbidden),
        (refused, Refusal::PortClosed),
        (no_resources + other, Refusal::NoBuffer),
    ];
    let most = causes.into_iter().filter(|(number, _)| *number > 0);
    let most = most.max_by_key(|(number, _)| *number);
    Some(most.map_or(Refusal::NoBuffer, |(_, refusal)| refusal))
}

pub(super) fn no_route(figures: &Figures<'_>) -> Option<NoRoute> {
    let (why, queries) = refusal(figures)?;
    (why == Refusal::NoRoute).then_some(NoRoute(queries))
}

pub(super) fn port_closed(figures: &Figures<'_>) -> Option<PortClosed> {
    let (why, queries) = refusal(figures)?;
    (why == Refusal::PortClosed).then_some(PortClosed(queries))
}

pub(super) fn sends_refused(figures: &Figures<'_>) -> Option<SendsRefused> {
    match refusal(figures)? {
        (Refusal::NoRoute | Refusal::PortClosed, _) => None,
        (why, queries) => Some(SendsRefused {
            is_forbidden: why == Refusal::Forbidden,
            queries,
        }),
    }
}

/// True if this host's own rules forbade most of the sends that its kernel refused.
pub(crate) fn sends_are_forbidden(figures: &Figures<'_>) -> bool {
    let not_sent = &figures.counts.not_sent;
    let forbidden = not_sent.send_failed_for.forbidden;
    forbidden > 0 && 2 * forbidden >= not_sent.send_failed
}

/// Queries that were due and did not leave, by reason.
pub(crate) struct NotSentQueries {
    pub(crate) by_reason: Vec<(NotSentReason, u64)>,
}

#[derive(Clone, Copy)]
pub(crate) enum NotSentReason {
    WaitedForConnection,
    NoRoute,
    Forbidden,
    PortClosed,
    /// Full buffers, or a reason that the record does not have.
    RefusedByKernel,
    RunEnded,
}

impl NotSentQueries {
    /// True if `number` of those offered is more than can be ignored.
    pub(crate) fn are_many(number: u64, offered: u64) -> bool {
        number as f64 > LOSS_MAX * offered as f64
    }
}

pub(super) fn not_sent(figures: &Figures<'_>) -> Option<NotSentQueries> {
    // Names every field, so that a new one cannot be forgotten here.
    let NotSent {
        timed_out_waiting,
        // A symptom of its own.
        no_free_id: _,
        send_failed,
        send_failed_for: why,
        run_ended,
    } = figures.counts.not_sent;
    let of_others = why.unreachable + why.forbidden + why.refused;
    let mut by_reason = vec![
        (NotSentReason::WaitedForConnection, timed_out_waiting),
        (NotSentReason::NoRoute, why.unreachable),
        (NotSentReason::Forbidden, why.forbidden),
        (NotSentReason::PortClosed, why.refused),
        (
            NotSentReason::RefusedByKernel,
            send_failed.saturating_sub(of_others),
        ),
        (NotSentReason::RunEnded, run_ended),
    ];
    by_reason.retain(|(_, number)| *number > 0);
    (!by_reason.is_empty()).then_some(NotSentQueries { by_reason })
}
