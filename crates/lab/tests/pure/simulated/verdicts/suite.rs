//! Situations that are made, not guessed at: the verdict on each, what `throng doctor` says, and
//! what becomes of the verdict when its advice is followed.
//!
//! What the simulator cannot make (it needs no CPU time, and no buffer of the kernel overflows in
//! it) is in the suite on loopback, `crates/cli/tests/timed/situations.rs`.

use measure::Limit;
use measure::doctor::{Cure, State, of_run, worst};
use proto::Transport;
use responder::behaviour::ConnectionEnd;
use responder::{Delay, ServiceModel};

use crate::rows;
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
    /// The same after the advice was followed, and the limit then; none where the advice is to look
    /// at something.
    follow: Option<(Change, Limit)>,
}

/// What following an advice changes.
type Change = fn(Sim) -> Sim;

fn sim(transport: Transport) -> Sim {
    let sim = Sim::seed(11).over(transport).clients(10);
    sim.one_way_delay_ms(1).duration_ms(3_000)
}

/// A server with one worker, which needs 500 us for a query.
fn busy_server(transport: Transport) -> Sim {
    sim(transport).responder(|responder| {
        responder.service = Some(ServiceModel {
            workers: 1,
            query: crate::sim::delay("500us"),
            ..ServiceModel::default()
        });
    })
}

fn ceiling(transport: Transport, queue: usize) -> Sim {
    sim(transport).behaviour(|it| {
        it.rate_qps_max = Some(2_000.0);
        it.rate_queue_max = queue;
    })
}

fn capped(transport: Transport) -> Sim {
    let sim = sim(transport).clients(200).outstanding(200);
    sim.behaviour(|behaviour| {
        behaviour.tcp_clients_max = Some(150);
    })
}

/// Every response has this RCODE.
fn answering(transport: Transport, rcode: u8) -> Sim {
    sim(transport)
        .rate(1_000.0)
        .behaviour(|it| it.faults.rcodes = vec![(rcode, 1.0)])
}

fn good_again(sim: Sim) -> Sim {
    sim.behaviour(|it| it.faults.rcodes.clear())
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
            follow: Some((more_workers, Limit::Outstanding)),
        },
        Situation {
            name: "server CPU-bound, open loop",
            sim: busy_server(Transport::Tcp).rate(3_000.0),
            limit: Limit::Server,
            evidence: "the modelled server's 1 worker was busy for",
            topic: "limit: server",
            state: State::Ok,
            cure: "--sim-workers",
            follow: Some((more_workers, Limit::Rate)),
        },
        Situation {
            name: "server with a ceiling, closed loop",
            sim: ceiling(Transport::Udp, 10_000).outstanding(200),
            limit: Limit::Server,
            evidence: "while queries queued at the target",
            topic: "limit: server",
            state: State::Ok,
            cure: "run with --rate 1",
            follow: Some((|sim| sim.rate(1_400.0), Limit::Rate)),
        },
        Situation {
            name: "server with a ceiling and a long queue, open loop",
            sim: ceiling(Transport::Udp, 10_000).rate(3_000.0),
            limit: Limit::Server,
            evidence: "latency grew from",
            topic: "limit: server",
            state: State::Ok,
            cure: "find its limit from below: --rate 1",
            follow: Some((|sim| sim.rate(1_600.0), Limit::Rate)),
        },
        Situation {
            name: "server that drops at once what is above its ceiling",
            sim: ceiling(Transport::Udp, 0)
                .rate(3_000.0)
                .behaviour(|it| it.rate_burst = Some(ms(1))),
            limit: Limit::Unknown,
            evidence: "cannot tell a limit of 2,0",
            topic: "steady losses",
            state: State::Problem,
            cure: "half the rate, --rate 1500",
            follow: Some((|sim| sim.rate(1_500.0), Limit::Rate)),
        },
        Situation {
            name: "server with a ceiling and a short queue, open loop",
            sim: ceiling(Transport::Udp, 100).rate(3_000.0),
            limit: Limit::Server,
            evidence: "queries waited at the target on average",
            topic: "limit: server",
            state: State::Ok,
            cure: "find its limit from below: --rate 1",
            follow: Some((|sim| sim.rate(1_600.0), Limit::Rate)),
        },
    ]
}

fn more_workers(sim: Sim) -> Sim {
    sim.responder(|responder| {
        if let Some(service) = &mut responder.service {
            service.workers = 100;
        }
    })
}

