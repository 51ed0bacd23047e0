//! Targets that die, come back, or were never there.

use std::net::SocketAddr;

use lab::run::{SocketUse, serve};
use lab::target::{BindOptions, BindTarget};
use measure::{Counts, EndedBy};
use proto::Transport;

use crate::bench::{Load, Ran, Responder, ms, own_address};
use crate::target::zone;

/// A second of 1,000 queries in ten intervals, unless the test ends it.
fn load(transport: Transport) -> Load {
    Load::over(transport).rate(1_000.0).plan(|plan| {
        plan.interval = ms(100);
        plan.timeout = ms(300);
    })
}

/// The stages of a target that dies in mid-run. Each begins once the effects of the one before it
/// have been seen, however long that takes.
enum Fate {
    /// It responds; the number of responses seen so far.
    Alive(u64),
    /// It is gone; the number of losses seen since then.
    Gone(u64),
    /// It was started again.
    Back,
    /// All has been seen.
    Told,
}

/// Responses before the target goes.
const RESPONSES_BEFORE: u64 = 200;
/// Queries lost before it comes back.
const LOST_MIN: u64 = 300;

impl Fate {
    /// The one after an interval.
    fn after(
        self,
        counts: &Counts,
        mut go: impl FnMut(),
        come_back: impl FnOnce() -> bool,
    ) -> Fate {
        let (responses, lost) = (counts.responses, counts.lost());
        match self {
            Fate::Alive(before) if before + responses >= RESPONSES_BEFORE => {
                go();
                Fate::Gone(0)
            }
            Fate::Alive(before) => Fate::Alive(before + responses),
            Fate::Gone(before) if before + lost < LOST_MIN => Fate::Gone(before + lost),
            Fate::Gone(_) if come_back() => Fate::Back,
            Fate::Back if responses < 50 => Fate::Back,
            _ => Fate::Told,
        }
    }
}

/// Runs until all stages of its target have been seen.
fn run_to_fate(
    load: Load,
    address: SocketAddr,
    mut go: impl FnMut(),
    mut come_back: impl FnMut() -> bool,
) -> Ran {
    let load = load.plan(|plan| plan.duration = Some(ms(120_000)));
    let mut fate = Fate::Alive(0);
    let ran = load.run_watched(address, |progress, control| {
        let before = std::mem::replace(&mut fate, Fate::Told);
        fate = before.after(&progress.interval.counts, &mut go, &mut come_back);
        if matches!(fate, Fate::Told) {
            control.stop();
        }
    });
    assert_eq!(ran.record.ended_by, EndedBy::Interrupted);
    ran
}

/// Runs it against a responder that stops and, if so, comes back.
fn run_with_death(transport: Transport, comes_back: bool) -> Ran {
    let target = Responder::start_at(own_address(), |_| {});
    let load = load(transport).ca_pem(&target.certificate_pem);
    let (address, config) = (target.address(transport), target.config());
    let (mut first, mut second) = (Some(target), None);
    run_to_fate(
        load,
        address,
        || {
            first.take().unwrap().serving.stop();
        },
        || {
            second = comes_back.then(|| serve(&config, &[], SocketUse::default()).unwrap());
            comes_back
        },
    )
}

/// Asserts that there were responses, and losses while the target was gone.
#[track_caller]
fn check_death(ran: &Ran, transport: Transport) {
    let counts = ran.counts();
    assert!(
        counts.responses >= RESPONSES_BEFORE,
        "{transport}: {counts:?}"
    );
    assert!(counts.lost() >= LOST_MIN, "{transport}: {counts:?}");
    assert_eq!(counts.lost(), counts.offered - counts.responses);
}

#[test]
fn target_that_dies_in_mid_run_costs_queries_and_not_the_record() {
    for transport in Transport::ALL {
        let ran = run_with_death(transport, false);
        check_death(&ran, transport);
        if transport.is_stream() {
            assert!(ran.record.connections().failed.refused > 0, "{transport}");
        }
    }
}

#[test]
fn target_that_comes_back_is_used_again() {
    for transport in Transport::ALL {
        let ran = run_with_death(transport, true);
        check_death(&ran, transport);
    }
}

#[test]
fn bind_that_is_killed_in_mid_run_costs_queries_and_not_the_record() {
    for transport in [Transport::Udp, Transport::Tcp] {
        let target = BindTarget::start(&BindOptions::new(zone())).unwrap();
        let address = target.endpoints().do53();
        let mut target = Some(target);
        // Kills and reaps it.
        let ran = run_to_fate(load(transport), address, || drop(target.take()), || false);
        check_death(&ran, transport);
    }
}

#[test]
fn nobody_there_is_found_before_the_run() {
    for transport in Transport::ALL {
        let target = Responder::start_at(own_address(), |_| {});
        let (address, pem) = (target.address(transport), target.certificate_pem.clone());
        target.serving.stop();
        let load = load(transport).ca_pem(&pem).preflight();
        let error = load.try_run(address, |_, _| {}).unwrap_err();
        assert!(
            error.what.contains("nothing is listening"),
            "{transport}: {error}"
        );
        assert!(error.hint.is_some());
    }
}

#[test]
fn certificate_that_is_not_trusted_is_found_before_the_run() {
    let (target, stranger) = (Responder::start(|_| {}), Responder::start(|_| {}));
    let load = load(Transport::Dot).ca_pem(&stranger.certificate_pem);
    let address = target.address(Transport::Dot);
    let error = load
        .clone()
        .preflight()
        .try_run(address, |_, _| {})
        .unwrap_err();
    assert!(error.what.contains("certificate was refused"), "{error}");

    // Not looked for, it is in the record.
    let load = load.plan(|plan| plan.duration = Some(ms(120_000)));
    let mut refused = 0;
    let ran = load.run_watched(address, |progress, control| {
        refused += progress.interval.counts.connections.failed.tls_certificate;
        if refused >= 10 {
            control.stop();
        }
    });
    let failed = ran.record.connections().failed;
    assert!(failed.tls_certificate >= 10, "{failed:?}");
    assert_eq!(ran.counts().sent, 0);
}

#[test]
fn nobody_there_without_a_look_before_is_a_record_that_says_so() {
    for transport in Transport::ALL {
        let target = Responder::start_at(own_address(), |_| {});
        let (address, pem) = (target.address(transport), target.certificate_pem.clone());
        target.serving.stop();
        let ran = load(transport).ca_pem(&pem).run_at(address);
        let counts = ran.counts();
        assert_eq!(
            (counts.offered, counts.responses),
            (1_000, 0),
            "{transport}"
        );
        match transport.is_stream() {
            true => assert!(ran.record.connections().failed.refused > 0),
            false => assert!(counts.port_unreachable > 0, "{counts:?}"),
        }
    }
}
