//! Runs that are long: what is kept of them is bounded, and exact.

use std::time::Duration;

use driver::sim::Outage;
use measure::timeline::OutageKind;
use proto::Transport;

use crate::sim::{Run, Sim, at_ms, ms, ns};

/// Most intervals of a record, and the drain.
const INTERVALS_MAX: usize = measure::intervals::INTERVALS_MAX + 1;

#[test]
fn record_of_a_day_is_small_and_has_every_query() {
    let day = Duration::from_secs(24 * 60 * 60);
    let sim = Sim::seed(9).one_way_delay_ms(3).rate(1.0);
    let run = sim.plan(|plan| plan.duration = Some(day)).run();
    assert_eq!(
        (run.offered(), run.record.measured_ns),
        (86_400, ns(86_400_000))
    );
    run.assert_all_arrived();
    assert_eq!(run.record.intervals_merged, 128);
    assert_eq!(run.record.interval_ns(), ns(128_000));
    let within: Vec<_> = run.record.intervals_in_window().collect();
    assert_eq!(within.len(), 86_400 / 128);
    assert!(within.iter().all(|it| it.length_ns() == ns(128_000)));
    assert!(within.iter().all(|it| it.counts.offered == 128));
    assert!(run.record.to_json_pretty().len() < 50_000_000);
}

#[test]
fn outage_of_five_seconds_in_a_day_is_named_with_its_instants() {
    let day = Duration::from_secs(24 * 60 * 60);
    let sim = Sim::seed(11).clients(4).workers(2).rate(6.0);
    let mut sim = sim.plan(|plan| plan.duration = Some(day));
    sim.simulation.world.outages.push(Outage {
        start: at_ms(50_000_400),
        length: ms(5_000),
    });
    let run = sim.run();
    let found = run.record.outages().unwrap();
    let [outage] = found.each[..] else {
        panic!("{found:?}");
    };
    // A query each 167 ms.
    assert!(
        outage.begin_ns.abs_diff(ns(50_000_400)) <= ns(200),
        "{outage:?}"
    );
    assert!(
        outage.end_ns.abs_diff(ns(50_005_400)) <= ns(200),
        "{outage:?}"
    );
    assert_eq!(outage.kind, OutageKind::Silence);
    assert!(outage.lost.abs_diff(run.counts().lost()) <= 2, "{outage:?}");
    assert!(outage.due.abs_diff(30) <= 2, "{outage:?}");
    let said = run.record.verdict.evidence.join("; ");
    assert!(said.contains("an outage of 5."), "{said}");
    assert!(said.contains(": from 50,000."), "{said}");
    assert!(run.record.to_json().len() < 50_000_000);
}

/// The same run with intervals of three lengths: few, as many as are kept, far too many.
fn check(sim: &Sim) {
    let with = |interval: Duration| sim.clone().plan(|plan| plan.interval = interval).run();
    let runs = [ms(500), ms(10), ms(1)].map(with);
    let [few, many, merged] = &runs;
    assert!(few.record.intervals.len() < many.record.intervals.len());
    assert_eq!(many.record.intervals_merged, 1);
    assert!(merged.record.intervals_merged >= 8);
    let total = |run: &Run| {
        let total = &run.record.total;
        (
            total.counts.clone(),
            total.distributions.clone(),
            total.in_flight_ns,
        )
    };
    for run in &runs {
        assert!(run.record.intervals.len() <= INTERVALS_MAX);
        assert_eq!(total(run), total(few));
        assert_eq!(
            run.record.responses_in_window,
            few.record.responses_in_window
        );
        assert_eq!(run.record.timeline, few.record.timeline);
        let within = run.record.intervals_in_window().last().unwrap();
        assert_eq!(within.end_ns, few.record.measured_ns);
    }
}

#[test]
fn intervals_that_were_merged_have_all_that_those_that_were_not_have() {
    let sim = Sim::seed(4)
        .clients(12)
        .one_way_delay_ms(2)
        .duration_ms(10_000);
    check(&sim.clone().rate(400.0));
    check(&sim.clone().workers(3).outstanding(8).warmup_ms(300));
    let lossy = sim.clone().link(|link| link.loss_share = 0.05);
    check(&lossy.workers(2).rate(300.0).timeout_ms(250));
    check(
        &sim.over(Transport::Dot)
            .workers(2)
            .rate(200.0)
            .target_dead(4_000, 900),
    );
}

#[test]
fn run_that_is_merged_repeats_to_the_octet() {
    let sim = Sim::seed(8)
        .clients(5)
        .workers(2)
        .rate(100.0)
        .duration_ms(5_000);
    let sim = sim.plan(|plan| plan.interval = ms(1));
    let json = || sim.clone().run().record.to_json();
    assert_eq!(json(), json());
}
