//! Targets that die, come back, or were never there.

use std::net::SocketAddr;

use lab::run::{SocketUse, serve};
use lab::target::{BindOptions, BindTarget};
use measure::{EndedBy, Limit};
use proto::Transport;

use crate::bench::{Load, Ran, Responder, alone, ms};
use crate::servers::zone;

/// A second of 1,000 queries in ten intervals, unless the test ends it.
fn load(transport: Transport) -> Load {
    Load::over(transport).rate(1_000.0).plan(|plan| {
        plan.interval = ms(100);
        plan.timeout = ms(300);
    })
}

/// What becomes of a target in mid run. Each step is taken when what the one before it has to show
/// has been seen, however long that takes.
enum Fate {
    /// It answers; so many responses have been seen.
    Alive(u64),
    /// It has been gone for so many intervals.
    Gone(u32),
    /// It was started again.
    Back,
    /// All has been seen.
    Told,
}

/// Responses before the target goes.
const RESPONSES_BEFORE: u64 = 200;
/// Intervals for which it is gone: 500 queries fall due.
const INTERVALS_GONE: u32 = 5;

impl Fate {
    /// The one after an interval with so many responses.
    fn after(self, responses: u64, mut go: impl FnMut(), come_back: impl FnOnce() -> bool) -> Fate {
        match self {
            Fate::Alive(before) if before + responses >= RESPONSES_BEFORE => {
                go();
                Fate::Gone(0)
            }
            Fate::Alive(before) => Fate::Alive(before + responses),
            Fate::Gone(intervals) if intervals < INTERVALS_GONE => Fate::Gone(intervals + 1),
            Fate::Gone(_) if come_back() => Fate::Back,
            Fate::Back if responses < 50 => Fate::Back,
            _ => Fate::Told,
        }
    }
}

/// Runs until the fate of its target is told.
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
        fate = before.after(progress.interval.counts.responses, &mut go, &mut come_back);
        if matches!(fate, Fate::Told) {
            control.stop();
        }
    });
    assert_eq!(ran.record.ended_by, EndedBy::Interrupted);
    ran
}

/// Runs it against a responder that stops and, if so, comes back.
fn run_with_death(transport: Transport, comes_back: bool) -> Ran {
    let target = Responder::start(|_| {});
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
    assert_eq!(counts.lost(), counts.offered - counts.responses);
}

#[test]
fn target_that_dies_in_mid_run_costs_queries_and_not_the_record() {
    let _alone = alone();
    for transport in Transport::ALL {
        let ran = run_with_death(transport, false);
        check_death(&ran, transport);
        assert!(
            ran.counts().lost() >= 300,
            "{transport}: {:?}",
            ran.counts()
        );
        if transport.is_stream() {
            assert!(ran.record.connections().failed.refused > 0, "{transport}");
        }
    }
}

#[test]
fn target_that_comes_back_is_used_again() {
    let _alone = alone();
    for transport in Transport::ALL {
        let ran = run_with_death(transport, true);
        check_death(&ran, transport);
        // Over connections most queries can wait for the next one.
        assert!(ran.counts().lost() > 0, "{transport}: {:?}", ran.counts());
    }
}

#[test]
fn bind_that_is_killed_in_mid_run_costs_queries_and_not_the_record() {
    let _alone = alone();
    for transport in [Transport::Udp, Transport::Tcp] {
        let target = BindTarget::start(&BindOptions::new(zone())).unwrap();
        let address = target.endpoints().do53();
        let mut target = Some(target);
        // Kills and reaps it.
        let ran = run_to_fate(load(transport), address, || drop(target.take()), || false);
        check_death(&ran, transport);
        assert!(
            ran.counts().lost() >= 300,
            "{transport}: {:?}",
            ran.counts()
        );
    }
}

#[test]
fn nobody_there_is_found_before_the_run() {
    let _alone = alone();
    for transport in Transport::ALL {
        // Its ports are free again as soon as it has stopped.
        let target = Responder::start(|_| {});
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
    let _alone = alone();
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
    let ran = load.run_at(address);
    let failed = ran.record.connections().failed;
    assert!(failed.tls_certificate >= 10, "{failed:?}");
    assert_eq!((ran.counts().offered, ran.counts().sent), (1_000, 0));
}

#[test]
fn nobody_there_without_a_look_before_is_a_record_that_says_so() {
    let _alone = alone();
    for transport in Transport::ALL {
        let target = Responder::start(|_| {});
        let (address, pem) = (target.address(transport), target.certificate_pem.clone());
        target.serving.stop();
        let ran = load(transport).ca_pem(&pem).run_at(address);
        let counts = ran.counts();
        assert_eq!(
            (counts.offered, counts.responses),
            (1_000, 0),
            "{transport}"
        );
        assert_eq!(ran.record.verdict.limit, Limit::Unknown);
        match transport.is_stream() {
            true => assert!(ran.record.connections().failed.refused > 10),
            false => assert!(counts.port_unreachable > 0, "{counts:?}"),
        }
    }
}
