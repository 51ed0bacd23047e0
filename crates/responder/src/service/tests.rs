//! The model against queueing theory, and against counting by hand.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use super::*;

const SEED: u64 = 20_261_121;

fn us(microseconds: u64) -> Duration {
    Duration::from_micros(microseconds)
}

fn at_us(microseconds: u64) -> Instant {
    Instant::ZERO + us(microseconds)
}

/// A query for the A record of `<number>.test`.
fn query_for(number: u64) -> Vec<u8> {
    let label = number.to_string();
    let mut query = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    query.push(label.len() as u8);
    query.extend_from_slice(label.as_bytes());
    query.extend_from_slice(&[4, b't', b'e', b's', b't', 0, 0, 1, 0, 1]);
    query
}

fn model(workers: u32, query: &str) -> ServiceModel {
    ServiceModel {
        workers,
        query: crate::behaviour::parse_delay(query).unwrap(),
        ..ServiceModel::default()
    }
}

/// Instants of a Poisson process.
struct Poisson {
    generator: Xoshiro256PlusPlus,
    rate_per_s: f64,
    now_s: f64,
}

impl Poisson {
    fn new(rate_per_s: f64) -> Self {
        Poisson {
            generator: Xoshiro256PlusPlus::seed_from_u64(SEED),
            rate_per_s,
            now_s: 0.0,
        }
    }

    fn chance(&mut self) -> f64 {
        draw(&mut self.generator)
    }

    fn next(&mut self) -> Instant {
        self.now_s -= (1.0 - self.chance()).ln() / self.rate_per_s;
        Instant::from_nanos((self.now_s * 1e9) as u64)
    }
}

/// The model after `seconds` of queries at this rate.
fn after(model: &ServiceModel, rate_per_s: f64, seconds: u64) -> Service {
    let mut service = Service::new(model, SEED);
    let mut arrivals = Poisson::new(rate_per_s);
    let until = Instant::ZERO + Duration::from_secs(seconds);
    service.observe(Instant::ZERO, until);
    let query = query_for(1);
    loop {
        let now = arrivals.next();
        if now >= until {
            return service;
        }
        service.query(now, Carrier::Datagram, &query);
    }
}

fn mean_wait_s(service: &Service) -> f64 {
    service.counts().waits.mean_ns().unwrap() / 1e9
}

/// Erlang's C: the probability that a job has to wait, of `offered` Erlangs at this number of
/// workers.
fn erlang_c(workers: u32, offered: f64) -> f64 {
    let blocked = erlang_b(workers, offered);
    let share = offered / f64::from(workers);
    blocked / (1.0 - share + share * blocked)
}

/// Erlang's B: the probability that a job finds all workers busy, where none waits.
fn erlang_b(workers: u32, offered: f64) -> f64 {
    (1..=workers).fold(1.0, |blocked, workers| {
        offered * blocked / (f64::from(workers) + offered * blocked)
    })
}

#[track_caller]
fn assert_near(found: f64, expected: f64, tolerance: f64) {
    let error = (found - expected).abs() / expected;
    assert!(
        error < tolerance,
        "{found} instead of {expected}: off by {:.1} %",
        100.0 * error
    );
}

#[test]
fn mean_wait_of_m_m_c_is_that_of_erlang_c() {
    for (workers, utilisation) in [(1, 0.5), (1, 0.8), (2, 0.7), (4, 0.8), (16, 0.9)] {
        let service_s = 1e-4;
        let rate = utilisation * f64::from(workers) / service_s;
        let service = after(&model(workers, "exponential:100us"), rate, 40);
        let offered = rate * service_s;
        let expected =
            erlang_c(workers, offered) * service_s / (f64::from(workers) * (1.0 - utilisation));
        assert_near(mean_wait_s(&service), expected, 0.05);
        let busy_s = service.counts().busy_ns as f64 / 1e9;
        assert_near(busy_s / 40.0 / f64::from(workers), utilisation, 0.01);
    }
}

