//! Findings on made-up runs whose truth is known, and the guarantees: few false alarms, and 10 %
//! caught.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::condition::{Condition, Outcome};
use crate::example::{interval, record};
use crate::limit::Verdict;

/// A host with noise: runs differ by some percent, the host drifts, and now and then something
/// else runs on it.
struct Host {
    generator: Xoshiro256PlusPlus,
    drift: f64,
    runs: u32,
}

impl Host {
    fn new(seed: u64) -> Host {
        Host {
            generator: Xoshiro256PlusPlus::seed_from_u64(seed),
            drift: 0.0,
            runs: 0,
        }
    }

    fn uniform(&mut self) -> f64 {
        (self.generator.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    /// A run of three seconds against a target that is `slowness` times as slow.
    fn run(&mut self, slowness: f64) -> RunRecord {
        self.drift = 0.8 * self.drift + 0.01 * self.normal();
        let disturbed = match self.uniform() < 0.05 {
            true => 0.2 * self.uniform(),
            false => 0.0,
        };
        let slowness = slowness * (self.drift + 0.02 * self.normal() + disturbed).exp();
        let tail = (0.04 * self.normal()).exp();
        let at_end = (0.04 * self.normal()).exp();
        let rate = 2_000.0 / slowness;
        let intervals = (0..3).map(|second| {
            let part = |share: f64| (share * rate) as u64;
            let latencies = [
                ((1e6 * slowness) as u64, part(0.90)),
                ((2e6 * slowness * tail) as u64, part(0.07)),
                ((5e6 * slowness * at_end) as u64, part(0.03)),
            ];
            interval(second, &latencies)
        });
        let mut record = record(intervals.collect());
        let (minute, second) = (self.runs * 5 / 60, self.runs * 5 % 60);
        record.started_at = format!("2026-01-28T09:{minute:02}:{second:02}Z");
        self.runs += 1;
        record
    }

    /// Runs of two sides that alternate, ABBA.
    fn alternate(&mut self, rounds: usize, slowness: f64) -> (Vec<RunRecord>, Vec<RunRecord>) {
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            match round % 2 {
                0 => {
                    a.push(self.run(1.0));
                    b.push(self.run(slowness));
                }
                _ => {
                    b.push(self.run(slowness));
                    a.push(self.run(1.0));
                }
            }
        }
        (a, b)
    }
}

fn side<'a>(label: &str, records: &'a [RunRecord]) -> Side<'a> {
    let named = records.iter().enumerate();
    Side {
        label: label.into(),
        runs: named
            .map(|(index, record)| (format!("{label}/{index}.json"), record))
            .collect(),
    }
}

fn settings() -> Settings {
    Settings {
        bootstrap: Bootstrap {
            resamples: 400,
            ..Bootstrap::default()
        },
        ..Settings::default()
    }
}

fn compared(a: &[RunRecord], b: &[RunRecord], noise: &[RunRecord]) -> AbComparison {
    let noise: Vec<&RunRecord> = noise.iter().collect();
    AbComparison::new(&side("a", a), &side("b", b), &noise, &settings())
}

fn is_alarm(finding: Finding) -> bool {
    !matches!(finding, Finding::Same | Finding::CannotTell)
}

/// How often of `times` the finding is an alarm, with this number of rounds a side.
fn alarms(times: u64, rounds: usize, slowness: f64) -> usize {
    let of = |seed: u64| {
        let (a, b) = Host::new(1_000 * rounds as u64 + seed).alternate(rounds, slowness);
        compared(&a, &b, &[]).finding
    };
    (0..times).filter(|&seed| is_alarm(of(seed))).count()
}

#[test]
fn same_thing_twice_gives_at_most_five_false_alarms_in_a_hundred() {
    for rounds in [4, 10] {
        let alarms = alarms(200, rounds, 1.0);
        assert!(alarms <= 10, "{alarms} of 200 with {rounds} rounds");
    }
}

#[test]
fn ten_percent_slower_is_caught_in_95_of_a_hundred_with_ten_rounds() {
    let caught = alarms(100, 10, 1.1);
    assert!(caught >= 95, "{caught} of 100");
}

