//! This tool's own receive buffers (SO_RXQ_OVFL), or the queues of the interface that AF_XDP reads,
//! were full.

use crate::doctor::{Cure, Diagnosis, State};
use crate::facts::XdpFacts;
use crate::limit::Limit;
use crate::notation::{count, counted, share};

use super::{Figures, Finding, Stage};

/// Four times the receive buffer that this tool asks for unless told otherwise.
pub(super) const BUFFER_OCTETS: u64 = 16 << 20;
/// Losses below this share of the queries sent are not worth a verdict.
const LOSS_MIN: f64 = 0.0001;

/// What to do about queues of an interface whose length is given.
const QUEUES_ADVICE: &str = "send fewer queries at a time (--rate, --outstanding), or give the \
    generator a core of its own: a queue of AF_XDP holds 4,096 frames, one of a veth pair 256";

pub(super) fn found(figures: &Figures<'_>) -> Option<Finding> {
    let network = &figures.record.network;
    let before_ring = network.xdp.as_ref().map(XdpFacts::dropped_before_ring);
    // An interface drops what is of no use to anyone too: that matters if something is missing.
    let before_ring = before_ring.filter(|_| figures.unanswered() > 0);
    let drops = network.receive_drops + before_ring.unwrap_or(0);
    let explain_losses = explain_losses(figures);
    if drops == 0 && !explain_losses {
        return None;
    }
    let (state, seen) = match explain_losses {
        true => (State::Problem, of_losses(figures)),
        false => (State::Warning, dropped_here(figures, drops)),
    };
    let found = match network.xdp {
        Some(_) => Finding::met(of_queues(state, seen)),
        None => Finding::met(of_buffers(figures, state, seen))
            .advising("raise net.core.rmem_max, or give the generator another worker"),
    };
    Some(
        found
            .limits(Stage::Network, Limit::Network)
            .only_if(explain_losses),
    )
}

const MATTERS: &str = "responses that arrived but were dropped here count as lost by the target";

fn of_queues(state: State, seen: String) -> Diagnosis {
    let diagnosis = Diagnosis::new("receive queues", state, seen, MATTERS);
    diagnosis.cure(Cure::words(QUEUES_ADVICE))
}

fn of_buffers(figures: &Figures<'_>, state: State, seen: String) -> Diagnosis {
    let workers = figures.record.scenario.workers + 1;
    Diagnosis::new("receive buffers", state, seen, MATTERS)
        .cure(Cure::sysctl("net.core.rmem_max", BUFFER_OCTETS))
        .cure(Cure::throng(format!("--socket-buffer {BUFFER_OCTETS}")))
        .cure(Cure::throng(format!("--workers {workers}")))
}

/// True if what was dropped here is at least half of what got no response.
pub(super) fn explain_losses(figures: &Figures<'_>) -> bool {
    let lost = figures.unanswered();
    figures.unanswered_share() >= LOSS_MIN && received_but_dropped(figures) >= lost.div_ceil(2)
}

fn of_losses(figures: &Figures<'_>) -> String {
    let (lost, drops) = (figures.unanswered(), received_but_dropped(figures));
    format!(
        "{}, {} of the {} without response",
        dropped_here(figures, drops),
        share(drops.min(lost), lost),
        count(lost)
    )
}

/// Datagrams that came to this run's sockets and were dropped before this tool could read them.
pub(super) fn received_but_dropped(figures: &Figures<'_>) -> u64 {
    let network = &figures.record.network;
    let before_ring = network.xdp.as_ref().map(XdpFacts::dropped_before_ring);
    network.receive_drops + before_ring.unwrap_or(0)
}

/// What dropped so many of those that came to this host.
fn dropped_here(figures: &Figures<'_>, drops: u64) -> String {
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

#[cfg(test)]
mod tests {
    use crate::facts::XdpFacts;
    use crate::rules::situations::*;

    #[test]
    fn full_receive_buffers_that_explain_the_losses_are_the_networks_limit() {
        let mut record = saturated();
        lose(&mut record, 100);
        record.network.receive_drops = 60;
        let evidence = "dropped 60 datagrams, 60.00 % of the 100 without response";
        judged(&record, Limit::Network, evidence, "net.core.rmem_max");
        record.network.receive_drops = 40;
        // Those of other sockets of this host have nothing to do with it.
        record.network.kernel.insert("Udp.RcvbufErrors".into(), 100);
        assert_ne!(judge(&record).limit, Limit::Network);
    }

    #[test]
    fn full_receive_buffers_are_a_problem_where_they_explain_the_losses() {
        let mut record = in_time(10_000.0);
        lose(&mut record, 1_000);
        record.network.receive_drops = 900;
        let seen = "dropped 900 datagrams, 90.00 % of the 1,000";
        told(&record, "receive buffers").problem(seen, "rmem_max=16777216");
        assert_eq!(met(&record)[0].topic, "receive buffers");
        record.network.receive_drops = 9;
        told(&record, "receive buffers").warning("dropped 9 datagrams", "--socket-buffer");
    }

    #[test]
    fn full_queues_of_an_interface_are_told_from_full_buffers() {
        let mut record = in_time(10_000.0);
        lose(&mut record, 1_000);
        // Of 900 that came, AF_XDP itself dropped 500, and counts them itself.
        record.network.receive_drops = 500;
        record.network.xdp = Some(XdpFacts {
            receive_dropped: 500,
            interface_received_dropped: 600,
            peer_sent_dropped: 300,
            ..XdpFacts::default()
        });
        let seen = "full receive queues of the interface dropped 900 frames, 90.00 % of the 1,000";
        told(&record, "receive queues").problem(seen, "--outstanding");
        assert_eq!(met(&record)[0].topic, "receive queues");
        assert_eq!(judge(&record).limit, Limit::Network);
        assert_eq!(found_on(&record, "receive buffers"), None);

        // What nobody misses is none of ours.
        let mut whole = in_time(10_000.0);
        whole.network.xdp = Some(XdpFacts {
            interface_received_dropped: 3,
            peer_received_dropped: 3,
            ..XdpFacts::default()
        });
        assert_eq!(found_on(&whole, "receive queues"), None);
    }
}
