//! Clients that lose queries, while the others do not.

use crate::experience::{ClientExperience, ClientFigures};
use crate::rules::situations::*;
use crate::timeline::OutageKind;
use crate::timeline::outages::Outside;

use super::outage::{judged_in, outage};

/// A quarter of 1,000 queries a second is lost, and of 16 clients with 625 queries each these.
fn of_clients(lost: impl Fn(u64) -> u64) -> RunRecord {
    let mut record = limited(|bin| if bin % 4 == 0 { 0 } else { 10 });
    let mut experience = ClientExperience::default();
    for client in 0..16 {
        let mut figures = ClientFigures {
            queries: 625,
            ..ClientFigures::default()
        };
        figures.respond_many(100_000, 0, 625 - lost(client));
        experience.record(&figures, 10 * SECOND);
    }
    record.groups[0].experience = Some(experience);
    record
}

#[test]
fn clients_that_lose_most_are_named_and_neither_a_rate_nor_the_server_is() {
    let some = of_clients(|client| if client < 4 { 450 } else { client % 3 });
    let evidence = "4 of 16 clients, each with its source port, lost up to 72.0 % of their \
                    queries, and the others next to nothing: the target or the path treats these \
                    sockets differently, such as a thread, a back-end or a path that is chosen";
    let verdict = judged(&some, Limit::Unknown, evidence, "the paths to it (ECMP)");
    let said = format!("{:#?}", (met(&some), &verdict));
    for wrong in [
        "fixed rate",
        "limit of",
        "leave no room for a queue",
        "--local-address",
        "in turn",
    ] {
        assert!(!said.contains(wrong), "{wrong}: {said}");
    }
    let mut addresses = some;
    addresses.scenario.local_addresses = vec!["127.0.0.2".into(), "127.0.0.3".into()];
    let evidence = "4 of 16 clients, each with its source address and port, lost up to 72.0 %";
    judged(
        &addresses,
        Limit::Unknown,
        evidence,
        "allow-query { any; };",
    );
}

/// What a host sends at once after it stood still, and a full buffer drops, is of the clients that
/// come last.
#[test]
fn losses_in_an_outage_are_of_no_clients() {
    let record = of_clients(|client| if client < 4 { 450 } else { client % 3 });
    let said_with = |lost| {
        let mut stands_still = outage(OutageKind::OwnFreeze, 20, 24);
        stands_still.lost = lost;
        format!(
            "{:#?}",
            judged_in(&record, &[stands_still], Outside::default())
        )
    };
    let evidence = "4 of 16 clients, each with its source port";
    assert!(!said_with(2_400).contains(evidence), "{}", said_with(2_400));
    assert!(said_with(100).contains(evidence), "{}", said_with(100));
}

#[test]
fn whole_clients_may_be_turns_and_another_number_of_clients_shows_it() {
    let half = of_clients(|client| 625 * (client % 2));
    let evidence = "8 of 16 clients, each with its source port, got no response at all, while \
                    the others did: the target or the path treats these sockets differently";
    let verdict = judged(&half, Limit::Unknown, evidence, "repeat with --clients 17");
    let alike = "; clients send in turn, so 1 of 2 back-ends in turn without responses or a limit \
                 of 500 qps would look the same";
    assert!(verdict.evidence[0].ends_with(alike), "{verdict:#?}");
    // Nothing in turn loses a part of the queries of some clients.
    let part = judge(&of_clients(|client| 500 * (client % 2)));
    assert!(!part.evidence[0].contains("in turn"), "{part:#?}");
}

#[test]
fn clients_of_whole_addresses_are_distinguished_from_those_of_ports() {
    let with_addresses = |lost: fn(u64) -> u64| {
        let mut record = of_clients(lost);
        record.scenario.clients = 16;
        record.scenario.local_addresses = (2..6).map(|it| format!("127.0.0.{it}")).collect();
        record
    };
    let evidence = "4 of 16 clients, all those of 1 of the 4 local addresses and no others, got \
                    no response at all, while the others did: an access list or a firewall, or a \
                    back-end or a path";
    let one = with_addresses(|client| 625 * u64::from(client % 4 == 2));
    judged(&one, Limit::Unknown, evidence, "allow-query { any; };");
    let others = with_addresses(|client| 625 * u64::from(client < 4));
    let evidence = "4 of 16 clients, each with its source address and port, got no response";
    judged(
        &others,
        Limit::Unknown,
        evidence,
        "source ports are divided",
    );
}

/// In a closed loop, clients that get no response at all are of some sockets too.
#[test]
fn clients_without_response_in_a_closed_loop_are_not_the_servers_limit() {
    let mut closed = of_clients(|client| 625 * (client % 2));
    closed.scenario.arrival = Arrival::Closed {
        outstanding: 32,
        rate_qps_max: None,
    };
    closed.timeline = None;
    let evidence = "8 of 16 clients, each with its source port, got no response at all";
    let verdict = judged(
        &closed,
        Limit::Unknown,
        evidence,
        "source ports are divided",
    );
    assert!(!verdict.evidence[0].contains("in turn"), "{verdict:#?}");
}

#[test]
fn clients_that_lose_alike_are_no_pattern() {
    let alike = of_clients(|client| 150 + client);
    let verdict = judge(&alike);
    assert!(!verdict.evidence[0].contains("source port"), "{verdict:#?}");
    // Over connections, and in a closed loop, who is served is served again.
    let mut connected = of_clients(|client| if client < 4 { 450 } else { 0 });
    connected.scenario.transport = Transport::Tcp.into();
    let verdict = judge(&connected);
    assert!(!verdict.evidence[0].contains("source port"), "{verdict:#?}");
}