#[test]
fn mean_wait_of_m_g_1_is_that_of_pollaczek_and_khinchine() {
    // Second moments of constant, uniform and exponential times with a mean of 100 us.
    let cases = [
        ("100us", 1e-8),
        ("uniform:50us..150us", 1e-8 + 1e-8 / 12.0),
        ("exponential:100us", 2e-8),
    ];
    for (time, second_moment) in cases {
        for utilisation in [0.3, 0.6, 0.85] {
            let rate = utilisation / 1e-4;
            let service = after(&model(1, time), rate, 60);
            let expected = rate * second_moment / (2.0 * (1.0 - utilisation));
            assert_near(mean_wait_s(&service), expected, 0.05);
        }
    }
}

#[test]
fn share_of_waiting_jobs_is_that_of_erlang_c() {
    let service = after(&model(4, "exponential:100us"), 32_000.0, 40);
    let waits = &service.counts().waits;
    let at_once: u64 = { waits.buckets() }
        .filter(|(low, _, _)| *low == 0)
        .map(|(_, _, count)| count)
        .sum();
    let waited = 1.0 - at_once as f64 / waits.count() as f64;
    assert_near(waited, erlang_c(4, 3.2), 0.02);
}

#[test]
fn without_a_queue_as_many_datagrams_are_dropped_as_erlang_b_says() {
    let without_queue = ServiceModel {
        datagrams_max: Some(0),
        ..model(8, "exponential:100us")
    };
    let service = after(&without_queue, 80_000.0, 20);
    let counts = service.counts();
    let dropped = counts.dropped as f64 / counts.queries as f64;
    assert_near(dropped, erlang_b(8, 8.0), 0.02);
    assert_eq!(counts.waiting_max, 0);
}

#[test]
fn what_exceeds_the_capacity_is_dropped_and_the_queue_is_full() {
    // 3 workers of 100 us: 30,000 a second.
    let bounded = ServiceModel {
        datagrams_max: Some(500),
        ..model(3, "100us")
    };
    let service = after(&bounded, 40_000.0, 20);
    let counts = service.counts();
    let served = (counts.queries - counts.dropped) as f64;
    assert_near(served, 30_000.0 * 20.0, 0.001);
    assert_near(counts.busy_ns as f64 / 1e9, 60.0, 0.001);
    assert_eq!(counts.waiting_max, 500);
    // The queue is full nearly always: 500 before a rate of 30,000/s.
    assert_near(mean_wait_s(&service), 500.0 / 30_000.0, 0.02);
}

#[test]
fn streams_wait_where_datagrams_are_dropped() {
    let bounded = ServiceModel {
        datagrams_max: Some(2),
        ..model(1, "100us")
    };
    let mut service = Service::new(&bounded, SEED);
    let query = query_for(1);
    for number in 1..=100 {
        let done_at = service.query(at_us(0), Carrier::Stream, &query);
        assert_eq!(done_at, Some(at_us(100 * number)));
    }
    // The buffer of the socket for datagrams is another one.
    assert!(service.query(at_us(0), Carrier::Datagram, &query).is_some());
    assert!(service.query(at_us(0), Carrier::Datagram, &query).is_some());
    assert_eq!(service.query(at_us(0), Carrier::Datagram, &query), None);
    assert_eq!(service.counts().dropped, 1);
    assert_eq!(service.counts().waiting_max, 101);
}

