//! Searches for capacity in virtual time, with either side standing still at random: a limit of the
//! server is the programmed one, or there is none.

use lab::capacity::{Attempt, Bench, Made, find};
use lab::host::CpuReading;
use measure::Limit;
use measure::capacity::{Capacity, CapacityPlan, EndedBy, SearchFacts, Trial, TrialOutcome};
use measure::facts::CpuUse;
use responder::Stall;

use crate::sim::{GENERATOR, Sim, at_ms, ms};

const CEILING_QPS: f64 = 700.0;
const TRIAL_MS: u64 = 1_000;

/// A search whose trials meet stalls; how many a second and how long is drawn once for all.
struct Stalled {
    state: u64,
    of_server: f64,
    of_generator: f64,
    length_ms: u64,
    /// The trial in which the server stalls regardless of chance, when, and how long.
    outage: Option<(usize, u64, u64)>,
    /// The server also does so in every trial from this rate on.
    outage_from: Option<f64>,
}

impl Stalled {
    fn new(seed: u64) -> Stalled {
        let mut stalled = Stalled {
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            of_server: 0.0,
            of_generator: 0.0,
            length_ms: 20,
            outage: None,
            outage_from: None,
        };
        // The first numbers of near seeds are near.
        (0..4).for_each(|_| {
            stalled.chance();
        });
        for rate in [0, 1] {
            let some = (2.0 * stalled.chance() - 1.0).max(0.0);
            match rate {
                0 => stalled.of_server = some,
                _ => stalled.of_generator = some,
            }
        }
        stalled.length_ms += (200.0 * stalled.chance()) as u64;
        stalled
    }

    /// From 0 to below 1 (Knuth's MMIX).
    fn chance(&mut self) -> f64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 11) as f64 / (1u64 << 53) as f64
    }

    /// When a side stalls in a trial, if it does.
    fn stall(&mut self, share: f64) -> Option<u64> {
        let (is_stalled, at) = (self.chance() < share, self.chance());
        is_stalled.then_some((at * TRIAL_MS as f64) as u64)
    }
}

impl Bench for Stalled {
    type Error = String;

    fn make(&mut self, attempt: Attempt) -> Result<Made, String> {
        let (of_server, of_generator) = (self.of_server, self.of_generator);
        let (server, generator) = (self.stall(of_server), self.stall(of_generator));
        let length = ms(self.length_ms);
        let mut sim = Sim::seed(attempt.position as u64).clients(4);
        sim = sim
            .rate(attempt.value)
            .duration_ms(attempt.length.as_millis() as u64)
            .one_way_delay_ms(1);
        sim.plan.timeout = ms(1_000);
        sim.plan.interval = ms(50);
        let outage = self.outage.filter(|(trial, ..)| {
            let from = self.outage_from.is_some_and(|from| attempt.value >= from);
            from || *trial == attempt.position
        });
        sim = sim.behaviour(|behaviour| {
            behaviour.rate_qps_max = Some(CEILING_QPS);
            behaviour.stalls.extend(server.map(|at| Stall {
                at: ms(at),
                length,
                every: None,
            }));
            behaviour
                .stalls
                .extend(outage.map(|(_, at_ms, length_ms)| Stall {
                    at: ms(at_ms),
                    length: ms(length_ms),
                    every: None,
                }));
        });
        // What comes to the generator waits until it goes on.
        if let Some(at) = generator {
            sim = sim.held_at(GENERATOR, at_ms(at), self.length_ms);
        }
        let (record, _) = sim.try_run()?;
        Ok(Made { record, file: None })
    }

    fn read_cpu(&mut self) -> Option<CpuReading> {
        None
    }

    fn show_host(&mut self, _: &CpuUse) {}

    fn show(&mut self, _: Attempt, _: &Trial) {}

    fn is_interrupted(&self) -> bool {
        false
    }

    fn words(error: &String) -> String {
        error.clone()
    }
}

fn plan() -> CapacityPlan {
    CapacityPlan {
        search: SearchFacts {
            start: 100.0,
            max: 100_000.0,
            trial_ns: TRIAL_MS * 1_000_000,
            confirmation_ns: Some(5 * TRIAL_MS * 1_000_000),
            time_max_ns: 200_000_000_000,
            ..SearchFacts::default()
        },
        ..CapacityPlan::default()
    }
}

