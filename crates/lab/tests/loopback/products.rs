//! Whole runs against every server that is tried, over each transport.
//!
//! Each run asks for names that exist, names that do not and types that do not, and the RCODEs
//! counted are those of the zone, to the query.

use std::sync::Arc;

use lab::target::Product;
use load::names_file;
use proto::Transport;
use proto::Transport::{Dot, Tcp, Udp};
use proto::query::QueryOptions;

use crate::bench::{Load, alone};
use crate::servers::zone;

/// Who is asked over what: one line for each server, one column for each transport.
const TABLE: [(Product, &[Transport]); 6] = [
    (Product::Bind, &[Udp, Tcp, Dot]),
    (Product::Unbound, &[Udp, Tcp, Dot]),
    (Product::Knot, &[Udp, Tcp, Dot]),
    (Product::CoreDns, &[Udp, Tcp, Dot]),
    (Product::Dnsdist, &[Udp, Tcp, Dot]),
    (Product::Haproxy, &[Tcp, Dot]),
];

/// 100 names that exist, 20 without the type asked for, 30 that are not there.
const QUESTIONS: u64 = 100 + 20 + MISSING;
const MISSING: u64 = 30;
const ROUNDS: u64 = 70;

/// These take one message out of a TLS record and look for the next one when the socket has more
/// octets, so that messages which share a record wait, for good at the end of a run (Knot DNS 3.4;
/// dnsdist 1.7 closes the connection after two seconds). A client of theirs has one query in
/// flight over DoT.
const ONE_MESSAGE_A_RECORD: [Product; 2] = [Product::Knot, Product::Dnsdist];

const NOERROR: usize = 0;
const NXDOMAIN: usize = 3;

fn questions() -> String {
    let existing = (1..=100).map(|number| format!("test-record-{number}.lab.test A\n"));
    let no_data = (1..=20).map(|number| format!("test-record-{number}.lab.test AAAA\n"));
    let missing = (1..=MISSING).map(|number| format!("missing-{number}.lab.test A\n"));
    existing.chain(no_data).chain(missing).collect()
}

/// Ten clients with five queries in flight each, or one where that is what the target takes.
fn load(product: Product, transport: Transport) -> Load {
    let is_one = transport == Dot && ONE_MESSAGE_A_RECORD.contains(&product);
    let outstanding = if is_one { 10 } else { 50 };
    let text = questions();
    let questions = names_file::parse_text(text.as_bytes(), &QueryOptions::default()).unwrap();
    let load = Load::over(transport)
        .outstanding(outstanding)
        .queries(ROUNDS * QUESTIONS);
    load.plan(|plan| plan.questions = Arc::new(questions))
}

fn check(product: Product) {
    let _alone = alone();
    let (_, transports) = TABLE.iter().find(|(each, _)| *each == product).unwrap();
    let target = product.start(&zone()).unwrap();
    for transport in *transports {
        let address = target.endpoints().address(*transport);
        let load = load(product, *transport).ca_pem(target.ca_pem().unwrap());
        let ran = load.run_at(address.unwrap());
        let (counts, name) = (ran.counts(), format!("{product:?} over {transport}"));
        let total = ROUNDS * QUESTIONS;
        let seen = (counts.offered, counts.sent, counts.responses);
        assert_eq!(seen, (total, total, total), "{name}: {counts:?}");
        assert_eq!(counts.lost(), 0, "{name}: {counts:?}");
        let besides = counts.unexpected.total() + counts.duplicate + counts.late;
        assert_eq!(besides, 0, "{name}: {counts:?}");
        let by_rcode = &counts.rcodes.by_rcode;
        let rcodes = (by_rcode[NOERROR], by_rcode[NXDOMAIN]);
        let expected = (ROUNDS * (QUESTIONS - MISSING), ROUNDS * MISSING);
        assert_eq!(rcodes, expected, "{name}: {counts:?}");
    }
}

#[test]
fn bind_answers_whole_runs_as_its_zone_says() {
    check(Product::Bind);
}

#[test]
fn unbound_answers_whole_runs_as_its_zone_says() {
    check(Product::Unbound);
}

#[test]
fn knot_answers_whole_runs_as_its_zone_says() {
    check(Product::Knot);
}

#[test]
fn coredns_answers_whole_runs_as_its_zone_says() {
    check(Product::CoreDns);
}

#[test]
fn dnsdist_answers_whole_runs_as_its_zone_says() {
    check(Product::Dnsdist);
}

#[test]
fn haproxy_answers_whole_runs_as_its_zone_says() {
    check(Product::Haproxy);
}

#[test]
fn table_has_every_server_and_every_transport_that_it_offers_and_the_engine_has() {
    let engine_has = [Udp, Tcp, Dot];
    for product in Product::ALL {
        let (_, transports) = TABLE.iter().find(|(each, _)| *each == product).unwrap();
        for service in product.services() {
            let offered = Transport::ALL
                .into_iter()
                .find(|it| lab::target::Service::of(*it) == Some(*service));
            let Some(transport) = offered.filter(|it| engine_has.contains(it)) else {
                continue;
            };
            assert!(
                transports.contains(&transport),
                "{product:?} over {transport}"
            );
        }
    }
}
