//! Searches against targets that are a function, and answers from them.

use super::*;
use crate::example::{interval, record};
use crate::limit::Verdict;
use crate::rules::{judge, situations};

use super::search::{Aim, Bracket, Next};

mod attribution;
mod interference;

const PLAN: SearchPlan = SearchPlan {
    start: 1_000.0,
    min: 1.0,
    max: 10_000_000.0,
    factor: 2.0,
    precision: 0.01,
    rounds: 3,
    whole: false,
};

/// More than any search needs that ends.
const TRIALS_MAX: usize = 200;

/// Searches with `target`; the search as it ended, and what it tried.
fn search(plan: SearchPlan, mut target: impl FnMut(f64) -> Outcome) -> (Search, Vec<f64>) {
    let mut search = Search::new(plan);
    let mut tried = Vec::new();
    while let Next::Try(value) = search.next() {
        assert!(tried.len() < TRIALS_MAX, "does not end: {tried:?}");
        assert!((plan.min..=plan.max).contains(&value), "{value}");
        tried.push(value);
        search.learn(target(value));
    }
    (search, tried)
}

fn ending(search: &Search) -> Ending {
    match search.next() {
        Next::Done(ending) => ending,
        Next::Try(value) => panic!("{value} is still to be tried"),
    }
}

/// A target that answers up to `ceiling`, whatever is offered.
fn hard(ceiling: f64) -> impl Fn(f64) -> Outcome {
    move |rate| match rate <= ceiling {
        true => Outcome::Passed,
        false => Outcome::Failed {
            answered: Some(ceiling),
        },
    }
}

