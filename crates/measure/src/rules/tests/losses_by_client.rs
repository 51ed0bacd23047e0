//! Clients that lose queries, while the others do not.

use crate::experience::{ClientExperience, ClientFigures};
use crate::rules::situations::*;

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
fn clients_that_lose_most_are_named_and_no_rate_is() {
    let some = of_clients(|client| if client < 4 { 450 } else { client % 3 });
    let evidence = "4 of 16 clients, each with its source port, lost up to 72.0 % of their queries";
    let verdict = judged(&some, Limit::Server, evidence, "source ports are divided");
    let said = format!("{:#?}", (met(&some), &verdict));
    for wrong in ["fixed rate", "leave no room for a queue", "--local-address"] {
        assert!(!said.contains(wrong), "{wrong}: {said}");
    }
    let mut addresses = some;
    addresses.scenario.local_addresses = vec!["127.0.0.2".into(), "127.0.0.3".into()];
    judged(&addresses, Limit::Server, evidence, "allow-query { any; };");
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