#[test]
fn slower_side_is_called_slower_and_the_other_way_round() {
    let (a, b) = Host::new(5).alternate(10, 1.2);
    let found = compared(&a, &b, &[]);
    assert_eq!(found.method, Method::PairedRuns);
    assert_eq!(found.finding, Finding::Slower, "{found:?}");
    let rate = found.of(Metric::Qps).expect("compared");
    let change = rate.change.expect("known");
    assert!((-0.20..-0.13).contains(&change), "{change}");
    assert!(rate.change_low.expect("known") < change && change < rate.change_high.expect("known"));
    assert_eq!(rate.cliffs_delta, Some(-1.0));
    assert!(
        found.headline().starts_with("B is slower than A: qps -1"),
        "{}",
        found.headline()
    );
    let back = compared(&b, &a, &[]);
    assert_eq!(back.finding, Finding::Faster);
    // Nothing was lost on either side, and goodput is the rate.
    assert_eq!(
        found.of(Metric::Loss).expect("compared").finding,
        Finding::Same
    );
    assert_eq!(found.of(Metric::Goodput), None);
}

#[test]
fn quiet_host_can_say_same() {
    let runs = |offset: u64| -> Vec<RunRecord> {
        let run = |each: u64| {
            let ns = 1_000_000 + 4_000 * ((each * 7 + offset) % 5);
            record(
                (0..3)
                    .map(|second| interval(second, &[(ns, 2_000)]))
                    .collect(),
            )
        };
        (0..8).map(run).collect()
    };
    let found = compared(&runs(0), &runs(2), &[]);
    assert_eq!(found.finding, Finding::Same, "{found:?}");
    assert_eq!(
        found.headline(),
        "B is the same as A: no difference above 2.0 %"
    );
}

#[test]
fn few_runs_are_compared_by_welch_s_test() {
    let (a, b) = Host::new(8).alternate(3, 1.5);
    let found = compared(&a, &b, &[]);
    assert_eq!(found.method, Method::FewRuns);
    assert_eq!(found.finding, Finding::Slower, "{found:?}");
}

/// One run of many intervals, each of which differs a little from the one before.
fn long_run(seed: u64, slowness: f64) -> RunRecord {
    let mut host = Host::new(seed);
    let mut wander = 0.0;
    let intervals = (0..60).map(|second| {
        wander = 0.5 * wander + 0.01 * host.normal();
        let slowness = slowness * f64::exp(wander);
        let ns = (1e6 * slowness) as u64;
        interval(
            second,
            &[
                (ns, (1_900.0 / slowness) as u64),
                (3 * ns, (100.0 / slowness) as u64),
            ],
        )
    });
    record(intervals.collect())
}

#[test]
fn single_runs_are_compared_by_blocks_and_beyond_what_runs_differ_by() {
    let a = [long_run(1, 1.0)];
    let found = compared(&a, &[long_run(2, 2.5)], &[]);
    assert!(
        matches!(found.method, Method::Blocks(_)),
        "{:?}",
        found.method
    );
    assert_eq!(
        (found.finding, found.noise),
        (Finding::Slower, Noise::Assumed),
        "{found:?}"
    );
    // Less may be the difference of two processes.
    for slowness in [1.04, 1.2, 1.7] {
        let found = compared(&a, &[long_run(2, slowness)], &[]);
        assert_eq!(found.finding, Finding::CannotTell, "{found:?}");
    }
    assert!(found.notes[0].contains("--noise"), "{:?}", found.notes);
    // Where runs were measured to differ by less, it is not.
    let noise: Vec<RunRecord> = (10..30).map(|seed| long_run(seed, 1.0)).collect();
    let found = compared(&a, &[long_run(2, 1.04)], &noise);
    assert_eq!(
        (found.finding, found.noise),
        (Finding::Slower, Noise::Measured(20)),
        "{found:?}"
    );
    let found = compared(&a, &[long_run(3, 1.0)], &noise);
    assert!(!is_alarm(found.finding), "{found:?}");
}

