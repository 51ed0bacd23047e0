//! A profile says what its capture was made of, and a population drawn from it asks alike.

use std::collections::BTreeMap;
use std::time::Duration;

use load::profile::Population;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::observed::{QueryFlags, Question, Response};
use crate::tests::writer::{CLIENT, RAW, SERVER, query, response, udp};
use crate::{Capture, Options};

const S: f64 = 1e9;

fn uniform(generator: &mut Xoshiro256PlusPlus) -> f64 {
    ((generator.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

fn observed(client: u32, at_s: f64, name: &str, qtype: u16) -> Observed {
    let mut wire = Vec::new();
    proto::name::parse(name, &mut wire).unwrap();
    let [a, b, c, d] = (0x0a00_0000 + client).to_be_bytes();
    Observed {
        at_ns: (1e18 + at_s * S) as u64,
        client: ([a, b, c, d], 5_353).into(),
        server: None,
        transport: Transport::Udp,
        connection: None,
        question: Question {
            name: wire.into(),
            qtype,
            qclass: 1,
        },
        flags: QueryFlags::default(),
        response: None,
    }
}

fn fit(queries: &[Observed]) -> Fitted {
    let mut fit = Fit::default();
    for query in queries {
        fit.add(query);
    }
    fit.finish().unwrap()
}

/// Kolmogorov and Smirnov's distance of two samples, and what chance exceeds once in a thousand.
fn kolmogorov_smirnov(mut one: Vec<f64>, mut other: Vec<f64>) -> (f64, f64) {
    one.sort_by(f64::total_cmp);
    other.sort_by(f64::total_cmp);
    let (n, m) = (one.len() as f64, other.len() as f64);
    let below = |samples: &[f64], value: f64| {
        samples.partition_point(|&sample| sample <= value) as f64 / samples.len() as f64
    };
    let distances = one
        .iter()
        .chain(&other)
        .map(|&value| (below(&one, value) - below(&other, value)).abs());
    (
        distances.fold(0.0, f64::max),
        1.95 * ((n + m) / (n * m)).sqrt(),
    )
}

/// Chi-square of counts against shares, and what chance exceeds once in a thousand.
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

/// How a made-up client asks: its rate, and its next gap in seconds.
type Client = (f64, Box<dyn FnMut(&mut Xoshiro256PlusPlus) -> f64>);

/// What clients ask within a span, in order.
fn asked(mut clients: Vec<Client>, span_s: f64, seed: u64) -> Vec<Observed> {
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut queries = Vec::new();
    for (number, (rate_qps, gap)) in (0..).zip(&mut clients) {
        let mut at_s = uniform(&mut generator) / *rate_qps;
        while at_s < span_s {
            // Zipf's law with exponent 1 over 1,000 names, by the inverse of its integral.
            let rank = (0.5 * 2_001_f64.powf(uniform(&mut generator))).round();
            let qtype = match uniform(&mut generator) {
                share if share < 0.6 => 1,
                share if share < 0.9 => 28,
                _ => 65,
            };
            queries.push(observed(number, at_s, &format!("n{rank}.example"), qtype));
            at_s += gap(&mut generator);
        }
    }
    queries.sort_by_key(|query| query.at_ns);
    queries
}

fn poisson(rate_qps: f64) -> Client {
    let gap = move |generator: &mut Xoshiro256PlusPlus| -uniform(generator).ln() / rate_qps;
    (rate_qps, Box::new(gap))
}

/// Bursts of ten queries, 10 ms apart, with two seconds and up to one more between them.
fn bursts() -> Client {
    let mut queries = 0;
    let gap = move |generator: &mut Xoshiro256PlusPlus| {
        queries = (queries + 1) % 10;
        if queries == 0 {
            2.0 + uniform(generator)
        } else {
            0.01
        }
    };
    (10.0 / 2.59, Box::new(gap))
}

/// Gaps of each client in its mean gaps.
fn relative_gaps(queries: &[Observed]) -> Vec<f64> {
    let mut by_client: BTreeMap<SocketAddr, Vec<u64>> = BTreeMap::new();
    for query in queries {
        by_client.entry(query.client).or_default().push(query.at_ns);
    }
    let mut gaps = Vec::new();
    for times in by_client.values().filter(|times| times.len() > 20) {
        let own = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64);
        let mean = (times[times.len() - 1] - times[0]) as f64 / (times.len() - 1) as f64;
        gaps.extend(own.map(|gap| gap / mean));
    }
    gaps
}

/// The name that stands for a rank.
fn name_of_rank(rank: u64) -> Box<[u8]> {
    let mut wire = Vec::new();
    proto::name::parse(&format!("n{rank}.example"), &mut wire).unwrap();
    wire.into()
}

/// What a population drawn from the profile asks.
fn drawn(profile: &Profile, count: u32, span_s: f64, seed: u64) -> Vec<Observed> {
    let population = Population::new(profile).unwrap();
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut queries = Vec::new();
    for (number, mut client) in (0..).zip(population.clients(count, seed)) {
        let mut at = client.first_gap(&population, &mut generator);
        while at < Duration::from_secs_f64(span_s) {
            let (rank, qtype) = population.question(&mut generator);
            let mut query = observed(number, at.as_secs_f64(), ".", qtype);
            query.question.name = name_of_rank(rank);
            queries.push(query);
            at += client.next_gap(&population, &mut generator);
        }
    }
    queries.sort_by_key(|query| query.at_ns);
    queries
}

#[test]
fn poisson_clients_of_many_rates_are_found_again() {
    let clients = || {
        (0..300)
            .map(|step| poisson(10_f64.powf(f64::from(step) / 300.0)))
            .collect()
    };
    let queries = asked(clients(), 100.0, 1);
    let profile = fit(&queries).profile;
    assert_eq!(profile.clients, 300);
    assert!((profile.span_s - 100.0).abs() < 0.1, "{}", profile.span_s);
    let again = drawn(&profile, 300, 100.0, 2);
    let ratio = again.len() as f64 / queries.len() as f64;
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");

    // A sample of the gaps: KS over all of them would find the width of a bucket.
    let thin = |gaps: Vec<f64>| gaps.into_iter().step_by(13).collect::<Vec<_>>();
    let (distance, limit) =
        kolmogorov_smirnov(thin(relative_gaps(&queries)), thin(relative_gaps(&again)));
    assert!(distance < limit, "gaps: {distance} {limit}");

    let rates = |queries: &[Observed]| {
        let mut counts: BTreeMap<SocketAddr, f64> = BTreeMap::new();
        for query in queries {
            *counts.entry(query.client).or_default() += 1.0;
        }
        counts.into_values().collect::<Vec<f64>>()
    };
    let (distance, limit) = kolmogorov_smirnov(rates(&queries), rates(&again));
    assert!(distance < limit, "rates: {distance} {limit}");
}

#[test]
fn the_mix_of_types_and_names_is_found_again() {
    let queries = asked((0..100).map(|_| poisson(5.0)).collect(), 100.0, 3);
    let profile = fit(&queries).profile;
    let again = drawn(&profile, 100, 100.0, 4);
    let total = profile.queries as f64;
    let shares = ["A", "AAAA", "HTTPS"].map(|name| profile.qtypes[name] as f64 / total);
    let counts = [1, 28, 65].map(|qtype| {
        again
            .iter()
            .filter(|query| query.question.qtype == qtype)
            .count() as u64
    });
    let (distance, limit) = chi_square(&counts, &shares);
    assert!(distance < limit, "types: {distance} {limit}");

    let exponent = profile.names.zipf_exponent;
    assert!((exponent - 1.0).abs() < 0.05, "{exponent}");
    // Ranks in octaves, as they were asked and as they were drawn.
    let octaves = |queries: &[Observed]| {
        let mut by_name: BTreeMap<&[u8], u64> = BTreeMap::new();
        for query in queries {
            *by_name.entry(&query.question.name).or_default() += 1;
        }
        let mut counts: Vec<u64> = by_name.into_values().collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        let mut octaves = [0; 10];
        for (count, rank) in counts.into_iter().zip(1_u32..) {
            octaves[rank.ilog2().min(9) as usize] += count;
        }
        octaves
    };
    let seen = octaves(&queries).map(|count| count as f64 / total);
    let drawn: Vec<u64> = {
        let mut ranks = BTreeMap::new();
        for rank in 1..=profile.names.distinct {
            ranks.insert(name_of_rank(rank), rank.ilog2().min(9) as usize);
        }
        let mut octaves = vec![0; 10];
        for query in &again {
            octaves[ranks[&query.question.name[..]]] += 1;
        }
        octaves
    };
    let (distance, limit) = chi_square(&drawn, &seen);
    assert!(distance < limit, "names: {distance} {limit}: {drawn:?}");
}

#[test]
fn bursts_and_idle_times_are_found_again() {
    let queries = asked((0..50).map(|_| bursts()).collect(), 200.0, 5);
    let profile = fit(&queries).profile;
    let [class] = &profile.classes[..] else {
        panic!("one class");
    };
    assert_eq!(class.bursts.quantile(0.5), Some(10));
    // 2 to 3 s are the mean gap of 0.259 s 7.7 to 11.6 times.
    let (low, high) = (
        class.idle_gaps.quantile(0.01),
        class.idle_gaps.quantile(0.99),
    );
    assert!(
        low.unwrap() > 7.0 && high.unwrap() < 12.5,
        "{low:?} {high:?}"
    );
    let again = drawn(&profile, 50, 200.0, 6);
    let ratio = again.len() as f64 / queries.len() as f64;
    assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
    let idle = |queries: &[Observed]| {
        let gaps = relative_gaps(queries).into_iter().filter(|&gap| gap >= 4.0);
        gaps.collect::<Vec<_>>()
    };
    let (one, other) = (idle(&queries), idle(&again));
    assert!((one.len() as f64 / other.len() as f64 - 1.0).abs() < 0.03);
    let thin = |gaps: Vec<f64>| gaps.into_iter().step_by(5).collect::<Vec<_>>();
    let (distance, limit) = kolmogorov_smirnov(thin(one), thin(other));
    assert!(distance < limit, "idle: {distance} {limit}");
}

#[test]
fn a_profile_of_what_a_profile_generates_is_that_profile() {
    let mixed = (0..200).map(|step| match step % 4 {
        0 => bursts(),
        _ => poisson(10_f64.powf(f64::from(step) / 100.0 - 1.0)),
    });
    let first = fit(&asked(mixed.collect(), 300.0, 7)).profile;
    let second = fit(&drawn(&first, 200, 300.0, 8)).profile;
    let ratio = second.rate_qps() / first.rate_qps();
    assert!((ratio - 1.0).abs() < 0.03, "{ratio}");
    for share in [0.1, 0.5, 0.9] {
        let quantile = |profile: &Profile| profile.gaps_s.quantile(share).unwrap();
        let ratio = quantile(&second) / quantile(&first);
        assert!((0.85..1.15).contains(&ratio), "gaps at {share}: {ratio}");
    }
    let ratio = second.names.zipf_exponent / first.names.zipf_exponent;
    assert!((ratio - 1.0).abs() < 0.03, "{ratio}");
}

#[test]
fn repeats_within_the_ttl_are_those_that_a_cache_would_answer() {
    let mut queries = Vec::new();
    // Every 10 s with a TTL of 25 s: two of three are repeats.
    for step in 0..30 {
        let mut query = observed(step % 7, f64::from(step) * 10.0, "a.example", 1);
        query.response = Some(Response {
            rcode: 0,
            ttl_s_min: Some(25),
            latency_ns: Some(1_000),
        });
        queries.push(query);
    }
    let repeats = fit(&queries).profile.repeats.unwrap();
    assert_eq!((repeats.within_ttl, repeats.queries), (20, 30));
    for query in &mut queries {
        query.response = None;
    }
    assert_eq!(
        fit(&queries).profile.repeats,
        None,
        "without TTLs nothing is known"
    );
}

#[test]
fn responses_transports_flags_and_connections_are_counted() {
    let mut queries = Vec::new();
    for number in 0..40_u32 {
        let mut query = observed(number % 4, f64::from(number), "a.example", 1);
        query.flags.edns = number % 2 == 0;
        query.flags.recursion_desired = true;
        if number >= 20 {
            query.transport = Transport::Tcp;
            query.connection = Some(u64::from(number / 5));
        }
        query.client.set_port(7);
        let response = Response {
            rcode: if number % 10 == 0 { 3 } else { 0 },
            ttl_s_min: None,
            latency_ns: None,
        };
        query.response = (number != 5).then_some(response);
        queries.push(query);
    }
    let profile = fit(&queries).profile;
    assert_eq!(profile.transports["udp"], 20);
    assert_eq!(profile.transports["tcp"], 20);
    assert_eq!(
        (profile.rcodes["NOERROR"], profile.rcodes["NXDOMAIN"]),
        (35, 4)
    );
    assert_eq!((profile.unanswered, profile.flags.edns), (1, 20));
    assert_eq!(profile.flags.recursion_desired, 40);
    assert_eq!(
        profile.queries_per_connection.total(),
        16,
        "of each client on each connection"
    );
}

#[test]
fn names_and_addresses_stay_here_unless_names_are_asked_for() {
    let queries = asked(vec![poisson(20.0), poisson(9.0)], 20.0, 9);
    let text = fit(&queries).profile.to_toml().unwrap();
    assert!(
        !text.contains("example") && !text.contains("10.0."),
        "{text}"
    );
    let mut keeping = Fit::new(FitOptions {
        keep_names: true,
        ..FitOptions::default()
    });
    queries.iter().for_each(|query| keeping.add(query));
    let profile = keeping.finish().unwrap().profile;
    assert_eq!(profile.names.kept[0], "n1.example.");
    assert_eq!(profile.names.kept.len() as u64, profile.names.distinct);
    assert!(!profile.to_toml().unwrap().contains("10.0."));
    assert_eq!(
        Profile::from_toml(&profile.to_toml().unwrap())
            .unwrap()
            .names,
        profile.names
    );
}

#[test]
fn what_has_no_times_or_no_queries_cannot_be_fitted() {
    assert_eq!(Fit::default().finish(), Err(FitError::NoQueries));
    let mut untimed = Fit::default();
    untimed.add(&observed(1, 0.0, "a", 1));
    untimed.add(&observed(2, 0.0, "a", 1));
    assert_eq!(untimed.queries(), 2);
    let error = untimed.finish().unwrap_err();
    assert_eq!(error, FitError::NoTimes);
    assert!(error.cure().contains("--timestamps"));
}

#[test]
fn captures_out_of_order_are_remarked_on() {
    let queries = [100.0, 0.0, 50.0, 99.0].map(|at_s| observed(1, at_s, "a", 1));
    assert_eq!(fit(&queries).notes.reversals, 1);
}

#[test]
fn the_same_capture_gives_the_same_profile_to_the_octet() {
    let mut packets = Vec::new();
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(1);
    for number in 0..2_000_u16 {
        let at_ns = 1_795_255_200_000_000_000 + u64::from(number) * 10_000_000;
        let client = format!("192.0.2.{}:{}", generator.next_u64() % 50, 1_024 + number);
        let name = format!("n{}.example", generator.next_u64() % 30);
        packets.push((at_ns, udp(&client, SERVER, &query(number, &name))));
        let rcode = (number % 20 == 0).into();
        packets.push((
            at_ns,
            udp(SERVER, &client, &response(number, &name, rcode, 1)),
        ));
    }
    packets.push((
        1_795_255_300_000_000_000,
        udp(CLIENT, SERVER, &query(1, "last.example")),
    ));
    let file = RAW.write(&packets);
    let profile = || {
        let capture = Capture::new(&file[..], &Options::default()).unwrap();
        let mut fit = Fit::default();
        capture.for_each(|query| fit.add(&query));
        fit.finish().unwrap().profile
    };
    let (one, other) = (profile(), profile());
    assert_eq!(one.to_toml().unwrap(), other.to_toml().unwrap());
    assert_eq!((one.queries, one.clients, one.unanswered), (2_001, 50, 1));
    assert_eq!(one.rcodes["FORMERR"], 100);
    let repeats = one.repeats.unwrap();
    assert!(repeats.within_ttl > 1_000, "{repeats:?}");
}