fn connections() -> Vec<Situation> {
    let lift: Change = |sim| sim.behaviour(|it| it.tcp_clients_max = Some(1_000));
    let capped = |name, transport, cure| Situation {
        name,
        sim: capped(transport),
        limit: Limit::Server,
        evidence: "no more than 150 TCP clients at once: 50 of 200 got no response at all (refused",
        topic: "TCP clients",
        state: State::Problem,
        cure,
        follow: Some((lift, Limit::Outstanding)),
    };
    let resets = sim(Transport::Tcp).rate(2_000.0).behaviour(|it| {
        it.delay = Delay::Constant(ms(5));
        it.end_after = Some((37, ConnectionEnd::Reset));
    });
    vec![
        capped(
            "TCP-client cap",
            Transport::Tcp,
            "named.conf, options: tcp-clients 1000;",
        ),
        capped(
            "TCP-client cap over TLS",
            Transport::Dot,
            "tcp-listen-queue 4096;",
        ),
        capped(
            "TCP-client cap over HTTPS",
            Transport::Doh2,
            "http-listener-clients 1000;",
        ),
        Situation {
            name: "connections reset again and again",
            sim: resets,
            limit: Limit::Server,
            evidence: "reset), after",
            topic: "closed connections",
            state: State::Problem,
            cure: "--queries-per-connection",
            follow: Some((
                |sim| sim.plan(|plan| plan.connections.queries_max = Some(20)),
                Limit::Rate,
            )),
        },
        Situation {
            name: "message IDs used up",
            sim: sim(Transport::Udp)
                .clients(1)
                .rate(60_000.0)
                .timeout_ms(2_500)
                .target_dead(0, 60_000),
            limit: Limit::Generator,
            evidence: "the only client had used up its message IDs",
            topic: "message IDs",
            state: State::Problem,
            cure: "--clients 3",
            follow: Some((|sim| sim.clients(3), Limit::Unknown)),
        },
    ]
}

fn broken_rules() -> Vec<Situation> {
    let stopping = |sim: Sim| sim.responder(|responder| responder.doq_stop_sending = true);
    vec![Situation {
        name: "server that stops the streams of queries",
        sim: stopping(sim(Transport::Doq).rate(500.0)),
        limit: Limit::Generator,
        evidence: "because the target broke a rule",
        topic: "rules broken",
        state: State::Problem,
        cure: "--doq-allow-stop-sending",
        follow: Some((
            |sim| sim.plan(|plan| plan.connections.stop_sending_allowed = true),
            Limit::Rate,
        )),
    }]
}

fn outages() -> Vec<Situation> {
    let stall =
        |it: &mut responder::Behaviour| it.stalls = vec![crate::sim::stall("at=1s,for=700ms")];
    let outage = |name, sim: Sim, evidence| Situation {
        name,
        sim: sim.timeout_ms(300),
        limit: Limit::Server,
        evidence,
        topic: "outage",
        state: State::Problem,
        cure: "check why the target stopped",
        follow: Some((
            |mut sim: Sim| {
                sim.simulation.absences.clear();
                sim.behaviour(|it| it.stalls.clear())
            },
            Limit::Rate,
        )),
    };
    let steady = |transport| sim(transport).rate(1_000.0);
    let silent = "of the run nothing came back";
    vec![
        outage(
            "stall over UDP",
            steady(Transport::Udp).behaviour(stall),
            silent,
        ),
        outage(
            "stall over TCP",
            steady(Transport::Tcp).behaviour(stall),
            silent,
        ),
        outage(
            "stall over TLS",
            steady(Transport::Dot).behaviour(stall),
            silent,
        ),
        outage(
            "stall over HTTPS",
            steady(Transport::Doh2).behaviour(stall),
            silent,
        ),
        outage(
            "stall over QUIC",
            steady(Transport::Doq).behaviour(stall),
            silent,
        ),
        outage(
            "restart over TCP",
            steady(Transport::Tcp).target_dead(1_000, 700),
            "of the run the target refused",
        ),
    ]
}

