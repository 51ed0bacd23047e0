//! Targets that are stopped, killed, started again, or show another certificate in mid-run: an
//! outage with its beginning, end and kind, and no advice of a rate.

use std::cell::RefCell;
use std::process::Command;

use lab::run::{Serving, SocketUse, serve};
use lab::target::{
    BindOptions, BindTarget, KnotOptions, KnotTarget, Product, RunningServer, Service,
    UnboundOptions, UnboundTarget,
};
use measure::Limit;
use proto::Transport;

use super::Expected;
use crate::bench::{Load, Ran, Responder, alone, certified, ms};
use crate::servers::zone;

fn load(transport: Transport) -> Load {
    Load::over(transport).rate(500.0).plan(|plan| {
        plan.duration = Some(ms(2_000));
        plan.interval = ms(100);
        plan.timeout = ms(400);
    })
}

fn signal(process: u32, name: &str) {
    let status = Command::new("kill")
        .args(["-s", name, &process.to_string()])
        .status();
    assert!(status.unwrap().success(), "SIG{name} to {process}");
}

/// A run during which the server stands still from 0.6 s to 1.3 s, if it is to.
fn stopped(load: Load, server: &RunningServer, is_stopped: bool) -> Ran {
    let address = server.endpoints().address(load.plan.transport).unwrap();
    let load = load.ca_pem(server.ca_pem().unwrap_or_default());
    let process = server.process_id();
    let ran = load.run_watched(address, |progress, _| {
        if is_stopped && progress.index == 5 {
            signal(process, "STOP");
        }
        if is_stopped && progress.index == 12 {
            signal(process, "CONT");
        }
    });
    let advice = ran.record.verdict.advice.join("\n");
    assert!(!is_stopped || !advice.contains("--rate"), "{advice}");
    ran
}

fn outage(name: &'static str, evidence: &'static str) -> Expected {
    Expected {
        name,
        limit: Limit::Server,
        evidence,
        topic: "outage",
        cure: "find out why the target stopped",
    }
}

/// What is expected of each: silence, and without it the rate.
fn check_stop(name: &'static str, transport: Transport, server: &RunningServer) {
    let expected = outage(name, "of the run nothing came back");
    let _ = expected.check_alone(|| stopped(load(transport), server, true));
}

#[test]
fn a_server_that_stands_still_has_an_outage_and_is_not_overloaded() {
    let _alone = alone();
    let options = BindOptions {
        services: vec![Service::Dot],
        ..BindOptions::new(zone())
    };
    let bind = BindTarget::start(&options).unwrap();
    for transport in [Transport::Udp, Transport::Tcp, Transport::Dot] {
        check_stop("BIND stopped", transport, &bind);
    }
    let followed = super::undisturbed(|| load_kept(Transport::Udp, &bind), Limit::Rate);
    assert!(followed.is_none_or(|ran| ran.record.verdict.limit == Limit::Rate));
    let options = UnboundOptions {
        services: vec![Service::Doh2],
        tcp_clients_max: Some(100),
        ..UnboundOptions::new(zone())
    };
    let unbound = UnboundTarget::start(&options).unwrap();
    check_stop("Unbound stopped", Transport::Doh2, &unbound);
    let knot = KnotTarget::start(&KnotOptions::new(zone())).unwrap();
    check_stop("Knot DNS stopped", Transport::Udp, &knot);
    let coredns = Product::CoreDns.start(&zone()).unwrap();
    check_stop("CoreDNS stopped", Transport::Doq, &coredns);
    let dnsdist = Product::Dnsdist.start(&zone()).unwrap();
    check_stop("dnsdist stopped", Transport::Tcp, &dnsdist);
}

fn load_kept(transport: Transport, server: &RunningServer) -> Ran {
    stopped(load(transport), server, false)
}

#[test]
fn a_server_that_is_killed_has_an_outage_to_the_end() {
    let _alone = alone();
    for transport in [Transport::Udp, Transport::Tcp] {
        let expected = outage("BIND killed", "s to the end of the run the target refused");
        let _ = expected.check_alone(|| {
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
    load.run_watched(address, |progress, _| {
        if progress.index == 5 {
            target.take().unwrap().serving.stop();
        }
        if progress.index == 11 {
            second = Some(serve(&config, &[], SocketUse::default()).unwrap());
        }
    })
}

#[test]
fn a_server_that_is_started_again_has_an_outage_of_refusals() {
    let _alone = alone();
    for transport in [Transport::Udp, Transport::Tcp] {
        let expected = outage("restart", "of the run the target refused everything");
        let _ = expected.check_alone(|| restarted(load(transport), false));
    }
}

#[test]
fn a_certificate_that_changes_in_mid_run_is_named_with_the_handshakes_it_costs() {
    let _alone = alone();
    let Some(ran) = super::undisturbed(|| restarted(load(Transport::Dot), true), Limit::Server)
    else {
        return;
    };
    let verdict = &ran.record.verdict;
    assert_eq!(verdict.limit, Limit::Server, "{verdict:#?}");
    let named = verdict.evidence.iter();
    let mut named = named.filter(|it| it.contains("TLS certificate refused"));
    assert!(named.next().is_some(), "{verdict:#?}");
}
