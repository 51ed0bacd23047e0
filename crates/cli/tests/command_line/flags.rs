//! Flags of `throng run` that shape load, sockets and workers.

use std::collections::BTreeSet;
use std::net::IpAddr;

use measure::RunRecord;
use testing::folder::Folder;
use testing::ports::Listener;

use crate::process::{Responder, measured, queries_of, throng};

fn offered_in_each_interval(record: &RunRecord) -> Vec<u64> {
    let within = record.intervals_in_window();
    within.map(|interval| interval.counts.offered).collect()
}

#[test]
fn a_rate_is_offered_with_constant_or_poisson_spacing() {
    let flags = "--driver sim --rate 1k --duration 2s --interval 100ms";
    let constant = measured(&format!("{flags} --arrival constant"));
    assert_eq!(constant.total.counts.offered, 2000);
    assert_eq!(offered_in_each_interval(&constant), [100; 20]);
    let poisson = measured(&format!("{flags} --arrival poisson"));
    // Four standard deviations of a mean of 2,000.
    let offered = poisson.total.counts.offered;
    assert!((1820..2180).contains(&offered), "{offered}");
    let each: BTreeSet<u64> = offered_in_each_interval(&poisson).into_iter().collect();
    assert!(each.len() > 5, "{each:?}");
}

#[test]
fn bursts_are_of_one_client_after_the_other_and_keep_the_rate() {
    let flags = "--driver sim --rate 1k --burst 20 --duration 2s --interval 100ms";
    let record = measured(flags);
    assert_eq!(offered_in_each_interval(&record), [100; 20]);
    let listener = Listener::new();
    let folder = Folder::new("burst");
    let names = folder.write("names.txt", "a.example A\n");
    let flags =
        format!("--names {names} --queries 30 --clients 2 --workers 1 --rate 1k --burst 10");
    let queries = queries_of(&listener, &flags);
    let sources: Vec<_> = queries.iter().map(|(source, _)| source).collect();
    assert_eq!(sources.len(), 30);
    for burst in sources.chunks(10) {
        assert!(
            burst.iter().all(|source| *source == burst[0]),
            "{sources:?}"
        );
    }
    assert_ne!(sources[0], sources[10]);
    assert_eq!(sources[0], sources[20]);
}

#[test]
fn a_rate_is_offered_by_the_kernels_sockets_whatever_the_response_time() {
    let record = measured("--rate 2000 --duration 400ms --delay 100ms --workers 2");
    assert_eq!(record.total.counts.offered, 800);
    assert_eq!(record.total.counts.responses, 800);
    assert!(record.responses_in_window < 800, "some came in the drain");
    assert!(record.total.distributions.latency.min_ns().unwrap() >= 100_000_000);
}

#[test]
fn clients_are_sockets_of_their_own() {
    let listener = Listener::new();
    let folder = Folder::new("clients");
    let names = folder.write("names.txt", "a.example A\n");
    let flags = format!("--names {names} --queries 6 --clients 6 --outstanding 6");
    let queries = queries_of(&listener, &flags);
    assert_eq!(queries.len(), 6);
    let sources: BTreeSet<_> = queries.iter().map(|(source, _)| source).collect();
    assert_eq!(sources.len(), 6);
}

#[test]
fn local_addresses_and_prefixes_are_used_in_turn() {
    let listener = Listener::new();
    let folder = Folder::new("local-address");
    let names = folder.write("names.txt", "a.example A\n");
    // The first and the last address of a prefix belong to no host.
    for (local, clients, addresses) in [
        ("127.0.0.0/29", 12, 6),
        ("127.0.0.2,127.0.1.0/30", 6, 3),
        ("127.0.0.9", 4, 1),
    ] {
        let flags = format!("--names {names} --local-address {local}");
        let flags =
            format!("{flags} --queries {clients} --clients {clients} --outstanding {clients}");
        let queries = queries_of(&listener, &flags);
        assert_eq!(queries.len(), clients, "{local}");
        let sources: BTreeSet<IpAddr> = queries.iter().map(|(source, _)| source.ip()).collect();
        assert_eq!(sources.len(), addresses, "{local}: {sources:?}");
        let is_wanted = |address: &IpAddr| match address {
            IpAddr::V4(v4) => v4.octets()[0] == 127,
            IpAddr::V6(_) => false,
        };
        assert!(sources.iter().all(is_wanted), "{sources:?}");
    }
}

