//! The random numbers of scripts, compared with their distributions.

use proto::Instant;
use script::{Script, Settings};

const DRAWS: usize = 20_000;

/// `DRAWS` values of an expression, from a fixed seed, sorted.
fn draws(expression: &str) -> Vec<f64> {
    let text = format!("function client(c) for i = 1, 1000 do print({expression}) end end");
    let settings = Settings {
        clients: (DRAWS / 1_000) as u32,
        seed: 42,
        ..Settings::default()
    };
    let mut script = Script::load(&text, "test.lua", settings).unwrap();
    let mut values = Vec::new();
    let mut actions = Vec::new();
    for client in 0..(DRAWS / 1_000) as u32 {
        script.start(client, Instant::ZERO);
        while script.step(&mut actions) {}
        let (lines, _) = script.take_printed();
        values.extend(lines.iter().map(|(_, line)| line.parse::<f64>().unwrap()));
    }
    assert_eq!(values.len(), DRAWS);
    values.sort_by(f64::total_cmp);
    values
}

/// Kolmogorov-Smirnov: the largest distance of the sorted values from the distribution, which is
/// below 1.63 / sqrt(n) in 99 of 100 samples.
fn check_distribution(values: &[f64], distribution: impl Fn(f64) -> f64) {
    let n = values.len() as f64;
    let distance = values.iter().enumerate().map(|(index, value)| {
        let expected = distribution(*value);
        let (low, high) = (index as f64 / n, (index + 1) as f64 / n);
        (expected - low).abs().max((high - expected).abs())
    });
    let largest = distance.fold(0.0, f64::max);
    assert!(largest < 1.63 / n.sqrt(), "{largest}");
}

#[test]
fn random_is_uniform() {
    check_distribution(&draws("c:random()"), |x| x);
}

#[test]
fn exponential_has_its_mean_and_shape() {
    check_distribution(&draws("c:exponential(3)"), |x| 1.0 - (-x / 3.0).exp());
}

#[test]
fn pareto_has_its_shape_and_scale() {
    check_distribution(&draws("c:pareto(1.5, 2)"), |x| 1.0 - (2.0 / x).powf(1.5));
}

#[test]
fn whole_numbers_are_equally_likely_and_within_their_bounds() {
    let values = draws("c:random(3, 7)");
    let counts = [3.0, 4.0, 5.0, 6.0, 7.0].map(|x| values.iter().filter(|it| **it == x).count());
    assert_eq!(counts.iter().sum::<usize>(), DRAWS);
    // Chi-square with 4 degrees of freedom: below 13.3 in 99 of 100 samples.
    let expected = DRAWS as f64 / 5.0;
    let square = counts.map(|count| (count as f64 - expected).powi(2) / expected);
    assert!(square.iter().sum::<f64>() < 13.3, "{counts:?}");
}
