//! Clients that are not served, and connections that end.

use lab::target::{
    BindOptions, BindTarget, KnotOptions, KnotTarget, Service, UnboundOptions, UnboundTarget,
};
use measure::Limit;
use proto::Transport;
use responder::behaviour::ConnectionEnd;
use responder::{Delay, FaultShares};

use super::Expected;
use crate::bench::{Load, Ran, alone, ms};
use crate::servers::zone;

/// So many TCP clients in turn, each some times.
fn open_loop(transport: Transport, clients: u32) -> Load {
    let load = Load::over(transport).clients(clients).rate(2_000.0);
    load.plan(|plan| {
        plan.duration = Some(ms(1_500));
        plan.timeout = ms(500);
    })
}

fn served(name: &'static str, evidence: &'static str, cure: &'static str) -> Expected {
    Expected {
        name,
        limit: Limit::Server,
        evidence,
        topic: "TCP clients",
        cure,
    }
}

const OTHERS: [Limit; 3] = [Limit::Rate, Limit::Outstanding, Limit::Unknown];

#[test]
fn binds_cap_on_tcp_clients_is_the_limit_until_it_is_raised() {
    let _alone = alone();
    let bind = |load: &dyn Fn() -> Load, tcp_clients_max: Option<u32>| {
        let options = BindOptions {
            services: vec![Service::Dot],
            tcp_clients_max,
            extra_options: "  tcp-listen-queue 4096;".to_owned(),
            ..BindOptions::new(zone())
        };
        let target = BindTarget::start(&options).unwrap();
        let load = load();
        let address = target.endpoints().address(load.plan.transport).unwrap();
        load.ca_pem(target.ca_pem().unwrap()).run_at(address)
    };
    // BIND's default is 150.
    let seen =
        "the target serves no more than 150 TCP clients at once: 50 of 200 got no response at all";
    let open = || open_loop(Transport::Tcp, 200);
    let expected = served("BIND, open loop", seen, "tcp-clients 1000;");
    expected.check(|| bind(&open, None), || bind(&open, Some(1_000)), &OTHERS);
    let closed = || {
        let load = Load::over(Transport::Tcp).clients(200).outstanding(100);
        load.plan(|plan| {
            plan.duration = Some(ms(1_500));
            plan.timeout = ms(400);
        })
    };
    let expected = served(
        "BIND, closed loop",
        "TCP clients at once: ",
        "tcp-clients 1000;",
    );
    // A hundred queries keep BIND busy, then.
    let then = [Limit::Rate, Limit::Outstanding, Limit::Unknown];
    let _ = expected.check_alone(|| bind(&closed, None));
    let followed = super::undisturbed(|| bind(&closed, Some(1_000)), Limit::Rate);
    assert!(followed.is_none_or(|ran| {
        let verdict = &ran.record.verdict;
        then.contains(&verdict.limit) || !verdict.evidence[0].contains("TCP clients")
    }));
    let tls = || open_loop(Transport::Dot, 60);
    let seen =
        "the target serves no more than 40 TCP clients at once: 20 of 60 got no response at all";
    let expected = served("BIND over TLS", seen, "tcp-listen-queue 4096;");
    expected.check(|| bind(&tls, Some(40)), || bind(&tls, Some(1_000)), &OTHERS);
}

#[test]
fn unbounds_and_knots_caps_on_tcp_clients_are_the_limit_until_they_are_raised() {
    let _alone = alone();
    let unbound = |tcp_clients_max: Option<u32>| {
        let options = UnboundOptions {
            tcp_clients_max,
            ..UnboundOptions::new(zone())
        };
        let target = UnboundTarget::start(&options).unwrap();
        open_loop(Transport::Tcp, 30).run_at(target.endpoints().do53())
    };
    // It makes room for others as soon as one is idle, so that more than ten are served in turn.
    let seen = "TCP clients at once: ";
    let expected = served("Unbound", seen, "incoming-num-tcp: 1000");
    expected.check(|| unbound(None), || unbound(Some(1_000)), &OTHERS);
    let knot = |tcp_clients_max: Option<u32>| {
        let options = KnotOptions {
            tcp_clients_max,
            ..KnotOptions::new(zone())
        };
        let target = KnotTarget::start(&options).unwrap();
        open_loop(Transport::Tcp, 40).run_at(target.endpoints().do53())
    };
    let seen =
        "the target serves no more than 20 TCP clients at once: 20 of 40 got no response at all";
    let expected = served("Knot DNS", seen, "tcp-max-clients: 1000");
    expected.check(|| knot(Some(20)), || knot(Some(1_000)), &OTHERS);
}

fn closed_connections(name: &'static str, cure: &'static str) -> Expected {
    Expected {
        name,
        limit: Limit::Server,
        evidence: "the target ended",
        topic: "closed connections",
        cure,
    }
}

#[test]
fn connections_that_the_target_resets_are_the_limit_and_no_cap() {
    let _alone = alone();
    let run = |transport: Transport, queries_max: Option<u32>| -> Ran {
        let load = open_loop(transport, 10).plan(|plan| plan.connections.queries_max = queries_max);
        let (ran, _) = load.run_against(|config| {
            config.behaviour.delay = Delay::Constant(ms(5));
            config.behaviour.end_after = Some((37, ConnectionEnd::Reset));
        });
        ran
    };
    for transport in [Transport::Tcp, Transport::Dot] {
        let expected = closed_connections("resets", "--queries-per-connection");
        expected.check(
            || run(transport, None),
            || run(transport, Some(15)),
            &[Limit::Rate],
        );
    }
}

#[test]
fn a_target_that_turns_http_requests_away_is_the_limit() {
    let _alone = alone();
    let run = |share: f64| -> Ran {
        let (ran, _) = open_loop(Transport::Doh2, 5).run_against(|config| {
            config.behaviour.faults = FaultShares {
                http_statuses: vec![(429, share)],
                ..FaultShares::default()
            };
        });
        ran
    };
    let expected = Expected {
        name: "HTTP 429",
        limit: Limit::Server,
        evidence: "answered without a DNS message",
        topic: "queries without a DNS message",
        cure: "raise that limit",
    };
    expected.check(|| run(0.3), || run(0.0), &[Limit::Rate]);
}
