//! What the kernel of the generator's host counted: CPU taken away, and packets that it dropped.

use super::Figures;
use super::losses::LOSS_MAX;
use super::significance;
use crate::doctor::STEAL_WARNING;
use crate::facts::XdpFacts;
use crate::interval::per;
use crate::scenario::Transport;

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
}

pub(super) fn quota_used(figures: &Figures<'_>) -> Option<QuotaUsed> {
    let network = &figures.record.network;
    let periods = network.kernel_counter("Cgroup.Throttled");
    (periods > 0).then(|| QuotaUsed {
        periods,
        throttled_ns: network.kernel_counter("Cgroup.ThrottledMicroseconds") as f64 * 1e3,
    })
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
