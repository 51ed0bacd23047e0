//! What the kernel of the generator's host counted: CPU taken away, and packets that it dropped.

use std::collections::BTreeMap;

use super::Figures;
use super::connections::{SYN_AGAIN_NS, number_in};
use super::generator::worst_agents;
use super::losses::{LOSS_MAX, timeout_outgrown};
use super::{service, significance};
use crate::doctor::STEAL_WARNING;
use crate::facts::{CpuUse, QuotaUse};
use crate::interval::per;
use crate::record::RunRecord;
use crate::scenario::Transport;

/// From this share of the periods on, a quota matters...
pub(super) const THROTTLED: f64 = 0.05;
/// ... and from this one on it stops a program in nearly all of them.
pub(super) const ALWAYS_THROTTLED: f64 = 0.9;
/// From this share of the time on, a quota that stops the generator shapes the result.
const THROTTLED_MUCH: f64 = 0.02;
/// From this many seconds in each second on, a target that waits for CPUs answers late.
const TARGET_WAITED: f64 = 0.05;
/// From this share of the time on, a target that its quota stops is limited by it.
const MOSTLY_STOPPED: f64 = 0.5;
/// Others that use fewer CPUs hardly keep anything waiting.
const OTHERS_MIN: f64 = 0.1;
/// Others that use less than this share of what the target waited are not why it did...
const OTHERS_OF_WAITED: f64 = 0.25;
/// ... unless it waited that many times as long as its threads can have waited for each other...
const BEYOND_OWN: f64 = 2.0;
/// ... and at most that many times as long as they can have waited for the others.
const BY_OTHERS_MAX: f64 = 2.0;
/// Losses below this share of the queries sent are not worth a verdict.
const LOSS_MIN: f64 = 0.0001;

/// Hosts that show something, by position, those that show it most first: a mean over all hosts
/// would hide one.
pub(crate) struct SomeHosts(pub(crate) Vec<usize>);

impl SomeHosts {
    /// Those where `amount` is at least `least`, and more than nothing; with the largest amount.
    fn with(
        figures: &Figures<'_>,
        least: f64,
        amount: impl Fn(&Kernel) -> f64,
    ) -> Option<(SomeHosts, f64)> {
        let each = figures.kernels().iter().map(amount).enumerate();
        let mut each: Vec<(usize, f64)> = each.filter(|it| it.1 > 0.0 && it.1 >= least).collect();
        each.sort_by(|a, b| b.1.total_cmp(&a.1));
        let most = each.first()?.1;
        let hosts = each.into_iter().map(|(host, _)| host).collect();
        Some((SomeHosts(hosts), most))
    }

    /// The agents on them, by position.
    pub(crate) fn agents(&self, record: &RunRecord) -> Vec<usize> {
        let on = |host: &usize| {
            let host = *host as u64;
            (0..record.agents.len()).filter(move |agent| record.agents[*agent].host == host)
        };
        self.0.iter().flat_map(on).collect()
    }
}

/// What one kernel counted.
type Kernel = BTreeMap<String, u64>;

fn counter(kernel: &Kernel, name: &str) -> f64 {
    kernel.get(name).copied().unwrap_or(0) as f64
}

pub(crate) struct Steal {
    /// At the host where it was most.
    pub(crate) share: f64,
    pub(crate) at: SomeHosts,
}

pub(super) fn steal(figures: &Figures<'_>) -> Option<Steal> {
    let share = |kernel: &Kernel| per(counter(kernel, "Cpu.Steal"), counter(kernel, "Cpu.All"));
    let (at, share) = SomeHosts::with(figures, STEAL_WARNING, share)?;
    Some(Steal { share, at })
}

/// An agent's CPU quota was used up; the figures are of the one that was stopped longest.
pub(crate) struct QuotaUsed {
    /// Periods in which it was stopped.
    pub(crate) periods: u64,
    /// All periods in which it ran; none in a record of a version that did not write it.
    pub(crate) of_periods: Option<u64>,
    pub(crate) throttled_ns: f64,
    pub(crate) at: SomeHosts,
    is_much: bool,
}

