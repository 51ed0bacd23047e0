//! Whole runs against BIND and Knot DNS: counts of both ends, signatures, limits. What every server
//! has to answer is in `products`.

use std::net::SocketAddr;
use std::sync::Arc;

use lab::target::{
    BindOptions, BindTarget, Cell, Families, KnotOptions, KnotTarget, Service, products,
};
use load::names_file;
use proto::Transport;
use proto::query::{Edns, OPTION_NSID, QueryOptions};

use crate::bench::Load;
use crate::target::{bind_for_signed_queries, zone};

/// Ten thousand queries, ten in flight, every one answered.
fn assert_answers_ten_thousand(load: Load, address: SocketAddr) {
    let ran = load.queries(10_000).run_at(address);
    ran.assert_all_answered(10_000);
    assert_eq!(ran.counts().lost(), 0);
}

#[test]
fn bind_counts_the_queries_that_were_sent() {
    let options = BindOptions {
        services: vec![Service::Dot],
        families: Families::Both,
        ..BindOptions::new(zone())
    };
    let target = BindTarget::start(&options).unwrap();
    let ca_pem = target.ca_pem().unwrap();
    for address in target.endpoints().do53_all() {
        let before = target.statistics().unwrap();
        assert_answers_ten_thousand(Load::over(Transport::Udp), address);
        let counted = target.statistics().unwrap().since(&before);
        assert_eq!(
            (counted.queries_udp, counted.queries_tcp),
            (10_000, 0),
            "{address}"
        );
        assert_eq!(counted.responses, 10_000);

        let before = target.statistics().unwrap();
        assert_answers_ten_thousand(Load::over(Transport::Tcp), address);
        let counted = target.statistics().unwrap().since(&before);
        assert_eq!(
            (counted.queries_udp, counted.queries_tcp),
            (0, 10_000),
            "{address}"
        );
    }
    let before = target.statistics().unwrap();
    let load = Load::over(Transport::Dot).ca_pem(ca_pem);
    assert_answers_ten_thousand(load, target.endpoints().dot().unwrap());
    let counted = target.statistics().unwrap().since(&before);
    assert_eq!(
        counted.queries_tcp.max(counted.queries_dot),
        10_000,
        "{counted:?}"
    );
    assert_eq!(counted.queries_udp, 0);
}

#[test]
fn bind_answers_queries_that_are_signed() {
    let (target, key) = bind_for_signed_queries();
    let address = target.endpoints().do53();
    for transport in [Transport::Udp, Transport::Tcp] {
        let load = Load::over(transport).queries(2_000);
        let signed = load.clone().plan(|plan| plan.tsig = Some(key.clone()));
        signed.run_at(address).assert_all_answered(2_000);
        // REFUSED (5), so that it was the signature that opened the zone.
        let refused = load.run_at(address);
        assert_eq!(refused.counts().rcodes.by_rcode[5], 2_000, "{transport}");
        assert_eq!(refused.record.goodput(), 0);
    }
}

#[test]
fn knot_of_debian_12_answers_whole_runs_over_udp_and_tcp() {
    let target = KnotTarget::start(&KnotOptions::new(zone())).unwrap();
    let address = target.endpoints().do53();
    assert_answers_ten_thousand(Load::over(Transport::Udp), address);
    assert_answers_ten_thousand(Load::over(Transport::Tcp), address);
}

#[test]
fn responses_are_counted_by_the_instance_behind_a_load_balancer() {
    let nsd = |nsid: &str| {
        let cell = Cell::new(&products::NSD, zone());
        let cell = cell.set(&format!("options=nsid: \"ascii_{nsid}\""));
        cell.unwrap().start().unwrap()
    };
    let instances = [nsd("one"), nsd("two")];
    let servers = instances.iter().map(|it| it.endpoints().do53());
    let servers = servers.map(|it| format!("newServer({{address='{it}'}})\n"));
    // The first server is the BIND that is there without being asked for.
    let options = format!(
        "options={}setServerPolicy(roundrobin)\ngetServer(0):setDown()",
        servers.collect::<String>()
    );
    let balancer = Cell::new(&products::DNSDIST, zone()).set(&options);
    let balancer = balancer.unwrap().start().unwrap();
    let asking = QueryOptions {
        edns: Some(Edns {
            options: vec![(OPTION_NSID, Vec::new())],
            ..Edns::default()
        }),
        ..QueryOptions::default()
    };
    let questions = names_file::parse_text(b"test-record-1.lab.test A\n", &asking).unwrap();
    let load = Load::over(Transport::Udp).queries(10_000);
    let load = load.plan(|plan| plan.questions = Arc::new(questions));
    let ran = load.run_at(balancer.endpoints().do53());
    ran.assert_all_answered(10_000);
    let counted = ran.record.instances.as_ref().unwrap();
    let named: Vec<&str> = counted.each.iter().map(|it| it.nsid.as_str()).collect();
    assert_eq!(named, ["one", "two"]);
    let counts: Vec<u64> = counted.each.iter().map(|it| it.responses).collect();
    assert_eq!(counts.iter().sum::<u64>(), 10_000);
    assert!(counts.iter().all(|it| *it >= 4_000), "{counts:?}");
}
