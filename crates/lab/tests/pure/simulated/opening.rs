//! How a closed loop opens its places: none is lost to a burst of our own.

use responder::ServiceModel;

use crate::sim::{Run, Sim, ms, ns};

/// What a receive buffer of Linux holds of small queries.
const BUFFER: u32 = 277;
/// Places for which there is room on the way and in the buffer, but not in the buffer alone.
const PLACES: u32 = 400;

/// A target that answers 100,000 queries a second, 2 ms away: 200 are on the way, the others wait.
fn target(sim: Sim) -> Sim {
    let service = ServiceModel {
        workers: 1,
        query: crate::sim::delay("10us"),
        datagrams_max: Some(BUFFER),
        ..ServiceModel::default()
    };
    let sim = sim.clients(20).one_way_delay_ms(1).duration_ms(1_000);
    sim.responder(|responder| responder.service = Some(service))
}

fn assert_full(run: &Run) {
    let last = run.record.intervals_in_window().last().unwrap();
    let in_flight = last.in_flight_ns as f64 / last.length_ns() as f64;
    assert!(in_flight > 0.98 * f64::from(PLACES), "{in_flight}");
}

#[test]
fn beginning_overflows_no_receive_buffer_that_has_room_for_the_loop() {
    for workers in [1, 2, 5] {
        for warmup_ms in [0, 300] {
            let sim = target(Sim::seed(1)).workers(workers).outstanding(PLACES);
            let run = sim.warmup_ms(warmup_ms).run();
            let lost = run.counts().lost() + run.record.warmup.counts.lost();
            assert_eq!(lost, 0, "{workers} workers");
            assert_full(&run);
        }
    }
}

#[test]
fn end_of_an_outage_overflows_no_receive_buffer_either() {
    let sim = target(Sim::seed(2)).outstanding(PLACES).timeout_ms(100);
    let sim = sim
        .target_dead(300, 350)
        .plan(|plan| plan.interval = ms(50));
    let run = sim.run();
    assert!(run.timeouts() >= u64::from(PLACES));
    let after = run.record.intervals.iter();
    let after = after.filter(|interval| interval.start_ns >= ns(800));
    assert_eq!(after.map(|it| it.counts.lost()).sum::<u64>(), 0);
    assert_full(&run);
}

#[test]
fn silent_target_gets_all_places_soon() {
    for places in [1, 33, 1_000, 20_000] {
        let sim = target(Sim::seed(3))
            .outstanding(places)
            .target_dead(0, 10_000);
        let run = sim.duration_ms(70).run();
        assert_eq!(run.offered(), u64::from(places));
    }
}

#[test]
fn run_that_ends_before_all_places_are_open_ends() {
    let sim = target(Sim::seed(4))
        .outstanding(10_000)
        .target_dead(0, 10_000);
    let run = sim.duration_ms(10).timeout_ms(200).run();
    assert_eq!(run.timeouts(), run.offered());
    assert!(run.offered() < 10_000);
}

#[test]
fn rate_cap_holds_while_places_are_opened() {
    let sim = target(Sim::seed(5)).outstanding_capped(PLACES, 5_000.0);
    let run = sim.run();
    assert!(run.offered().abs_diff(5_000) <= 1, "{}", run.offered());
    assert_eq!(run.counts().lost(), 0);
}
