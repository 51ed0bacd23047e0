//! Targets that are stopped, killed, started again, or show another certificate in mid-run: an
//! outage with its beginning, end and kind, and no advice of a rate.

use std::cell::RefCell;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};
use lab::run::{Serving, SocketUse, serve};
use lab::target::{
    BindOptions, BindTarget, KnotOptions, KnotTarget, RunningServer, Service, UnboundOptions,
    UnboundTarget, products,
};
use measure::Limit;
use proto::Transport;

use super::{Expected, on_quiet_host, signal, together};
use crate::bench::{Load, Ran, Responder, certified, ms};
use crate::target::zone;

pub(super) fn load(transport: Transport) -> Load {
    Load::over(transport).rate(500.0).plan(|plan| {
        plan.duration = Some(ms(2_000));
        plan.interval = ms(100);
        plan.timeout = ms(400);
    })
}

/// A run during which the server stands still from 0.6 s to 1.3 s, if it is to.
fn stopped(load: Load, server: &RunningServer, is_stopped: bool) -> Ran {
    let address = server.endpoints().address(load.plan.transport).unwrap();
    let load = load.ca_pem(server.ca_pem().unwrap_or_default());
    let process = server.process_id();
    let load = load.target_process(process);
    load.run_watched(address, |progress, _| {
        if is_stopped && progress.index == 5 {
            signal(process, "STOP");
        }
        if is_stopped && progress.index == 12 {
            signal(process, "CONT");
        }
    })
}

pub(super) fn outage(name: &'static str, evidence: &'static str) -> Expected {
    Expected {
        name,
        limit: Limit::Server,
        evidence,
        topic: "outage",
        cure: "check why the target stopped",
    }
}

/// What is expected of each: silence, and without it the rate.
fn check_stop(name: &'static str, transport: Transport, server: &RunningServer) {
    let expected = outage(name, "of the run nothing came back");
    let run = |is_stopped| stopped(load(transport), server, is_stopped);
    expected.check(|| run(true), || run(false), &[Limit::Rate]);
}

fn check_stop_of_bind(name: &'static str, transport: Transport) {
    let options = BindOptions {
        services: vec![Service::Dot],
        ..BindOptions::new(zone())
    };
    check_stop(name, transport, &BindTarget::start(&options).unwrap());
}

fn check_stop_of_unbound() {
    let options = UnboundOptions {
        services: vec![Service::Doh2],
        tcp_clients_max: Some(100),
        ..UnboundOptions::new(zone())
    };
    let unbound = UnboundTarget::start(&options).unwrap();
    check_stop("Unbound stopped, over HTTPS", Transport::Doh2, &unbound);
}

#[test]
fn a_server_that_stands_still_has_an_outage_and_is_not_overloaded() {
    together(&[
        &|| check_stop_of_bind("BIND stopped", Transport::Udp),
        &|| check_stop_of_bind("BIND stopped, over TCP", Transport::Tcp),
        &|| check_stop_of_bind("BIND stopped, over TLS", Transport::Dot),
        &check_stop_of_unbound,
    ]);
    let knot = || {
        let target = KnotTarget::start(&KnotOptions::new(zone())).unwrap();
        check_stop("Knot DNS stopped", Transport::Udp, &target);
    };
    let coredns = || {
        let target = products::COREDNS.start(&zone()).unwrap();
        check_stop("CoreDNS stopped, over QUIC", Transport::Doq, &target);
    };
    let dnsdist = || {
        let target = products::DNSDIST.start(&zone()).unwrap();
        check_stop("dnsdist stopped, over TCP", Transport::Tcp, &target);
    };
    together(&[&knot, &coredns, &dnsdist]);
}

#[test]
fn a_generator_that_stands_still_has_the_outage_itself() {
    let target = BindTarget::start(&BindOptions::new(zone())).unwrap();
    let run = |is_stopped: bool| {
        let load = load(Transport::Udp).target_process(target.process_id());
        load.run_watched(target.endpoints().do53(), |progress, _| {
            if is_stopped && progress.index == 5 {
                // It stops this whole process, and lets it go on.
                let script = "kill -STOP $PPID; sleep 0.7; kill -CONT $PPID";
                let status = Command::new("sh").args(["-c", script]).status();
                assert!(status.unwrap().success());
            }
        })
    };
    let expected = Expected {
        name: "this tool stopped",
        limit: Limit::Generator,
        evidence: "of the run the generator was not scheduled",
        topic: "outage",
        cure: "run again where nothing suspends or starves this tool",
    };
    expected.check(|| run(true), || run(false), &[Limit::Rate]);
}

fn check_kill(name: &'static str, transport: Transport) {
    let expected = outage(name, "s to the end of the run the target refused");
    expected.check_alone(|| {
        let target = BindTarget::start(&BindOptions::new(zone())).unwrap();
        let address = target.endpoints().do53();
        let target = RefCell::new(Some(target));
        load(transport).run_watched(address, |progress, _| {
            if progress.index == 9 {
                drop(target.take());
            }
        })
    });
}

#[test]
fn a_server_that_is_killed_has_an_outage_to_the_end() {
    together(&[&|| check_kill("BIND killed", Transport::Udp), &|| {
        check_kill("BIND killed, over TCP", Transport::Tcp)
    }]);
}

/// The responder stops after 0.6 s and is back after 1.2 s, with another certificate if so.
fn restarted(load: Load, other_certificate: bool) -> Ran {
    let mut target = Some(Responder::start(|_| {}));
    let first = target.as_ref().unwrap();
    let load = load.ca_pem(&first.certificate_pem);
    let address = first.address(load.plan.transport);
    let mut config = first.config();
    if other_certificate {
        config.tls = certified().1.tls;
    }
    let mut second: Option<Serving> = None;
    let mut target_waited = Duration::ZERO;
    let ran = load.run_watched(address, |progress, _| {
        if progress.index == 5 {
            target_waited += target.take().unwrap().serving.stop_and_tell().1;
        }
        if progress.index == 11 {
            second = Some(serve(&config, &[], SocketUse::default()).unwrap());
        }
    });
    target_waited += second.unwrap().stop_and_tell().1;
    Ran {
        target_waited,
        ..ran
    }
}

#[test]
fn a_server_that_is_started_again_has_an_outage_of_refusals() {
    let check = |name, transport| {
        let expected = outage(name, "of the run the target refused everything");
        expected.check_alone(|| restarted(load(transport), false));
    };
    together(&[&|| check("restart", Transport::Udp), &|| {
        check("restart, over TCP", Transport::Tcp)
    }]);
}

#[test]
fn a_certificate_that_changes_in_mid_run_is_named_with_the_handshakes_it_costs() {
    let run = || restarted(load(Transport::Dot), true);
    on_quiet_host(run, |ran| {
        let verdict = &ran.record.verdict;
        ensure!(verdict.limit == Limit::Server, "{verdict:#?}");
        let mut named = verdict.evidence.iter();
        let is_named = named.any(|it| it.contains("TLS certificate refused"));
        ensure!(is_named, "{verdict:#?}");
        let all = measure::doctor::of_run(&ran.record);
        let found = all.iter().find(|it| it.topic == "handshakes");
        let found = found.with_context(|| format!("no handshakes: {all:#?}"))?;
        let mut cures = found.cures.iter().map(measure::doctor::Cure::sentence);
        let cure = cures.find(|it| it.contains("--tls-ca FILE"));
        let cure = cure.with_context(|| format!("{found:#?}"))?;
        crate::rows::print("another certificate in mid-run", verdict, &cure, None);
        Ok(())
    });
}
