//! The network of a simulation: it knows what it lost.

use super::{Figures, enough};
use crate::notation::{counted, share};
use crate::simulation::SimulatedNetwork;

/// From that many segments lost for each query on, retransmissions set the pace.
const SEGMENTS_LOST_MAX: f64 = 0.01;
/// Fewer queries lost than this share are not worth a verdict.
const LOSS_MAX: f64 = 0.001;

/// The modelled network as the limit: it lost at least half of what got no response, or enough
/// segments to set the pace. Not where queries queued at the target.
pub(super) fn lost(figures: &Figures<'_>) -> Option<String> {
    let network = &figures.record.simulation.as_ref()?.network;
    if enough::growing_latency(figures).is_some() {
        return None;
    }
    match figures.record.scenario.transport.has_connections() {
        true => sent_again(figures, network),
        false => lost_with_queries(figures, network),
    }
}

fn sent_again(figures: &Figures<'_>, network: &SimulatedNetwork) -> Option<String> {
    let (lost, what) = match figures.record.scenario.transport.is_quic() {
        true => (network.datagrams_lost, "datagram"),
        false => (network.segments_lost, "segment"),
    };
    let is_enough = lost > 0 && lost as f64 >= SEGMENTS_LOST_MAX * figures.counts.sent as f64;
    is_enough.then(|| {
        format!(
            "the modelled network lost {}, whose data was sent again later",
            counted(lost, what)
        )
    })
}

fn lost_with_queries(figures: &Figures<'_>, network: &SimulatedNetwork) -> Option<String> {
    let lost = figures.unanswered();
    let is_queued = figures.service_p50_ns >= figures.path_ns.map(|path_ns| 2 * path_ns);
    let is_small = figures.unanswered_share() <= LOSS_MAX;
    if is_small || is_queued || network.datagrams_lost < lost.div_ceil(2) {
        return None;
    }
    Some(format!(
        "the modelled network lost {}: {} of the queries got no response",
        counted(network.datagrams_lost, "datagram"),
        share(lost, figures.counts.sent)
    ))
}
