//! The path to the target, and the models of a simulation, which know what they did.

use super::Figures;
use super::generator::worst_agents;
use super::load;
use super::losses::{LOSS_MAX, outages_of_target, queries_lost};
use super::{set_up, significance};
use crate::agent_counts::AgentCounts;
use crate::interval::per;
use crate::simulation::{ModelledServer, SimulatedNetwork};
use crate::timeline::OutageKind;

/// Fewer ICMP errors may be of what others sent.
const REJECTIONS_MIN: u64 = 3;
/// From this share of TCP segments on, retransmissions set the pace.
const RETRANSMITTED_MAX: f64 = 0.01;
/// Connections with gaps that are no accident.
const GAPS_MIN: u64 = 2;
/// From this share of the workers' time on, modelled workers are the limit.
const BUSY: f64 = 0.98;
/// More datagrams dropped than this share, and the modelled queue was too short for the load.
const DROPPED_MAX: f64 = 0.001;

/// ICMP errors beside queries that were lost, without those that name a closed port. Hosts send one
/// a second or so, however many datagrams they reject.
pub(crate) struct Rejections {
    pub(crate) messages: u64,
}

pub(super) fn rejections(figures: &Figures<'_>) -> Option<Rejections> {
    let of_kernel = |name: &str| figures.record.network.kernel_counter(name);
    let all = of_kernel("Icmp.InDestUnreachs") + of_kernel("Icmp6.InDestUnreachs");
    let messages = all.saturating_sub(figures.counts.port_unreachable);
    // On loopback they are those of any program.
    let may_be_of_run = !figures.target_is_local() && messages >= REJECTIONS_MIN;
    let is_shown = may_be_of_run && queries_lost(figures).is_some();
    is_shown.then_some(Rejections { messages })
}

/// Silence in a run to whose host a firewall or a router sent rejections: the kernel counts these
/// for the whole run.
pub(crate) struct RejectedOutages;

pub(super) fn rejected_outages(figures: &Figures<'_>) -> Option<RejectedOutages> {
    let outages = outages_of_target(figures)?.0;
    let is_silence = outages.longest.kind == OutageKind::Silence;
    (is_silence && rejections(figures).is_some()).then_some(RejectedOutages)
}

/// Segments that the run's own connections lost (TCP_INFO): those of the whole host may be of
/// others.
pub(crate) struct Retransmissions {
    pub(crate) lost: u64,
    pub(crate) sent: u64,
    /// The agents among several that lost more than that, by position, the one with the greatest
    /// share first.
    pub(crate) agents: Vec<usize>,
    are_of_run: bool,
}

impl Retransmissions {
    /// Not of some agents alone: `lost` and `sent` are of all.
    pub(crate) fn are_of_run(&self) -> bool {
        self.are_of_run
    }
}

pub(super) fn retransmissions(figures: &Figures<'_>) -> Option<Retransmissions> {
    let (lost, sent) = own_segments(figures)?;
    let are_of_run = significance::is_above(lost, sent, RETRANSMITTED_MAX);
    let share = |it: &AgentCounts| {
        let (lost, sent) = (it.segments_lost, it.segments_sent);
        let are_many = significance::is_above(lost, sent, RETRANSMITTED_MAX);
        are_many.then(|| per(lost as f64, sent as f64))
    };
    let agents = worst_agents(figures, share);
    let worst = agents.first().and_then(|it| figures.counts_of_agent(*it));
    let (lost, sent) = match worst {
        Some(it) if !are_of_run => (it.segments_lost, it.segments_sent),
        _ => (lost, sent),
    };
    (are_of_run || worst.is_some()).then_some(Retransmissions {
        lost,
        sent,
        agents,
        are_of_run,
    })
}

/// Segments that the run's own connections lost once they were established, and those sent.
pub(super) fn own_segments(figures: &Figures<'_>) -> Option<(u64, u64)> {
    let tcp = figures.record.network.tcp.as_ref()?;
    // On this host a full listen queue counts what it drops, data included.
    let dropped = match figures.target_is_local() {
        true => figures
            .record
            .network
            .kernel_counter("TcpExt.ListenOverflows"),
        false => 0,
    };
    // A SYN that had no answer may have been dropped by a limit on new connections.
    let syns = set_up::syns_sent_again(&figures.record.connection_times().tcp_connect);
    let read = per(tcp.read as f64, tcp.closed as f64).min(1.0);
    let syns = (syns as f64 * read).round() as u64;
    let lost = tcp.segments_lost().saturating_sub(dropped + syns);
    Some((lost, tcp.segments_sent))
}

/// Connections on which queries timed out behind a segment from the target that never came, though
/// later ones did.
#[derive(Clone, Copy)]
pub(crate) struct GapsUnfilled {
    pub(crate) connections: u64,
    /// Connections that were closed.
    pub(crate) closed: u64,
    /// Queries that timed out.
    pub(crate) timeouts: u64,
}

/// What a path loses at random is sent again, and comes a fifth of a second later; what a stopped
/// target has not sent leaves no gap, and comes late.
pub(super) fn gaps_unfilled(figures: &Figures<'_>) -> Option<GapsUnfilled> {
    let tcp = figures.record.network.tcp.as_ref()?;
    let (counts, warmup) = (figures.counts, &figures.record.warmup.counts);
    let timeouts = counts.timeouts + warmup.timeouts;
    let stalled = timeouts.min(figures.record.scenario.clients);
    let gaps = (tcp.out_of_order as f64 * per(tcp.closed as f64, tcp.read as f64)).round() as u64;
    let filled = set_up::answered_later(figures) + counts.late + warmup.late;
    let (own_lost, _) = own_segments(figures)?;
    let are_many = significance::is_above(counts.timeouts, counts.sent, LOSS_MAX);
    let is_shown = gaps >= GAPS_MIN && 2 * gaps >= stalled && 2 * filled.max(own_lost) < gaps;
    (are_many && is_shown).then_some(GapsUnfilled {
        connections: gaps,
        closed: tcp.closed,
        timeouts,
    })
}

