use crate::example::{self, SECOND};
use crate::record::RunRecord;
use crate::scenario::{Arrival, Process};

const MS: u64 = 1_000_000;

/// An open loop with one interval a second and a drain of one second: latencies of each.
fn open_loop(within: &[&[(u64, u64)]], drain: &[(u64, u64)], lost: u64) -> RunRecord {
    let all = within.iter().chain(std::iter::once(&drain));
    let intervals = (0..)
        .zip(all)
        .map(|(each, latencies)| example::interval(each, latencies));
    let mut record = example::record(intervals.collect());
    record.measured_ns = within.len() as u64 * SECOND;
    let within = record.intervals_in_window().map(|it| it.counts.responses);
    record.responses_in_window = within.sum();
    record.scenario.arrival = Arrival::Open {
        rate_qps: 1_000.0,
        process: Process::Constant,
        burst: 1,
    };
    let counts = &mut record.intervals[0].counts;
    counts.offered += lost;
    counts.sent += lost;
    counts.timeouts += lost;
    record.conclude();
    record
}

#[test]
fn responses_that_a_round_trip_brings_after_the_window_count() {
    let record = open_loop(&[&[(300 * MS, 700)]], &[(300 * MS, 300)], 0);
    assert_eq!(record.responses_achieved(), 1_000);
    assert_eq!(record.responses_after_window(), 300);
    assert!((record.achieved_qps() - 1_000.0).abs() < 1e-9);
    // Longer than the window.
    let record = open_loop(&[&[]], &[(2_000 * MS, 1_000)], 0);
    assert_eq!(record.responses_achieved(), 1_000);
}

#[test]
fn hits_and_misses_of_a_cache_both_count_after_the_window() {
    let within = [(MS, 500), (300 * MS, 350)];
    let record = open_loop(&[&within], &[(300 * MS, 150)], 0);
    assert_eq!(record.responses_achieved(), 1_000);
}

#[test]
fn backlog_that_is_worked_off_after_the_window_does_not_count() {
    // 500 a second of 1,000: the latency grows by half a second each second.
    let half = |from_ms: u64| -> Vec<(u64, u64)> {
        (0..500).map(|each| ((from_ms + each) * MS, 1)).collect()
    };
    let record = open_loop(&[&half(0)], &half(500), 0);
    let achieved = record.responses_achieved();
    assert!((500..=510).contains(&achieved), "{achieved}");
    // A queue that is full, and loses, from the first moment on.
    let record = open_loop(&[&[(MS, 5), (200 * MS, 495)]], &[(200 * MS, 100)], 400);
    assert_eq!(record.responses_achieved(), 500);
}

#[test]
fn losses_on_a_long_path_do_not_hide_the_responses_of_the_end() {
    let within = [(290 * MS, 330), (310 * MS, 330)];
    let record = open_loop(&[&within], &[(300 * MS, 140), (310 * MS, 140)], 60);
    assert_eq!(record.responses_achieved(), 940);
}

#[test]
fn warm_up_that_fills_the_path_is_not_counted_on_top() {
    let mut record = open_loop(&[&[(300 * MS, 700)]], &[(300 * MS, 300)], 0);
    record.responses_in_window = 1_000;
    assert_eq!(record.responses_achieved(), 1_000);
    assert_eq!(record.responses_after_window(), 0);
}

#[test]
fn closed_loop_achieves_what_came_within_the_window() {
    let mut record = open_loop(&[&[(300 * MS, 700)]], &[(300 * MS, 300)], 0);
    record.scenario.arrival = Arrival::Closed {
        outstanding: 300,
        rate_qps_max: None,
    };
    assert_eq!(record.responses_achieved(), 700);
}
