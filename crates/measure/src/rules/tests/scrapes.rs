//! Scrapes that disturbed the server: what observing costs is part of what was observed.

use crate::observation::SeriesKind;
use crate::observation::{ObservationMode, Observed, Recorder, Scrape};
use crate::rules::observed_situations::*;
use crate::rules::situations::*;

#[test]
fn scrapes_that_slow_the_server_down_are_told() {
    let mut record = in_time(10_000.0);
    let mut timeline = crate::timeline::Timeline::new();
    for bin in 0..1_000_u64 {
        // Each second the server stands still for 100 ms, as long as the scrape takes.
        let slow = bin % 100 < 10;
        let what = crate::timeline::Bin {
            due: 100,
            responses: 100,
            latency_us: 100 * if slow { 50_000 } else { 1_000 },
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
    let record = observing(record, &[recorder.finish()]);
    tells(&record, &["the scrapes slow it down"]);
    let all = met(&record);
    let cures = all.iter().flat_map(|it| &it.cures);
    assert!(
        cures.into_iter().any(|it| it.how.contains("mode=around")),
        "{all:#?}"
    );
}