/// Fewer replies to ICMP echo requests tell nothing.
const REPLIES_MIN: u64 = 10;
/// Echo requests that wait for less may have waited for the CPU of either host: 2 ms.
const ECHO_WAIT_MIN_NS: u64 = 2_000_000;
/// What waits on the path waits as long as all else there; in a server, queries wait alone.
const WAITED_ALIKE: f64 = 0.7;
/// Shares of echo requests and queries that the same path loses differ by no more than this.
const LOST_ALIKE: f64 = 4.0;

/// ICMP echo requests waited as long as the queries, though no server reads them.
pub(crate) struct QueueOnPath {
    pub(crate) echo_p50_ns: u64,
    pub(crate) queries_p50_ns: u64,
    pub(crate) shortest_ns: u64,
}

pub(super) fn queue_on_path(figures: &Figures<'_>) -> Option<QueueOnPath> {
    let echo = figures.record.network.echo.as_ref()?;
    let (echo_p50_ns, queries_p50_ns) = (echo.times.percentile(0.5)?, figures.service_p50_ns?);
    let shortest_ns = echo.times.min_ns()?.min(figures.path_ns?);
    let waited_ns = echo_p50_ns.saturating_sub(shortest_ns);
    let is_queue = waited_ns >= ECHO_WAIT_MIN_NS && echo.times.count() >= REPLIES_MIN;
    let queries_waited_ns = queries_p50_ns.saturating_sub(shortest_ns);
    let are_alike = waited_ns as f64 >= WAITED_ALIKE * queries_waited_ns as f64;
    (is_queue && are_alike).then_some(QueueOnPath {
        echo_p50_ns,
        queries_p50_ns,
        shortest_ns,
    })
}

/// ICMP echo requests were lost as queries over UDP were, though no server reads them.
pub(crate) struct EchoesLost {
    pub(crate) lost: u64,
    pub(crate) sent: u64,
}

pub(super) fn echoes_lost(figures: &Figures<'_>) -> Option<EchoesLost> {
    let echo = figures.record.network.echo.as_ref()?;
    queries_lost(figures).filter(|_| !figures.record.scenario.transport.has_connections())?;
    let (lost, sent) = (echo.sent.saturating_sub(echo.times.count()), echo.sent);
    let of_queries = figures.unanswered_share();
    let are_alike = significance::is_above(lost, sent, LOSS_MAX.max(of_queries / LOST_ALIKE))
        && per(lost as f64, sent as f64) <= LOST_ALIKE * of_queries;
    are_alike.then_some(EchoesLost { lost, sent })
}

/// Why the model of a server was the limit.
pub(crate) enum ModelLimit {
    WorkersBusy,
    QueueShort,
    SynsDropped(u64),
}

fn modelled<'a>(figures: &Figures<'a>) -> Option<(&'a ModelledServer, &'a SimulatedNetwork)> {
    let simulation = figures.record.simulation.as_ref()?;
    Some((simulation.server.as_ref()?, &simulation.network))
}

pub(super) fn model_limit(figures: &Figures<'_>) -> Option<ModelLimit> {
    let (server, network) = modelled(figures)?;
    let seen = &server.seen;
    if seen.utilisation >= BUSY {
        return Some(ModelLimit::WorkersBusy);
    }
    if seen.dropped as f64 > DROPPED_MAX * seen.queries as f64 {
        return Some(ModelLimit::QueueShort);
    }
    let are_lost = network.syns_dropped > 0 && figures.counts.lost() > 0;
    are_lost.then_some(ModelLimit::SynsDropped(network.syns_dropped))
}

pub(crate) struct ModelCarried;

/// Open loop, and everything answered: queries that left late waited for their connection, for a
/// simulated generator is never late by itself.
pub(super) fn model_carried(figures: &Figures<'_>) -> Option<ModelCarried> {
    modelled(figures)?;
    let is_all = figures.record.is_open_loop() && figures.counts.lost() == 0;
    let is_behind = load::fell_behind(figures).is_some();
    (is_all && !is_behind && model_limit(figures).is_none()).then_some(ModelCarried)
}

/// What the modelled network lost.
pub(crate) enum ModelLosses {
    /// Packets whose data was sent again later.
    SentAgain { number: u64, is_quic: bool },
    /// Datagrams that were half of what got no response or more.
    Datagrams(u64),
}

/// Not where queries queued at the target.
pub(super) fn model_losses(figures: &Figures<'_>) -> Option<ModelLosses> {
    let network = &figures.record.simulation.as_ref()?.network;
    if significance::growing_latency(figures).is_some() {
        return None;
    }
    let transport = figures.record.scenario.transport;
    if transport.has_connections() {
        let is_quic = transport.is_quic();
        let number = match is_quic {
            true => network.datagrams_lost,
            false => network.segments_lost,
        };
        let least = RETRANSMITTED_MAX * figures.counts.sent as f64;
        let are_many = number > 0 && number as f64 >= least;
        return are_many.then_some(ModelLosses::SentAgain { number, is_quic });
    }
    let is_queued = figures.service_p50_ns >= figures.path_ns.map(|path_ns| 2 * path_ns);
    let is_small = figures.unanswered_share() <= LOSS_MAX;
    let explain = network.datagrams_lost >= figures.unanswered().div_ceil(2);
    let is_shown = !is_small && !is_queued && explain;
    is_shown.then_some(ModelLosses::Datagrams(network.datagrams_lost))
}
