//! Every server, asked over each of its transports by clients that are not ours.
//!
//! This proves the servers before our own engine is tried on them.

use lab::target::{Product, Service};

use crate::clients::{Asked, Way, ask_all_ways};
use crate::zone;

fn check(product: Product) {
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
        assert!(queries > 0, "nobody asked {product:?} over {way:?}");
    }
}

#[test]
fn bind_answers_other_clients_over_all_its_transports() {
    check(Product::Bind);
}

#[test]
fn unbound_answers_other_clients_over_all_its_transports() {
    check(Product::Unbound);
}

#[test]
fn knot_answers_other_clients_over_all_its_transports() {
    check(Product::Knot);
}

#[test]
fn coredns_answers_other_clients_over_all_its_transports() {
    check(Product::CoreDns);
}

#[test]
fn dnsdist_answers_other_clients_over_all_its_transports() {
    check(Product::Dnsdist);
}

#[test]
fn haproxy_answers_other_clients_over_all_its_transports() {
    check(Product::Haproxy);
}