#[test]
fn connections_and_handshakes_occupy_the_workers_too() {
    let costly = ServiceModel {
        accept: us(10),
        handshake_full: us(250),
        handshake_resumed: us(50),
        backlog_max: Some(2),
        ..model(1, "100us")
    };
    let mut service = Service::new(&costly, SEED);
    assert_eq!(service.backlog(at_us(0)), Some((2, Instant::FAR_FUTURE)));
    assert_eq!(service.accept(at_us(0)), at_us(10));
    assert_eq!(service.accept(at_us(0)), at_us(20));
    assert_eq!(service.accept(at_us(0)), at_us(30));
    assert_eq!(service.backlog(at_us(0)), Some((0, at_us(10))));
    assert_eq!(service.backlog(at_us(10)), Some((1, at_us(20))));
    assert_eq!(
        service.handshake(at_us(20), HandshakeKind::Full),
        at_us(280)
    );
    assert_eq!(
        service.handshake(at_us(20), HandshakeKind::Resumed),
        at_us(330)
    );
    let done_at = service.query(at_us(20), Carrier::Stream, &query_for(1));
    assert_eq!(done_at, Some(at_us(430)));
    let counts = service.counts();
    assert_eq!(counts.busy_ns, 430_000);
    assert_eq!((counts.handshakes_full, counts.handshakes_resumed), (1, 1));
    assert_eq!(counts.accepts, 3);
}

#[test]
fn only_what_comes_within_the_window_is_counted() {
    let mut service = Service::new(&model(1, "100us"), SEED);
    let query = query_for(1);
    service.query(at_us(0), Carrier::Stream, &query);
    service.query(at_us(50), Carrier::Stream, &query);
    service.observe(at_us(150), at_us(300));
    assert_eq!(service.counts().busy_ns, 50_000, "of the second query");
    service.query(at_us(250), Carrier::Stream, &query);
    service.query(at_us(300), Carrier::Stream, &query);
    assert_eq!(service.counts().queries, 1);
    assert_eq!(service.counts().busy_ns, 100_000);
}

fn cached(ttl: Duration, entries_max: Option<u32>, miss: Delay) -> ServiceModel {
    ServiceModel {
        cache: Some(CacheModel {
            ttl,
            entries_max,
            miss,
            miss_service: Duration::ZERO,
        }),
        ..ServiceModel::default()
    }
}

/// Shares of the queries that were hits and that joined others.
fn ratios(service: &Service) -> (f64, f64) {
    let counts = service.counts();
    let all = (counts.cache_hits + counts.cache_misses + counts.cache_joined) as f64;
    (
        counts.cache_hits as f64 / all,
        counts.cache_joined as f64 / all,
    )
}

/// Asks `questions` with these weights at `rate` for a while, after another while to fill.
fn ask(model: &ServiceModel, weights: &[f64], rate: f64, seconds: u64) -> Service {
    let mut service = Service::new(model, SEED);
    let mut arrivals = Poisson::new(rate);
    let sum: f64 = weights.iter().sum();
    let cumulative: Vec<f64> = { weights.iter() }
        .scan(0.0, |before, weight| {
            *before += weight / sum;
            Some(*before)
        })
        .collect();
    let from = Instant::ZERO + Duration::from_secs(seconds);
    service.observe(from, from + Duration::from_secs(seconds));
    loop {
        let now = arrivals.next();
        if now >= from + Duration::from_secs(seconds) {
            return service;
        }
        let chance = arrivals.chance();
        let number = cumulative.partition_point(|share| *share < chance);
        service.query(now, Carrier::Stream, &query_for(number as u64));
    }
}

/// Hits of a cache whose entries live for `ttl_s`, of independent questions at Poisson instants:
/// of each question, one in `1 + rate * ttl` is a miss.
fn hits_by_ttl(weights: &[f64], rate: f64, ttl_s: f64) -> f64 {
    let sum: f64 = weights.iter().sum();
    let each = weights.iter().map(|weight| weight / sum);
    each.map(|share| share * (share * rate * ttl_s) / (1.0 + share * rate * ttl_s))
        .sum()
}

