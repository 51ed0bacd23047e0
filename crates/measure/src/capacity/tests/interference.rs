//! Searches on hosts that are not quiet, in virtual time: whatever disturbs the trials, a limit of
//! the target is found within a tenth of the real one, or not at all.

use super::super::search::{Aim, Ending, Next, Outcome, Search};
use super::{PLAN, chances};

/// How a host disturbs the trials of one search.
#[derive(Clone, Copy, Debug, Default)]
struct Interference {
    /// Share of the time in which something takes the generator's CPU, and the share of it.
    on_generator: (f64, f64),
    /// The same on the CPU of the target.
    on_target: (f64, f64),
    /// Probability of an unrecorded stall of either side in a trial.
    stalls: f64,
    /// How often a disturbance that makes a trial fail goes unnoticed.
    unnoticed: f64,
    /// Trials that pass in the state that they meet, on average.
    persistence: f64,
}

/// A target that answers up to `ceiling`, on such a host.
struct Host<'a> {
    ceiling: f64,
    interference: Interference,
    chance: &'a mut dyn FnMut() -> f64,
    is_generator_hindered: bool,
    is_target_hindered: bool,
}

impl Host<'_> {
    /// States last for some trials, so that a disturbance meets repetitions as well.
    fn change_state(&mut self) {
        let host = self.interference;
        let persistence = host.persistence.max(1.0);
        if (self.chance)() * persistence < 1.0 {
            self.is_generator_hindered = (self.chance)() < host.on_generator.0;
        }
        if (self.chance)() * persistence < 1.0 {
            self.is_target_hindered = (self.chance)() < host.on_target.0;
        }
    }

    fn run(&mut self, rate: f64) -> Outcome {
        self.change_state();
        let host = self.interference;
        let answered = |chance: f64| Outcome::Failed {
            answered: Some(rate.min(self.ceiling) * (0.3 + 0.7 * chance)),
        };
        let (chance, notice) = ((self.chance)(), (self.chance)());
        if (self.chance)() < host.stalls {
            return answered(chance);
        }
        let target = match self.is_target_hindered {
            true => self.ceiling * (1.0 - host.on_target.1 * chance),
            false => self.ceiling,
        };
        let generator = match self.is_generator_hindered {
            true => 1.2 * self.ceiling * (1.0 - host.on_generator.1 * chance),
            false => 100.0 * self.ceiling,
        };
        if rate <= target.min(generator) {
            return Outcome::Passed;
        }
        let is_disturbed = self.is_target_hindered || self.is_generator_hindered;
        match is_disturbed && notice >= host.unnoticed {
            true => Outcome::Undecided,
            false => answered(chance),
        }
    }
}

/// Trials that a search may take on any host.
const TRIALS_MAX: usize = 150;

/// How a search ends on such a host, and what it has found.
fn search(ceiling: f64, interference: Interference, seed: u64) -> (Ending, f64, usize) {
    let mut chance = chances(seed);
    // The first numbers of near seeds are near.
    (0..8).for_each(|_| {
        chance();
    });
    let mut host = Host {
        ceiling,
        interference,
        chance: &mut chance,
        is_generator_hindered: false,
        is_target_hindered: false,
    };
    let mut search = Search::new(PLAN);
    for trials in 0..=TRIALS_MAX {
        match search.next() {
            Next::Done(ending) => return (ending, search.median_passed(), trials),
            Next::Try(rate) => match (search.aim(), host.run(rate)) {
                // No rate is constant.
                (Aim::ForLonger, Outcome::Failed { .. }) => {
                    search.learn(Outcome::Failed { answered: None });
                }
                (_, outcome) => search.learn(outcome),
            },
        }
    }
    panic!("seed {seed}: does not end on {interference:?}");
}

/// Any pattern, from a quiet host to one that allows no conclusion.
fn any_interference(seed: u64) -> Interference {
    let mut chance = chances(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (0..8).for_each(|_| {
        chance();
    });
    let mut some = |most: f64| match chance() < 0.5 {
        true => most * chance(),
        false => 0.0,
    };
    Interference {
        on_generator: (some(1.0), 0.9),
        on_target: (some(1.0), 0.9),
        stalls: some(0.6),
        unnoticed: some(0.1),
        persistence: 1.0 + some(30.0),
    }
}

fn ceiling(seed: u64) -> f64 {
    let mut chance = chances(seed ^ 0x5eed);
    (0..8).for_each(|_| {
        chance();
    });
    300.0 * 1_000_f64.powf(chance())
}

#[test]
fn limit_found_on_any_host_is_within_a_tenth_of_the_real_one() {
    let mut decided = 0;
    for seed in 0..3_000 {
        let (interference, ceiling) = (any_interference(seed), ceiling(seed));
        let (ending, found, trials) = search(ceiling, interference, seed);
        let is_found = ending == Ending::Found;
        decided += u32::from(is_found);
        assert!(
            !is_found || (found / ceiling - 1.0).abs() <= 0.1,
            "seed {seed}: {found} of {ceiling} after {trials} trials, {interference:?}"
        );
    }
    // A quarter of the hosts has little or none of it.
    assert!(decided > 900, "{decided}");
}

#[test]
fn quiet_host_always_decides_and_in_few_trials() {
    for seed in 0..500 {
        let ceiling = ceiling(seed);
        let (ending, found, trials) = search(ceiling, Interference::default(), seed);
        assert_eq!(ending, Ending::Found, "seed {seed}");
        assert!((found / ceiling - 1.0).abs() <= 0.011, "{found} {ceiling}");
        assert!(trials <= 30, "seed {seed}: {trials} trials");
    }
}

/// How many of 500 such hosts have an answer.
fn decided(interference: Interference) -> usize {
    let ends = (0..500).map(|seed| search(ceiling(seed), interference, seed).0);
    ends.filter(|ending| *ending == Ending::Found).count()
}

#[test]
fn soft_knee_is_a_limit_like_any_other() {
    for seed in 0..300 {
        let mut chance = chances(seed);
        let knee = 0.02 + 0.08 * chance();
        let mut search = Search::new(PLAN);
        while let Next::Try(rate) = search.next() {
            let fails = (rate - 35_000.0) / (35_000.0 * knee);
            search.learn(match chance() >= fails {
                true => Outcome::Passed,
                false => Outcome::Failed {
                    answered: Some(rate.min(36_000.0)),
                },
            });
        }
        assert_eq!(search.next(), Next::Done(Ending::Found), "seed {seed}");
        let found = search.median_passed();
        assert!(
            (34_500.0..38_500.0).contains(&found),
            "seed {seed}: {found}"
        );
    }
}

#[test]
fn interference_that_comes_and_goes_is_made_up_for_by_repetition() {
    let stalls = Interference {
        stalls: 0.1,
        ..Interference::default()
    };
    let hog = Interference {
        on_generator: (0.2, 0.8),
        persistence: 2.0,
        ..Interference::default()
    };
    let other_hog = Interference {
        on_target: (0.2, 0.8),
        unnoticed: 0.02,
        ..hog
    };
    for interference in [stalls, hog, other_hog] {
        let decided = decided(interference);
        assert!(decided >= 250, "{decided} of 500 with {interference:?}");
    }
}