impl QuotaUsed {
    pub(crate) fn is_much(&self) -> bool {
        self.is_much
    }
}

pub(super) fn quota_used(figures: &Figures<'_>) -> Option<QuotaUsed> {
    // Periods decide between those whose kernel does not say how long they were stopped.
    let stopped = |kernel: &Kernel| {
        let periods = counter(kernel, "Cgroup.Throttled");
        let order = periods / (1.0 + periods);
        (throttled_ns(kernel) + order) * f64::from(u8::from(periods > 0.0))
    };
    let (at, _) = SomeHosts::with(figures, 0.0, stopped)?;
    let worst = figures.kernels().get(*at.0.first()?)?;
    Some(QuotaUsed {
        periods: counter(worst, "Cgroup.Throttled") as u64,
        of_periods: worst.get("Cgroup.Periods").copied(),
        throttled_ns: throttled_ns(worst),
        is_much: is_throttled_much(figures, worst),
        at,
    })
}

fn throttled_ns(kernel: &Kernel) -> f64 {
    counter(kernel, "Cgroup.ThrottledMicroseconds") * 1e3
}

fn is_throttled_much(figures: &Figures<'_>, kernel: &Kernel) -> bool {
    per(throttled_ns(kernel), figures.record.measured_ns as f64) >= THROTTLED_MUCH
}

/// True if the worker at `position` waited for its CPU because its agent had used up its quota,
/// whose groups the kernel does not let run until the next period.
pub(super) fn has_quota_used_up(figures: &Figures<'_>, position: usize) -> bool {
    let worker = figures.record.workers.get(position);
    let kernel = worker.and_then(|it| figures.kernels().get(it.host as usize));
    kernel.is_some_and(|kernel| is_throttled_much(figures, kernel))
}

/// The CPU quota of a target on this host, which is not observed, was used up.
pub(crate) struct TargetThrottled {
    pub(crate) quota: QuotaUse,
    is_much: bool,
}

impl TargetThrottled {
    pub(crate) fn is_much(&self) -> bool {
        self.is_much
    }
}

pub(super) fn target_throttled(figures: &Figures<'_>) -> Option<TargetThrottled> {
    let host = figures.record.host_use.as_ref()?;
    let quota = host.target_quota?;
    let share = per(quota.throttled as f64, quota.periods as f64);
    let stopped = per(quota.throttled_ns as f64, host.wall_ns as f64);
    let is_shown = share >= THROTTLED && figures.programs.is_empty();
    is_shown.then_some(TargetThrottled {
        quota,
        is_much: share >= ALWAYS_THROTTLED || stopped >= MOSTLY_STOPPED,
    })
}

/// A target on this host that other processes kept from its CPUs.
pub(crate) struct TargetStarved {
    /// Seconds in each second, of all its threads.
    pub(crate) waited: f64,
    /// The other processes, in a sentence.
    pub(crate) others: String,
}

pub(super) fn target_starved(figures: &Figures<'_>) -> Option<TargetStarved> {
    target_starved_from(figures, TARGET_WAITED)
}

/// The same of a target that waited for at least that many seconds in each second.
pub(crate) fn target_starved_from(figures: &Figures<'_>, least: f64) -> Option<TargetStarved> {
    // The kernel counts the time for which a quota stops threads as theirs of waiting.
    let throttled = target_throttled(figures);
    if throttled.as_ref().is_some_and(|it| it.is_much) {
        return None;
    }
    let host = service::others_on_host(figures)?;
    let of_quota_ns = throttled.map_or(0, |it| it.quota.throttled_ns);
    let waited_ns = figures.target_waited_ns()?.saturating_sub(of_quota_ns);
    let waited = per(waited_ns as f64, host.wall_ns as f64);
    let others = host.others_cpus();
    // Threads of a busy target also wait for each other, and for the generator.
    let explain = others >= OTHERS_OF_WAITED * waited
        || (!figures.record.self_test && waited_beyond_own(&host, waited));
    let are_cause = others >= OTHERS_MIN && explain;
    (waited >= least && are_cause).then(|| TargetStarved {
        waited,
        others: host.others_text(),
    })
}

