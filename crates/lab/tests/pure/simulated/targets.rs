//! Several targets: the queries and results of each are counted separately and add up.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use load::StubPolicy;
use load::stub::ServerOrder;
use measure::{RunRecord, TargetRecord};
use proptest::prelude::*;
use proto::Transport::{Doh2, Dot, Tcp, Udp};
use responder::zone::Zone;

use crate::sim::{Sim, TARGET, ms, ns};

/// The second target.
const SECOND: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 54));

/// The same clients asking the second target.
fn second(sim: Sim) -> Sim {
    sim.plan(|plan| plan.target.set_ip(SECOND))
}

fn target(record: &RunRecord, address: IpAddr) -> &TargetRecord {
    let name = SocketAddr::new(address, 53).to_string();
    let mut targets = record.targets.iter();
    targets.find(|target| target.target == name).unwrap()
}

/// One name with an address.
fn zone() -> Arc<Zone> {
    let text = "$ORIGIN walk.test.\n$TTL 60\n@ SOA ns hostmaster 1 3600 600 86400 1\n@ NS ns\n\
                ns A 192.0.2.53\nwww A 192.0.2.1\n";
    Arc::new(Zone::from_text(text, None).unwrap())
}

/// Clients of both servers, with 400 ms for each of two attempts.
fn of_both(sim: Sim, order: ServerOrder) -> Sim {
    sim.plan(|plan| {
        plan.timeout = ms(800);
        plan.stub = Some(Arc::new(StubPolicy {
            servers: [TARGET, SECOND].map(|ip| SocketAddr::new(ip, 53)).into(),
            order,
            waits: vec![ms(400), ms(400)],
            failover_rcodes: Vec::new(),
            dead_for: ms(0),
            race_delay: None,
        }));
    })
}

#[test]
fn latencies_and_rcodes_are_those_of_the_target_that_they_came_from() {
    for transport in [Udp, Tcp] {
        let near = Sim::seed(1).over(transport).clients(3).rate(100.0);
        let near = near.names_text("www.walk.test A\n").one_way_delay_ms(5);
        let near = near.responder(|it| it.zone = zone());
        let near = near.link_towards(SECOND, |link| link.delay = ms(45));
        let far = second(Sim::seed(2).over(transport).clients(2).rate(50.0));
        let far = far.names_text("www.walk.test MX\nmissing.walk.test A\n");
        let record = near.try_run_beside(vec![far]).unwrap();
        assert_eq!(record.targets.len(), 2);
        let (near, far) = (target(&record, TARGET), target(&record, SECOND));
        for (target, clients, queries, latency) in [(near, 3, 100, ns(10)), (far, 2, 50, ns(50))] {
            let counts = &target.total.counts;
            assert_eq!((target.clients, counts.offered), (clients, queries));
            assert_eq!((target.messages_sent, counts.responses), (queries, queries));
            let all = &target.total.distributions.latency;
            assert_eq!((all.min_ns(), all.max_ns()), (Some(latency), Some(latency)));
            let summary = |key| target.summary.get(key).and_then(serde_json::Value::as_f64);
            assert_eq!(summary("responses"), Some(queries as f64));
            assert_eq!(summary("latency_min_ns"), Some(latency as f64));
        }
        let rcodes = |it: &TargetRecord| {
            let counts = &it.total.counts;
            let by_rcode = &counts.rcodes.by_rcode;
            (by_rcode[0], counts.nodata, by_rcode[3])
        };
        assert_eq!((rcodes(near), rcodes(far)), ((100, 0, 0), (25, 25, 25)));
    }
}

#[test]
fn a_run_with_one_target_tells_it_by_its_total() {
    let one = Sim::seed(1).rate(50.0);
    let record = one.clone().try_run_beside(vec![one]).unwrap();
    assert_eq!((record.groups.len(), record.targets.len()), (2, 0));
}

#[test]
fn a_query_asked_at_two_servers_is_one_of_the_server_that_answered_it() {
    let sim = Sim::seed(3).clients(2).rate(100.0).one_way_delay_ms(5);
    let sim = of_both(sim, ServerOrder::First);
    let sim = sim.link_towards(TARGET, |link| link.loss_share = 1.0);
    let record = sim.run().record;
    let (deaf, good) = (target(&record, TARGET), target(&record, SECOND));
    assert_eq!((deaf.messages_sent, good.messages_sent), (100, 100));
    assert_eq!(deaf.total.counts.sent, 0);
    assert_eq!(good.total.counts.responses, 100);
    assert_eq!(good.total.counts.rcodes.by_rcode[0], 100);
    let latency = &good.total.distributions.latency;
    assert_eq!(latency.max_ns(), Some(ns(410)));
}

#[test]
fn a_query_that_nobody_answers_is_lost_at_the_server_that_was_asked_last() {
    let sim = Sim::seed(4).clients(2).rate(100.0).one_way_delay_ms(5);
    let sim = of_both(sim, ServerOrder::Rotate).link(|link| link.loss_share = 1.0);
    let record = sim.run().record;
    for address in [TARGET, SECOND] {
        let it = target(&record, address);
        assert_eq!((it.messages_sent, it.total.counts.timeouts), (100, 50));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// [`Sim::try_run_beside`] checks that the targets add up to the run.
    #[test]
    fn targets_add_up_to_the_run_whatever_becomes_of_it(
        transport in prop::sample::select(&[Udp, Dot, Doh2][..]),
        (loss, away_ms, length_ms) in (0.0_f64..0.4, 0_u64..900, 1_u64..900),
        (seed, queries_max) in (any::<u64>(), prop::option::of(1_u32..20)),
    ) {
        let is_datagram = transport == Udp;
        let sim = Sim::seed(seed).over(transport).clients(3).rate(150.0).one_way_delay_ms(5);
        let queries_max = queries_max.filter(|_| !is_datagram);
        let sim = sim.plan(|plan| plan.connections.queries_max = queries_max);
        let other = Sim::seed(seed ^ 1).clients(2).rate(80.0);
        let both = of_both(Sim::seed(seed ^ 2).clients(2).rate(60.0), ServerOrder::Rotate);
        let sim = sim.target_dead(away_ms, length_ms);
        let sim = sim.link(|link| link.loss_share = if is_datagram { loss } else { 0.0 });
        let record = sim.try_run_beside(vec![second(other), both]).map_err(TestCaseError::fail)?;
        prop_assert_eq!(record.targets.len(), 2);
        let clients: u64 = record.targets.iter().map(|it| it.clients).sum();
        prop_assert_eq!(clients, 3 + 2 + 2 * 2);
        let offered: u64 = record.targets.iter().map(|it| it.total.counts.offered).sum();
        let counts = &record.total.counts;
        prop_assert!(counts.offered - offered <= counts.not_sent.total());
    }
}
