//! Timelines of whole runs, and the outages that they show. That the columns add up to the counts,
//! `RunRecord::check` says of every run of these tests, whatever went wrong in it (`faults`).

use driver::sim::Outage;
use measure::timeline::{BINS_MAX, OutageKind, Outages, WIDTH_NS_MIN};
use proto::Transport;
use responder::Stall;

use crate::sim::{Run, Sim, TARGET, at_ms, ms, ns};

const LENGTH_MS: u64 = 10_000;

fn base() -> Sim {
    let sim = Sim::seed(3).clients(10).one_way_delay_ms(1);
    sim.duration_ms(LENGTH_MS)
}

fn stalled(sim: Sim, length_ms: u64) -> Run {
    let sim = sim.behaviour(|behaviour| {
        behaviour.stalls = vec![Stall {
            at: ms(3_000),
            length: ms(length_ms),
            every: None,
        }];
    });
    sim.run()
}

fn outages(run: &Run) -> Outages {
    run.record.outages().unwrap()
}

/// Checks that there is one outage, from 3 s on.
fn assert_one(run: &Run, length_ms: u64, kind: OutageKind) -> Outages {
    let found = outages(run);
    let [outage] = found.each[..] else {
        panic!("{found:?}");
    };
    assert_eq!(outage.kind, kind);
    // Bins, the time in which connections are set up, and pauses between attempts.
    assert!(outage.begin_ns.abs_diff(ns(3_000)) <= ns(20), "{outage:?}");
    assert!(
        outage.length_ns().abs_diff(ns(length_ms)) <= ns(120),
        "{outage:?}"
    );
    found
}

#[test]
fn stall_of_one_or_two_seconds_of_ten_is_an_outage_and_the_rest_was_sustained() {
    for length_ms in [1_000, 2_000] {
        let run = stalled(base().rate(1_000.0), length_ms);
        let found = assert_one(&run, length_ms, OutageKind::Silence);
        assert!(
            (found.outside.responses_qps - 1_000.0).abs() < 2.0,
            "{found:?}"
        );
        assert_eq!((found.outside.lost, found.each[0].lost), (0, 0));
        let outside = run.record.outside_of(&found);
        assert_eq!(outside.distributions.latency.max_ns(), Some(ns(2)));
        // In closed loop nothing is due while all places wait.
        let run = stalled(base().outstanding(10), length_ms);
        let found = assert_one(&run, length_ms, OutageKind::Silence);
        assert!(found.each[0].due <= 10, "{found:?}");
        assert!(
            (found.outside.responses_qps - 5_000.0).abs() < 50.0,
            "{found:?}"
        );
    }
}

#[test]
fn path_that_is_cut_loses_what_was_due_meanwhile() {
    let mut sim = base().rate(1_000.0).timeout_ms(500);
    sim.simulation.world.outages.push(Outage {
        start: at_ms(3_001),
        length: ms(1_200),
    });
    let run = sim.run();
    let found = assert_one(&run, 1_200, OutageKind::Silence);
    let outage = found.each[0];
    assert!(
        outage.lost >= 1_180 && outage.lost <= run.counts().lost(),
        "{outage:?}"
    );
    // A loss is booked where the query was due, not where its timeout landed.
    assert_eq!(found.outside.lost, run.counts().lost() - outage.lost);
    let series = run
        .record
        .timeline
        .as_ref()
        .unwrap()
        .points(ns(LENGTH_MS), 100);
    assert!(
        series
            .iter()
            .all(|point| (point.due_qps - 1_000.0).abs() < 1.0)
    );
    let lossy = series.iter().filter(|point| point.lost_qps > 500.0);
    assert_eq!(lossy.count(), 12);
}

#[test]
fn restart_of_the_target_is_a_refusal() {
    for transport in [Transport::Udp, Transport::Tcp, Transport::Dot] {
        for sim in [base().rate(1_000.0), base().outstanding(10)] {
            let run = sim.over(transport).target_dead(3_001, 1_000).run();
            let found = outages(&run);
            let kinds: Vec<OutageKind> = found.each.iter().map(|it| it.kind).collect();
            assert_eq!(kinds, [OutageKind::Refusal], "{transport}: {found:?}");
        }
    }
}

#[test]
fn loss_that_does_not_depend_on_the_rate_is_no_outage() {
    for rate_qps in [100.0, 1_000.0, 5_000.0] {
        let sim = base().rate(rate_qps).link(|link| link.loss_share = 0.03);
        assert_eq!(outages(&sim.run()).each, [], "{rate_qps} qps");
    }
    for outstanding in [1, 10, 100] {
        let sim = base().clients(1).outstanding(outstanding).timeout_ms(1_000);
        let run = sim.link(|link| link.loss_share = 0.03).run();
        assert_eq!(outages(&run).each, [], "{outstanding} places");
    }
}

#[test]
fn overload_is_no_outage() {
    // A path that carries half of what is offered: what is beyond is lost all the time.
    let sim = base().rate(4_000.0).timeout_ms(500);
    let run = sim.link_towards(TARGET, |link| link.loss_share = 0.5).run();
    assert!(run.counts().lost() > 15_000);
    assert_eq!(outages(&run).each, []);
}

#[test]
fn timeline_of_a_long_run_is_as_short_as_any_and_exact() {
    let sim = Sim::seed(1).clients(4).workers(2).rate(20.0);
    let run = sim.duration_ms(30 * 60 * 1_000).run();
    let timeline = run.record.timeline.as_ref().unwrap();
    assert!(timeline.bins().len() <= BINS_MAX && timeline.bins().len() > BINS_MAX / 4);
    assert!(timeline.width_ns() > WIDTH_NS_MIN);
    assert_eq!((timeline.total().due, timeline.workers()), (36_000, 2));
}
