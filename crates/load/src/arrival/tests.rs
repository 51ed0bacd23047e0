use proptest::prelude::*;

use super::*;

const START: Instant = Instant::from_nanos(7_000_000_123);

fn schedule(rate_qps: f64, process: Process, share: (u32, u32), seed: u64) -> Schedule {
    Schedule::new(rate_qps, process, share, seed, START)
}

/// The due instants before `end_ns` after the start, in nanoseconds after the start.
fn due_ns(mut schedule: Schedule, end_ns: u64) -> Vec<u64> {
    let mut due = Vec::new();
    loop {
        let ns = schedule.next_due().nanos_since(START);
        if ns >= end_ns {
            return due;
        }
        due.push(ns);
        schedule.advance();
    }
}

#[test]
fn twenty_thousand_a_second_for_ten_seconds_are_two_hundred_thousand() {
    for workers in [1, 2, 3, 7] {
        let total: usize = (0..workers)
            .map(|worker| {
                let schedule = schedule(20_000.0, Process::Constant, (worker, workers), 1);
                due_ns(schedule, 10_000_000_000).len()
            })
            .sum();
        assert_eq!(total, 200_000, "{workers} workers");
    }
}

#[test]
fn constant_arrivals_of_all_workers_interleave_evenly() {
    let workers = 4;
    let mut all: Vec<(u64, u32)> = (0..workers)
        .flat_map(|worker| {
            let schedule = schedule(3_000.0, Process::Constant, (worker, workers), 1);
            let due = due_ns(schedule, 1_000_000_000);
            due.into_iter().map(move |ns| (ns, worker))
        })
        .collect();
    all.sort_unstable();
    assert_eq!(all.len(), 3_000);
    for (index, &(ns, worker)) in all.iter().enumerate() {
        assert_eq!(worker, index as u32 % workers);
        assert_eq!(ns, index as u64 * 1_000_000_000 / 3_000);
    }
}

#[test]
fn bursts_are_due_together_and_keep_the_rate() {
    for worker in 0..2 {
        let bursts = (20_000.0, Process::Constant, 10);
        let schedule = Schedule::of_bursts(bursts, (worker, 2), 1, START);
        let due = due_ns(schedule, 1_000_000_000);
        assert_eq!(due.len(), 10_000, "half of the rate");
        for (index, &ns) in due.iter().enumerate() {
            let burst = (index / 10 * 2) as u64 + u64::from(worker);
            assert_eq!(ns, burst * 500_000, "query {index}");
        }
    }
}

#[test]
fn schedule_knows_where_a_burst_starts() {
    let bursts = (1_000.0, Process::Poisson, 3);
    let mut schedule = Schedule::of_bursts(bursts, (0, 1), 1, START);
    let mut starts = Vec::new();
    for _ in 0..7 {
        starts.push(schedule.starts_burst());
        schedule.advance();
    }
    assert_eq!(starts, [true, false, false, true, false, false, true]);
}

#[test]
fn a_rate_without_a_whole_gap_never_drifts() {
    let mut schedule = schedule(7.0, Process::Constant, (2, 3), 1);
    for k in 0..1_000_000u128 {
        let exact = (k * 3 + 2) * 1_000_000_000 / 7;
        assert_eq!(u128::from(schedule.next_due().nanos_since(START)), exact);
        schedule.advance();
    }
}

#[test]
fn the_slowest_schedule_ends_in_the_far_future_without_overflow() {
    let mut schedule = schedule(1e-6, Process::Constant, (0, u32::MAX), 1);
    assert_eq!(schedule.next_due(), START);
    schedule.advance();
    schedule.advance();
    assert_eq!(schedule.next_due(), Instant::FAR_FUTURE);
    let mut schedule = self::schedule(1e-300, Process::Poisson, (0, 1), 1);
    schedule.advance();
    assert_eq!(schedule.next_due(), Instant::FAR_FUTURE);
}

/// Kolmogorov-Smirnov statistic of `gaps` against the exponential distribution of mean `mean`,
/// times the root of their number.
fn kolmogorov_smirnov(mut gaps: Vec<f64>, mean: f64) -> f64 {
    gaps.sort_by(f64::total_cmp);
    let count = gaps.len() as f64;
    let distance_max = gaps
        .iter()
        .enumerate()
        .map(|(index, gap)| {
            let expected = 1.0 - (-gap / mean).exp();
            let below = (expected - index as f64 / count).abs();
            let above = ((index + 1) as f64 / count - expected).abs();
            below.max(above)
        })
        .fold(0.0, f64::max);
    distance_max * count.sqrt()
}

