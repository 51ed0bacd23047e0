//! Flags of `throng run` that shape load and connections.

use std::collections::BTreeSet;

use measure::RunRecord;

use crate::call::{simulated, throng};

fn offered_in_each_interval(record: &RunRecord) -> Vec<u64> {
    let within = record.intervals_in_window();
    within.map(|interval| interval.counts.offered).collect()
}

#[test]
fn a_rate_is_offered_with_constant_or_poisson_spacing() {
    let flags = "--rate 1k --duration 2s --interval 100ms";
    let constant = simulated(&format!("{flags} --arrival constant"));
    assert_eq!(constant.total.counts.offered, 2000);
    assert_eq!(offered_in_each_interval(&constant), [100; 20]);
    let poisson = simulated(&format!("{flags} --arrival poisson"));
    // Four standard deviations of a mean of 2,000.
    let offered = poisson.total.counts.offered;
    assert!((1820..2180).contains(&offered), "{offered}");
    let each: BTreeSet<u64> = offered_in_each_interval(&poisson).into_iter().collect();
    assert!(each.len() > 5, "{each:?}");
}

#[test]
fn bursts_keep_the_rate() {
    let record = simulated("--rate 1k --burst 20 --duration 2s --interval 100ms");
    assert_eq!(offered_in_each_interval(&record), [100; 20]);
}

#[test]
fn workers_share_queries_and_clients() {
    let record = simulated("--workers 2 --clients 4 --queries 1001");
    let shares: Vec<u64> = record.workers.iter().map(|worker| worker.queries).collect();
    assert_eq!(shares, [501, 500]);
    assert_eq!(record.total.counts.responses, 1001);
    assert_eq!(record.scenario.workers, 2);
}

#[test]
fn goodput_counts_the_rcodes_asked_for() {
    let record = simulated("--queries 100 --rcodes SERVFAIL=1");
    assert_eq!(record.goodput(), 0);
    let record = simulated("--queries 100 --rcodes SERVFAIL=1 --goodput NOERROR,SERVFAIL");
    assert_eq!(record.goodput(), 100);
    assert_eq!(record.scenario.goodput_rcodes, [0, 2]);
    assert_eq!(record.total.counts.rcodes.by_rcode[2], 100);
}

#[test]
fn warm_up_is_kept_out_of_the_figures() {
    let flags = "--rate 1000 --warmup 200ms --duration 300ms --sim-service-time 1us";
    let record = simulated(flags);
    assert_eq!(record.warmup.counts.sent, 200);
    assert_eq!(record.total.counts.sent, 300);
    assert_eq!(record.total.distributions.latency.count(), 300);
    let server = record.simulation.unwrap().server.unwrap();
    assert_eq!(server.seen.queries, 300);
}

#[test]
fn tcp_quickack_is_refused_without_tcp_of_the_kernel() {
    for flags in [
        "--transport udp",
        "--transport udp --driver xdp --interface lo",
        "--transport doq",
        "--transport doh3",
        "--transport tcp --driver sim",
    ] {
        throng(&format!("run {flags} --queries 5 --tcp-quickack"))
            .refused_with("--tcp-quickack has no effect", "leave out --tcp-quickack");
    }
}

#[test]
fn connections_are_replaced_after_the_queries_asked_for() {
    for transport in ["tcp", "dot"] {
        let flags = "--queries 400 --clients 4 --outstanding 4 --queries-per-connection 10";
        let record = simulated(&format!("--transport {transport} {flags}"));
        let connections = record.connections();
        assert_eq!(record.total.counts.responses, 400, "{transport}");
        assert_eq!(connections.attempted, 40, "{transport}: {connections:?}");
        assert_eq!(record.scenario.connections.queries_max, Some(10));
    }
}

#[test]
fn truncated_responses_are_followed_by_tcp_and_counted_apart() {
    let record = simulated("--tcp-fallback --truncate 1 --queries 300");
    let counts = &record.total.counts;
    assert_eq!((counts.responses, counts.truncated), (300, 300));
    let fallback = &counts.tcp_fallback;
    assert_eq!((fallback.sent, fallback.responses), (300, 300));
    assert_eq!(record.total.distributions.tcp_fallback.count(), 300);
    let without = simulated("--truncate 1 --queries 300");
    let counts = &without.total.counts;
    assert_eq!((counts.truncated, counts.tcp_fallback.sent), (300, 0));
}