#[test]
fn single_pairs_with_measured_noise_keep_the_same_guarantees() {
    let noise: Vec<RunRecord> = (500..530).map(|seed| long_run(seed, 1.0)).collect();
    let noise: Vec<&RunRecord> = noise.iter().collect();
    let settings = Settings {
        bootstrap: Bootstrap {
            resamples: 100,
            ..Bootstrap::default()
        },
        ..Settings::default()
    };
    let alarms = |slowness: f64| {
        let of = |pair: u64| {
            let (a, b) = (
                [long_run(2 * pair, 1.0)],
                [long_run(2 * pair + 1, slowness)],
            );
            AbComparison::new(&side("a", &a), &side("b", &b), &noise, &settings).finding
        };
        (0..40).filter(|&pair| is_alarm(of(pair))).count()
    };
    let (false_alarms, caught) = (alarms(1.0), alarms(1.1));
    assert!(false_alarms <= 2, "{false_alarms} of 40");
    assert!(caught >= 38, "{caught} of 40");
}

/// A run as [`long_run`], on a host where another one may have a tail three times as long.
fn rough_run(seed: u64) -> RunRecord {
    let mut host = Host::new(seed);
    let slowness = (0.15 * host.normal()).exp();
    let tail = 1.0 + 2.2 * host.uniform();
    let lost = (40.0 * host.uniform()) as u64;
    let intervals = (0..60).map(|second| {
        let ns = (1e6 * slowness) as u64 + 1_000 * (second % 7);
        let at_end = (3e6 * slowness * tail) as u64;
        let responses = (1_900.0 / slowness) as u64;
        let mut interval = interval(second, &[(ns, responses), (at_end, responses / 8)]);
        interval.counts.timeouts = lost;
        interval.counts.sent += lost;
        interval.counts.offered += lost;
        interval
    });
    record(intervals.collect())
}

#[test]
fn single_runs_of_the_same_thing_are_not_called_different() {
    for pair in 0..40 {
        let [a, b] = [2 * pair, 2 * pair + 1].map(|seed| [rough_run(seed)]);
        let found = compared(&a, &b, &[]);
        assert!(!is_alarm(found.finding), "{found:?}");
    }
}

#[test]
fn side_that_measured_the_generator_comes_first_and_nothing_is_claimed() {
    let of_generator = |mut record: RunRecord| {
        record.verdict.limit = Limit::Generator;
        record
    };
    let (a, b) = (long_run(1, 1.0), long_run(2, 5.0));
    let both = [of_generator(a.clone()), of_generator(b.clone())].map(|it| [it]);
    let found = compared(&both[0], &both[1], &[]);
    assert_eq!(
        found.headline(),
        "inconclusive: A and B measured the generator, not the target"
    );
    let found = compared(std::slice::from_ref(&a), &both[1], &[]);
    assert_eq!(found.finding, Finding::CannotTell, "{found:?}");
    assert!(found.headline().starts_with("inconclusive: B measured "));
    let of_target = found.metrics.iter().filter(|it| it.metric.is_of_target());
    for each in of_target {
        assert_eq!(each.finding, Finding::CannotTell, "{each:?}");
        let reason = each.reason.as_deref();
        assert_eq!(reason, Some("B measured the generator"), "{each:?}");
    }
    // The generator's own CPU time is no interference.
    let cpu = found.of(Metric::Cpu).expect("compared");
    assert_eq!(cpu.finding, Finding::Slower, "{cpu:?}");
    for text in [
        "slower",
        "p99 slower",
        "p99 > +10%",
        "qps < -10%",
        "qps < -90%",
    ] {
        let check = found.check(&Condition::fail_if(text).expect("it can be read"));
        assert_eq!(check.outcome, Outcome::Undecided, "{}", check.found);
    }
    // One run of six is a doubt, not a verdict.
    let (mut a, b) = Host::new(5).alternate(6, 1.5);
    a[0].verdict.limit = Limit::Generator;
    assert_eq!(compared(&a, &b, &[]).finding, Finding::Slower);
}

/// By how much the printed B lies above the printed A.
fn printed_change(found: &MetricRecord) -> Option<f64> {
    let (a, b) = (found.a.median?, found.b.median?);
    match found.metric.unit() {
        Unit::Share => Some(b - a),
        _ => (a > 0.0 && b > 0.0).then(|| b / a - 1.0),
    }
}

