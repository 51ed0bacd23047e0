//! A run from a profile reproduces what the profile was fitted to.
//!
//! Limits are those that chance exceeds once in a thousand; seeds are fixed, so that it never does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use capture::{Fit, FitOptions, Observed};
use load::arrival::Arrival;
use load::profile::{Population, ProfiledClients, RankNames, questions};
use load::{Plan, Profile};
use proto::query::QueryOptions;

use crate::recorder::{plan, run};
use crate::sample::{CLIENTS_OF_A_KIND, SPAN_S, capture, observed_again};

fn fitted(queries: &[Observed]) -> Profile {
    let mut fit = Fit::new(FitOptions::default());
    queries.iter().for_each(|query| fit.add(query));
    let toml = fit.finish().unwrap().profile.to_toml().unwrap();
    Profile::from_toml(&toml).unwrap()
}

fn plan_of(profile: &Profile, clients: u32, workers: u32, rate_factor: f64) -> Plan {
    let names = RankNames::of(profile, Some("example")).unwrap();
    let asked = questions(profile, &names, &QueryOptions::default()).unwrap();
    let population = Population::new(profile).unwrap();
    let clients_drawn = Arc::new(ProfiledClients::new(population, rate_factor).unwrap());
    let mut plan = plan(asked, Arrival::Profile(clients_drawn), (clients, workers));
    plan.duration = Some(Duration::from_secs_f64(SPAN_S));
    plan.seed = 5;
    plan
}

fn assert_alike(what: &str, counts: &[u64], expected: &[u64]) {
    let (total, of_expected): (u64, u64) = (counts.iter().sum(), expected.iter().sum());
    let terms = counts.iter().zip(expected).map(|(&count, &expected)| {
        // Both are samples, so that their difference varies twice as much.
        let expected = expected as f64 * total as f64 / of_expected as f64;
        (count as f64 - expected).powi(2) / (2.0 * expected)
    });
    let freedom = counts.len() as f64 - 1.0;
    let term = 2.0 / (9.0 * freedom);
    let limit = freedom * (1.0 - term + 3.09 * term.sqrt()).powi(3);
    let distance: f64 = terms.sum();
    assert!(
        distance < limit,
        "{what}: chi-square {distance} above {limit}: {counts:?}, {expected:?}"
    );
}

/// Kolmogorov's and Smirnov's distance of two samples is below its limit.
fn assert_same_distribution(what: &str, mut one: Vec<f64>, mut other: Vec<f64>) {
    one.sort_by(f64::total_cmp);
    other.sort_by(f64::total_cmp);
    let share = |sample: &[f64], value: f64| {
        sample.partition_point(|each| *each <= value) as f64 / sample.len() as f64
    };
    let values = one.iter().chain(&other);
    let distances = values.map(|&value| (share(&one, value) - share(&other, value)).abs());
    let distance = distances.fold(0.0, f64::max);
    let (n, m) = (one.len() as f64, other.len() as f64);
    let limit = 1.95 * ((n + m) / (n * m)).sqrt();
    assert!(distance < limit, "{what}: {distance} above {limit}");
}

fn by_client(queries: &[Observed]) -> Vec<Vec<u64>> {
    let mut times = BTreeMap::<_, Vec<u64>>::new();
    for query in queries {
        times.entry(query.client).or_default().push(query.at_ns);
    }
    times.into_values().collect()
}

/// Every so-manieth gap, in mean gaps of its client.
fn gaps(queries: &[Observed], every: usize) -> Vec<f64> {
    let each = by_client(queries)
        .into_iter()
        .filter(|times| times.len() > 20);
    let relative = each.flat_map(|times| {
        let mean = (times[times.len() - 1] - times[0]) as f64 / (times.len() - 1) as f64;
        let gaps = times
            .windows(2)
            .map(|pair| (pair[1] - pair[0]) as f64 / mean);
        gaps.collect::<Vec<f64>>()
    });
    relative.step_by(every).collect()
}

/// Queries by octave of the rank of their names, and those for names asked for once.
fn by_rank(queries: &[Observed]) -> Vec<u64> {
    let mut by_name = BTreeMap::<&[u8], u64>::new();
    for query in queries {
        *by_name.entry(&query.question.name).or_default() += 1;
    }
    let mut counts: Vec<u64> = by_name.into_values().collect();
    counts.sort_unstable_by(|one, other| other.cmp(one));
    let mut octaves = vec![0; 9];
    let mut once = 0;
    for (count, rank) in counts.into_iter().zip(1_u32..) {
        match count {
            1 => once += 1,
            _ => octaves[rank.ilog2().min(8) as usize] += count,
        }
    }
    octaves.push(once);
    octaves
}

fn count<K: Ord>(queries: &[Observed], key: impl Fn(&Observed) -> K) -> Vec<u64> {
    let mut counts = BTreeMap::new();
    for query in queries {
        *counts.entry(key(query)).or_insert(0) += 1;
    }
    counts.into_values().collect()
}

#[test]
fn a_run_from_a_fitted_profile_is_distributed_as_what_it_was_fitted_to() {
    let asked = capture(1);
    let profile = fitted(&asked);
    let clients = 2 * CLIENTS_OF_A_KIND;
    assert_eq!(profile.clients, u64::from(clients));
    let (seen, offered) = run(plan_of(&profile, clients, 2, 1.0));
    let seen = observed_again(&seen);

    let ratio = offered as f64 / asked.len() as f64;
    assert!((ratio - 1.0).abs() < 0.03, "{ratio} of the rate");
    assert_alike(
        "QTYPEs",
        &count(&seen, |query| query.question.qtype),
        &count(&asked, |query| query.question.qtype),
    );
    assert_alike(
        "flags",
        &count(&seen, |query| query.flags),
        &count(&asked, |query| query.flags),
    );
    assert_alike("names by rank", &by_rank(&seen), &by_rank(&asked));
    let rates = |queries: &[Observed]| {
        let counts = by_client(queries);
        counts.iter().map(|times| times.len() as f64).collect()
    };
    assert_same_distribution("rates", rates(&seen), rates(&asked));
    assert_same_distribution("gaps", gaps(&seen, 13), gaps(&asked, 13));

    let again = fitted(&seen);
    let share = |profile: &Profile| profile.names.once as f64 / profile.queries as f64;
    assert!((share(&again) - share(&profile)).abs() < 0.01);
}

/// Twice the clients, at twice their rate: names that were new once stay new.
#[test]
fn a_larger_population_has_the_same_shares_and_as_many_new_names() {
    let asked = capture(2);
    let profile = fitted(&asked);
    let clients = 4 * CLIENTS_OF_A_KIND;
    let (seen, offered) = run(plan_of(&profile, clients, 3, 2.0));
    let seen = observed_again(&seen);
    let ratio = offered as f64 / asked.len() as f64;
    assert!((ratio / 4.0 - 1.0).abs() < 0.03, "{ratio} times the rate");
    let once = |queries: &[Observed]| by_rank(queries)[9] as f64 / queries.len() as f64;
    let (was, is) = (once(&asked), once(&seen));
    assert!((is - was).abs() < 0.02, "new names: {was}, {is}");
    assert_same_distribution("gaps", gaps(&seen, 53), gaps(&asked, 13));
}

#[test]
fn clients_ask_at_the_same_times_however_many_workers_share_them() {
    let profile = fitted(&capture(6));
    let times = |workers: u32| {
        let mut plan = plan_of(&profile, 60, workers, 1.0);
        plan.duration = Some(Duration::from_secs(60));
        let (seen, _) = run(plan);
        by_client(&observed_again(&seen))
    };
    assert_eq!(times(1), times(4));
}