#[test]
fn workers_share_queries_and_clients_and_keep_to_their_cpus() {
    let record = measured("--workers 2 --clients 4 --queries 1001");
    let shares: Vec<u64> = record.workers.iter().map(|worker| worker.queries).collect();
    assert_eq!(shares, [501, 500]);
    assert_eq!(record.total.counts.responses, 1001);
    assert_eq!(record.scenario.workers, 2);

    let cpu = driver::cpu::allowed().pop().unwrap();
    let record = measured(&format!("--cpus {cpu} --queries 1000"));
    let cpu = u32::try_from(cpu).unwrap();
    assert_eq!(record.scenario.cpus, [cpu]);
    assert_eq!(record.workers.len(), 1);
    assert_eq!(record.workers[0].cpu, Some(cpu));
}

#[test]
fn goodput_counts_the_rcodes_asked_for() {
    let record = measured("--queries 100 --rcodes SERVFAIL=1");
    assert_eq!(record.goodput(), 0);
    let record = measured("--queries 100 --rcodes SERVFAIL=1 --goodput NOERROR,SERVFAIL");
    assert_eq!(record.goodput(), 100);
    assert_eq!(record.scenario.goodput_rcodes, [0, 2]);
    assert_eq!(record.total.counts.rcodes.by_rcode[2], 100);
}

#[test]
fn warm_up_is_kept_out_of_the_figures_and_seen_by_the_target() {
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let folder = Folder::new("warmup");
    let names = folder.write("names.txt", "a.example A\n");
    let address = responder.address();
    let flags = "--rate 1000 --warmup 200ms --duration 300ms";
    let record = measured(&format!("--server {address} --names {names} {flags}"));
    let counters = responder.counters();
    assert_eq!(record.warmup.counts.sent, 200);
    assert_eq!(record.total.counts.sent, 300);
    assert_eq!(record.total.distributions.latency.count(), 300);
    assert_eq!(counters.get("queries received"), 500, "{}", counters.0);
}

#[test]
fn offload_can_be_switched_off() {
    let record = measured("--queries 5000 --no-offload");
    assert!(!record.scenario.offload);
    assert_eq!(record.network.offload_bursts, 0);
    assert_eq!(record.network.datagrams_sent, 5000);
    assert_eq!(record.total.counts.responses, 5000);
}

#[test]
fn streams_acknowledge_at_once_where_that_is_asked_for() {
    let record = measured("--transport tcp --queries 500 --tcp-quickack");
    assert!(record.asked[0].run.generator.sockets.tcp_quickack);
    assert_eq!(record.total.counts.responses, 500);
    let folder = Folder::new("quickack");
    let scenario = folder.write("quick.toml", "transport = 'dot'\ntcp-quickack = true\n");
    let record = measured(&format!("{scenario} --queries 500"));
    assert!(record.asked[0].run.generator.sockets.tcp_quickack);
    let record = measured("--transport doh2 --queries 500 --tcp-quickack");
    assert_eq!(record.total.counts.responses, 500);
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
        let record = measured(&format!("--transport {transport} {flags}"));
        let connections = record.connections();
        assert_eq!(record.total.counts.responses, 400, "{transport}");
        // Connections for queries that were not due any more may be among them.
        assert!(
            (40..=44).contains(&connections.attempted),
            "{connections:?}"
        );
        assert_eq!(record.scenario.connections.queries_max, Some(10));
    }
}

#[test]
fn truncated_responses_are_followed_by_tcp_and_counted_apart() {
    let record = measured("--tcp-fallback --truncate 1 --queries 300");
    let counts = &record.total.counts;
    assert_eq!((counts.responses, counts.truncated), (300, 300));
    let fallback = &counts.tcp_fallback;
    assert_eq!((fallback.sent, fallback.responses), (300, 300));
    assert_eq!(record.total.distributions.tcp_fallback.count(), 300);
    let without = measured("--truncate 1 --queries 300");
    let counts = &without.total.counts;
    assert_eq!((counts.truncated, counts.tcp_fallback.sent), (300, 0));
}

#[test]
fn a_target_is_reached_over_ipv6() {
    let folder = Folder::new("ipv6");
    let names = folder.write("names.txt", "a.example A\nb.example AAAA\n");
    let responder = Responder::start("udp:[::1]:0,tcp:[::1]:0", "");
    let mut sent = 0;
    for (transport, address) in responder.addresses.clone() {
        let flags = format!("--server {address} --names {names} --transport {transport}");
        for local in ["", "--local-address ::1"] {
            let record = measured(&format!("{flags} --queries 250 {local}"));
            assert_eq!(record.scenario.target, address.to_string());
            assert_eq!(record.scenario.server_name, Some(address.to_string()));
            assert_eq!(record.total.counts.responses, 250, "{flags} {local}");
            sent += 250;
        }
    }
    assert_eq!(responder.counters().get("queries received"), sent);
}