fn search(mut stalled: Stalled) -> Capacity {
    find(&plan(), &mut stalled).unwrap().unwrap()
}

#[test]
fn stalls_at_random_make_no_limit_of_the_server_that_is_not_its_own() {
    let mut decided = 0;
    for seed in 0..40 {
        let stalled = Stalled::new(seed);
        let stalls = (stalled.of_server, stalled.of_generator, stalled.length_ms);
        let capacity = search(stalled);
        let answer = &capacity.answer;
        let off = answer.value.map(|value| value / CEILING_QPS - 1.0);
        assert!(off.is_none_or(|off| off < 0.05), "{seed}: {answer:#?}");
        if answer.limit == Limit::Server {
            decided += 1;
            let is_near = off.is_some_and(|off| off > -0.1);
            assert!(is_near, "seed {seed}, {stalls:?}: {answer:#?}");
        } else {
            assert!(
                answer.is_lower_bound || answer.value.is_none(),
                "{answer:#?}"
            );
            let is_told = !answer.cannot_tell.is_empty() || capacity.ended_by == EndedBy::Time;
            assert!(is_told, "seed {seed}, {stalls:?}: {answer:#?}");
        }
    }
    assert!(decided >= 10, "{decided}");
}

const QUIET: Stalled = Stalled {
    state: 1,
    of_server: 0.0,
    of_generator: 0.0,
    length_ms: 0,
    outage: None,
    outage_from: None,
};

/// A search with an outage in its second trial.
fn search_with_outage(at_ms: u64, length_ms: u64) -> Capacity {
    search(Stalled {
        outage: Some((2, at_ms, length_ms)),
        ..QUIET
    })
}

#[test]
fn trial_with_an_outage_decides_nothing_and_is_made_again() {
    for (at_ms, length_ms) in [(300, 300), (300, 500), (300, 650), (100, 850), (0, 600)] {
        let capacity = search_with_outage(at_ms, length_ms);
        let [_, disturbed, again, ..] = &capacity.trials[..] else {
            panic!("{capacity:#?}");
        };
        assert_eq!(disturbed.outcome, TrialOutcome::Outage, "{disturbed:#?}");
        let why = disturbed.excuse.as_deref().unwrap();
        let begins = format!("no usable response came for {}", length_ms / 100);
        assert!(why.starts_with(&begins), "{why}");
        assert_eq!(again.value, disturbed.value);
        assert_eq!(again.outcome, TrialOutcome::Passed);
        assert_eq!(capacity.ended_by, EndedBy::Found);
        let off = capacity.answer.value.unwrap() / CEILING_QPS - 1.0;
        assert!(off.abs() < 0.02, "{off}");
        let of_outages = |note: &&String| note.contains("an outage");
        let notes: Vec<&String> = capacity.notes.iter().filter(of_outages).collect();
        let told = format!("a trial at 200.0 qps decided nothing: {why}");
        assert_eq!(notes, [&told]);
    }
}

#[test]
fn outages_in_all_trials_above_a_rate_are_told_and_end_the_search() {
    let mut stalled = Stalled {
        outage_from: Some(400.0),
        ..QUIET
    };
    stalled.outage = Some((0, 200, 600));
    let capacity = search(stalled);
    let answer = &capacity.answer;
    assert_eq!(capacity.ended_by, EndedBy::Generator, "{answer:#?}");
    assert!(answer.is_lower_bound && answer.value.is_some_and(|value| value < 400.0));
    let why = &answer.cannot_tell[0];
    assert!(why.contains("an outage, not overload"), "{answer:#?}");
    assert!(capacity.trials.len() < 40, "{}", capacity.trials.len());
}

#[test]
fn without_stalls_the_limit_is_found() {
    let capacity = search(QUIET);
    assert_eq!(capacity.ended_by, EndedBy::Found);
    assert_eq!(capacity.answer.limit, Limit::Server);
    let off = capacity.answer.value.unwrap() / CEILING_QPS - 1.0;
    assert!(off.abs() < 0.02, "{off}");
    let shares: Vec<f64> = capacity.latency.iter().map(|row| row.share).collect();
    assert_eq!(shares, [0.5, 0.7, 0.9]);
}
