//! What the record of a simulated run says about its model.

use std::time::Duration;

use driver::sim::{Jitter, NetworkStats};
use measure::notation::latency;
use measure::simulation::{
    ModelledCache, ModelledServer, ServerActivity, SimulatedNetwork, SimulationRecord,
};
use responder::{Delay, ServiceCounts, ServiceModel};

use super::Simulation;

/// The account of network and server. The server's utilisation is left open: it depends on how
/// long was measured.
pub(super) fn account(
    simulation: &Simulation,
    stats: NetworkStats,
    seen: Option<&ServiceCounts>,
) -> SimulationRecord {
    let link = simulation.world.link;
    let model = simulation.responder.service.as_ref();
    let server = model.zip(seen).map(|(model, seen)| {
        let connections_max = simulation.responder.behaviour.tcp_clients_max;
        ModelledServer {
            connections_max: connections_max.map(u64::from),
            ..server(model, seen)
        }
    });
    SimulationRecord {
        network: SimulatedNetwork {
            delay_ns: nanos(link.delay),
            jitter: jitter(link.jitter),
            loss_share: link.loss_share,
            duplicate_share: link.duplicate_share,
            reorder_share: link.reorder_share,
            datagrams_lost: stats.datagrams_lost,
            datagrams_duplicated: stats.datagrams_duplicated,
            datagrams_reordered: stats.datagrams_reordered,
            segments_lost: stats.segments_lost,
            syns_dropped: stats.syns_dropped,
        },
        server,
    }
}

fn in_words(delay: Delay) -> String {
    let time = |time: Duration| latency(time.as_nanos() as f64);
    match delay {
        Delay::None => "no time".to_owned(),
        Delay::Constant(delay) => time(delay),
        Delay::Uniform { min, max } => format!("{} to {}, evenly", time(min), time(max)),
        Delay::Exponential { mean } => format!("{} on average, exponential", time(mean)),
    }
}

fn server(model: &ServiceModel, seen: &ServiceCounts) -> ModelledServer {
    let cache = model.cache.as_ref().map(|cache| ModelledCache {
        ttl_ns: nanos(cache.ttl),
        entries_max: cache.entries_max.map(u64::from),
        miss_time: in_words(cache.miss),
        miss_service_ns: nanos(cache.miss_service),
        hits: seen.cache_hits,
        misses: seen.cache_misses,
        joined: seen.cache_joined,
        evicted: seen.cache_evicted,
    });
    ModelledServer {
        workers: model.workers.into(),
        service_time: in_words(model.query),
        accept_ns: nanos(model.accept),
        handshake_ns: nanos(model.handshake_full),
        resumption_ns: nanos(model.handshake_resumed),
        queue_max: model.datagrams_max.map(u64::from),
        backlog_max: model.backlog_max.map(u64::from),
        connections_max: None,
        cache,
        seen: ServerActivity {
            queries: seen.queries,
            dropped: seen.dropped,
            accepted: seen.accepts,
            handshakes: seen.handshakes_full,
            resumptions: seen.handshakes_resumed,
            waiting_max: seen.waiting_max,
            busy_ns: seen.busy_ns,
            utilisation: 0.0,
            waits: seen.waits.clone(),
        },
    }
}

fn jitter(jitter: Jitter) -> Option<String> {
    let time = |time: Duration| measure::notation::latency(time.as_nanos() as f64);
    match jitter {
        Jitter::None => None,
        Jitter::Uniform { max } => Some(format!("uniform up to {}", time(max))),
        Jitter::Exponential { mean } => Some(format!("exponential with a mean of {}", time(mean))),
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