fn of_no_use() -> Vec<Situation> {
    let rcode = |name, transport, rcode, topic, evidence, cure| Situation {
        name,
        sim: answering(transport, rcode),
        limit: Limit::Unknown,
        evidence,
        topic,
        state: State::Problem,
        cure,
        follow: Some((good_again as Change, Limit::Rate)),
    };
    vec![
        rcode(
            "every response REFUSED",
            Transport::Udp,
            5,
            "REFUSED",
            "100 % of the responses were REFUSED",
            "allow-query",
        ),
        rcode(
            "every response SERVFAIL",
            Transport::Tcp,
            2,
            "SERVFAIL",
            "100 % of the responses were SERVFAIL",
            "rndc zonestatus",
        ),
        rcode(
            "every response FORMERR",
            Transport::Udp,
            1,
            "FORMERR",
            "100 % of the responses were FORMERR",
            "without EDNS",
        ),
        rcode(
            "every response NOTIMP over QUIC",
            Transport::Doq,
            4,
            "NOTIMP",
            "100 % of the responses were NOTIMP",
            "dig",
        ),
        Situation {
            name: "most responses SERVFAIL in closed loop",
            sim: sim(Transport::Udp)
                .outstanding(10)
                .behaviour(|it| it.faults.rcodes = vec![(2, 0.7)]),
            limit: Limit::Unknown,
            evidence: "of the responses were SERVFAIL",
            topic: "SERVFAIL",
            state: State::Problem,
            cure: "rndc zonestatus",
            follow: Some((good_again, Limit::Outstanding)),
        },
    ]
}

fn load_bound() -> Vec<Situation> {
    vec![
        Situation {
            name: "outstanding-bound",
            sim: ceiling(Transport::Udp, 10_000).outstanding(2),
            limit: Limit::Outstanding,
            evidence: "nothing queued",
            topic: "limit: outstanding",
            state: State::Warning,
            cure: "--outstanding 8",
            follow: Some((|sim| sim.outstanding(8), Limit::Server)),
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
            follow: None,
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
            follow: None,
        },
        Situation {
            name: "rate-bound",
            sim: ceiling(Transport::Udp, 10_000).rate(1_500.0),
            limit: Limit::Rate,
            evidence: "answered and sent on time",
            topic: "limit: rate",
            state: State::Ok,
            cure: "raise --rate",
            follow: Some((|sim| sim.rate(2_500.0), Limit::Server)),
        },
        Situation {
            name: "rate cap of a closed loop",
            sim: ceiling(Transport::Udp, 10_000).outstanding_capped(100, 1_000.0),
            limit: Limit::Rate,
            evidence: "rate cap",
            topic: "limit: rate",
            state: State::Ok,
            cure: "raise the cap",
            follow: Some((|sim| sim.outstanding_capped(100, 9_000.0), Limit::Server)),
        },
    ]
}

fn too_little() -> Vec<Situation> {
    vec![
        Situation {
            name: "slots held by lost queries",
            sim: sim(Transport::Udp)
                .outstanding(20)
                .timeout_ms(1_000)
                .behaviour(|it| it.faults.loss = 0.01),
            limit: Limit::Outstanding,
            evidence: "held by lost queries",
            topic: "slots held by lost queries",
            state: State::Problem,
            cure: "--outstanding 40",
            follow: None,
        },
        Situation {
            name: "places held by what a full queue drops",
            sim: ceiling(Transport::Udp, 100)
                .outstanding(200)
                .timeout_ms(1_000),
            limit: Limit::Server,
            evidence: "queries waited at the target on average",
            topic: "slots held by lost queries",
            state: State::Problem,
            cure: "find its limit from below: --rate",
            follow: Some((|sim| sim.rate(1_600.0), Limit::Rate)),
        },
        Situation {
            name: "every response after its timeout",
            sim: sim(Transport::Udp)
                .rate(1_000.0)
                .timeout_ms(20)
                .behaviour(|it| it.delay = Delay::Constant(ms(30))),
            limit: Limit::Unknown,
            evidence: "came after the timeout of 20.00 ms (",
            topic: "timeout",
            state: State::Problem,
            cure: "--timeout 80ms",
            follow: Some((|sim| sim.timeout_ms(80), Limit::Rate)),
        },
        Situation {
            name: "too few queries",
            sim: sim(Transport::Udp).rate(20.0),
            limit: Limit::Unknown,
            evidence: "too few to tell: of 60 queries, 0 got no response",
            topic: "limit: unknown",
            state: State::Warning,
            cure: "--duration 15s",
            follow: Some((|sim| sim.duration_ms(15_000), Limit::Rate)),
        },
        Situation {
            name: "too short",
            sim: sim(Transport::Udp).rate(1_000.0).duration_ms(500),
            limit: Limit::Unknown,
            evidence: "less than 1 s says little",
            topic: "limit: unknown",
            state: State::Warning,
            cure: "--duration 10s",
            follow: Some((|sim| sim.duration_ms(10_000), Limit::Rate)),
        },
    ]
}