/// Che's approximation of the hits of an LRU cache of `entries` entries.
fn hits_by_lru(weights: &[f64], entries: f64) -> f64 {
    let sum: f64 = weights.iter().sum();
    let filled = |age: f64| -> f64 { weights.iter().map(|w| 1.0 - (-w / sum * age).exp()).sum() };
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        match filled(middle) < entries {
            true => low = middle,
            false => high = middle,
        }
    }
    let each = weights.iter().map(|weight| weight / sum);
    each.map(|share| share * (1.0 - (-share * low).exp())).sum()
}

fn zipf(questions: u32) -> Vec<f64> {
    (1..=questions).map(|rank| 1.0 / f64::from(rank)).collect()
}

#[test]
fn hit_ratio_of_a_cache_with_ttl_is_the_one_that_follows_from_the_questions() {
    let uniform = vec![1.0; 1_000];
    for (weights, rate, ttl_s) in [
        (&uniform, 1_000.0, 1),
        (&uniform, 500.0, 10),
        (&zipf(5_000), 2_000.0, 2),
    ] {
        let model = cached(Duration::from_secs(ttl_s), None, Delay::None);
        let service = ask(&model, weights, rate, 100);
        let expected = hits_by_ttl(weights, rate, ttl_s as f64);
        assert_near(ratios(&service).0, expected, 0.01);
    }
}

#[test]
fn hit_ratio_of_a_full_cache_is_that_of_ches_approximation() {
    let weights = zipf(2_000);
    let model = cached(Duration::from_secs(1_000_000), Some(200), Delay::None);
    let service = ask(&model, &weights, 1_000.0, 100);
    assert_near(ratios(&service).0, hits_by_lru(&weights, 200.0), 0.01);
    assert!(service.counts().cache_evicted > 0);
}

#[test]
fn one_question_is_asked_upstream_once_and_all_that_ask_meanwhile_wait_for_it() {
    let model = cached(us(1_000), None, Delay::Constant(us(200)));
    let mut service = Service::new(&model, SEED);
    let mut ask =
        |at: u64, number: u64| service.query(at_us(at), Carrier::Stream, &query_for(number));
    assert_eq!(ask(0, 1), Some(at_us(200)));
    assert_eq!(ask(150, 1), Some(at_us(200)));
    assert_eq!(ask(160, 2), Some(at_us(360)));
    assert_eq!(ask(200, 1), Some(at_us(200)));
    assert_eq!(ask(1_199, 1), Some(at_us(1_199)));
    assert_eq!(ask(1_200, 1), Some(at_us(1_400)), "expired");
    let counts = service.counts();
    assert_eq!(
        (counts.cache_hits, counts.cache_joined, counts.cache_misses),
        (2, 1, 3)
    );
}

#[test]
fn a_miss_occupies_no_worker_beyond_its_own_share() {
    let mut model = ServiceModel {
        query: Delay::Constant(us(10)),
        ..cached(us(1_000_000), None, Delay::Constant(us(5_000)))
    };
    if let Some(cache) = &mut model.cache {
        cache.miss_service = us(30);
    }
    let mut service = Service::new(&model, SEED);
    let done_at = service.query(at_us(0), Carrier::Stream, &query_for(1));
    assert_eq!(done_at, Some(at_us(5_040)));
    let done_at = service.query(at_us(0), Carrier::Stream, &query_for(2));
    assert_eq!(done_at, Some(at_us(5_080)));
    assert_eq!(service.counts().busy_ns, 80_000);
}

#[test]
fn questions_are_the_same_whatever_their_case_and_id() {
    let mut upper = query_for(7);
    upper[0] = 9;
    upper[14..19].make_ascii_uppercase();
    assert_eq!(question(&upper), question(&query_for(7)));
    assert_ne!(question(&query_for(7)), question(&query_for(8)));
    let mut other_type = query_for(7);
    let end = other_type.len();
    other_type[end - 3] = 28;
    assert_ne!(question(&other_type), question(&query_for(7)));
    assert_eq!(question(&query_for(7)[..14]), None);
}
