//! Experiments in virtual time, judged as `throng experiment` judges them: cells that are the same
//! must not differ, cells that are not must, and what cannot be told is said to be so.

use measure::condition::{Condition, Holds};
use measure::statistics::{Nested, Range, welch};
use responder::Delay;

use crate::sim::{Sim, delay};

/// Queries in flight; what they wait decides the rate.
const OUTSTANDING: u32 = 20;
/// Starts of each cell, as experiments have them by default.
const STARTS: u64 = 5;
/// Runs of a start that are used.
const RUNS: u64 = 6;
const EXPERIMENTS: u64 = 40;
/// 5 % of 40 are 2; with a probability of 98.6 % there are no more than this.
const ALARMS_MAX: usize = 5;
const LEVEL: f64 = 0.95;

/// From -1 to 1, for each of these numbers another one (the finalizer of SplitMix64).
fn chance(number: u64) -> f64 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// A server that answers after a time drawn for each query, so that it can do about `qps`.
fn of_rate(qps: f64) -> Delay {
    let mean_us = f64::from(OUTSTANDING) * 1e6 / qps;
    delay(&format!("exponential:{}us", mean_us.round()))
}

/// The rates of a cell's runs: a server whose rate differs from start to start by up to that share.
fn cell(seed: u64, qps: f64, between: f64) -> Vec<Vec<f64>> {
    let runs = |start: u64| {
        let of_start = qps * (1.0 + between * chance(seed * STARTS + start));
        let rate = |run: u64| {
            let seed = (seed * STARTS + start) * RUNS + run;
            let sim = Sim::seed(seed).outstanding(OUTSTANDING).duration_ms(500);
            let run = sim.behaviour(|it| it.delay = of_rate(of_start)).run();
            run.record.achieved_qps()
        };
        (0..RUNS).map(rate).collect()
    };
    (0..STARTS).map(runs).collect()
}

fn differ(from: &[f64], to: &[f64]) -> bool {
    welch(from, to, LEVEL).unwrap().p_value < 1.0 - LEVEL
}

/// Of experiments with two cells of these rates, in how many they differ, and in how many they
/// would if runs were taken for starts.
fn found(qps: [f64; 2], between: f64) -> (usize, usize) {
    let (mut by_starts, mut by_runs) = (0, 0);
    for experiment in 0..EXPERIMENTS {
        let cells = [0, 1].map(|it| cell(1_000 + 2 * experiment + it, qps[it as usize], between));
        let means = cells
            .each_ref()
            .map(|it| Nested::new(it, Range::Positive, LEVEL).unwrap().means);
        let runs = cells.each_ref().map(|it| it.concat());
        by_starts += usize::from(differ(&means[0], &means[1]));
        by_runs += usize::from(differ(&runs[0], &runs[1]));
    }
    (by_starts, by_runs)
}

#[test]
fn cells_against_themselves_alarm_in_at_most_one_experiment_of_twenty() {
    let (alarms, _) = found([1_000.0; 2], 0.0);
    assert!(alarms <= ALARMS_MAX, "{alarms}");
}

#[test]
fn starts_that_differ_raise_no_more_alarms_but_would_if_runs_were_taken_for_starts() {
    let (alarms, naive_alarms) = found([1_000.0; 2], 0.2);
    assert!(alarms <= ALARMS_MAX, "{alarms}");
    assert!(naive_alarms > 2 * ALARMS_MAX, "{naive_alarms}");
}

#[test]
fn a_tenth_less_is_found_in_nineteen_experiments_of_twenty() {
    let (found, _) = found([1_000.0, 900.0], 0.03);
    assert!(
        found * 20 >= EXPERIMENTS as usize * 19,
        "{found} of {EXPERIMENTS}"
    );
}

#[test]
fn half_a_percent_less_is_not_decided_and_how_many_starts_would_decide_is_told() {
    let [first, second] = [(7, 10_000.0), (8, 9_950.0)].map(|(seed, qps)| cell(seed, qps, 0.02));
    let [first, second] =
        [first, second].map(|it| Nested::new(&it, Range::Positive, LEVEL).unwrap());
    assert!(!differ(&first.means, &second.means), "{first:?} {second:?}");
    let least = first.detectable(LEVEL).unwrap();
    assert!(least > 50.0, "{least}");
    let less = Condition::require("qps < -0.1%").unwrap();
    let holding = (less.criterion).of_starts(&second, Some(&first), LEVEL);
    assert_eq!(holding.holds, Holds::CannotTell, "{holding:?}");
    let starts = holding.starts_needed.unwrap();
    assert!(starts > STARTS, "{starts}");
}
