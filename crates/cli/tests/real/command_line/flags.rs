//! Flags of `throng run` that shape load, sockets and workers.

use std::collections::BTreeSet;
use std::net::IpAddr;

use testing::due;
use testing::folder::Folder;
use testing::ports::Listener;

use crate::process::{Responder, measured, queries_of};

#[test]
fn bursts_are_of_one_client_after_the_other() {
    let listener = Listener::new();
    let folder = Folder::new("burst");
    let names = folder.write("names.txt", "a.example A\n");
    let flags =
        format!("--names {names} --queries 40 --clients 2 --workers 1 --rate 1k --burst 10");
    let queries = queries_of(&listener, &flags);
    let sources: Vec<_> = queries.iter().map(|(source, _)| source).collect();
    assert_eq!(sources.len(), 40);
    for burst in sources.chunks(10) {
        assert!(
            burst.iter().all(|source| *source == burst[0]),
            "{sources:?}"
        );
    }
    // Each client once in a round, in whatever order.
    assert_ne!(sources[0], sources[10]);
    assert_ne!(sources[20], sources[30]);
}

#[test]
fn a_rate_is_offered_by_the_kernels_sockets_whatever_the_response_time() {
    let record = measured("--rate 2000 --duration 400ms --delay 100ms --workers 2");
    due::assert_answered(&record, 800);
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
fn workers_keep_to_their_cpus() {
    let cpu = driver::cpu::allowed().pop().unwrap();
    let record = measured(&format!("--cpus {cpu} --queries 1000"));
    let cpu = u32::try_from(cpu).unwrap();
    assert_eq!(record.scenario.cpus, [cpu]);
    assert_eq!(record.workers.len(), 1);
    assert_eq!(record.workers[0].cpu, Some(cpu));
}

#[test]
fn warm_up_is_seen_by_the_target() {
    let responder = Responder::start("udp:127.0.0.1:0", "");
    let folder = Folder::new("warmup");
    let names = folder.write("names.txt", "a.example A\n");
    let address = responder.address();
    let flags = "--rate 1000 --warmup 200ms --duration 300ms";
    let record = measured(&format!("--server {address} --names {names} {flags}"));
    assert_eq!(record.warmup.counts.offered, 200);
    due::assert_answered(&record, 300);
    let received = responder.counters().get("queries received");
    assert_eq!(received, due::sent(&record));
    assert!(received > record.total.counts.sent);
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
