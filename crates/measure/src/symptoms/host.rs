//! What the kernel of the generator's host counted: CPU taken away, and packets that it dropped.

use super::Figures;
use super::losses::LOSS_MAX;
use super::{service, significance};
use crate::doctor::STEAL_WARNING;
use crate::facts::XdpFacts;
use crate::interval::per;
use crate::scenario::Transport;

/// From this share of the time on, a quota that stops the generator shapes the result.
const THROTTLED_MUCH: f64 = 0.02;
/// From this many seconds in each second on, a target that waits for CPUs answers late.
const TARGET_WAITED: f64 = 0.05;
/// Others that use fewer CPUs hardly keep anything waiting.
const OTHERS_MIN: f64 = 0.1;
/// Others that use less than this share of what the target waited are not why it did.
const OTHERS_OF_WAITED: f64 = 0.25;
/// Losses below this share of the queries sent are not worth a verdict.
const LOSS_MIN: f64 = 0.0001;

pub(crate) struct Steal {
    pub(crate) share: f64,
}

pub(super) fn steal(figures: &Figures<'_>) -> Option<Steal> {
    let network = &figures.record.network;
    let stolen = network.kernel_counter("Cpu.Steal") as f64;
    let share = per(stolen, network.kernel_counter("Cpu.All") as f64);
    (share >= STEAL_WARNING).then_some(Steal { share })
}

pub(crate) struct QuotaUsed {
    pub(crate) periods: u64,
    pub(crate) throttled_ns: f64,
    is_much: bool,
}

impl QuotaUsed {
    pub(crate) fn is_much(&self) -> bool {
        self.is_much
    }
}

pub(super) fn quota_used(figures: &Figures<'_>) -> Option<QuotaUsed> {
    let network = &figures.record.network;
    let periods = network.kernel_counter("Cgroup.Throttled");
    let throttled_ns = network.kernel_counter("Cgroup.ThrottledMicroseconds") as f64 * 1e3;
    let share = per(throttled_ns, figures.record.measured_ns as f64);
    (periods > 0).then_some(QuotaUsed {
        periods,
        throttled_ns,
        is_much: share >= THROTTLED_MUCH,
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
    let host = service::others_on_host(figures)?;
    let waited = per(target_waited_ns(figures)? as f64, host.wall_ns as f64);
    let others = host.others_cpus();
    // Threads of a busy target also wait for each other, and for the generator.
    let are_cause = others >= OTHERS_MIN && others >= OTHERS_OF_WAITED * waited;
    (waited >= least && are_cause).then(|| TargetStarved {
        waited,
        others: host.others_text(),
    })
}

/// How long a target on this host waited for CPUs; none if that is unknown.
pub(crate) fn target_waited_ns(figures: &Figures<'_>) -> Option<u64> {
    let record = figures.record;
    match record.self_test {
        true => record.responder.and_then(|it| it.cpu_wait_ns),
        false => record
            .host_use
            .as_ref()
            .filter(|host| host.is_target_here)
            .and_then(|host| host.target_wait_ns),
    }
}

/// Datagrams or frames that the generator's sockets (SO_RXQ_OVFL) or the queues of its interface
/// dropped.
pub(crate) struct OwnReceiveDrops {
    pub(crate) drops: u64,
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
    let explain_losses = figures.unanswered_share() >= LOSS_MIN && drops >= lost.div_ceil(2);
    // An interface drops what is of no use to anyone too: that matters if something is missing.
    let is_shown = figures.record.network.receive_drops > 0 || drops > 0 && lost > 0;
    is_shown.then_some(OwnReceiveDrops {
        drops,
        explain_losses,
    })
}

/// Datagrams that came to this run's sockets and were dropped before the generator read them.
pub(super) fn received_but_dropped(figures: &Figures<'_>) -> u64 {
    let network = &figures.record.network;
    let before_ring = network.xdp.as_ref().map(XdpFacts::dropped_before_ring);
    network.receive_drops + before_ring.unwrap_or(0)
}

pub(crate) struct OwnSendDrops {
    pub(crate) drops: u64,
    pub(crate) lost: u64,
}

pub(super) fn own_send_drops(figures: &Figures<'_>) -> Option<OwnSendDrops> {
    let counts = figures.counts;
    let drops = figures.of_udp("SndbufErrors");
    let lost = figures.unanswered() + counts.not_sent.send_failed;
    let is_udp = figures.record.scenario.transport == Transport::Udp;
    let is_much = significance::is_above(lost, counts.offered, LOSS_MAX);
    let explains = drops >= lost.div_ceil(2) && figures.can_be_of_run(drops);
    let is_shown = !figures.target_is_local() && is_udp && is_much && explains;
    is_shown.then_some(OwnSendDrops { drops, lost })
}

pub(crate) struct BacklogDrops {
    pub(crate) packets: u64,
}

pub(super) fn backlog_drops(figures: &Figures<'_>) -> Option<BacklogDrops> {
    let packets = figures.record.network.kernel_counter("Softnet.Dropped");
    (packets > 0).then_some(BacklogDrops { packets })
}

pub(crate) struct FlowsRefused {
    pub(crate) flows: u64,
}

pub(super) fn flows_refused(figures: &Figures<'_>) -> Option<FlowsRefused> {
    let network = &figures.record.network;
    let counter = |name| network.kernel_counter(name);
    let flows = counter("Conntrack.Dropped") + counter("Conntrack.InsertFailed");
    (flows > 0).then_some(FlowsRefused { flows })
}

/// Frames that left AF_XDP here and found no room further on.
pub(crate) struct FramesDroppedBeyond {
    pub(crate) by_peer: u64,
    pub(crate) by_interface: u64,
}

pub(super) fn frames_dropped_beyond(figures: &Figures<'_>) -> Option<FramesDroppedBeyond> {
    let xdp = figures.record.network.xdp.as_ref()?;
    let is_shown = figures.counts.timeouts > 0 && xdp.dropped_by_peer() > 0;
    is_shown.then_some(FramesDroppedBeyond {
        by_peer: xdp.peer_received_dropped,
        by_interface: xdp.interface_sent_dropped,
    })
}