#[test]
fn change_follows_from_the_figures_beside_it_and_no_interval_is_impossible() {
    for seed in 0..8 {
        for number in [1, 2, 3, 4, 5, 6, 7] {
            let runs = |offset: u64| -> Vec<RunRecord> {
                let each = 0..number;
                each.map(|it| rough_run(100 * seed + 2 * it + offset))
                    .collect()
            };
            let found = compared(&runs(0), &runs(1), &[]);
            for each in &found.metrics {
                let (Some(change), Some(expected)) = (each.change, printed_change(each)) else {
                    continue;
                };
                assert!((change - expected).abs() < 1e-9, "{each:?}");
                let (Some(low), Some(high)) = (each.change_low, each.change_high) else {
                    continue;
                };
                assert!(low <= change && change <= high, "{each:?}");
                assert!(low >= -1.0, "{each:?}");
                if each.metric.unit() == Unit::Share {
                    let most = each
                        .a
                        .max
                        .expect("known")
                        .max(each.a.median.expect("known"));
                    assert!(low >= -most - 0.001 && high <= 1.0, "{each:?}");
                }
                if each.metric == Metric::P95 {
                    // A bucket is at least 1/256 of its value wide.
                    assert!((1.0 + high) / (1.0 + low) > 1.0 + 1.0 / 256.0, "{each:?}");
                }
            }
        }
    }
}

#[test]
fn runs_that_all_fall_into_one_bucket_are_known_to_the_width_of_the_bucket() {
    let run = |ns: u64| {
        record(
            (0..20)
                .map(|at| interval(at, &[(ns, 900), (9 * ns, 9)]))
                .collect(),
        )
    };
    let [a, b] = [1_000_000, 1_104_000].map(|ns| vec![run(ns); 6]);
    let found = compared(&a, &b, &[]);
    let p50 = found.of(Metric::P50).expect("compared");
    let (low, high) = (
        p50.change_low.expect("known"),
        p50.change_high.expect("known"),
    );
    assert!(high - low > 0.007, "{p50:?}");
    assert_eq!(p50.finding, Finding::Slower);
}

#[test]
fn no_loss_on_either_side_is_known_as_far_as_the_queries_go() {
    let run = || {
        record(
            (0..3)
                .map(|at| interval(at, &[(1_000_000, 1_000)]))
                .collect(),
        )
    };
    let runs = [vec![run(); 6], vec![run(); 6]];
    let found = compared(&runs[0], &runs[1], &[]);
    let loss = found.of(Metric::Loss).expect("compared");
    assert_eq!((loss.change, loss.finding), (Some(0.0), Finding::Same));
    let (low, high) = (
        loss.change_low.expect("known"),
        loss.change_high.expect("known"),
    );
    // Of none of 18,000 3.69 / 18,000.
    assert!((high - 2.05e-4).abs() < 1e-6 && low == -high, "{loss:?}");
}

#[test]
fn too_little_is_no_answer() {
    let mut host = Host::new(1);
    let (a, b) = ([host.run(1.0)], [host.run(2.0)]);
    let found = compared(&a, &b, &[]);
    assert_eq!(
        (found.method, found.finding),
        (Method::None, Finding::CannotTell)
    );
    assert!(
        found.notes[0].contains("--interval 100ms"),
        "{:?}",
        found.notes
    );
    let more = [host.run(1.0), host.run(1.0)];
    let found = compared(&a, &more, &[]);
    assert_eq!(found.finding, Finding::CannotTell);
    assert!(
        found.notes[0].contains("A has 1 run and B 2 runs"),
        "{:?}",
        found.notes
    );
}

#[test]
fn runs_one_after_the_other_are_not_pairs_and_say_so() {
    let mut host = Host::new(4);
    let a: Vec<RunRecord> = (0..6).map(|_| host.run(1.0)).collect();
    let b: Vec<RunRecord> = (0..6).map(|_| host.run(1.0)).collect();
    let found = compared(&a, &b, &[]);
    assert_eq!(found.method, Method::Runs);
    assert!(
        found.notes.iter().any(|note| note.contains("alternates")),
        "{:?}",
        found.notes
    );
}

#[test]
fn same_seed_gives_the_same_comparison_and_it_survives_json() {
    let (a, b) = Host::new(6).alternate(6, 1.1);
    let found = compared(&a, &b, &[]);
    assert_eq!(found, compared(&a, &b, &[]));
    let back: AbComparison = serde_json::from_str(&found.to_json_pretty()).expect("reads it");
    assert_eq!(back.finding, found.finding);
    assert_eq!(back.notes, found.notes);
}

