//! Scrapes that disturbed the server: what observing costs is part of what was observed.

use crate::observation::SeriesKind;
use crate::observation::{ObservationMode, Observed, Recorder, Scrape};
use crate::rules::observed_situations::*;
use crate::rules::situations::*;

/// A run whose server is scraped each second for 100 ms, and is slow in bins of 10 ms.
fn scraped(is_slow: impl Fn(u64) -> bool) -> RunRecord {
    let mut record = in_time(10_000.0);
    let mut timeline = crate::timeline::Timeline::new();
    for bin in 0..1_000_u64 {
        let what = crate::timeline::Bin {
            due: 100,
            responses: 100,
            latency_us: 100 * if is_slow(bin) { 50_000 } else { 1_000 },
            ..crate::timeline::Bin::default()
        };
        timeline.add(bin * SECOND / 100, &what);
    }
    record.timeline = Some(timeline);
    let mut recorder = Recorder::new("bind=x", "bind", ObservationMode::During, SECOND);
    for second in 0..10 {
        let at_ns = second * SECOND as i64;
        let value = Observed {
            name: "queries".to_owned(),
            unit: "queries".to_owned(),
            kind: SeriesKind::Counter,
            value: second as f64 * 11_111.1,
            is_stale: false,
        };
        recorder.push(Scrape::between(at_ns, at_ns + 100 * MS as i64), vec![value]);
    }
    observing(record, &[recorder.finish()])
}

#[test]
fn scrapes_that_slow_the_server_down_are_told() {
    // Each second the server stalls for as long as the scrape takes.
    let record = scraped(|bin| bin % 100 < 10);
    tells(&record, &["the scrapes slow it down"]);
    let all = met(&record);
    let cures = all.iter().flat_map(|it| &it.cures);
    assert!(
        cures.into_iter().any(|it| it.how.contains("mode=around")),
        "{all:#?}"
    );
}

#[test]
fn what_has_a_period_of_its_own_is_no_scrape() {
    // A quota stops the server from each second's begin on, and four times more in it.
    let record = scraped(|bin| bin % 20 < 10);
    let all = met(&record);
    let said = |it: &crate::doctor::Diagnosis| it.seen.contains("the scrapes slow it down");
    assert!(!all.iter().any(said), "{all:#?}");
    // Now and then something else is slow.
    let record = scraped(|bin| bin % 100 < 10 || bin % 331 == 50);
    tells(&record, &["the scrapes slow it down"]);
}
