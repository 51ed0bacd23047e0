//! Draws from a profile have the profile's distributions.

use std::collections::BTreeMap;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::sampler::uniform;
use super::*;
use crate::{Plan, QuestionChooser};
use proto::query::{Edns, QueryOptions};

const SECOND_NS: f64 = 1e9;

fn generator(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

fn histogram(values: &[(f64, u64)]) -> LogHistogram {
    values.to_vec().into()
}

/// Exponential gaps, drawn.
fn exponential(count: u64) -> (LogHistogram, LogHistogram, CountHistogram) {
    let (mut active, mut idle) = (LogHistogram::default(), LogHistogram::default());
    let (mut bursts, mut queries) = (CountHistogram::default(), 0);
    let mut generator = generator(7);
    for _ in 0..count {
        let gap = -uniform(&mut generator).ln();
        queries += 1;
        if gap < IDLE_FACTOR {
            active.record(gap, 1);
        } else {
            idle.record(gap, 1);
            bursts.record(queries, 1);
            queries = 0;
        }
    }
    (active, idle, bursts)
}

/// Slow clients with bursts of four, and fast ones that are Poisson processes.
pub(super) fn sample() -> Profile {
    let (active_gaps, idle_gaps, bursts) = exponential(100_000);
    Profile {
        version: VERSION,
        span_s: 100.0,
        clients: 1_000,
        queries: 27_000,
        unanswered: 3,
        transports: BTreeMap::from([("udp".into(), 26_000), ("tcp".into(), 1_000)]),
        qtypes: BTreeMap::from([
            ("A".into(), 16_000),
            ("AAAA".into(), 8_000),
            ("TYPE65280".into(), 3_000),
        ]),
        rcodes: BTreeMap::from([("NOERROR".into(), 26_997)]),
        flags: FlagCounts {
            recursion_desired: 27_000,
            edns: 9_000,
            ..FlagCounts::default()
        },
        repeats: None,
        names: Popularity {
            distinct: 1_000,
            once: 0,
            zipf_exponent: 1.0,
            ranks: vec![(1, 0.25), (2, 0.4), (10, 0.7), (1_000, 1.0)],
            kept: Vec::new(),
        },
        queries_per_connection: CountHistogram::default(),
        gaps_s: LogHistogram::default(),
        classes: vec![
            RateClass {
                rates_qps: histogram(&[(0.1, 400), (0.2, 400)]),
                bursts: vec![(4, 100)].into(),
                active_gaps: histogram(&[(0.01, 300)]),
                idle_gaps: histogram(&[(4.0, 100)]),
            },
            RateClass {
                rates_qps: histogram(&[(1.0, 200)]),
                bursts,
                active_gaps,
                idle_gaps,
            },
        ],
    }
}

#[test]
fn a_profile_survives_its_file() {
    let mut profile = sample();
    profile.names.kept = vec!["www.example.com.".into(), r"a\032b.".into()];
    profile.repeats = Some(Repeats {
        within_ttl: 5,
        queries: 9,
    });
    profile.queries_per_connection.record(5_000, 3);
    let text = profile.to_toml().unwrap();
    let again = Profile::from_toml(&text).unwrap();
    assert_eq!(again.to_toml().unwrap(), text);
    assert_eq!(again.qtypes, profile.qtypes);
    assert_eq!(again.classes, profile.classes, "bounds are found again");
    assert_eq!(again, profile);
}

#[test]
fn files_that_are_no_profiles_say_why() {
    let text = sample().to_toml().unwrap();
    for (from, to, what) in [
        ("version = 1", "version = 2", "version 2 is not 1"),
        ("version = 1", "version = 1\nrate = 5", "rate"),
        ("span_s = 100.0", "span_s = 0.0", "span_s"),
        ("span_s = 100.0", "span_s = nan", "span_s"),
        ("clients = 1000", "clients = 0", "no clients"),
        ("[[class]]", "[[classes]]", "classes"),
        ("[10, 0.7]", "[10, 1.7]", "names.ranks"),
        ("[10, 0.7]", "[0, 0.7]", "names.ranks"),
    ] {
        assert!(text.contains(from), "{text}");
        let error = Profile::from_toml(&text.replace(from, to)).unwrap_err();
        assert!(error.to_string().contains(what), "{error}");
        assert!(!error.hint.is_empty());
    }
    let broken = text.replace("TYPE65280", "TYPO");
    let error = Population::new(&Profile::from_toml(&broken).unwrap()).unwrap_err();
    assert!(error.what.contains("TYPO"), "{error}");
    assert!(Profile::from_toml("").is_err());
}

#[test]
fn whole_numbers_keep_to_their_buckets() {
    let mut before = 0;
    for value in 1..100_000_u64 {
        let mut histogram = CountHistogram::default();
        histogram.record(value, 1);
        let (low, high, _) = histogram.buckets().next().unwrap();
        assert!((low..=high).contains(&value), "{low} {value} {high}");
        assert!(
            low == before || low == value,
            "buckets follow one another: {value}"
        );
        assert!(high as f64 <= low as f64 * 1.12 + 1.0);
        let again: CountHistogram = Vec::from(histogram.clone()).into();
        assert_eq!(again, histogram);
        before = low;
        if value == high {
            before = 0;
        }
    }
    let mut extremes = CountHistogram::default();
    extremes.record(u64::MAX, 1);
    extremes.record(0, 1);
    assert_eq!(extremes.quantile(0.0), Some(1));
    assert_eq!(extremes.total(), 2);
}

#[test]
fn quantiles_are_within_a_bucket_of_what_was_counted() {
    let mut histogram = LogHistogram::default();
    assert_eq!(histogram.quantile(0.5), None);
    (1..=1_000).for_each(|value| histogram.record(f64::from(value), 1));
    for share in [0.1, 0.5, 0.9, 1.0] {
        let found = histogram.quantile(share).unwrap() / (1_000.0 * share);
        assert!((0.9..1.1).contains(&found), "{share}: {found}");
    }
    histogram.record(0.0, 1);
    histogram.record(-1.0, 1);
    assert_eq!(histogram.total(), 1_002);
}

/// Chi-square of counts against shares, and the value that chance exceeds once in a thousand
/// (Wilson and Hilferty's approximation).
fn chi_square(counts: &[u64], shares: &[f64]) -> (f64, f64) {
    let total: u64 = counts.iter().sum();
    let terms = counts.iter().zip(shares).map(|(&count, share)| {
        let expected = share * total as f64;
        (count as f64 - expected).powi(2) / expected
    });
    let freedom = counts.len() as f64 - 1.0;
    let term = 2.0 / (9.0 * freedom);
    (
        terms.sum(),
        freedom * (1.0 - term + 3.09 * term.sqrt()).powi(3),
    )
}

/// Kolmogorov and Smirnov's distance of samples from a distribution, and the value that chance
/// exceeds once in a thousand.
fn kolmogorov_smirnov(mut samples: Vec<f64>, distribution: impl Fn(f64) -> f64) -> (f64, f64) {
    samples.sort_by(f64::total_cmp);
    let count = samples.len() as f64;
    let distances = samples.iter().zip(0..).map(|(&sample, index)| {
        let expected = distribution(sample);
        let (before, after) = (f64::from(index) / count, (f64::from(index) + 1.0) / count);
        (expected - before).abs().max((after - expected).abs())
    });
    (distances.fold(0.0, f64::max), 1.95 / count.sqrt())
}

#[test]
fn qtypes_and_ranks_are_drawn_by_their_shares() {
    let population = Population::new(&sample()).unwrap();
    let mut generator = generator(11);
    let (mut by_type, mut by_rank) = (BTreeMap::<u16, u64>::new(), [0; 4]);
    for _ in 0..100_000 {
        let (rank, qtype) = population.question(&mut generator);
        *by_type.entry(qtype).or_default() += 1;
        let step = match rank {
            1 => 0,
            2 => 1,
            3..=10 => 2,
            11..=1_000 => 3,
            _ => panic!("rank {rank}"),
        };
        by_rank[step] += 1;
    }
    let counts: Vec<u64> = [1, 28, 65_280].map(|qtype| by_type[&qtype]).to_vec();
    let (distance, limit) = chi_square(&counts, &[16.0 / 27.0, 8.0 / 27.0, 3.0 / 27.0]);
    assert!(distance < limit, "{distance} {limit}: {counts:?}");
    let (distance, limit) = chi_square(&by_rank, &[0.25, 0.15, 0.3, 0.3]);
    assert!(distance < limit, "{distance} {limit}: {by_rank:?}");
}

#[test]
fn clients_are_drawn_by_their_rates_and_reach_the_rate_of_all() {
    let population = Population::new(&sample()).unwrap();
    for count in [100, 999, 20_000] {
        let clients = population.clients(count, 5);
        assert_eq!(
            clients,
            population.clients(count, 5),
            "the same seed, the same clients"
        );
        assert_ne!(clients, population.clients(count, 6));
        let quick = clients
            .iter()
            .filter(|client| client.rate_qps >= 0.9)
            .count();
        assert!(
            quick.abs_diff(count as usize / 5) <= 1,
            "{quick} of {count}"
        );
        let sum: f64 = clients.iter().map(|client| client.rate_qps).sum();
        let expected = population.rate_qps_mean() * f64::from(count);
        assert!((sum / expected - 1.0).abs() < 0.01, "{sum} {expected}");
        // In random order, so that each worker gets a fair share.
        let half: f64 = clients[..count as usize / 2]
            .iter()
            .map(|client| client.rate_qps)
            .sum();
        assert!((half / sum - 0.5).abs() < 0.1, "{half} {sum}");
    }
}

#[test]
fn gaps_of_a_poisson_class_are_exponential_at_the_clients_rate() {
    let population = Population::new(&sample()).unwrap();
    let mut client = population
        .clients(1_000, 5)
        .into_iter()
        .find(|c| c.rate_qps > 0.9)
        .unwrap();
    let mut generator = generator(3);
    let gaps: Vec<f64> = (0..20_000)
        .map(|_| client.next_gap(&population, &mut generator).as_secs_f64())
        .collect();
    let rate_qps = client.rate_qps;
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    assert!((mean * rate_qps - 1.0).abs() < 0.03, "{mean} at {rate_qps}");
    let (distance, limit) = kolmogorov_smirnov(gaps, |gap| 1.0 - (-gap * rate_qps).exp());
    assert!(distance < limit, "{distance} {limit}");
}

#[test]
fn bursts_have_their_length_and_the_client_its_rate() {
    let population = Population::new(&sample()).unwrap();
    let mut client = population
        .clients(1_000, 5)
        .into_iter()
        .find(|c| c.rate_qps < 0.9)
        .unwrap();
    let mut generator = generator(3);
    let gaps: Vec<f64> = (0..40_000)
        .map(|_| client.next_gap(&population, &mut generator).as_nanos() as f64 / SECOND_NS)
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    assert!((mean * client.rate_qps - 1.0).abs() < 0.01, "{mean}");
    for burst in gaps.chunks(4) {
        let [active @ .., idle] = burst else {
            panic!("four gaps");
        };
        assert!(
            active.iter().all(|gap| gap * client.rate_qps < 0.02),
            "{burst:?}"
        );
        assert!(*idle * client.rate_qps > 3.0, "{burst:?}");
    }
}

#[test]
fn a_population_asks_at_its_rate_from_the_start() {
    let population = Population::new(&sample()).unwrap();
    let mut clients = population.clients(20_000, 5);
    let expected = population.rate_qps_mean() * 20_000.0;
    let mut generator = generator(9);
    let mut by_second = [0_u64; 20];
    for client in &mut clients {
        let mut at = client.first_gap(&population, &mut generator);
        while at.as_secs() < 20 {
            by_second[at.as_secs() as usize] += 1;
            at += client.next_gap(&population, &mut generator);
        }
    }
    for (second, &count) in by_second.iter().enumerate() {
        let ratio = count as f64 / expected;
        assert!((ratio - 1.0).abs() < 0.05, "{ratio} in second {second}");
    }
}

/// Templates and source of the questions of a profile, as a plan has them.
fn asked(profile: &Profile, zone: Option<&str>, options: &QueryOptions) -> Plan {
    let names = RankNames::of(profile, zone).unwrap();
    let (set, source) = questions(profile, &names, options).unwrap();
    Plan {
        questions: std::sync::Arc::new(set),
        question_source: source,
        ..crate::plan::tests::plan()
    }
}

/// The next messages of a worker, without their headers' first octets.
fn messages(plan: &Plan, count: usize) -> Vec<(String, u16, Vec<u8>)> {
    let mut chooser = QuestionChooser::new(plan, 0);
    let mut message = Vec::new();
    let mut next = || {
        message.clear();
        plan.write_query(chooser.next(proto::Instant::ZERO).question, 0, &mut message);
        let octets = proto::name::wire_length(&message[12..]).unwrap();
        let qname = proto::name::to_text(&message[12..][..octets]).unwrap();
        let qtype = &message[12 + octets..];
        (
            qname,
            u16::from_be_bytes([qtype[0], qtype[1]]),
            message.clone(),
        )
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn names_are_the_kept_ones_then_those_of_the_zone_and_new_ones_where_nobody_asks_twice() {
    let mut profile = sample();
    profile.names.kept = vec!["www.example.net.".into()];
    profile.names.once = 990;
    let plan = asked(&profile, Some("test.example"), &QueryOptions::default());
    let messages = messages(&plan, 9_000);
    let mut by_name = BTreeMap::<&str, u64>::new();
    let mut by_type = BTreeMap::<u16, u64>::new();
    for (name, qtype, message) in &messages {
        *by_name.entry(name).or_default() += 1;
        *by_type.entry(*qtype).or_default() += 1;
        assert_eq!(message[2] & 1, 1, "RD");
    }
    let once = by_name.values().filter(|count| **count == 1).count() as u64;
    let counts = [
        by_name["www.example.net."],
        by_name["000000000001.test.example."],
        9_000 - once - by_name["www.example.net."] - by_name["000000000001.test.example."],
        once,
    ];
    let (distance, limit) = chi_square(&counts, &[0.25, 0.15, 0.3, 0.3]);
    assert!(distance < limit, "{distance} {limit}: {counts:?}");
    assert_eq!(
        by_name.len() as u64,
        10 + once,
        "new names never come twice"
    );
    let counts: Vec<u64> = [1, 28, 65_280].map(|qtype| by_type[&qtype]).to_vec();
    let (distance, limit) = chi_square(&counts, &[16.0 / 27.0, 8.0 / 27.0, 3.0 / 27.0]);
    assert!(distance < limit, "{distance} {limit}: {counts:?}");
    let with_edns = messages.iter().filter(|(.., message)| message[11] == 1);
    let with_edns = with_edns.count();
    assert!((2_700..3_300).contains(&with_edns), "{with_edns}");
}

#[test]
fn without_a_zone_the_list_begins_anew_and_flags_go_before_the_profile() {
    let mut profile = sample();
    profile.names.kept = vec!["a.".into(), "b.".into(), "c.".into()];
    profile.flags.dnssec_ok = 4_500;
    let plain = QueryOptions {
        recursion_desired: false,
        ..QueryOptions::default()
    };
    for (name, _, message) in messages(&asked(&profile, None, &plain), 500) {
        assert!(["a.", "b.", "c."].contains(&&name[..]), "{name}");
        assert_eq!(message[2] & 1, 0, "RD");
    }
    let edns = QueryOptions {
        edns: Some(Edns::default()),
        ..QueryOptions::default()
    };
    let messages = messages(&asked(&profile, None, &edns), 6_000);
    assert!(messages.iter().all(|(.., message)| message[11] == 1));
    let with_do = messages
        .iter()
        .filter(|(.., message)| message[message.len() - 4] == 0x80);
    assert!(
        (850..1_150).contains(&with_do.count()),
        "a sixth of all queries"
    );
}

#[test]
fn names_that_cannot_be_asked_for_are_refused() {
    let profile = sample();
    for zone in ["a..b", &"x.".repeat(130)] {
        assert!(RankNames::of(&profile, Some(zone)).is_err(), "{zone}");
    }
    let none = RankNames::of(&profile, None).unwrap();
    let error = questions(&profile, &none, &QueryOptions::default()).unwrap_err();
    assert!(error.hint.contains("zone"), "{error}");
    let long = asked(&profile, Some(&"x.".repeat(124)), &QueryOptions::default());
    assert!(
        long.validate()
            .unwrap_err()
            .what
            .contains("longer than a name")
    );
    // Kept names need no room for labels.
    let mut profile = sample();
    profile.names.kept = vec!["x.".repeat(124)];
    asked(&profile, Some("example"), &QueryOptions::default())
        .validate()
        .unwrap();
}

#[test]
fn the_clients_of_a_run_are_the_same_however_many_workers_share_them() {
    let clients = || ProfiledClients::new(Population::new(&sample()).unwrap(), 2.0).unwrap();
    let dues = |range: std::ops::Range<u32>| {
        let clients = clients();
        let paces = clients.paces(7, 100, range);
        let mut all = Vec::new();
        for mut pace in paces {
            let mut due = pace.first_due(&clients, None, proto::Instant::ZERO);
            for _ in 0..20 {
                all.push(due);
                due = pace.next_due(&clients, None, due);
            }
        }
        all
    };
    assert_eq!(dues(0..100), [dues(0..33), dues(33..100)].concat());
    let slow = Population::new(&sample()).unwrap().rate_qps_mean();
    assert!((clients().rate_qps_mean() / slow - 2.0).abs() < 1e-9);
    assert!(size_of::<ProfilePace>() <= 24);
    let population = || Population::new(&sample()).unwrap();
    for factor in [0.0, -1.0, f64::NAN, 1e300] {
        assert!(
            ProfiledClients::new(population(), factor).is_err(),
            "{factor}"
        );
    }
}

#[test]
fn a_client_takes_little_memory_and_draws_never_end() {
    assert!(size_of::<ClientDraw>() <= 24);
    // Numbers that only an edited file can have.
    let mut profile = sample();
    profile.classes = vec![RateClass {
        rates_qps: histogram(&[(1e-300, 1), (1e300, 1)]),
        bursts: CountHistogram::default(),
        active_gaps: LogHistogram::default(),
        idle_gaps: histogram(&[(1e-300, 1), (1e300, 1)]),
    }];
    let population = Population::new(&profile).unwrap();
    // The source that each client of a run has.
    let mut generator = crate::random::Draws::of_client(1, 7);
    for mut client in population.clients(10, 1) {
        let _ = client.first_gap(&population, &mut generator);
        let _ = client.next_gap(&population, &mut generator);
    }
    let mut octets = [0; 13];
    generator.fill_bytes(&mut octets);
    assert_ne!((generator.next_u32(), octets), (0, [0; 13]));
}
