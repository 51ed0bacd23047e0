//! Chi-square tests of draws, with fixed seeds.

use super::*;
use crate::question_source::zipf::Zipf;
use crate::random;

/// Fails if `counts` are so far from `expected` that chance does so once in 30,000 times.
fn check(counts: &[u64], expected: &[f64], what: &str) {
    assert_eq!(counts.len(), expected.len());
    // Cells with expectations below ten are combined.
    let (mut rest, mut rest_expected) = (0, 0.0);
    let (mut statistic, mut cells) = (0.0, 0);
    let mut add = |count: u64, expected: f64| {
        statistic += (count as f64 - expected).powi(2) / expected;
        cells += 1;
    };
    for (&count, &expected) in counts.iter().zip(expected) {
        if expected < 10.0 {
            rest += count;
            rest_expected += expected;
        } else {
            add(count, expected);
        }
    }
    if rest_expected >= 10.0 {
        add(rest, rest_expected);
    } else {
        assert!((rest as f64) < 40.0, "{what}: {rest} for {rest_expected}");
    }
    if cells < 2 {
        return;
    }
    // Wilson and Hilferty's approximation, four standard deviations up.
    let freedom = f64::from(cells - 1);
    let part = 2.0 / (9.0 * freedom);
    let limit = freedom * (1.0 - part + 4.0 * part.sqrt()).powi(3);
    assert!(statistic < limit, "{what}: {statistic} of {limit}");
}

#[test]
fn zipf_draws_ranks_by_its_law() {
    const DRAWS: u64 = 300_000;
    for exponent in [0.0, 0.3, 0.9, 1.0, 1.000_000_01, 1.2, 2.0, 5.0] {
        for ranks in [1, 2, 3, 10, 1_000, 100_000] {
            let zipf = Zipf::new(ranks, exponent);
            let mut generator = random::generator(11, 0, 0);
            let mut counts = vec![0; ranks as usize];
            (0..DRAWS).for_each(|_| counts[zipf.next(&mut generator) as usize] += 1);
            let weights = (1..=ranks).map(|rank| (rank as f64).powf(-exponent));
            let weights: Vec<f64> = weights.collect();
            let sum: f64 = weights.iter().sum();
            let expected: Vec<f64> = weights.iter().map(|it| it / sum * DRAWS as f64).collect();
            check(&counts, &expected, &format!("s = {exponent}, n = {ranks}"));
        }
    }
}

#[test]
fn zipf_stays_within_its_ranks_at_the_extremes() {
    for exponent in [0.0, 1.0, 1e-12, 40.0, 1e9, f64::MAX] {
        for ranks in [1, 2, u64::from(u32::MAX)] {
            let zipf = Zipf::new(ranks, exponent);
            let mut generator = random::generator(3, 0, 0);
            for _ in 0..10_000 {
                let rank = zipf.next(&mut generator);
                assert!(rank < ranks, "s = {exponent}, n = {ranks}");
                assert!(exponent < 40.0 || rank == 0);
            }
        }
    }
}

#[test]
fn uniform_questions_are_equally_likely() {
    let source = QuestionSource {
        order: Order::Uniform,
        ..QuestionSource::default()
    };
    let plan = plan(&names(100), source);
    for worker in 0..2 {
        let mut counts = [0; 100];
        for template in templates(&plan, worker, 100_000) {
            counts[template as usize] += 1;
        }
        check(&counts, &[1_000.0; 100], "uniform");
    }
}

#[test]
fn each_name_is_equally_likely_at_each_place_of_a_shuffle() {
    for count in [3u64, 7, 16, 100] {
        for place in [0, count / 2, count - 1] {
            let mut counts = vec![0; count as usize];
            for seed in 0..20_000 {
                let permutation = permutation::Permutation::new(count, seed);
                counts[permutation.at(place) as usize] += 1;
            }
            let expected = vec![20_000.0 / count as f64; count as usize];
            check(&counts, &expected, &format!("place {place} of {count}"));
        }
    }
}

#[test]
fn neighbours_in_a_shuffle_are_no_neighbours_in_the_list() {
    let count = 97;
    let mut counts = vec![0; count as usize];
    for seed in 0..2_000 {
        let permutation = permutation::Permutation::new(count, seed);
        for place in 0..10 {
            let distance = permutation.at(place + 1) + count - permutation.at(place);
            counts[(distance % count) as usize] += 1;
        }
    }
    assert_eq!(counts.remove(0), 0);
    check(&counts, &vec![20_000.0 / 96.0; 96], "distances");
}

#[test]
fn qtypes_come_in_proportion_to_their_weights() {
    let mix: QtypeMix = "A=60,aaaa=30,HTTPS=9.5,TYPE65280=0.5".parse().unwrap();
    let types: Vec<u16> = mix.shares().iter().map(|(qtype, _)| *qtype).collect();
    assert_eq!(types, [1, 28, 65, 65_280]);
    let source = QuestionSource {
        qtypes: Some(mix),
        ..QuestionSource::default()
    };
    let plan = plan(&names(10), source);
    for worker in 0..2 {
        let mut counts = [0; 4];
        for choice in choices(&plan, worker).take(100_000) {
            counts[usize::from(choice.question.qtype()) - 1] += 1;
        }
        check(&counts, &[60_000.0, 30_000.0, 9_500.0, 500.0], "qtypes");
    }
}

#[test]
fn mixes_that_are_none_are_refused() {
    for text in [
        "",
        "A",
        "A=",
        "A=x",
        "A=0",
        "A=-1",
        "A=NaN",
        "A=inf",
        "NOPE=1",
        "A=1,A=2",
        "A=1,",
        "=1",
        "A=1e308,AAAA=1e308",
    ] {
        let error = text.parse::<QtypeMix>().unwrap_err();
        assert_eq!(error.setting, "qtypes", "{text}");
    }
    let many: Vec<String> = (1_000..1_256)
        .map(|qtype| format!("TYPE{qtype}=1"))
        .collect();
    assert!(many.join(",").parse::<QtypeMix>().is_err());
    let most: QtypeMix = many[..255].join(",").parse().unwrap();
    assert_eq!((most.pick(0), most.pick(u64::MAX)), (1, 255));
    assert_eq!(most.qtype(255), Some(1_254));
    assert_eq!(most.qtype(0), None);
}