/// True if the target waited much longer than its threads can have waited for each other and for
/// the generator, and not much longer than for the others: each thread for as long as any of these
/// ran.
fn waited_beyond_own(host: &CpuUse, waited: f64) -> bool {
    let seconds = |ns: u64| per(ns as f64, host.wall_ns as f64);
    // A quota stops all threads, whoever runs.
    let is_stopped = host.target_quota.is_some_and(|it| it.throttled > 0);
    let (Some(threads), Some(target_ns)) = (host.target_threads_waiting, host.target_ns) else {
        return false;
    };
    let by_own = threads as f64 * seconds(target_ns + host.own_ns);
    let by_others = threads as f64 * host.others_cpus();
    !is_stopped && waited >= BEYOND_OWN * by_own && waited <= BY_OTHERS_MAX * by_others
}

/// Queries queued at a target that waited for CPUs of others longer than it ran, until none was
/// answered in time.
pub(crate) struct StarvedQueue;

pub(super) fn starved_queue(figures: &Figures<'_>) -> Option<StarvedQueue> {
    timeout_outgrown(figures)?;
    let waited = target_starved(figures)?.waited;
    let host = figures.record.host_use.as_ref()?;
    let ran = per(host.target_ns? as f64, host.wall_ns as f64);
    (waited >= ran).then_some(StarvedQueue)
}

impl RunRecord {
    /// Seconds in each second that the target, on the generator's host, waited for CPUs which
    /// other processes kept busy; none if it did not, or that is unknown.
    pub fn target_waited_for_others(&self) -> Option<f64> {
        target_starved_from(&Figures::of(self), 0.0).map(|it| it.waited)
    }
}

/// Datagrams or frames that the generator's sockets (SO_RXQ_OVFL) or the queues of its interface
/// dropped.
pub(crate) struct OwnReceiveDrops {
    pub(crate) drops: u64,
    /// The agents among several whose buffers or queues those were, by position, the one with most
    /// first.
    pub(crate) agents: Vec<usize>,
    explain_losses: bool,
}

impl OwnReceiveDrops {
    /// At least half of what got no response was dropped here.
    pub(crate) fn explain_losses(&self) -> bool {
        self.explain_losses
    }
}

pub(super) fn own_receive_drops(figures: &Figures<'_>) -> Option<OwnReceiveDrops> {
    let lost = figures.unanswered();
    let drops = received_but_dropped(figures);
    let explain_losses = are_half_of(drops, lost, figures);
    // An interface drops what is of no use to anyone too: that matters if something is missing.
    let is_shown = figures.record.network.receive_drops > 0 || drops > 0 && lost > 0;
    is_shown.then(|| OwnReceiveDrops {
        drops,
        agents: agents_that_dropped(figures),
        explain_losses,
    })
}

/// True if `drops` are at least half of `lost` queries, and these are worth a verdict.
fn are_half_of(drops: u64, lost: u64, figures: &Figures<'_>) -> bool {
    let tried = figures.counts.sent + figures.counts.not_sent.send_failed;
    per(lost as f64, tried as f64) >= LOSS_MIN && drops >= lost.div_ceil(2)
}

fn agents_that_dropped(figures: &Figures<'_>) -> Vec<usize> {
    let each = figures.record.agents.iter().enumerate();
    let each = each.filter_map(|(agent, it)| Some((agent, it.receive_drops?)));
    let mut each: Vec<(usize, u64)> = each.filter(|(_, drops)| *drops > 0).collect();
    each.sort_by_key(|(_, drops)| std::cmp::Reverse(*drops));
    each.into_iter().map(|(agent, _)| agent).collect()
}

/// Datagrams that came to this run's sockets and were dropped before the generator read them.
pub(super) fn received_but_dropped(figures: &Figures<'_>) -> u64 {
    figures.record.network.received_but_dropped()
}

pub(crate) struct OwnSendDrops {
    pub(crate) drops: u64,
    pub(crate) lost: u64,
    pub(crate) at: SomeHosts,
}

