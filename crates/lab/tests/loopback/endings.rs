//! Targets that die, come back, or were never there.

use lab::run::{Serving, SocketUse, serve};
use lab::target::{BindOptions, BindTarget};
use measure::{EndedBy, Limit};
use proto::Transport;

use crate::bench::{Load, Ran, Responder, alone, ms};
use crate::servers::zone;

/// A second of 1,000 queries in ten intervals.
fn load(transport: Transport) -> Load {
    Load::over(transport).rate(1_000.0).plan(|plan| {
        plan.interval = ms(100);
        plan.timeout = ms(300);
    })
}

/// Runs it against a responder that stops after two intervals and, if so, is back after five.
fn run_with_death(transport: Transport, comes_back: bool) -> Ran {
    let mut target = Some(Responder::start(|_| {}));
    let load = load(transport).ca_pem(&target.as_ref().unwrap().certificate_pem);
    let address = target.as_ref().unwrap().address(transport);
    let config = target.as_ref().unwrap().config();
    let mut second: Option<Serving> = None;
    let ran = load.run_watched(address, |progress, _| {
        if progress.index == 1 {
            target.take().unwrap().serving.stop();
        }
        if progress.index == 4 && comes_back {
            second = Some(serve(&config, &[], SocketUse::default()).unwrap());
        }
    });
    assert_eq!(ran.counts().offered, 1_000);
    assert_eq!(ran.record.ended_by, EndedBy::Duration);
    ran
}

#[test]
fn target_that_dies_in_mid_run_costs_queries_and_not_the_record() {
    let _alone = alone();
    for transport in Transport::ALL {
        let ran = run_with_death(transport, false);
        let counts = ran.counts();
        assert!(
            (100..=500).contains(&counts.responses),
            "{transport}: {counts:?}"
        );
        assert_eq!(counts.lost(), 1_000 - counts.responses);
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
        let counts = ran.counts();
        // Over connections most queries can wait for the next one.
        assert!(
            (300..1_000).contains(&counts.responses),
            "{transport}: {counts:?}"
        );
        let last = &ran.record.intervals[9].counts;
        assert!(last.responses > 50, "{transport}: {last:?}");
    }
}

#[test]
fn bind_that_is_killed_in_mid_run_costs_queries_and_not_the_record() {
    let _alone = alone();
    for transport in [Transport::Udp, Transport::Tcp] {
        let mut target = Some(BindTarget::start(&BindOptions::new(zone())).unwrap());
        let address = target.as_ref().unwrap().endpoints().do53();
        let ran = load(transport).run_watched(address, |progress, _| {
            if progress.index == 2 {
                // Kills and reaps it.
                target = None;
            }
        });
        let counts = ran.counts();
        assert_eq!(counts.offered, 1_000);
        assert!(counts.responses >= 200, "{transport}: {counts:?}");
        assert!(counts.lost() >= 300, "{transport}: {counts:?}");
        assert_eq!(ran.record.intervals.len(), 11, "{transport}");
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
            error.what.contains("nobody listens"),
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
