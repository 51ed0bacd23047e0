//! Clients without service that are those of whole source addresses: no limit on their number.

use crate::experience::{ClientExperience, ClientFigures};
use crate::rules::observed_situations::*;
use crate::rules::situations::*;

/// Twenty clients of `transport` with four addresses, of which these get nothing. Their connections
/// are closed by the target.
fn without(transport: Transport, is_without: impl Fn(u64) -> bool) -> RunRecord {
    let mut record = saturated();
    record.scenario.transport = transport.into();
    record.scenario.clients = 20;
    record.scenario.local_addresses = (2..6).map(|last| format!("127.0.0.{last}")).collect();
    let mut experience = ClientExperience::default();
    for client in 0..20 {
        let mut figures = ClientFigures {
            queries: 20,
            connections: 1 + 10 * u32::from(is_without(client)),
            ..ClientFigures::default()
        };
        if !is_without(client) {
            figures.respond_many(MS + client, 0, 20);
        }
        experience.record(&figures, SECOND);
    }
    let number = (0..20).filter(|client| is_without(*client)).count() as u64;
    record.groups[0].experience = Some(experience);
    change_last(&mut record, |interval| {
        let connections = &mut interval.counts.connections;
        connections.attempted = 20 + 10 * number;
        connections.established = 20 + 10 * number;
        connections.became_usable = 20 + 10 * number;
        connections.closed_by_target = 11 * number;
    });
    record
}

#[test]
fn clients_of_one_address_without_service_are_no_cap() {
    for (transport, kind) in [(Transport::Tcp, "TCP"), (Transport::Doq, "QUIC")] {
        let record = without(transport, |client| client % 4 == 1);
        let seen = format!(
            "5 of 20 {kind} clients got no response at all, by source address: all those of 1 of \
             the 4 local addresses, and no others: an access list"
        );
        let verdict = judged(&record, Limit::Unknown, &seen, "allow-query");
        let said = format!("{:#?}", (met(&record), verdict));
        for wrong in ["tcp-clients", "serves no more"] {
            assert!(!said.contains(wrong), "{wrong}: {said}");
        }
    }
    let record = without(Transport::Tcp, |client| client % 2 == 1);
    let seen = "all those of 2 of the 4 local addresses";
    judged(&record, Limit::Unknown, seen, "allow-query");
}

/// In a closed loop, clients without a connection ask nothing.
#[test]
fn clients_of_one_address_that_never_had_a_connection_are_no_cap() {
    let mut record = without(Transport::Tcp, |client| client % 4 == 1);
    let mut experience = ClientExperience::default();
    for client in 0..20 {
        let mut figures = ClientFigures::default();
        if client % 4 != 1 {
            figures.queries = 20;
            figures.connections = 1;
            figures.respond_many(MS, 0, 20);
        }
        experience.record(&figures, SECOND);
    }
    record.groups[0].experience = Some(experience);
    change_last(&mut record, |interval| {
        let connections = &mut interval.counts.connections;
        connections.established = 15;
        connections.became_usable = 15;
        connections.closed_by_target = 0;
        connections.failed.timed_out = 55;
        connections.attempted = 70;
    });
    judged(
        &record,
        Limit::Unknown,
        "5 of 20 TCP clients got no response at all, by source address",
        "allow-query",
    );
}

#[test]
fn a_cap_does_not_care_who_comes() {
    let seen = "the target serves no more than 15 TCP clients at once: 5 of 20";
    for last in [
        without(Transport::Tcp, |client| client >= 15),
        without(Transport::Tcp, |client| {
            client % 4 == 1 && client != 5 || client == 6
        }),
    ] {
        judged(&last, Limit::Server, seen, "BIND tcp-clients");
    }
}

#[test]
fn a_server_that_turns_addresses_away_met_no_limit_on_clients() {
    use crate::observation::SeriesKind::Gauge;
    let most = [("clients.tcp_most", Gauge, 15.0)];
    let of = |record| said(&observing(record, &[server(100.0, &most)]));
    let count = "BIND had no more than 15 TCP clients at once by its own count, of 20 that asked: ";
    let told = of(without(Transport::Tcp, |client| client % 4 == 1));
    assert!(
        told.contains(&format!("{count}it is their address that")),
        "{told}"
    );
    let told = of(without(Transport::Tcp, |client| client >= 15));
    assert!(
        told.contains(&format!("{count}its limit on TCP clients is met")),
        "{told}"
    );
}