pub(super) fn own_send_drops(figures: &Figures<'_>) -> Option<OwnSendDrops> {
    let counts = figures.counts;
    let drops = figures.of_udp("SndbufErrors");
    let lost = figures.unanswered() + counts.not_sent.send_failed;
    let is_udp = figures.record.scenario.transport == Transport::Udp;
    let is_much = significance::is_above(lost, counts.offered, LOSS_MAX);
    let explains = drops >= lost.div_ceil(2) && figures.can_be_of_run(drops);
    let is_shown = !figures.target_is_local() && is_udp && is_much && explains;
    let of_kernel = |kernel: &Kernel| {
        counter(kernel, "Udp.SndbufErrors") + counter(kernel, "Udp6.SndbufErrors")
    };
    let (at, _) = SomeHosts::with(figures, 0.0, of_kernel).filter(|_| is_shown)?;
    Some(OwnSendDrops { drops, lost, at })
}

pub(crate) struct BacklogDrops {
    /// Of all machines.
    pub(crate) packets: u64,
    pub(crate) at: SomeHosts,
    explain_losses: bool,
}

impl BacklogDrops {
    /// They are at least half of what got no response.
    pub(crate) fn explain_losses(&self) -> bool {
        self.explain_losses
    }
}

pub(super) fn backlog_drops(figures: &Figures<'_>) -> Option<BacklogDrops> {
    let name = "Softnet.Dropped";
    let (at, _) = SomeHosts::with(figures, 0.0, |kernel| counter(kernel, name))?;
    let packets = figures.record.network.kernel_counter(name);
    Some(BacklogDrops {
        packets,
        at,
        explain_losses: are_half_of(packets, figures.unanswered(), figures),
    })
}

pub(crate) struct FlowsRefused {
    /// In all network namespaces.
    pub(crate) flows: u64,
    pub(crate) at: SomeHosts,
    explain_losses: bool,
}

impl FlowsRefused {
    /// They are at least half of what got no response or was not sent, or of the connections that
    /// took as long as a second SYN.
    pub(crate) fn explain_losses(&self) -> bool {
        self.explain_losses
    }
}

pub(super) fn flows_refused(figures: &Figures<'_>) -> Option<FlowsRefused> {
    let names = ["Conntrack.Dropped", "Conntrack.InsertFailed"];
    let of_kernel = |kernel: &Kernel| names.iter().map(|name| counter(kernel, name)).sum();
    let (at, _) = SomeHosts::with(figures, 0.0, of_kernel)?;
    let network = &figures.record.network;
    let flows = names.iter().map(|name| network.kernel_counter(name)).sum();
    // The kernel refuses to send what conntrack drops on its way out.
    let lost = figures.unanswered() + figures.counts.not_sent.send_failed;
    let connects = figures.record.connection_times().tcp_connect;
    let delayed = number_in(&connects, &(SYN_AGAIN_NS..u64::MAX));
    let delay_connections = delayed > 0 && flows >= delayed.div_ceil(2);
    Some(FlowsRefused {
        flows,
        at,
        explain_losses: delay_connections || are_half_of(flows, lost, figures),
    })
}

/// Frames that left AF_XDP here and found no room further on.
pub(crate) struct FramesDroppedBeyond {
    pub(crate) by_peer: u64,
    pub(crate) by_interface: u64,
    /// The agents among several whose frames those were, by position, the one with most first.
    pub(crate) agents: Vec<usize>,
}

pub(super) fn frames_dropped_beyond(figures: &Figures<'_>) -> Option<FramesDroppedBeyond> {
    let xdp = figures.record.network.xdp.as_ref()?;
    let is_shown = figures.counts.timeouts > 0 && xdp.dropped_by_peer() > 0;
    is_shown.then_some(FramesDroppedBeyond {
        by_peer: xdp.peer_received_dropped,
        by_interface: xdp.interface_sent_dropped,
        agents: worst_agents(figures, |it| {
            (it.frames_dropped > 0).then_some(it.frames_dropped as f64)
        }),
    })
}
