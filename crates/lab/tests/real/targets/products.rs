//! Every server, asked over each of its transports by clients that are not ours.
//!
//! This proves the servers before our own engine is tried on them.

use std::fs;

use lab::target::{Cell, Product, Service, products};

use crate::clients::{Asked, Way, ask_all_ways};
use crate::{broken_zone, check_gone, zone};

fn check(product: &'static Product) {
    let server = product.start(&zone()).unwrap();
    let endpoints = server.endpoints();
    let of = |service: &Service| (Way::Of(*service), endpoints.service(*service).unwrap());
    let udp = endpoints.address(proto::Transport::Udp);
    let mut ways: Vec<_> = udp.map(|at| (Way::Udp, at)).into_iter().collect();
    ways.push((Way::Tcp, endpoints.do53()));
    ways.extend(product.services().iter().map(of));
    let asked = ask_all_ways(&Asked {
        folder: server.folder(),
        ways,
    });
    for (way, queries) in asked {
        assert!(queries > 0, "no queries to {} over {way:?}", product.name);
    }
}

#[test]
fn bind_answers_other_clients_over_all_its_transports() {
    check(&products::BIND);
}

#[test]
fn unbound_answers_other_clients_over_all_its_transports() {
    check(&products::UNBOUND);
}

#[test]
fn knot_answers_other_clients_over_all_its_transports() {
    check(&products::KNOT);
}

#[test]
fn nsd_answers_other_clients_over_all_its_transports() {
    check(&products::NSD);
}

#[test]
fn coredns_answers_other_clients_over_all_its_transports() {
    check(&products::COREDNS);
}

#[test]
fn powerdns_authoritative_server_answers_other_clients_over_all_its_transports() {
    check(&products::PDNS_AUTH);
}

#[test]
fn powerdns_recursor_answers_other_clients_over_all_its_transports() {
    check(&products::PDNS_RECURSOR);
}

#[test]
fn knot_resolver_answers_other_clients_over_all_its_transports() {
    check(&products::KNOT_RESOLVER);
}

#[test]
fn dnsdist_answers_other_clients_over_all_its_transports() {
    check(&products::DNSDIST);
}

#[test]
fn haproxy_answers_other_clients_over_all_its_transports() {
    check(&products::HAPROXY);
}

#[test]
fn every_product_tells_its_version_and_takes_its_factors() {
    for product in products::ALL {
        let version = product.version().unwrap();
        assert!(
            version.starts_with(|c: char| c.is_ascii_digit()),
            "{version}"
        );
    }
    let settings = [
        (
            &products::BIND,
            "tcp-clients=7",
            "named.conf",
            "tcp-clients 7;",
        ),
        (
            &products::UNBOUND,
            "threads=2",
            "unbound.conf",
            "num-threads: 2",
        ),
        (
            &products::KNOT,
            "statistics=on",
            "knot.conf",
            "mod-stats/all",
        ),
        (&products::NSD, "tcp-clients=7", "nsd.conf", "tcp-count: 7"),
        (&products::COREDNS, "options=  log", "Corefile", "\n  log\n"),
        (
            &products::PDNS_AUTH,
            "tcp-clients=7",
            "pdns.conf",
            "max-tcp-connections=7\n",
        ),
        (
            &products::PDNS_RECURSOR,
            "tcp-clients=7",
            "recursor.conf",
            "max-tcp-clients=7\n",
        ),
        (
            &products::KNOT_RESOLVER,
            "options=cache.max_ttl(7)",
            "kresd.conf",
            "\ncache.max_ttl(7)\n",
        ),
        (
            &products::DNSDIST,
            "options=setMaxUDPOutstanding(7)",
            "dnsdist.conf",
            "ing(7)\n",
        ),
        (
            &products::HAPROXY,
            "connections=70",
            "haproxy.cfg",
            "maxconn 70",
        ),
    ];
    for (product, setting, file, line) in settings {
        let server = Cell::new(product, zone())
            .set(setting)
            .unwrap()
            .start()
            .unwrap();
        let text = fs::read_to_string(server.folder().join(file)).unwrap();
        assert!(text.contains(line), "{}: {text}", product.name);
    }
}

/// Nothing is left of it, and what is wrong with a zone or an option is in the error.
fn check_end_and_faults(product: &'static Product, option: &str) {
    let target = product.start(&zone()).unwrap();
    let (process, folder) = (target.process_id(), target.folder().to_owned());
    let address = target.endpoints().do53();
    drop(target);
    check_gone(process, &folder, address);
    let error = format!("{:#}", product.start(&broken_zone()).unwrap_err());
    assert!(error.contains("zone.db"), "{error}");
    let setting = format!("options={option}");
    let cell = Cell::new(product, zone()).set(&setting).unwrap();
    let error = format!("{:#}", cell.start().unwrap_err());
    assert!(error.contains("no-such"), "{error}");
}

#[test]
fn nsd_is_gone_after_drop_and_says_what_is_wrong_with_a_zone_or_an_option() {
    check_end_and_faults(&products::NSD, "no-such: yes");
}

#[test]
fn powerdns_authoritative_server_is_gone_after_drop_and_says_what_is_wrong() {
    check_end_and_faults(&products::PDNS_AUTH, "no-such=yes");
}

#[test]
fn powerdns_recursor_is_gone_after_drop_and_says_what_is_wrong() {
    check_end_and_faults(&products::PDNS_RECURSOR, "no-such=yes");
}
