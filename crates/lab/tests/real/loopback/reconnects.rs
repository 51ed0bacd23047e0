//! Connections that end after ten queries, against every server that is tried: with full
//! handshakes, and with sessions resumed.

use lab::target::{Product, products};
use measure::counts::Handshakes;

use crate::products::TABLE;
use crate::target::zone;

const QUERIES: u64 = 1_000;
const PER_CONNECTION: u32 = 10;
const CONNECTIONS: u64 = QUERIES / PER_CONNECTION as u64;
const CLIENTS: u64 = 10;

/// dnsdist 1.7 sends a ticket after a full handshake alone; a ticket is used once (RFC 8446,
/// appendix C.4), so that every second handshake is a full one.
fn tickets_come_with_every_handshake(product: &'static Product) -> bool {
    product.name != products::DNSDIST.name
}

/// Asks in every way that has connections; returns the handshakes of each that has TLS, and how
/// many connections it lost.
fn handshakes(product: &'static Product, resume: bool) -> Vec<(String, Handshakes, u64)> {
    let (_, ways) = TABLE
        .iter()
        .find(|(each, _)| each.name == product.name)
        .unwrap();
    let target = product.start(&zone()).unwrap();
    let mut all = Vec::new();
    for way in ways.iter().filter(|way| way.transport.has_connections()) {
        let address = way.address(&target);
        let load = way
            .load(address)
            .queries(QUERIES)
            .outstanding(CLIENTS as u32);
        let load = load.ca_pem(target.ca_pem().unwrap());
        let mut load = if resume { load.resuming(false) } else { load };
        load.plan.connections.queries_max = Some(PER_CONNECTION);
        let ran = load.run_at(address);
        let (counts, name) = (ran.counts(), format!("{}, {way:?}", product.name));
        // A server that gets no CPU for long ends connections: Knot DNS after its
        // tcp-io-timeout, 500 ms.
        let ended = counts.responses + counts.connection_losses;
        let seen = (counts.offered, counts.sent, ended);
        assert_eq!(seen, (QUERIES, QUERIES, QUERIES), "{name}: {counts:?}");
        assert!(
            counts.connection_losses <= QUERIES / 20,
            "{name}: {counts:?}"
        );
        let connections = ran.record.connections();
        if way.service.is_some_and(lab::target::Service::has_tls) {
            all.push((name, connections.handshakes, counts.connection_losses));
        } else {
            assert!(connections.established >= CONNECTIONS, "{name}: {counts:?}");
        }
    }
    all
}

fn check(product: &'static Product) {
    for (name, seen, _) in handshakes(product, false) {
        assert!(
            seen.full + seen.full_with_retry >= CONNECTIONS,
            "{name}: {seen:?}"
        );
        assert_eq!(seen.resumed, 0, "{name}: {seen:?}");
    }
    for (name, seen, losses) in handshakes(product, true) {
        assert!(seen.total() >= CONNECTIONS, "{name}: {seen:?}");
        let full = seen.full + seen.full_with_retry;
        if tickets_come_with_every_handshake(product) {
            // One that is lost may be lost before its ticket has come.
            let most = CLIENTS + losses;
            assert!((CLIENTS..=most).contains(&full), "{name}: {seen:?}");
        } else {
            assert!(
                seen.resumed >= CONNECTIONS / 2 - CLIENTS,
                "{name}: {seen:?}"
            );
        }
    }
}

#[test]
fn bind_resumes_the_sessions_of_short_connections() {
    check(&products::BIND);
}

#[test]
fn unbound_resumes_the_sessions_of_short_connections() {
    check(&products::UNBOUND);
}

#[test]
fn knot_resumes_the_sessions_of_short_connections() {
    check(&products::KNOT);
}

#[test]
fn nsd_resumes_the_sessions_of_short_connections() {
    check(&products::NSD);
}

#[test]
fn coredns_resumes_the_sessions_of_short_connections() {
    check(&products::COREDNS);
}

#[test]
fn dnsdist_resumes_the_sessions_of_short_connections() {
    check(&products::DNSDIST);
}

#[test]
fn haproxy_resumes_the_sessions_of_short_connections() {
    check(&products::HAPROXY);
}
