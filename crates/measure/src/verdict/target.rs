//! Rules 3 and 4: drops that this host can see, and connections the target does not want.

use super::rules::{enough, losses};
use super::{Figures, Finding, Limit};
use crate::facts::XdpFacts;
use crate::notation::{count, counted, share};
use crate::scenario::Transport;

/// Losses below this share of the queries sent are not worth a verdict.
const LOSS_MIN: f64 = 0.0001;
/// From this share of TCP segments on, retransmissions set the pace.
const RETRANSMITTED_MAX: f64 = 0.01;

/// Rule 3: drops on this host, or TCP retransmissions, explain the losses.
pub(super) fn network(figures: &Figures<'_>) -> Option<Finding> {
    receive_drops(figures)
        .or_else(|| send_drops(figures))
        .or_else(|| retransmissions(figures))
}

pub(super) fn receive_drops(figures: &Figures<'_>) -> Option<Finding> {
    let network = &figures.record.network;
    let lost = figures.unanswered();
    let drops = received_but_dropped(figures);
    if figures.unanswered_share() < LOSS_MIN || drops < lost.div_ceil(2) {
        return None;
    }
    let evidence = format!(
        "{}, {} of the {} without response",
        dropped_here(figures, drops),
        share(drops.min(lost), lost),
        count(lost)
    );
    let advice = match network.xdp {
        None => "raise net.core.rmem_max, or give the generator another worker",
        Some(_) => QUEUES_ADVICE,
    };
    Some(Finding::new(Limit::Network, evidence, advice))
}

/// Datagrams that came to this run's sockets and were dropped before this tool could read them.
pub(super) fn received_but_dropped(figures: &Figures<'_>) -> u64 {
    let network = &figures.record.network;
    let before_ring = network.xdp.as_ref().map(XdpFacts::dropped_before_ring);
    network.receive_drops + before_ring.unwrap_or(0)
}

/// What to do about queues of an interface whose length is given.
pub(super) const QUEUES_ADVICE: &str = "ask for fewer queries at a time (--rate, --outstanding), \
    or give the generator a core of its own: a queue of AF_XDP holds 4,096 frames, one of a veth \
    pair 256";

/// What dropped so many of those that came to this host.
pub(super) fn dropped_here(figures: &Figures<'_>, drops: u64) -> String {
    match figures.record.network.xdp {
        None => format!(
            "full receive buffers on this host dropped {}",
            counted(drops, "datagram")
        ),
        Some(_) => format!(
            "full receive queues of the interface dropped {}",
            counted(drops, "frame")
        ),
    }
}

/// Frames that left AF_XDP here and found no room further on, where some queries got no response.
pub(super) fn dropped_beyond(figures: &Figures<'_>) -> Option<String> {
    let xdp = figures.record.network.xdp.as_ref()?;
    if figures.counts.timeouts == 0 || xdp.dropped_by_peer() == 0 {
        return None;
    }
    let both = [
        (
            xdp.peer_received_dropped,
            "dropped at the other end of the veth pair, where nobody read them in time",
        ),
        (
            xdp.interface_sent_dropped,
            "dropped on leaving the interface, whose queue was full, or that of the other end of a \
             veth pair",
        ),
    ];
    let told = both.into_iter().filter(|(frames, _)| *frames > 0);
    let told = told.map(|(frames, what)| format!("{} {what}", counted(frames, "frame")));
    Some(told.collect::<Vec<_>>().join("; "))
}

pub(super) fn send_drops(figures: &Figures<'_>) -> Option<Finding> {
    let (counts, transport) = (figures.counts, figures.record.scenario.transport);
    let drops = of_udp(figures, "SndbufErrors");
    let lost = figures.unanswered() + counts.not_sent.send_failed;
    let is_much = enough::is_above(lost, counts.offered, losses::LOSS_MAX);
    let explains = drops >= lost.div_ceil(2) && can_be_of_run(figures, drops);
    if figures.target_is_local() || transport != Transport::Udp || !is_much || !explains {
        return None;
    }
    let evidence = format!(
        "the kernel of this host dropped {} on sending (Udp.SndbufErrors), and {} got no response",
        counted(drops, "datagram"),
        counted(lost, "query")
    );
    let advice = "raise net.core.wmem_max, or lower the rate: the link or its queue is full";
    Some(Finding::new(Limit::Network, evidence, advice))
}