#[test]
fn conditions_fail_only_on_differences_that_are_none_of_chance() {
    let (a, b) = Host::new(5).alternate(10, 1.2);
    let found = compared(&a, &b, &[]);
    let outcome = |text: &str| {
        let condition = Condition::fail_if(text).expect("it can be read");
        found.check(&condition).outcome
    };
    assert_eq!(outcome("p50 > +10%"), Outcome::Failed);
    assert_eq!(outcome("p50 > +40%"), Outcome::Passed);
    assert_eq!(outcome("p50 > +50us"), Outcome::Failed);
    assert_eq!(outcome("qps < -5%"), Outcome::Failed);
    assert_eq!(outcome("p50 > 5ms"), Outcome::Passed);
    assert_eq!(outcome("slower"), Outcome::Failed);
    assert_eq!(outcome("loss slower"), Outcome::Passed);
    assert_eq!(outcome("connect > +10%"), Outcome::Undecided);
    let required = Condition::require("p50 < +10%").expect("it can be read");
    assert_eq!(found.check(&required).outcome, Outcome::Failed);
    // The same thing twice, a few runs: one may well lie 1 % above the other.
    let (a, b) = Host::new(7).alternate(4, 1.0);
    let noise = compared(&a, &b, &[]);
    for text in ["slower", "p99 > +0.1%", "p95 > +0.1%", "qps < -0.1%"] {
        let check = noise.check(&Condition::fail_if(text).expect("it can be read"));
        assert_ne!(check.outcome, Outcome::Failed, "{}", check.found);
    }
}

#[test]
fn what_makes_a_comparison_meaningless_is_refused() {
    let mut host = Host::new(1);
    let (a, b) = (host.run(1.0), host.run(1.0));
    let of = |a: &RunRecord, b: &RunRecord| {
        let (a, b) = ([a.clone()], [b.clone()]);
        doubts(&side("a", &a), &side("b", &b))
    };
    assert_eq!(of(&a, &b), Doubts::default());
    let mut other = b.clone();
    other.scenario.target = "192.0.2.2:53".into();
    other.scenario.seed = 9;
    (other.scenario.labels).insert("version".to_owned(), "2.0".to_owned());
    assert_eq!(of(&a, &other), Doubts::default());
    other.scenario.clients = 99;
    let refusals = of(&a, &other).refusals;
    assert!(refusals[0].contains("clients 10 and 99"), "{refusals:?}");
    let mut other = b.clone();
    other.hosts[0].cores = Some(64);
    assert!(of(&a, &other).refusals[0].contains("another host"));
    let mut other = b.clone();
    other.self_test = true;
    assert!(of(&a, &other).refusals[0].contains("another kind of run"));
    let mut other = b.clone();
    other.throng_version = "9.9.9".into();
    other.verdict = Verdict {
        limit: Limit::Generator,
        ..Verdict::default()
    };
    let found = of(&a, &other);
    assert_eq!(found.refusals, Vec::<String>::new());
    assert_eq!(found.warnings.len(), 3, "{found:?}");
}

#[test]
fn servers_that_are_not_the_same_are_a_doubt() {
    let mut host = Host::new(1);
    let of_version = |record: &RunRecord, version: &str, threads: u64| {
        let mut record = record.clone();
        record.observations = vec![crate::Observation {
            profile: "bind".to_owned(),
            facts: crate::observation::ServerFacts {
                product: Some("BIND".to_owned()),
                version: Some(version.to_owned()),
                threads: Some(threads),
                // Another one each time.
                process_id: Some(std::process::id() + threads as u32),
                ..Default::default()
            },
            ..Default::default()
        }];
        record
    };
    let run = host.run(1.0);
    let warnings = |version: &str, threads: u64| {
        let a = [of_version(&run, "9.18.28", 2)];
        let b = [of_version(&run, version, threads)];
        doubts(&side("a", &a), &side("b", &b)).warnings
    };
    assert_eq!(warnings("9.18.28", 2), [] as [String; 0]);
    assert_eq!(
        warnings("9.20.1", 3),
        ["what BIND is was not the same: version 9.18.28 and 9.20.1, threads 2 and 3"]
    );
}
