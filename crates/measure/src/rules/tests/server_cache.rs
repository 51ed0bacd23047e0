//! The cache of an observed resolver.

use crate::observation::SeriesKind;
use crate::rules::observed_situations::*;
use crate::rules::situations::*;

#[test]
fn observed_figures_have_names() {
    let hits = [
        ("cache.hits", SeriesKind::Counter, 9.0),
        ("cache.misses", SeriesKind::Counter, 1.0),
    ];
    let observed = [program(1.5, 0.9, &[]), server(10_000.0, &hits)];
    let record = observing(in_time(10_000.0), &observed);
    let value = |name: &str| {
        let mut all = crate::Metric::ALL.iter();
        let metric = all.find(|it| it.name() == name).unwrap();
        metric.of(&record).unwrap()
    };
    assert!((value("server.cpu") - 0.75).abs() < 1e-3);
    assert!((value("server.cpus") - 1.5).abs() < 1e-3);
    assert!((value("server.cpu_per_query") - 150_000.0).abs() < 200.0);
    assert!((value("server.queries") - 100_000.0).abs() < 1e-6);
    assert!((value("server.cache_hits") - 0.9).abs() < 1e-9);
    told(&record, "cache of the server").ok("90.0 %", "");
}
