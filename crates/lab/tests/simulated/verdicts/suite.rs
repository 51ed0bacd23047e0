//! Situations that are made, not guessed at: the verdict on each, and what `throng doctor` says.
//!
//! What the simulator cannot make (it needs no CPU time, and no buffer of the kernel overflows in
//! it) is in the suite on loopback, `crates/lab/tests/loopback/situations.rs`.

use driver::Close;
use measure::Limit;
use measure::doctor::{Cure, State, of_run, worst};
use proto::Transport;
use responder::{Delay, ServiceModel};

use crate::sim::{Run, Sim, TARGET, ms};

/// One situation with what has to be said of it.
struct Situation {
    name: &'static str,
    sim: Sim,
    limit: Limit,
    /// A part of the decisive evidence.
    evidence: &'static str,
    /// The diagnosis, its state, and a part of one of its cures.
    topic: &'static str,
    state: State,
    cure: &'static str,
}

fn sim(transport: Transport) -> Sim {
    let sim = Sim::seed(11).over(transport).clients(10);
    sim.one_way_delay_ms(1).duration_ms(3_000)
}

/// A server that does so many queries a second at most.
fn busy_server(transport: Transport) -> Sim {
    sim(transport).responder(|responder| {
        responder.service = Some(ServiceModel {
            workers: 1,
            query: "500us".parse().unwrap(),
            ..ServiceModel::default()
        });
    })
}

fn capped(transport: Transport) -> Sim {
    let sim = sim(transport).clients(200).outstanding(200);
    sim.behaviour(|behaviour| {
        behaviour.tcp_clients_max = Some(150);
        behaviour.excess_close = Close::Reset;
    })
}

fn server_bound() -> Vec<Situation> {
    vec![
        Situation {
            name: "server CPU-bound, closed loop",
            sim: busy_server(Transport::Udp).outstanding(100),
            limit: Limit::Server,
            evidence: "the modelled server's 1 worker was busy for",
            topic: "limit: server",
            state: State::Ok,
            cure: "--sim-workers",
        },
        Situation {
            name: "server CPU-bound, open loop",
            sim: busy_server(Transport::Tcp).rate(3_000.0),
            limit: Limit::Server,
            evidence: "the modelled server's 1 worker was busy for",
            topic: "limit: server",
            state: State::Ok,
            cure: "--sim-workers",
        },
        Situation {
            name: "server with a ceiling, closed loop",
            sim: sim(Transport::Udp)
                .outstanding(200)
                .behaviour(|it| it.rate_qps_max = Some(2_000.0)),
            limit: Limit::Server,
            evidence: "while queries queued at the target",
            topic: "limit: server",
            state: State::Ok,
            cure: "rndc status",
        },
        Situation {
            name: "TCP-client cap",
            sim: capped(Transport::Tcp),
            limit: Limit::Server,
            evidence: "no more than 150 TCP clients (50 of 200",
            topic: "TCP clients",
            state: State::Problem,
            cure: "named.conf, options: tcp-clients 1000;",
        },
        Situation {
            name: "TCP-client cap over TLS",
            sim: capped(Transport::Dot),
            limit: Limit::Server,
            evidence: "no more than 150 TCP clients",
            topic: "TCP clients",
            state: State::Problem,
            cure: "tcp-listen-queue 4096;",
        },
    ]
}

fn load_bound() -> Vec<Situation> {
    vec![
        Situation {
            name: "outstanding-bound",
            sim: sim(Transport::Udp).outstanding(10),
            limit: Limit::Outstanding,
            evidence: "nothing queued",
            topic: "limit: outstanding",
            state: State::Warning,
            cure: "--outstanding 40",
        },
        Situation {
            name: "slow target, closed loop",
            sim: sim(Transport::Udp)
                .outstanding(10)
                .behaviour(|it| it.delay = Delay::Constant(ms(50))),
            limit: Limit::Outstanding,
            evidence: "nothing queued: p50 52",
            topic: "limit: outstanding",
            state: State::Warning,
            cure: "--outstanding 40",
        },
        Situation {
            name: "slow target, open loop",
            sim: sim(Transport::Tcp)
                .rate(1_000.0)
                .behaviour(|it| it.delay = Delay::Constant(ms(50))),
            limit: Limit::Rate,
            evidence: "answered and sent on time",
            topic: "limit: rate",
            state: State::Ok,
            cure: "raise --rate",
        },
        Situation {
            name: "rate-bound",
            sim: sim(Transport::Udp).rate(2_000.0),
            limit: Limit::Rate,
            evidence: "answered and sent on time",
            topic: "limit: rate",
            state: State::Ok,
            cure: "raise --rate",
        },
        Situation {
            name: "places held by lost queries",
            sim: sim(Transport::Udp)
                .outstanding(20)
                .timeout_ms(1_000)
                .behaviour(|it| it.faults.loss = 0.01),
            limit: Limit::Outstanding,
            evidence: "held by lost queries",
            topic: "places held by lost queries",
            state: State::Problem,
            cure: "--timeout 1s",
        },
    ]
}

fn on_the_way() -> Vec<Situation> {
    let lossy = |transport| sim(transport).link_towards(TARGET, |link| link.loss_share = 0.05);
    vec![
        Situation {
            name: "lossy path, UDP in open loop",
            sim: lossy(Transport::Udp).rate(1_000.0),
            limit: Limit::Network,
            evidence: "of the queries got no response",
            topic: "path",
            state: State::Problem,
            cure: "--sim-loss",
        },
        Situation {
            name: "lossy path, UDP in closed loop",
            sim: lossy(Transport::Udp).outstanding(20).timeout_ms(500),
            limit: Limit::Network,
            evidence: "of the queries got no response",
            topic: "places held by lost queries",
            state: State::Problem,
            cure: "--outstanding 40",
        },
        Situation {
            name: "lossy path, TCP",
            sim: lossy(Transport::Tcp).rate(1_000.0),
            limit: Limit::Network,
            evidence: "segments, whose octets were sent again later",
            topic: "path",
            state: State::Problem,
            cure: "--sim-loss",
        },
    ]
}

/// Checks the verdict, and the diagnosis with its cure.
fn check(situation: Situation) {
    let name = situation.name;
    let Run { record, .. } = situation.sim.run();
    let verdict = &record.verdict;
    assert_eq!(verdict.limit, situation.limit, "{name}: {verdict:#?}");
    let decisive = &verdict.evidence[0];
    assert!(
        decisive.contains(situation.evidence),
        "{name}: {verdict:#?}"
    );
    let all = of_run(&record);
    let found = all.iter().find(|it| it.topic == situation.topic);
    let found = found.unwrap_or_else(|| panic!("{name}: {all:#?}"));
    assert_eq!(found.state, situation.state, "{name}: {found:#?}");
    let mut cures = found.cures.iter().map(Cure::sentence);
    assert!(
        cures.any(|it| it.contains(situation.cure)),
        "{name}: {found:#?}"
    );
    // The decisive one is the first, and nothing well has a problem beside it.
    assert_eq!(&all[0].seen, decisive, "{name}: {all:#?}");
    if situation.state == State::Ok {
        assert_eq!(worst(&all), State::Ok, "{name}: {all:#?}");
    }
}

#[test]
fn a_server_at_its_limit_is_the_limit() {
    server_bound().into_iter().for_each(check);
}

#[test]
fn a_load_that_asks_too_little_is_the_limit() {
    load_bound().into_iter().for_each(check);
}

#[test]
fn a_path_that_loses_is_the_limit() {
    on_the_way().into_iter().for_each(check);
}
