//! Rules 3 and 4: drops that this host can see, and connections the target does not want.

use super::{Figures, Finding, Limit};
use crate::counts::Connections;
use crate::facts::XdpFacts;
use crate::interval::per;
use crate::notation::{count, counted, share};
use crate::scenario::{Presence, ScenarioRecord};

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
    // Counters of the whole host: with the target on the same host they may be the target's.
    let of_host = match figures.target_is_local() {
        true => 0,
        false => network.kernel_counter("Udp.RcvbufErrors"),
    };
    let before_ring = network.xdp.as_ref().map(XdpFacts::dropped_before_ring);
    let drops = network.receive_drops.max(of_host) + before_ring.unwrap_or(0);
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
    let drops = figures.record.network.kernel_counter("Udp.SndbufErrors");
    if figures.target_is_local() || (drops as f64) < 0.001 * figures.counts.offered as f64 {
        return None;
    }
    let evidence = format!(
        "the kernel of this host dropped {} on sending (Udp.SndbufErrors)",
        counted(drops, "datagram")
    );
    let advice = "raise net.core.wmem_max, or lower the rate: the link or its queue is full";
    (drops > 0).then(|| Finding::new(Limit::Network, evidence, advice))
}

pub(super) fn retransmissions(figures: &Figures<'_>) -> Option<Finding> {
    if !figures.record.scenario.transport.has_connections() {
        return None;
    }
    let network = &figures.record.network;
    let again = network.kernel_counter("Tcp.RetransSegs");
    // Without the number of segments, a query is taken as one, or else a connection.
    let segments = match network.kernel_counter("Tcp.OutSegs") {
        0 => figures
            .counts
            .sent
            .max(figures.counts.connections.attempted),
        segments => segments,
    };
    if again == 0 || per(again as f64, segments as f64) < RETRANSMITTED_MAX {
        return None;
    }
    let evidence = format!(
        "{} of the TCP segments ({}) were sent again: the path loses them",
        share(again, segments),
        count(again)
    );
    Some(Finding::new(
        Limit::Network,
        evidence,
        "look for drops on the way to the target",
    ))
}

/// With the target on the same host, its receive drops show in the host's counters.
pub(super) fn receive_drops_of_local_target(figures: &Figures<'_>) -> Option<String> {
    let network = &figures.record.network;
    let all = network.kernel_counter("Udp.RcvbufErrors");
    let of_target = all.saturating_sub(network.receive_drops);
    (figures.target_is_local() && of_target > 0 && figures.counts.timeouts > 0).then(|| {
        format!(
            "receive buffers on this host that are not this tool's dropped {}: the target did \
             not read them in time",
            counted(of_target, "datagram")
        )
    })
}

/// Connections that the target refused, reset or closed on its own.
fn turned_away(connections: &Connections) -> u64 {
    let failed = &connections.failed;
    let before = failed.refused + failed.reset + failed.closed;
    let after = connections.closed_by_target + connections.reset_by_target;
    before + after + connections.ended_by_goaway.total()
}

/// Connections that the target never accepted: BIND leaves those beyond `tcp-clients` in the
/// listen queue, where the kernel establishes a few that nobody answers, and the others time out.
fn left_waiting(figures: &Figures<'_>, connections: &Connections, open_max: u64) -> u64 {
    let usable = connections.usable(figures.record.scenario.has_handshakes());
    let silent = usable.saturating_sub(connections.ended_by_target() + open_max);
    connections.failed.timed_out + silent
}

/// Clients without a connection at the best moment, if the target keeps them away (P13), and
/// whether it does so by leaving them waiting.
pub(super) fn kept_away(figures: &Figures<'_>) -> Option<(u64, bool)> {
    let scenario = &figures.record.scenario;
    let open_max = figures
        .record
        .intervals
        .iter()
        .map(|interval| interval.connections_open)
        .max();
    let open_max = open_max?;
    let without = scenario.clients.saturating_sub(open_max);
    let steady = match figures.record.groups.as_slice() {
        [] | [_] => keeps_connections(scenario),
        groups => (groups.iter()).all(|group| keeps_connections(&group.scenario)),
    };
    if !steady || open_max == 0 || without == 0 {
        return None;
    }
    let connections = figures.record.connections();
    let turned_away = turned_away(&connections);
    let waiting = left_waiting(figures, &connections, open_max);
    (turned_away + waiting >= without).then_some((without, turned_away < waiting))
}

/// True if each client has a connection all the time. With connections that we end ourselves, some
/// are always on their way; over UDP, and before and after their time, clients have none.
fn keeps_connections(scenario: &ScenarioRecord) -> bool {
    let policy = &scenario.connections;
    let is_ended = policy.queries_per_connection.is_some()
        || policy.duration_ns.is_some()
        || policy.idle_timeout_ns.is_some();
    let is_there = scenario.presence == Presence::default();
    scenario.transport.has_connections() && !is_ended && is_there
}

/// What the target's treatment of connections says, if anything.
pub(super) fn connection_limit(figures: &Figures<'_>) -> Option<String> {
    let clients = figures.record.scenario.clients;
    let connections = &figures.record.connections();
    if let Some((without, is_waiting)) = kept_away(figures) {
        return Some(format!(
            "the target accepts no more than {} {} clients ({} of {} {})",
            count(clients - without),
            match figures.record.scenario.transport.is_quic() {
                true => "QUIC",
                false => "TCP",
            },
            count(without),
            count(clients),
            match is_waiting {
                true => "left waiting",
                false => "refused or reset",
            }
        ));
    }
    let closed = connections.closed_by_target
        + connections.reset_by_target
        + connections.ended_by_goaway.total();
    let failed = &connections.failed;
    let refused = failed.refused + failed.reset + failed.closed;
    if refused > 0 {
        return Some(format!(
            "the target refused, reset or closed {} of {} before use",
            count(refused),
            counted(connections.attempted, "connection attempt")
        ));
    }
    // An idle connection closed at the end is normal; a habit is not.
    if closed > clients {
        return Some(format!(
            "the target closed or reset {}, after {} queries each on average",
            counted(closed, "connection"),
            count(figures.counts.sent / closed)
        ));
    }
    None
}

/// Rule 4: a cap on connections keeps some clients away (P10, P13).
pub(super) fn connections(figures: &Figures<'_>) -> Option<Finding> {
    kept_away(figures)?;
    let evidence = connection_limit(figures)?;
    let advice = "raise the cap (BIND: tcp-clients; Unbound: incoming-num-tcp; Knot: \
                  tcp-max-clients), or lower --clients";
    Some(Finding::new(Limit::Server, evidence, advice))
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
    if (ended.total() as f64) < ENDED_MAX * figures.counts.sent as f64 {
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
