//! What a run has achieved, against arithmetic.

use responder::ServiceModel;

use crate::sim::{Sim, assert_near, ns};

#[test]
fn long_round_trip_takes_nothing_from_the_rate_of_a_short_run() {
    for (delay_ms, warmup_ms) in [(150, 0), (150, 100), (150, 500), (1_000, 0)] {
        let sim = Sim::seed(1)
            .clients(10)
            .one_way_delay_ms(delay_ms)
            .rate(1_000.0);
        let run = sim.warmup_ms(warmup_ms).run();
        let achieved = run.record.achieved_qps();
        assert_eq!(achieved, 1_000.0, "{delay_ms} ms, warm-up {warmup_ms} ms");
    }
}

#[test]
fn backlog_that_is_answered_after_the_end_was_not_achieved() {
    for (seconds, warmup_ms) in [(1, 0), (4, 0), (1, 1_000)] {
        let service = ServiceModel {
            workers: 1,
            query: crate::sim::delay("2ms"),
            ..ServiceModel::default()
        };
        let sim = Sim::seed(2).clients(10).rate(1_000.0).timeout_ms(60_000);
        let sim = sim.duration_ms(1_000 * seconds).warmup_ms(warmup_ms);
        let run = sim.responder(|it| it.service = Some(service)).run();
        assert_eq!(run.responses(), run.offered());
        let achieved = run.record.achieved_qps();
        assert!(
            (499.0..520.0).contains(&achieved),
            "{achieved} in {seconds} s"
        );
    }
}

#[test]
fn full_queue_is_not_capacity() {
    let service = ServiceModel {
        workers: 1,
        query: crate::sim::delay("2ms"),
        datagrams_max: Some(100),
        ..ServiceModel::default()
    };
    let sim = Sim::seed(3).clients(10).rate(1_000.0);
    let run = sim.responder(|it| it.service = Some(service)).run();
    assert!(run.responses() >= 599, "{}", run.responses());
    let achieved = run.record.achieved_qps();
    assert!((499.0..505.0).contains(&achieved), "{achieved}");
}

#[test]
fn outage_at_the_end_is_missing_from_the_rate() {
    for delay_ms in [0, 150] {
        let sim = Sim::seed(4)
            .clients(10)
            .one_way_delay_ms(delay_ms)
            .rate(1_000.0);
        let gone_ms = 800 + delay_ms;
        let run = sim.timeout_ms(500).target_dead(gone_ms, 10_000).run();
        assert!(run.responses().abs_diff(800) <= 150, "{}", run.responses());
        let achieved = run.record.achieved_qps();
        assert_eq!(achieved, run.responses() as f64, "{delay_ms} ms");
    }
}

#[test]
fn closed_loop_achieves_what_comes_within_the_window() {
    let sim = Sim::seed(5)
        .clients(10)
        .one_way_delay_ms(150)
        .outstanding(30);
    let run = sim.run();
    // Three round trips end within the second; the fourth does after it.
    assert_eq!(run.record.achieved_qps(), 90.0);
    assert_eq!(run.responses(), 120);
    assert_near(run.latency().max_ns(), ns(300), 0);
}
