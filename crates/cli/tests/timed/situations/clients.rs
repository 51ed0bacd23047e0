//! Clients that are not served, and connections that end.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use anyhow::ensure;
use lab::target::{
    BindOptions, BindTarget, KnotOptions, KnotTarget, Service, UnboundOptions, UnboundTarget,
};
use load::arrival::{Arrival, Process};
use measure::Limit;
use proto::Transport;
use responder::behaviour::ConnectionEnd;
use responder::{Delay, FaultShares};

use super::{Expected, on_quiet_host, together};
use crate::bench::{Load, Ran, ms};
use crate::target::zone;

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

fn bind(load: Load, tcp_clients_max: Option<u32>) -> Ran {
    let options = BindOptions {
        services: vec![Service::Dot],
        tcp_clients_max,
        extra_options: "  tcp-listen-queue 4096;".to_owned(),
        ..BindOptions::new(zone())
    };
    let target = BindTarget::start(&options).unwrap();
    load.ca_pem(target.ca_pem().unwrap()).run_on(&target)
}

/// BIND's default is 150.
fn check_bind_over_tcp() {
    let seen =
        "the target serves no more than 150 TCP clients at once: 50 of 200 got no response at all";
    let open = || open_loop(Transport::Tcp, 200);
    let expected = served("BIND, open loop", seen, "tcp-clients 1000;");
    expected.check(|| bind(open(), None), || bind(open(), Some(1_000)), &OTHERS);
}

fn check_bind_over_tls() {
    let seen =
        "the target serves no more than 40 TCP clients at once: 20 of 60 got no response at all";
    let tls = || open_loop(Transport::Dot, 60);
    let expected = served("BIND over TLS", seen, "tcp-listen-queue 4096;");
    expected.check(
        || bind(tls(), Some(40)),
        || bind(tls(), Some(1_000)),
        &OTHERS,
    );
}

#[test]
fn binds_cap_on_tcp_clients_is_the_limit_until_it_is_raised() {
    together(&[&check_bind_over_tcp, &check_bind_over_tls]);
    let closed = || {
        let load = Load::over(Transport::Tcp).clients(200).outstanding(100);
        load.plan(|plan| {
            plan.duration = Some(ms(1_500));
            plan.timeout = ms(400);
        })
    };
    let seen = "TCP clients at once: ";
    let expected = served("BIND, closed loop", seen, "tcp-clients 1000;");
    expected.check_alone(|| bind(closed(), None));
    // A hundred queries keep BIND busy, then.
    on_quiet_host(
        || bind(closed(), Some(1_000)),
        |ran| {
            let verdict = &ran.record.verdict;
            let has_cap = verdict.evidence[0].contains("TCP clients");
            ensure!(OTHERS.contains(&verdict.limit) || !has_cap, "{verdict:#?}");
            Ok(())
        },
    );
}

fn unbound(tcp_clients_max: Option<u32>) -> Ran {
    let options = UnboundOptions {
        tcp_clients_max,
        ..UnboundOptions::new(zone())
    };
    let target = UnboundTarget::start(&options).unwrap();
    open_loop(Transport::Tcp, 30).run_on(&target)
}

fn knot(tcp_clients_max: Option<u32>) -> Ran {
    let options = KnotOptions {
        tcp_clients_max,
        ..KnotOptions::new(zone())
    };
    let target = KnotTarget::start(&options).unwrap();
    open_loop(Transport::Tcp, 40).run_on(&target)
}

#[test]
fn unbounds_and_knots_caps_on_tcp_clients_are_the_limit_until_they_are_raised() {
    // It makes room for others as soon as one is idle, so that more than ten are served in turn.
    let seen = "TCP clients at once: ";
    let of_unbound = served("Unbound", seen, "incoming-num-tcp: 1000");
    let seen =
        "the target serves no more than 20 TCP clients at once: 20 of 40 got no response at all";
    let of_knot = served("Knot DNS", seen, "tcp-max-clients: 1000");
    together(&[
        &|| of_unbound.check(|| unbound(None), || unbound(Some(1_000)), &OTHERS),
        &|| of_knot.check(|| knot(Some(20)), || knot(Some(1_000)), &OTHERS),
    ]);
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
    let run = |transport: Transport, queries_max: Option<u32>| -> Ran {
        let load = open_loop(transport, 10).plan(|plan| plan.connections.queries_max = queries_max);
        let (ran, _) = load.run_against(|config| {
            config.behaviour.delay = Delay::Constant(ms(5));
            config.behaviour.end_after = Some((37, ConnectionEnd::Reset));
        });
        ran
    };
    let check = |name, transport| {
        let expected = closed_connections(name, "--queries-per-connection");
        let followed = || run(transport, Some(15));
        expected.check(|| run(transport, None), followed, &[Limit::Rate]);
    };
    together(&[&|| check("resets over TCP", Transport::Tcp), &|| {
        check("resets over TLS", Transport::Dot)
    }]);
}

/// Answers so many queries, and ends the connection while more may be on their way: a reset if
/// there are, for what was not read then.
fn answer_some(mut connection: TcpStream, queries: u32) -> std::io::Result<()> {
    for _ in 0..queries {
        let mut length = [0; 2];
        connection.read_exact(&mut length)?;
        let mut message = vec![0; u16::from_be_bytes(length).into()];
        connection.read_exact(&mut message)?;
        message[2] |= 0x80;
        connection.write_all(&[&length[..], &message].concat())?;
    }
    Ok(())
}

#[test]
fn connections_that_end_at_random_are_no_cap_on_clients() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    // Ends with this process.
    std::thread::spawn(move || {
        let mut chance: u32 = 1;
        for connection in listener.incoming().flatten() {
            chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            std::thread::spawn(move || answer_some(connection, 1 + (chance >> 24)));
        }
    });
    let expected = closed_connections("ends at random", "raise the server's limits on connections");
    let run = || {
        // Ten queries at a time on each connection: most of its ends lose some. A closed loop would
        // use all CPUs, as the target's threads would.
        let load = Load::over(Transport::Tcp).clients(10);
        let load = load.plan(|plan| {
            plan.duration = Some(ms(1_500));
            plan.arrival = Arrival::Open {
                rate_qps: 10_000.0,
                process: Process::Constant,
                burst: 100,
            };
        });
        // The target is threads of this process.
        load.target_process(std::process::id()).run_at(target)
    };
    expected.check_with(run, |ran| {
        let evidence = ran.record.verdict.evidence.join("\n");
        ensure!(!evidence.contains("clients at once"), "{evidence}");
        Ok(())
    });
}

#[test]
fn connections_that_we_close_for_a_broken_rule_are_ours_until_it_is_passed_over() {
    let run = |is_allowed: bool| -> Ran {
        let load = open_loop(Transport::Doq, 5).rate(500.0);
        let load = load.plan(|plan| plan.connections.stop_sending_allowed = is_allowed);
        load.run_against(|config| config.doq_stop_sending = true).0
    };
    let expected = Expected {
        name: "STOP_SENDING over QUIC",
        limit: Limit::Generator,
        evidence: "because the target broke a rule: ",
        topic: "rules broken",
        cure: "--doq-allow-stop-sending",
    };
    expected.check(|| run(false), || run(true), &[Limit::Rate]);
}

#[test]
fn a_target_that_turns_http_requests_away_is_the_limit() {
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
