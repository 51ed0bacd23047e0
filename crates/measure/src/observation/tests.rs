//! Bounded however long, nothing lost of growth and cost, and three states that are not zero.

use super::*;

fn observed(name: &str, kind: SeriesKind, value: f64) -> Observed {
    Observed {
        name: name.to_owned(),
        unit: "queries".to_owned(),
        kind,
        value,
        is_stale: false,
    }
}

fn scrape(at_ns: i64) -> Scrape {
    Scrape {
        octets: 10,
        cpu_ns: 3,
        ..Scrape::between(at_ns - 50, at_ns + 50)
    }
}

fn recorder() -> Recorder {
    Recorder::new(
        "bind=http://[::1]:1/",
        "bind",
        ObservationMode::During,
        1_000,
    )
}

#[test]
fn a_scrape_is_known_by_its_middle_and_half_of_what_it_took() {
    let scrape = Scrape::between(-100, 51);
    assert_eq!(
        (scrape.at_ns, scrape.bound_ns, scrape.took_ns),
        (-25, 76, 151)
    );
}

#[test]
fn counters_that_run_backwards_are_reset_and_what_they_counted_adds_up() {
    let mut recorder = recorder();
    for (index, value) in [100.0, 130.0, 7.0, 9.0].into_iter().enumerate() {
        let value = observed("queries", SeriesKind::Counter, value);
        recorder.push(scrape(index as i64 * 1_000), vec![value]);
    }
    let observation = recorder.finish();
    let series = observation.series("queries").unwrap();
    assert_eq!((series.growth, series.resets), (Some(39.0), 1));
    assert_eq!(series.samples[2], Sample::Reset { reset: 7.0 });
    assert_eq!((series.lowest, series.highest), (Some(7.0), Some(130.0)));
    assert_eq!(observation.check(), Ok(()));
}

#[test]
fn missing_stale_and_reset_are_told_apart_and_none_is_zero() {
    let mut recorder = recorder();
    recorder.push(scrape(0), vec![observed("a", SeriesKind::Counter, 1.0)]);
    recorder.fail(scrape(1_000), "the endpoint is closed");
    let stale = Observed {
        is_stale: true,
        ..observed("a", SeriesKind::Counter, 1.0)
    };
    recorder.push(scrape(2_000), vec![stale]);
    recorder.push(
        scrape(3_000),
        vec![observed("a", SeriesKind::Counter, f64::NAN)],
    );
    recorder.push(scrape(4_000), vec![observed("a", SeriesKind::Counter, 0.0)]);
    let observation = recorder.finish();
    let expected = [
        Sample::Value(1.0),
        Sample::Without(NoValue::Missing),
        Sample::Without(NoValue::Stale),
        Sample::Without(NoValue::Missing),
        Sample::Reset { reset: 0.0 },
    ];
    assert_eq!(observation.series[0].samples, expected);
    assert_eq!(observation.scrapes[1].failed, 1);
    assert_eq!(observation.notes[0].text, "the endpoint is closed");
    let json = serde_json::to_string(&observation).unwrap();
    assert!(
        json.contains(r#"[1.0,"missing","stale","missing",{"reset":0.0}]"#),
        "{json}"
    );
    assert_eq!(
        serde_json::from_str::<Observation>(&json).unwrap(),
        observation
    );
}

#[test]
fn a_day_of_scrapes_is_bounded_and_loses_no_growth_and_no_cost() {
    let mut recorder = recorder();
    let scrapes = 86_400;
    for index in 0..scrapes {
        let value = observed("queries", SeriesKind::Counter, index as f64 * 5.0);
        recorder.push(scrape(index * 1_000), vec![value]);
    }
    let observation = recorder.finish();
    assert!(observation.scrapes.len() <= SCRAPES_MAX);
    assert_eq!(observation.scrapes_merged, 128);
    assert_eq!(observation.check(), Ok(()));
    let series = &observation.series[0];
    assert_eq!(series.growth, Some((scrapes - 1) as f64 * 5.0));
    assert_eq!(series.samples[0], Sample::Value(0.0));
    let last = series.samples.last().and_then(|last| last.value());
    assert_eq!(last, Some((scrapes - 1) as f64 * 5.0));
    let cost = observation.cost();
    assert_eq!((cost.number, cost.octets), (86_400, 864_000));
    assert!(
        observation
            .notes
            .iter()
            .any(|note| note.text.contains("merged"))
    );
}

#[test]
fn extremes_of_merged_samples_and_a_reset_among_them_are_kept() {
    let mut recorder = recorder().with_values_max(16);
    for index in 0..400_i64 {
        let level = if index == 201 { 1e6 } else { 1.0 };
        let count = if index < 301 { index } else { index - 301 };
        recorder.push(
            scrape(index * 1_000),
            vec![
                observed("level", SeriesKind::Gauge, level),
                observed("count", SeriesKind::Counter, count as f64),
            ],
        );
    }
    let observation = recorder.finish();
    assert_eq!(observation.series("level").unwrap().highest, Some(1e6));
    let count = observation.series("count").unwrap();
    assert_eq!((count.resets, count.growth), (1, Some(300.0 + 98.0)));
    let resets = count.samples.iter();
    assert_eq!(
        resets
            .filter(|it| matches!(it, Sample::Reset { .. }))
            .count(),
        1
    );
}

#[test]
fn series_and_notes_beyond_the_most_are_counted() {
    let mut recorder = recorder();
    let many = (0..SERIES_MAX + 3).map(|it| observed(&it.to_string(), SeriesKind::Gauge, 1.0));
    recorder.push(scrape(0), many.collect());
    for index in 0..NOTES_MAX + 4 {
        recorder.note(0, format!("note {index}"));
    }
    let observation = recorder.finish();
    assert_eq!(observation.series.len(), SERIES_MAX);
    assert_eq!(observation.overflow.values, 3);
    // One note is that of the series.
    assert_eq!(observation.notes.len(), NOTES_MAX);
    assert_eq!(observation.overflow.notes, 5);
}

#[test]
fn what_servers_say_of_themselves_adds_no_lines() {
    let mut recorder = recorder();
    recorder.note(0, "refused: no\nVerdict: all is well".to_owned());
    recorder.facts().complete_with(ServerFacts {
        version: Some("9.18\nVerdict: all is well".to_owned()),
        ..ServerFacts::default()
    });
    let observation = recorder.finish();
    let line = "9.18\\nVerdict: all is well";
    assert_eq!(observation.facts.version.as_deref(), Some(line));
    assert_eq!(
        observation.notes[0].text,
        "refused: no\\nVerdict: all is well"
    );
}

#[test]
fn series_that_appear_later_were_missing_before() {
    let mut recorder = recorder();
    recorder.push(scrape(0), vec![observed("a", SeriesKind::Gauge, 1.0)]);
    recorder.push(scrape(1_000), vec![observed("b", SeriesKind::Gauge, 2.0)]);
    let mut observation = recorder.finish();
    let missing = Sample::Without(NoValue::Missing);
    assert_eq!(observation.series[0].samples, [Sample::Value(1.0), missing]);
    assert_eq!(observation.series[1].samples, [missing, Sample::Value(2.0)]);
    observation.move_origin(400);
    assert_eq!(observation.scrapes[1].at_ns, 600);
}