/// Numbers from 0 to below 1, by a linear congruential generator (Knuth, MMIX).
fn chances(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn is_near(value: f64, expected: f64, share: f64) -> bool {
    (value / expected - 1.0).abs() <= share
}

#[test]
fn hard_ceiling_is_found_within_the_precision_in_few_trials() {
    for ceiling in [11_000.0, 23_000.0, 37_000.0, 1_024_000.0, 999.0, 3.0] {
        let (search, tried) = search(PLAN, hard(ceiling));
        assert_eq!(ending(&search), Ending::Found);
        assert_eq!(search.rounds().len(), 3);
        for Bracket { passed, failed } in search.rounds() {
            assert!(*passed <= ceiling && *failed > ceiling, "{ceiling}");
            assert!(failed / passed <= 1.0101, "{ceiling}: {passed} {failed}");
        }
        assert!(is_near(search.median_passed(), ceiling, 0.01));
        assert!(tried.len() <= 30, "{ceiling}: {tried:?}");
    }
}

#[test]
fn ceiling_is_found_by_bisection_where_answers_say_nothing_or_the_wrong_thing() {
    for answered in [None, Some(0.0), Some(1e9), Some(33_000.0), Some(60_000.0)] {
        let ceiling = 37_000.0;
        let (search, tried) = search(PLAN, |rate| match rate <= ceiling {
            true => Outcome::Passed,
            false => Outcome::Failed { answered },
        });
        assert_eq!(ending(&search), Ending::Found);
        assert!(
            is_near(search.median_passed(), ceiling, 0.01),
            "{answered:?}"
        );
        assert!(tried.len() <= 36, "{answered:?}: {tried:?}");
    }
}

#[test]
fn one_trial_that_fails_by_chance_does_not_move_the_median() {
    for bad in 0..16 {
        let mut trial = 0;
        let (search, tried) = search(PLAN, |rate| {
            trial += 1;
            match (trial == bad + 1, hard(37_000.0)(rate)) {
                (true, _) => Outcome::Failed {
                    answered: Some(0.8 * rate),
                },
                (false, outcome) => outcome,
            }
        });
        assert_eq!(ending(&search), Ending::Found, "{bad}");
        assert!(
            is_near(search.median_passed(), 37_000.0, 0.02),
            "{bad}: {:?} of {tried:?}",
            search.rounds()
        );
    }
}

#[test]
fn random_failures_and_a_soft_knee_leave_the_median_near_the_knee() {
    // Passes surely up to 35,000, never from 39,000 on, and in between less and less often; one
    // trial in twenty fails by chance.
    for seed in 0..200 {
        let mut chance = chances(seed);
        let (search, _) = search(PLAN, |rate| {
            let passes = 1.0 - ((rate - 35_000.0) / 4_000.0).clamp(0.0, 1.0);
            match chance() < 0.95 * passes {
                true => Outcome::Passed,
                false => Outcome::Failed {
                    answered: Some(rate.min(37_000.0) * (0.97 + 0.04 * chance())),
                },
            }
        });
        let median = search.median_passed();
        assert!(
            (30_000.0..40_000.0).contains(&median),
            "seed {seed}: {median} of {:?}",
            search.rounds()
        );
    }
}

#[test]
fn target_that_recovers_above_its_first_limit_still_ends_the_search() {
    // Fails from 9,000 to 12,000 and from 37,000 on.
    let (search, _) = search(PLAN, |rate| match rate {
        9_000.0..12_000.0 => Outcome::Failed { answered: None },
        _ => hard(37_000.0)(rate),
    });
    assert_eq!(ending(&search), Ending::Found);
    let median = search.median_passed();
    assert!(
        is_near(median, 9_000.0, 0.02) || is_near(median, 37_000.0, 0.02),
        "{median}"
    );
}

#[test]
fn generator_at_its_limit_ends_the_search_early_and_keeps_what_passed() {
    let (search, tried) = search(PLAN, |rate| match rate <= 150_000.0 {
        true => Outcome::Passed,
        false => Outcome::Undecided,
    });
    assert_eq!(ending(&search), Ending::Undecided);
    let (passed, failed) = search.so_far();
    assert!(passed.unwrap() >= 150_000.0 / 1.25, "{passed:?}");
    assert!(failed.unwrap() > 150_000.0);
    assert!(tried.len() <= 22, "{tried:?}");
}

#[test]
fn target_that_gives_in_before_the_generator_does_is_still_found() {
    let (search, _) = search(PLAN, |rate| match rate <= 200_000.0 {
        true => hard(140_000.0)(rate),
        false => Outcome::Undecided,
    });
    assert_eq!(ending(&search), Ending::Found);
    assert!(is_near(search.median_passed(), 140_000.0, 0.01));
}

#[test]
fn one_trial_that_the_generator_spoils_is_made_again() {
    let mut spoilt = false;
    let (search, tried) = search(PLAN, |rate| match rate > 8_000.0 && !spoilt {
        true => {
            spoilt = true;
            Outcome::Undecided
        }
        false => hard(37_000.0)(rate),
    });
    assert!(is_near(search.median_passed(), 37_000.0, 0.01));
    assert_eq!(tried[4], tried[5]);
}

#[test]
fn range_is_kept_and_its_ends_are_told() {
    let range = SearchPlan {
        max: 5_000.0,
        ..PLAN
    };
    let (end, tried) = search(range, |_| Outcome::Passed);
    assert_eq!(ending(&end), Ending::RangeEnd);
    assert_eq!(tried, [1_000.0, 2_000.0, 4_000.0, 5_000.0, 4_951.0]);
    let (end, tried) = search(PLAN, |_| Outcome::Failed {
        answered: Some(0.0),
    });
    assert_eq!(ending(&end), Ending::NothingPassed);
    assert_eq!(tried.last(), Some(&1.0));
    assert!(tried.len() < 15, "{tried:?}");
}

#[test]
fn clients_are_whole_and_neighbours_end_a_round() {
    let plan = SearchPlan {
        start: 10.0,
        whole: true,
        ..PLAN
    };
    for limit in [1.0, 7.0, 13.0, 150.0, 1_234.0] {
        let (search, tried) = search(plan, |clients| match clients <= limit {
            true => Outcome::Passed,
            false => Outcome::Failed {
                answered: Some(limit + 0.4),
            },
        });
        assert!(tried.iter().all(|value| value.fract() == 0.0), "{tried:?}");
        assert_eq!(ending(&search), Ending::Found, "{limit}");
        let found = search.median_passed();
        assert!(found <= limit && found >= 0.99 * limit, "{limit}: {found}");
    }
}

fn capacity_plan() -> CapacityPlan {
    CapacityPlan {
        search: SearchFacts {
            max: 1_000_000.0,
            time_max_ns: 60_000_000_000,
            ..SearchFacts::default()
        },
        ..CapacityPlan::default()
    }
}

/// A trial of `value` with that latency of all responses, and that limit.
fn trial(value: f64, latency_ns: u64, limit: Limit) -> (Trial, RunRecord) {
    let mut record = record(vec![interval(0, &[(latency_ns, 1_000)])]);
    if limit == Limit::Generator {
        let lateness = &mut record.total.distributions.send_lateness;
        *lateness = crate::Histogram::new();
        lateness.record_many(latency_ns - 1_000_000, 1_000);
        record.workers[0].cpu_ns = record.workers[0].wall_ns;
    }
    record.verdict = Verdict {
        limit,
        evidence: vec!["worker 0 used 99.0 % of its CPU".into()],
        advice: vec!["--workers 2".into()],
    };
    let objective = capacity_plan().objective;
    let trial = Trial::new((Purpose::Search, value), &record, &objective, None);
    (trial, record)
}

/// The document of a search whose trials of at most `passes` pass, and others end in `limit`.
fn found(passes: f64, limit: Limit) -> Capacity {
    found_by(|value| match value <= passes {
        true => trial(value, 1_000_000, Limit::Rate),
        false => trial(value, 50_000_000, limit),
    })
}

fn found_by(try_value: impl Fn(f64) -> (Trial, RunRecord)) -> Capacity {
    let plan = capacity_plan();
    let mut search = plan.search();
    let mut trials = Vec::new();
    let mut first = None;
    let ended_by = loop {
        let value = match search.next() {
            Next::Try(value) => value,
            Next::Done(ending) => break ending.into(),
        };
        let (trial, record) = try_value(value);
        search.learn(trial.outcome(&plan.search));
        trials.push(trial);
        first.get_or_insert(record);
    };
    let found = Found {
        search: &search,
        first: &first.unwrap(),
        trials,
        ended_by,
        elapsed_ns: 1,
        refusal: None,
        before: None,
    };
    Capacity::new(&plan, found)
}

#[test]
fn generator_that_gives_in_first_makes_a_lower_bound_with_its_evidence() {
    let capacity = found(20_000.0, Limit::Generator);
    assert_eq!(capacity.ended_by, EndedBy::Generator);
    let answer = &capacity.answer;
    assert!(answer.is_lower_bound);
    assert!(answer.value.unwrap() >= 16_000.0, "{answer:?}");
    assert_eq!(answer.high, None);
    assert_eq!(answer.limit, Limit::Generator);
    assert!(
        answer.evidence[0].ends_with("p99 50.00 ms, above 10.00 ms"),
        "{answer:?}"
    );
    assert_eq!(answer.evidence[1], "worker 0 used 99.0 % of its CPU");
    assert_eq!(answer.advice, ["--workers 2"]);
}

#[test]
fn lateness_that_explains_nothing_does_not_excuse_the_target() {
    let objective = capacity_plan().objective;
    let outcome = |record: &RunRecord| {
        let trial = Trial::new((Purpose::Search, 1.0), record, &objective, None);
        trial.outcome
    };
    let (_, mut late) = trial(1.0, 50_000_000, Limit::Generator);
    assert_eq!(outcome(&late), TrialOutcome::Generator);
    // It had CPU to spare, and what it sent was answered as late.
    late.workers[0].cpu_ns = 1;
    let mut in_time = late.clone();
    in_time.total.distributions.send_lateness = crate::Histogram::new();
    assert_eq!(outcome(&in_time), TrialOutcome::Failed);
    // It had CPU to spare, and what it sent was answered at once.
    let service = interval(0, &[(1_000_000, 1_000)]).distributions.service;
    late.total.distributions.service = service;
    assert_eq!(outcome(&late), TrialOutcome::Host);
    // Slight lateness is no reason.
    let mut in_time = late.clone();
    in_time.total.distributions.send_lateness = crate::Histogram::new();
    let lateness = &mut in_time.total.distributions.send_lateness;
    lateness.record_many(37_000, 1_000);
    assert_eq!(outcome(&in_time), TrialOutcome::Failed);
    // But not all of it.
    late.total.counts.responses -= 10;
    assert_eq!(outcome(&late), TrialOutcome::Failed);
}

#[test]
fn target_that_answers_all_but_slowly_is_the_limit() {
    let capacity = found(20_000.0, Limit::Rate);
    let answer = &capacity.answer;
    assert_eq!(answer.limit, Limit::Server);
    assert!(!answer.is_lower_bound);
    let (low, high) = (answer.low.unwrap(), answer.high.unwrap());
    assert!(
        low <= 20_000.0 && high > 20_000.0 && high / low < 1.02,
        "{answer:?}"
    );
}

/// Half of the queries were lost, as many in each second.
fn steadily_lossy(value: f64) -> (Trial, RunRecord) {
    let mut record = situations::limited(|_| 5);
    record.verdict = judge(&record);
    let objective = capacity_plan().objective;
    let trial = Trial::new((Purpose::Search, value), &record, &objective, None);
    (trial, record)
}

#[test]
fn steady_losses_are_a_limit_on_the_rate_only_if_less_was_answered() {
    let answer = found_by(|value| match value <= 500.0 {
        true => trial(value, 1_000_000, Limit::Rate),
        false => steadily_lossy(value),
    });
    let answer = answer.answer;
    assert_eq!(answer.limit, Limit::Server, "{answer:#?}");
    let said = answer.evidence.join("; ");
    let limit = "500.0 qps were answered, as many in each second, and all of ";
    assert!(
        said.contains(limit) && said.contains("a limit on the rate"),
        "{said}"
    );
    let advice = answer.advice.join("; ");
    assert!(!advice.contains("repeat at half the rate"), "{advice}");
    // The same share is lost at any rate.
    let answer = found_by(steadily_lossy).answer;
    assert_eq!(answer.limit, Limit::Unknown, "{answer:#?}");
    let said = answer.evidence.join("; ");
    assert!(said.contains("from the loss of a fixed share"), "{said}");
}

#[test]
fn document_survives_json_and_fits_its_schema() {
    let capacity = found(20_000.0, Limit::Server);
    let json: serde_json::Value = serde_json::from_str(&capacity.to_json_pretty()).unwrap();
    let read: Capacity = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(read, capacity);
    let offences = crate::conforms::offences(&Capacity::json_schema(), &json);
    assert_eq!(offences, Vec::<String>::new());
}

#[test]
fn share_that_misses_a_bound_by_little_does_not_read_like_it() {
    assert_eq!(beside(0.487_183, 0.001), "48.72 %");
    assert_eq!(beside(0.001_04, 0.001), "0.1040 %");
    assert_eq!(beside(0.998_96, 0.999), "99.8960 %");
}

/// Outcomes of trials of `seconds` with a target behind a token bucket that holds `bucket`, is
/// refilled at `rate`, and is full before each trial.
fn behind_bucket(bucket: f64, rate: f64) -> impl Fn(f64, f64) -> Outcome {
    move |value, seconds| {
        let lost = ((value - rate) * seconds - bucket) / (value * seconds);
        match lost <= 0.001 {
            true => Outcome::Passed,
            false => Outcome::Failed {
                answered: Some(match seconds > 2.0 {
                    true => rate,
                    false => value * (1.0 - lost),
                }),
            },
        }
    }
}

#[test]
fn refill_rate_of_a_token_bucket_is_told_from_the_burst_that_it_admits() {
    let rate = 3_000.0;
    for bucket in [0.0, 15.0, 300.0, 3_000.0, 9_000.0, 60_000.0] {
        for shows_rate in [true, false] {
            let target = behind_bucket(bucket, rate);
            let mut search = Search::new(PLAN);
            while let Next::Try(value) = search.next() {
                let outcome = match search.aim() {
                    Aim::ForLonger => target(value, 10.0),
                    _ => target(value, 2.0),
                };
                search.learn(match (outcome, search.aim(), shows_rate) {
                    (Outcome::Failed { .. }, Aim::ForLonger, false) => {
                        Outcome::Failed { answered: None }
                    }
                    (outcome, ..) => outcome,
                });
            }
            assert_eq!(ending(&search), Ending::Found, "{bucket}");
            let long = search.long_trials().unwrap();
            let admitted = rate + bucket / 2.0;
            assert!(is_near(long.found, admitted, 0.02), "{}", long.found);
            let is_burst = admitted > 1.03 * rate;
            assert_eq!(long.failed.is_some(), is_burst, "{bucket} {shows_rate}");
            assert_eq!(long.admitted, (is_burst && shows_rate).then_some(rate));
            // Without a constant rate, the passing rate is unknown.
            let is_known = shows_rate || !is_burst;
            assert_eq!(long.passed.is_some(), is_known, "{bucket} {shows_rate}");
            let off = long.passed.map_or(0.0, |passed| passed / rate - 1.0);
            assert!(off.abs() < 0.03, "{bucket} {shows_rate}: {long:?}");
        }
    }
}

#[test]
fn chance_that_fails_one_longer_trial_changes_nothing() {
    let mut failed = false;
    let mut search = Search::new(PLAN);
    while let Next::Try(value) = search.next() {
        let is_long = search.aim() == Aim::ForLonger;
        search.learn(match is_long && !failed {
            true => {
                failed = true;
                Outcome::Failed { answered: None }
            }
            false => hard(37_000.0)(value),
        });
    }
    assert_eq!(ending(&search), Ending::Found);
    let long = search.long_trials().unwrap();
    assert_eq!(long.failed, None, "{long:?}");
    assert!(is_near(long.passed.unwrap(), 37_000.0, 0.025), "{long:?}");
}

#[test]
fn longer_trials_that_no_time_is_left_for_do_not_change_the_ending() {
    let mut search = Search::new(PLAN);
    while let (Next::Try(value), Aim::Limit | Aim::BelowLimit) = (search.next(), search.aim()) {
        search.learn(hard(37_000.0)(value));
    }
    let mut failed = search.clone();
    assert_eq!(search.forgo_long_trials(), Some(Ending::Found));
    failed.learn(Outcome::Failed {
        answered: Some(3_000.0),
    });
    assert_eq!(failed.forgo_long_trials(), None);
}
