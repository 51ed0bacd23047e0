use std::time::Duration;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

/// Due instants of one client within `span`, in seconds.
fn due_instants(text: &str, shape: Option<&Shape>, client: u32, span: Duration) -> Vec<f64> {
    let arrival = parse(text).unwrap();
    let mut pace = ClientPace::new(7, client);
    let mut due = pace.first_due(&arrival, shape, Instant::ZERO);
    let mut instants = Vec::new();
    while due < Instant::ZERO + span {
        instants.push(due.as_nanos() as f64 / 1e9);
        due = pace.next_due(&arrival, shape, due);
    }
    instants
}

fn gaps(instants: &[f64]) -> Vec<f64> {
    instants.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The Kolmogorov-Smirnov statistic times the root of the sample's size; 1.95 has p = 0.001.
fn kolmogorov_smirnov(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = |(index, value): (usize, &f64)| {
        let expected = cdf(*value);
        let (below, above) = (index as f64 / n, (index + 1) as f64 / n);
        (expected - below).abs().max((above - expected).abs())
    };
    let most = sample.iter().enumerate().map(distance).fold(0.0, f64::max);
    most * n.sqrt()
}

#[test]
fn constant_gaps_are_equal_and_clients_begin_apart() {
    let instants = due_instants("constant:2", None, 0, Duration::from_secs(100));
    assert_eq!(instants.len(), 200);
    assert!(gaps(&instants).iter().all(|gap| (gap - 0.5).abs() < 1e-6));
    let first = |client| due_instants("constant:2", None, client, Duration::from_secs(1))[0];
    let firsts: Vec<f64> = (0..2_000).map(|client| first(client) / 0.5).collect();
    assert!(kolmogorov_smirnov(firsts, |x| x.clamp(0.0, 1.0)) < 1.95);
}

#[test]
fn clients_that_take_turns_ask_at_equal_distances_together() {
    let of = |client| due_instants("turns:2,of=4", None, client, Duration::from_secs(2));
    let mut all: Vec<f64> = (0..4).flat_map(of).collect();
    all.sort_by(f64::total_cmp);
    for (number, due) in all.iter().enumerate() {
        let expected = (number as f64 + 1.0) / 8.0;
        assert!((due - expected).abs() < 1e-6, "{number}: {due}");
    }
    assert!(all.len() >= 15);
    assert_eq!(parse("turns:2,of=4").unwrap().to_string(), "turns:2,of=4");
}

#[test]
fn poisson_gaps_are_exponential_for_one_client_and_over_all_clients() {
    let instants = due_instants("poisson:5", None, 3, HOUR);
    let exponential = |x: f64| 1.0 - (-5.0 * x).exp();
    assert!(kolmogorov_smirnov(gaps(&instants), exponential) < 1.95);
    let first = |client| due_instants("poisson:5", None, client, HOUR)[0];
    let firsts = (0..1_000).map(first).collect();
    assert!(kolmogorov_smirnov(firsts, exponential) < 1.95);
}

#[test]
fn bursts_come_together_and_apart_from_each_other() {
    let instants = due_instants("bursts:8,every=20s", None, 1, 10 * HOUR);
    let together = gaps(&instants).iter().filter(|gap| **gap == 0.0).count();
    let bursts: Vec<f64> = gaps(&instants)
        .into_iter()
        .filter(|gap| *gap > 0.0)
        .collect();
    assert_eq!(together / 7, bursts.len() + 1);
    assert!(kolmogorov_smirnov(bursts, |x| 1.0 - (-x / 20.0).exp()) < 1.95);
}

#[test]
fn on_off_clients_are_active_as_often_as_their_periods_say() {
    let arrival = parse("onoff:10,on=2s,off=8s,shape=1.9").unwrap();
    assert_eq!(arrival.rate_qps(), Some(2.0));
    let each = |client| {
        let all = due_instants("onoff:10,on=2s,off=8s,shape=1.9", None, client, HOUR);
        all.len() as f64 / 3600.0
    };
    let mean = (0..400).map(each).sum::<f64>() / 400.0;
    assert!((mean - 2.0).abs() < 0.15, "{mean} queries a second");
    let instants = due_instants("onoff:10,on=2s,off=8s,shape=1.9", None, 5, 10 * HOUR);
    let pauses = gaps(&instants).iter().filter(|gap| **gap > 3.0).count();
    assert!(pauses > 1_000, "{pauses} pauses in 3,600 periods");
}

#[test]
fn same_client_asks_at_the_same_instants_whoever_simulates_it() {
    for text in [
        "constant:3",
        "poisson:3",
        "bursts:3,every=1s",
        "onoff:3,on=1s,off=1s",
    ] {
        let once = due_instants(text, None, 17, Duration::from_secs(60));
        assert_eq!(once, due_instants(text, None, 17, Duration::from_secs(60)));
        assert_ne!(once, due_instants(text, None, 18, Duration::from_secs(60)));
    }
}

#[test]
fn shaped_rate_follows_the_shape() {
    let shape = Shape::parse("steps:0s=1,100s=0,200s=4").unwrap();
    let instants = due_instants("poisson:50", Some(&shape), 0, Duration::from_secs(300));
    let within = |from: f64, to: f64| {
        let inside = instants.iter().filter(|at| (from..to).contains(*at));
        inside.count()
    };
    assert!((4_500..5_500).contains(&within(0.0, 100.0)));
    assert_eq!(within(100.0, 200.0), 0);
    assert!((19_000..21_000).contains(&within(200.0, 300.0)));
}

#[test]
fn thinking_clients_wait_after_the_response() {
    let arrival = parse("closed:1,think=2s").unwrap();
    let mut pace = ClientPace::new(1, 1);
    let answered = Instant::from_nanos(5_000_000_000);
    let due = pace.next_due(&arrival, None, answered);
    assert_eq!(due, Instant::from_nanos(7_000_000_000));
    let arrival = parse("closed:1,think=exp(2s)").unwrap();
    let think = |_| {
        let due = pace.next_due(&arrival, None, Instant::ZERO);
        due.as_nanos() as f64 / 1e9
    };
    let times = (0..5_000).map(think).collect();
    assert!(kolmogorov_smirnov(times, |x| 1.0 - (-x / 2.0).exp()) < 1.95);
}

#[test]
fn what_is_not_understood_is_named() {
    for (text, what) in [
        ("twice", "`twice` is not a way of sending queries"),
        ("constant:x", "`x` is not a rate"),
        ("constant:", "`` is not a rate"),
        ("bursts:8", "`every=TIME` is missing"),
        ("bursts:0,every=1s", "a burst needs a query"),
        ("bursts:8,every=0s", "`0s` is not a time above zero"),
        ("closed:0", "at least one query at a time is needed"),
        ("closed:1,pause=2s", "`closed` has no option `pause`"),
        ("closed:1,think", "`think` is not NAME=VALUE"),
        (
            "onoff:5,on=1s,off=1s,shape=1",
            "a Pareto distribution with an exponent of 1 or less has no mean",
        ),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.what, what, "{text}");
        assert!(!error.hint.is_empty());
    }
}

#[test]
fn arrivals_are_written_as_they_are_read() {
    for text in [
        "constant:2",
        "poisson:0.5",
        "onoff:5,on=2s,off=30s,shape=1.5",
        "bursts:8,every=0.5s",
        "full:32",
        "closed:4,think=1s",
        "closed:1,think=exp(2s)",
    ] {
        assert_eq!(parse(text).unwrap().to_string(), text);
    }
}

#[test]
fn pace_of_a_client_is_small() {
    assert!(size_of::<ClientPace>() <= 32);
}