fn on_the_way() -> Vec<Situation> {
    let lossy = |transport| sim(transport).link_towards(TARGET, |link| link.loss_share = 0.05);
    let repaired: Change = |mut sim| {
        sim.simulation.world.links_towards.clear();
        sim
    };
    vec![
        Situation {
            name: "lossy path, UDP in open loop",
            sim: lossy(Transport::Udp).rate(1_000.0),
            limit: Limit::Network,
            evidence: "of the queries got no response",
            topic: "path",
            state: State::Problem,
            cure: "--sim-loss",
            follow: None,
        },
        Situation {
            name: "lossy path, UDP in closed loop",
            sim: lossy(Transport::Udp).outstanding(20).timeout_ms(500),
            limit: Limit::Network,
            evidence: "of the queries got no response",
            topic: "slots held by lost queries",
            state: State::Problem,
            cure: "--outstanding 40",
            follow: None,
        },
        Situation {
            name: "lossy path, TCP",
            sim: lossy(Transport::Tcp).rate(1_000.0),
            limit: Limit::Network,
            evidence: "segments, whose data was sent again later",
            topic: "path",
            state: State::Problem,
            cure: "--sim-loss",
            follow: Some((repaired, Limit::Rate)),
        },
        Situation {
            name: "responses lost at any rate",
            sim: sim(Transport::Udp)
                .rate(2_000.0)
                .timeout_ms(500)
                .behaviour(|it| it.faults.loss = 0.03),
            limit: Limit::Unknown,
            evidence: "nothing shows that the load is the cause",
            topic: "losses without a queue",
            state: State::Warning,
            cure: "a tenth of the rate to find out: --rate 200;",
            follow: None,
        },
    ]
}

/// Checks the verdict, the diagnosis with its cure, and that the advice changes the limit.
fn check(situation: Situation) {
    let name = situation.name;
    let Run { record, .. } = situation.sim.clone().run();
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
    let cure = cures.find(|it| it.contains(situation.cure));
    let cure = cure.unwrap_or_else(|| panic!("{name}: {found:#?}"));
    // The decisive one is the first, and nothing well has a problem beside it.
    assert_eq!(&all[0].seen, decisive, "{name}: {all:#?}");
    if situation.state == State::Ok {
        assert_eq!(worst(&all), State::Ok, "{name}: {all:#?}");
    }
    rows::print(name, verdict, &cure, situation.follow.map(|it| it.1));
    if let Some((follow, limit)) = situation.follow {
        let followed = follow(situation.sim).run().record.verdict;
        assert_ne!(limit, situation.limit, "{name}: the advice changes nothing");
        assert_eq!(followed.limit, limit, "{name}, followed: {followed:#?}");
    }
}

#[test]
fn a_server_at_its_limit_is_the_limit() {
    server_bound().into_iter().for_each(check);
}

#[test]
fn connections_that_are_missing_are_the_limit() {
    connections().into_iter().for_each(check);
    broken_rules().into_iter().for_each(check);
}

#[test]
fn an_outage_is_no_overload() {
    outages().into_iter().for_each(check);
}

#[test]
fn responses_of_no_use_are_no_result() {
    of_no_use().into_iter().for_each(check);
}

#[test]
fn a_load_that_asks_too_little_is_the_limit() {
    load_bound().into_iter().for_each(check);
    too_little().into_iter().for_each(check);
}

#[test]
fn a_path_that_loses_is_the_limit() {
    on_the_way().into_iter().for_each(check);
}

/// Losses that do not depend on the rate are found by doing what is advised.
#[test]
fn a_run_at_a_tenth_of_the_rate_tells_a_lossy_path_from_a_busy_server() {
    let lossy = |rate: f64| {
        let sim = sim(Transport::Udp).rate(rate).timeout_ms(500);
        let sim = sim.duration_ms(10_000);
        sim.behaviour(|it| it.faults.loss = 0.03).run().record
    };
    let both = [lossy(2_000.0), lossy(200.0)];
    let found = measure::doctor::of_runs(&both.iter().collect::<Vec<_>>());
    let path = found.iter().find(|it| it.topic == "path");
    assert!(
        path.is_some_and(|it| it.seen.contains("does not depend on the rate")),
        "{found:#?}"
    );
}
