//! The modelled server of a simulation.

use measure::RunRecord;
use measure::notation::{count, counted, latency, percent, seconds, share};
use measure::simulation::{ModelledCache, ModelledServer};

use super::figures::or_dash;
use crate::table::{Align, Table};

/// What was assumed about the server, and how it fared; empty unless one was modelled.
pub(super) fn section(record: &RunRecord) -> String {
    let server = record.simulation.as_ref();
    let Some(server) = server.and_then(|simulation| simulation.server.as_ref()) else {
        return String::new();
    };
    let seen = &server.seen;
    let mut table = Table::new([Align::Left, Align::Left]);
    let model = format!(
        "{}; a query takes {}",
        counted(server.workers, "worker"),
        server.service_time
    );
    table.row(["model".into(), model]);
    let limits = limits(server);
    if !limits.is_empty() {
        table.row(["limits".into(), limits]);
    }
    table.row(["utilisation".into(), percent(seen.utilisation)]);
    let p = |p| or_dash(seen.waits.percentile(p));
    let queue = format!(
        "at most {} waiting; queries waited p50 {}, p99 {}, max {}",
        count(seen.waiting_max),
        p(0.5),
        p(0.99),
        p(1.0)
    );
    table.row(["queue".into(), queue]);
    if seen.dropped > 0 {
        let dropped = share(seen.dropped, seen.queries);
        let dropped = format!("{} ({dropped} of the queries)", count(seen.dropped));
        table.row(["dropped".into(), dropped]);
    }
    let connections = connections(record, server);
    if !connections.is_empty() {
        table.row(["connections".into(), connections]);
    }
    if let Some(cache) = &server.cache {
        table.row(["cache".into(), self::cache(cache)]);
    }
    table.text()
}

fn limits(server: &ModelledServer) -> String {
    let limits = [
        (server.queue_max, "datagrams waiting"),
        (server.backlog_max, "connections waiting to be accepted"),
        (server.connections_max, "connections open"),
    ];
    let limits = limits.into_iter();
    let limits = limits.filter_map(|(max, what)| Some(format!("{} {what}", count(max?))));
    limits.collect::<Vec<_>>().join(", ")
}

/// What connections cost, and how many there were.
fn connections(record: &RunRecord, server: &ModelledServer) -> String {
    let seen = &server.seen;
    let costs = [
        (seen.accepted, "accepted", server.accept_ns),
        (seen.handshakes, "full handshakes", server.handshake_ns),
        (seen.resumptions, "resumptions", server.resumption_ns),
    ];
    let some = costs
        .into_iter()
        .filter(|(number, _, ns)| *number > 0 && *ns > 0);
    let each = some.map(|(number, what, ns)| {
        let time = latency(ns as f64);
        format!("{} {what} ({time} each)", count(number))
    });
    let mut words: Vec<String> = each.collect();
    let simulation = record.simulation.as_ref();
    let syns_dropped = simulation.map_or(0, |simulation| simulation.network.syns_dropped);
    if syns_dropped > 0 {
        words.push(format!(
            "{} SYNs found the backlog full",
            count(syns_dropped)
        ));
    }
    words.join(", ")
}

fn cache(cache: &ModelledCache) -> String {
    let size = cache.entries_max.map_or_else(String::new, |max| {
        format!(
            " of {} (evicted {})",
            counted(max, "answer"),
            count(cache.evicted)
        )
    });
    format!(
        "{} hits{size}, answers kept {}; {} asked upstream ({} each), {} waited for these",
        percent(cache.hit_share()),
        seconds(cache.ttl_ns),
        count(cache.misses),
        cache.miss_time,
        count(cache.joined)
    )
}