/// Segments that our own connections lost (TCP_INFO): those of the whole host are of everybody.
pub(super) fn retransmissions(figures: &Figures<'_>) -> Option<Finding> {
    let tcp = figures.record.network.tcp.as_ref()?;
    let (lost, sent) = (tcp.segments_lost(), tcp.segments_sent);
    if !enough::is_above(lost, sent, RETRANSMITTED_MAX) {
        return None;
    }
    let evidence = format!(
        "{} of the TCP segments of this run's connections ({}) were lost and sent again: the path \
         loses them",
        share(lost, sent),
        count(lost)
    );
    Some(Finding::new(
        Limit::Network,
        evidence,
        "look for drops on the way to the target",
    ))
}

/// With the target on the same host, its receive drops show in the host's counters.
pub(super) fn receive_drops_of_local_target(figures: &Figures<'_>) -> Option<String> {
    let of_target = dropped_by_local_target(figures);
    (of_target > 0).then(|| {
        format!(
            "receive buffers on this host that are not this tool's dropped {}: the target did \
             not read them in time",
            counted(of_target, "datagram")
        )
    })
}

/// Datagrams for which the receive buffers of a target on this host had no room, where queries were
/// lost.
pub(super) fn dropped_by_local_target(figures: &Figures<'_>) -> u64 {
    let network = &figures.record.network;
    let all = of_udp(figures, "RcvbufErrors");
    let of_others = all.saturating_sub(network.receive_drops);
    match figures.target_is_local() && can_be_of_run(figures, of_others) {
        true => of_others,
        false => 0,
    }
}

/// A counter of the host's, over both versions of IP.
fn of_udp(figures: &Figures<'_>, name: &str) -> u64 {
    let counter = |group| {
        figures
            .record
            .network
            .kernel_counter(&format!("{group}.{name}"))
    };
    counter("Udp") + counter("Udp6")
}

/// Counters of a host count what others do there too. Each datagram of this run that is dropped is
/// a query that is lost, or sent again.
fn can_be_of_run(figures: &Figures<'_>, drops: u64) -> bool {
    let warmup = &figures.record.warmup.counts;
    let lost = figures.counts.lost() + warmup.lost();
    let missing = lost + figures.counts.stub.retransmitted + warmup.stub.retransmitted;
    drops <= missing + missing / 10
}

/// From this share of the queries sent on, those that HTTP or their stream ended matter.
const ENDED_MAX: f64 = 0.01;

/// Queries that HTTP or their stream ended, as a sentence with all causes.
pub(super) fn ended_exchanges(figures: &Figures<'_>) -> Option<String> {
    let ended = &figures.counts.exchange_failures;
    if ended.total() == 0 {
        return None;
    }
    let causes = ended.by_cause(figures.record.scenario.transport);
    let causes: Vec<String> = causes
        .iter()
        .map(|(cause, number)| format!("{} {cause}", count(*number)))
        .collect();
    Some(format!(
        "{} of the queries were answered without a DNS message: {}",
        share(ended.total(), figures.counts.sent),
        causes.join(", ")
    ))
}

/// Rule 4: the target answers, but not with DNS: it turns queries away, or cannot do them.
pub(super) fn exchanges(figures: &Figures<'_>) -> Option<Finding> {
    let ended = &figures.counts.exchange_failures;
    if !enough::is_above(ended.total(), figures.counts.sent, ENDED_MAX) {
        return None;
    }
    let evidence = ended_exchanges(figures)?;
    let advice = if 2 * ended.turned_away() >= ended.total() {
        "the target limits the rate of its clients, which is not what it can take: raise that \
         limit, or spread the clients over more addresses with --local-address"
    } else {
        "the figures are of the other queries alone: look at path and method of the request, and \
         at the target's log"
    };
    Some(Finding::new(Limit::Server, evidence, advice))
}
