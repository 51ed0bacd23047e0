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