fn gaps(due: &[u64]) -> Vec<f64> {
    due.windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64)
        .collect()
}

/// Exceeded by chance once in 1,000 times.
const KOLMOGOROV_SMIRNOV_MAX: f64 = 1.95;

#[test]
fn poisson_gaps_of_one_worker_are_exponential_at_its_share_of_the_rate() {
    for seed in 1..=5 {
        for worker in 0..3 {
            let schedule = schedule(6_000.0, Process::Poisson, (worker, 3), seed);
            let gaps = gaps(&due_ns(schedule, 20_000_000_000));
            assert!(gaps.len() > 39_000);
            let statistic = kolmogorov_smirnov(gaps, 500_000.0);
            assert!(
                statistic < KOLMOGOROV_SMIRNOV_MAX,
                "{statistic} at {seed}, {worker}"
            );
        }
    }
}

#[test]
fn poisson_arrivals_of_all_workers_together_are_exponential_at_the_rate() {
    for seed in [11, 12, 13] {
        let mut all: Vec<u64> = (0..8)
            .flat_map(|worker| {
                let schedule = schedule(20_000.0, Process::Poisson, (worker, 8), seed);
                due_ns(schedule, 10_000_000_000)
            })
            .collect();
        all.sort_unstable();
        // 200,000 with a standard deviation of 447.
        assert!(
            (198_500..201_500).contains(&all.len()),
            "{} at {seed}",
            all.len()
        );
        let statistic = kolmogorov_smirnov(gaps(&all), 50_000.0);
        assert!(statistic < KOLMOGOROV_SMIRNOV_MAX, "{statistic} at {seed}");
    }
}

#[test]
fn poisson_counts_in_equal_intervals_vary_as_much_as_their_mean() {
    let schedule = schedule(10_000.0, Process::Poisson, (0, 1), 99);
    let mut counts = vec![0u32; 2_000];
    for ns in due_ns(schedule, 20_000_000_000) {
        counts[(ns / 10_000_000) as usize] += 1;
    }
    let mean = counts.iter().sum::<u32>() as f64 / 2_000.0;
    let squares = counts
        .iter()
        .map(|&count| (f64::from(count) - mean).powi(2));
    let variance = squares.sum::<f64>() / 1_999.0;
    assert!(
        (0.9..1.1).contains(&(variance / mean)),
        "{variance} and {mean}"
    );
}

#[test]
fn the_same_seed_gives_the_same_instants_and_others_differ() {
    let due = |seed, worker| {
        due_ns(
            schedule(1_000.0, Process::Poisson, (worker, 2), seed),
            1 << 30,
        )
    };
    assert_eq!(due(1, 0), due(1, 0));
    assert_ne!(due(1, 0), due(2, 0));
    assert_ne!(due(1, 0), due(1, 1));
}

