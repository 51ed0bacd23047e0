use measure::RunRecord;

use super::*;
use crate::{example, html, run};

/// An hour of a run in intervals of a second, in one of which nothing was answered.
fn hour() -> RunRecord {
    const SECOND: u64 = 1_000_000_000;
    let mut record = example::udp_self_test();
    record.intervals = (0..3_600)
        .map(|at| {
            let mut interval = record.intervals[(at % 2) as usize].clone();
            interval.start_ns = at * SECOND;
            interval.end_ns = (at + 1) * SECOND;
            if at == 1_801 {
                let missed = interval.counts.responses;
                interval.counts.responses = 0;
                interval.counts.rcodes = Default::default();
                interval.counts.timeouts = missed;
                interval.distributions.latency.clear();
                interval.distributions.service.clear();
            }
            let spread = 1_000_000 + 977 * at;
            interval.distributions.service.record_many(spread, 10);
            interval.distributions.latency.record_many(spread, 10);
            interval.counts.offered += 10;
            interval.counts.sent += 10;
            interval.counts.responses += 10;
            interval.counts.rcodes.by_rcode[0] += 10;
            interval
        })
        .collect();
    record.total = Interval::total(&record.intervals);
    record.measured_ns = 3_600 * SECOND;
    record
}

#[test]
fn an_hour_keeps_its_excursions_in_a_page_below_two_megabytes() {
    let record = hour();
    let timeline = Timeline::new(&record, "");
    let chart = timeline.rates();
    let completed = &chart.series[1];
    assert!(
        completed.points.len() <= POINTS_MAX,
        "{}",
        completed.points.len()
    );
    let least = completed
        .points
        .iter()
        .filter_map(|point| Some(point.band?.0));
    assert_eq!(least.fold(f64::INFINITY, f64::min), 10.0);
    assert!(
        chart.notes[0].contains("10 intervals together"),
        "{:?}",
        chart.notes
    );
    assert!(chart.sheet.rows.len() <= ROWS_MAX);
    let page = html::render(&run::document(&record, "hour.json"));
    assert!(page.len() < 2 << 20, "{} octets", page.len());
}

#[test]
fn bins_hold_every_interval_of_the_window_once() {
    let record = hour();
    for most in [1, 7, 30, 360, 3_600, 10_000] {
        let bins = bins(&record, most);
        assert!(bins.len() <= most.max(1), "{} of {most}", bins.len());
        let held: usize = bins.iter().map(|bin| bin.each.len()).sum();
        assert_eq!(held, 3_600);
    }
}

#[test]
fn a_stub_at_the_end_goes_with_the_interval_before_it() {
    let mut record = example::udp_self_test();
    let mut stub = record.intervals[1].clone();
    stub.start_ns = 2_000_000_000;
    stub.end_ns = 2_000_000_500;
    record.measured_ns = stub.end_ns;
    record.intervals.push(stub);
    let bins = bins(&record, 100);
    assert_eq!(bins.len(), 2);
    assert_eq!(bins[1].each.len(), 2);
    assert!(
        bins[1]
            .together
            .per_second(bins[1].together.counts.responses)
            < 50_000.0
    );
}

#[test]
fn a_run_without_losses_has_no_chart_of_them() {
    let titles = |record: &RunRecord| -> Vec<String> {
        let charts = Timeline::new(record, "").queries();
        charts.into_iter().map(|chart| chart.title).collect()
    };
    let offered = "Offered and achieved rate";
    let clean = titles(&example::udp_self_test());
    assert!(clean.iter().any(|title| title == offered), "{clean:?}");
    assert!(
        !clean.iter().any(|title| title.starts_with("Lost")),
        "{clean:?}"
    );
    let lossy = titles(&example::dot());
    assert!(!lossy.iter().any(|title| title == offered), "{lossy:?}");
    assert!(
        lossy.iter().any(|title| title.starts_with("Lost")),
        "{lossy:?}"
    );
}

/// Three seconds of 1,000 queries a second, of which those due in the second one time out after the
/// end, while the generator itself came late to them.
fn stall() -> RunRecord {
    let mut record = example::udp_self_test();
    record.measured_ns = 3_000_000_000;
    let mut timeline = measure::Timeline::new();
    for at in 0..300 {
        let is_stalled = (100..200).contains(&at);
        let bin = measure::timeline::Bin {
            due: 10,
            sent: if is_stalled { 0 } else { 10 },
            responses: if is_stalled { 0 } else { 10 },
            ..Default::default()
        };
        timeline.add(at * 10_000_000, &bin);
        timeline.lose(at * 10_000_000, if is_stalled { 10 } else { 0 });
    }
    record.timeline = Some(timeline);
    // As intervals count it: all losses in the drain.
    record.total.counts.timeouts = 1_000;
    record
}

#[test]
fn losses_are_shown_where_the_queries_were_due_and_a_stall_offers_what_it_should() {
    let record = stall();
    let timeline = Timeline::new(&record, "");
    let chart = timeline.rates();
    let lost = &chart.series[2];
    assert_eq!(lost.name, "lost");
    let at = |seconds: f64, series: &Series| {
        let points = series.points.iter();
        let near = points.min_by(|a, b| {
            let apart = |point: &Point| (point.x - seconds).abs();
            apart(a).total_cmp(&apart(b))
        });
        near.and_then(|point| point.y)
    };
    assert_eq!(at(0.5, lost), Some(0.0));
    assert_eq!(at(1.5, lost), Some(1_000.0));
    assert_eq!(at(2.5, lost), Some(0.0));
    let losses = timeline.losses().expect("there are some");
    assert_eq!(at(1.5, &losses.series[0]), Some(1_000.0));
    assert!(
        losses
            .description
            .contains("1,000 queries lost: 1,000 timed out")
    );
    assert!(losses.notes[0].contains("were due"), "{:?}", losses.notes);
    assert!(chart.sheet.rows.len() <= ROWS_MAX && !chart.sheet.rows.is_empty());
    for row in &chart.sheet.rows {
        assert_eq!(row.len(), chart.sheet.columns.len(), "{row:?}");
    }
    // A record without a timeline says what it cannot show.
    let mut old = stall();
    old.timeline = None;
    let notes = Timeline::new(&old, "").rates().notes;
    assert!(
        notes.iter().any(|note| note.contains("does not say")),
        "{notes:?}"
    );
}

#[test]
fn a_constant_load_is_offered_throughout_a_stall() {
    let mut record = stall();
    record.scenario.arrival = Arrival::Open {
        rate_qps: 1_000.0,
        process: measure::Process::Constant,
        burst: 1,
    };
    let timeline = Timeline::new(&record, "");
    let chart = timeline.offered().expect("the load is open");
    let offered = chart.series[0].points.iter().map(|point| point.y);
    let offered: Vec<Option<f64>> = offered.collect();
    assert!(offered.len() > 10);
    assert!(
        offered.iter().all(|qps| *qps == Some(1_000.0)),
        "{offered:?}"
    );
}
