//! Clients that ask again and have two servers, on the kernel's sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use load::StubPolicy;
use load::stub::ServerOrder;
use proto::Transport;
use responder::Counters;

use crate::bench::{Load, Ran, Responder, ms, own_address};

/// Queries of a run, unless the test ends it.
const QUERIES: u64 = 1_000;

fn load(transport: Transport, servers: &[Responder], waits: Vec<Duration>) -> (Load, SocketAddr) {
    let addresses: Vec<SocketAddr> = servers.iter().map(|it| it.address(transport)).collect();
    let pems: String = servers
        .iter()
        .map(|it| it.certificate_pem.as_str())
        .collect();
    let first = addresses[0];
    let load = Load::over(transport).rate(2_000.0).queries(QUERIES);
    let load = load.ca_pem(&pems).plan(|plan| {
        plan.interval = ms(50);
        plan.timeout = waits.iter().sum();
        plan.stub = Some(Arc::new(StubPolicy {
            servers: addresses,
            order: ServerOrder::First,
            waits,
            failover_rcodes: Vec::new(),
            dead_for: Duration::ZERO,
            race_delay: None,
        }));
    });
    (load, first)
}

/// Responses of each server that are seen before the test goes on.
const RESPONSES: u64 = 100;

/// The first of two servers dies after some responses; the run ends after some of the second.
fn run_with_a_death(transport: Transport) -> (Ran, [Counters; 2]) {
    let mut servers = Vec::from([(); 2].map(|()| Responder::start_at(own_address(), |_| {})));
    let (load, first) = load(transport, &servers, vec![ms(500), ms(60_000)]);
    let load = load.rate(500.0).plan(|plan| {
        plan.queries_max = None;
        plan.duration = Some(ms(120_000));
    });
    let (mut dead, mut seen) = (None, [0; 2]);
    let ran = load.run_watched(first, |progress, control| {
        let by_server = &progress.interval.counts.stub.responses_by_server;
        for (seen, responses) in seen.iter_mut().zip(by_server) {
            *seen += responses;
        }
        if dead.is_none() && seen[0] >= RESPONSES {
            dead = Some(servers.remove(0).serving.stop());
        }
        if dead.is_some() && seen[1] >= RESPONSES {
            control.stop();
        }
    });
    let alive = servers.remove(0).serving.stop();
    (ran, [dead.unwrap(), alive])
}

#[test]
fn every_query_is_answered_though_one_of_two_servers_dies() {
    for transport in [
        Transport::Udp,
        Transport::Tcp,
        Transport::Dot,
        Transport::Doq,
    ] {
        let (ran, [dead, alive]) = run_with_a_death(transport);
        let counts = ran.counts();
        let stub = &counts.stub;
        // What was due and not sent when the run was ended is no query.
        let not_sent = counts.not_sent.run_ended;
        let ends = (counts.responses, counts.lost());
        assert_eq!(ends, (counts.sent, not_sent), "{transport}: {counts:?}");
        let [of_dead, of_alive] = stub.responses_by_server[..] else {
            panic!("{transport}: {stub:?}");
        };
        let least = of_dead.min(of_alive);
        assert!(least >= RESPONSES, "{transport}: {stub:?}");
        assert!(stub.failovers.total() > 0, "{transport}: {stub:?}");
        // What was on the way to the one that died it never read.
        assert!(
            dead.queries.total() <= stub.sent_by_server[0],
            "{transport}: {stub:?}"
        );
        assert!(dead.queries.total() >= of_dead, "{transport}: {stub:?}");
        assert_eq!(
            alive.queries.total(),
            stub.sent_by_server[1],
            "{transport}: {stub:?}"
        );
    }
}

#[test]
fn both_ends_count_alike_what_was_sent_again() {
    let lossy = |it: &mut responder::ResponderConfig| it.behaviour.faults.loss = 0.1;
    let servers = [(); 2].map(|()| Responder::start(lossy));
    let (load, first) = load(Transport::Udp, &servers, vec![ms(1_000); 8]);
    let load = load.plan(|plan| {
        Arc::make_mut(plan.stub.as_mut().unwrap()).order = ServerOrder::Rotate;
    });
    let ran = load.run_at(first);
    let counted = servers.map(|server| server.serving.stop());
    let received = counted.each_ref().map(|it| it.queries.total());
    let lost: u64 = counted.iter().map(|it| it.lost).sum();
    let counts = ran.counts();
    let stub = &counts.stub;
    // One in a hundred million is lost eight times.
    assert_eq!(
        (counts.sent, counts.responses),
        (QUERIES, QUERIES),
        "{counts:?}"
    );
    assert_eq!(received[..], stub.sent_by_server, "{stub:?}");
    assert_eq!(received.iter().sum::<u64>(), QUERIES + stub.retransmitted);
    // A host that is busy for a second has clients send again what was not lost.
    assert!(
        (50..=stub.retransmitted).contains(&lost),
        "{lost}: {stub:?}"
    );
    assert!(stub.responses_by_attempt[1] > 0, "{stub:?}");
}

#[test]
fn connections_are_raced_to_the_server_that_accepts() {
    let servers = [(); 2].map(|()| Responder::start_at(own_address(), |_| {}));
    let (load, _) = load(Transport::Tcp, &servers[1..], vec![ms(60_000)]);
    let [gone, alive] = servers;
    let nobody = gone.address(Transport::Tcp);
    gone.serving.stop();
    let load = load.plan(|plan| {
        let stub = Arc::make_mut(plan.stub.as_mut().unwrap());
        stub.servers.insert(0, nobody);
        stub.race_delay = Some(ms(250));
    });
    let ran = load.run_at(nobody);
    let received = alive.serving.stop().queries.total();
    let counts = ran.counts();
    assert_eq!(
        (counts.responses, received),
        (QUERIES, QUERIES),
        "{counts:?}"
    );
    assert_eq!(counts.stub.responses_by_server, [0, QUERIES]);
}