#[test]
fn rates_are_read_with_their_suffixes() {
    let cases = [
        ("20000", 20_000.0),
        ("50k", 50_000.0),
        ("50K", 50_000.0),
        ("1.5M", 1_500_000.0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("0.000001", 1e-6),
        ("1000M", 1e9),
        ("1G", 1e9),
        ("1e5", 1e5),
        ("1,000", 1e3),
        ("1_000", 1e3),
    ];
    for (text, expected) in cases {
        assert_eq!(parse_rate(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn what_is_no_rate_is_refused() {
    for text in [
        "", "k", ".", "1,5", "-1", "+1", "inf", "NaN", "1.2.3", "5 k", "5m", "5g", "5kk", "\u{e9}",
    ] {
        let error = parse_rate(text).unwrap_err();
        assert_eq!(error.to_string(), format!("rate: `{text}` is not a rate"));
    }
    for text in ["0", "0k", "0.0000001", "1001M", "99999999999999999999999"] {
        let error = parse_rate(text).unwrap_err();
        assert!(error.what.contains("cannot be offered"), "{error}");
    }
}

proptest! {
    #[test]
    fn constant_due_instants_are_exact(
        rate_micro in 1u64..=1_000_000_000_000_000,
        workers in 1u32..64,
        worker_of in 0u32..64,
    ) {
        let worker = worker_of % workers;
        let rate_qps = rate_micro as f64 / 1e6;
        let mut schedule = schedule(rate_qps, Process::Constant, (worker, workers), 0);
        let rate_micro = (rate_qps * 1e6).round() as u128;
        for k in 0..200u128 {
            let query = k * u128::from(workers) + u128::from(worker);
            let exact = query * 1_000_000_000_000_000 / rate_micro;
            let due = Instant::from_nanos(
                u64::try_from(exact).unwrap_or(u64::MAX).saturating_add(START.as_nanos()),
            );
            prop_assert_eq!(schedule.next_due(), due);
            schedule.advance();
        }
    }

    #[test]
    fn no_text_makes_the_rate_parser_panic(text in ".{0,12}") {
        let _ = parse_rate(&text);
    }
}

proptest! {
    #[test]
    fn passing_over_queries_is_the_same_as_taking_them_one_by_one(
        rate_micro in 1_000_000_u64..50_000_000_000,
        poisson: bool,
        worker in 0_u32..3,
        burst in 1_u32..6,
        ahead in 0_u64..12,
        end_ns in 0_u64..2_000_000,
        most in 0_u64..60,
    ) {
        let process = if poisson { Process::Poisson } else { Process::Constant };
        let make = || {
            let bursts = (rate_micro as f64 / 1e6, process, burst);
            let mut schedule = Schedule::of_bursts(bursts, (worker, 3), 5, START);
            (0..ahead).for_each(|_| schedule.advance());
            schedule
        };
        let end = Instant::from_nanos(START.as_nanos() + end_ns);
        let (mut stepped, mut skipped) = (make(), make());
        let mut taken = 0;
        while stepped.next_due() < end && taken < most {
            stepped.advance();
            taken += 1;
        }
        prop_assert_eq!(skipped.skip_until(end, most), taken);
        for _ in 0..13 {
            prop_assert_eq!(skipped.next_due(), stepped.next_due());
            prop_assert_eq!(skipped.starts_burst(), stepped.starts_burst());
            skipped.advance();
            stepped.advance();
        }
    }
}

#[test]
fn passing_over_a_billion_a_second_for_an_hour_takes_no_time_and_counts_them_all() {
    let hour = Instant::from_nanos(START.as_nanos() + 3_600_000_000_000);
    let mut constant = schedule(1e9, Process::Constant, (0, 1), 1);
    assert_eq!(constant.skip_until(hour, u64::MAX), 3_600_000_000_000);
    assert_eq!(constant.next_due(), hour);
    let mut poisson = schedule(1e9, Process::Poisson, (0, 1), 1);
    let skipped = poisson.skip_until(hour, u64::MAX);
    assert!(
        skipped.abs_diff(3_600_000_000_000) < 10_000_000,
        "{skipped}"
    );
}

#[test]
fn poisson_arrivals_passed_over_in_many_spans_are_drawn_for_a_while_and_then_as_the_rate_says() {
    for (rate_qps, burst) in [(1e9, 1), (1e9, 1_000), (123_456.0, 1)] {
        let bursts = (rate_qps, Process::Poisson, burst);
        let mut schedule = Schedule::of_bursts(bursts, (0, 1), 3, START);
        if let Gaps::Poisson(gaps) = &mut schedule.gaps {
            gaps.skips_drawn = DRAWN_MAX - 10;
        }
        let mut passed = 0;
        for span in 1..=1_000 {
            let end = Instant::from_nanos(START.as_nanos() + span * 10_000_000);
            let in_span = schedule.skip_until(end, u64::MAX);
            assert!(schedule.next_due() >= end);
            // The first gap of each span is drawn.
            let expected = rate_qps / 100.0;
            let error = (in_span as f64 - expected).abs();
            assert!(span == 1 || error < 20.0 * f64::from(burst), "{in_span}");
            passed += in_span;
        }
        let expected = rate_qps * 10.0;
        let error = (passed as f64 - expected).abs();
        assert!(error < 200.0 * f64::from(burst), "{passed}");
        // A part of what is left is as many as asked for.
        let end = Instant::from_nanos(START.as_nanos() + 11_000_000_000);
        assert_eq!(schedule.skip_until(end, 777), 777);
        assert!(schedule.next_due() < end);
    }
}
