//! `--timestamps kernel`: where the time of a query goes.

use measure::{DriverKind, RunRecord, StampSource};
use testing::folder::Folder;

use crate::process::{measured, throng};
use crate::stopped;

const MS: u64 = 1_000_000;

/// The parts add up to the latency of the responses whose stamps are known.
fn check_sum(record: &RunRecord) {
    let distributions = &record.total.distributions;
    let (path, stamps) = (&distributions.path, record.total.counts.stamps);
    let without = stamps.missing + stamps.implausible;
    assert_eq!(
        path.network.count() + without,
        record.total.counts.responses
    );
    let sum: u128 = path.parts().iter().map(|(_, part)| part.sum_ns()).sum();
    match without {
        0 => assert_eq!(sum, distributions.latency.sum_ns()),
        _ => assert!(sum < distributions.latency.sum_ns()),
    }
}

#[test]
fn wire_and_server_take_what_the_server_takes() {
    let flags = "--timestamps kernel --delay 5ms --rate 500 --duration 600ms --interval 200ms";
    let record = measured(flags);
    assert!(record.scenario.timestamps == Some(StampSource::Kernel) && !record.scenario.offload);
    assert_eq!(record.driver, DriverKind::Epoll);
    check_sum(&record);
    let path = &record.total.distributions.path;
    assert!(path.network.count() > 0, "{:?}", record.total.counts.stamps);
    assert!(path.network.min_ns() >= Some(5 * MS), "{path:?}");
    assert!(
        record
            .intervals
            .iter()
            .any(|interval| !interval.distributions.path.is_empty())
    );
}

#[test]
fn a_generator_that_was_stopped_shows_in_its_own_part() {
    let record = stopped::record();
    check_sum(&record);
    let path = &record.total.distributions.path;
    // Queries were due while it was stopped.
    assert!(path.generator.max_ns() > Some(300 * MS), "{path:?}");
    assert!(path.network.min_ns() >= Some(5 * MS), "{path:?}");
}

#[test]
fn all_forms_show_where_the_time_went() {
    let folder = Folder::new("timestamps-forms");
    let record = folder.path("record.json");
    let flags = "run --quiet --timestamps kernel --rate 500 --duration 300ms";
    let text = throng(&format!("{flags} --details --record {record}")).succeeded();
    assert!(text.contains("\nWhere the time went\n"), "{text}");
    assert!(
        text.contains("in the generator  wire and server  for the reader\n"),
        "{text}"
    );
    assert!(text.contains("offload was off"), "{text}");
    let csv = throng(&format!("report {record} --format csv")).succeeded();
    let column = csv
        .lines()
        .next()
        .unwrap()
        .split(',')
        .position(|name| name == "wire_p50_us");
    let total = csv.lines().find(|line| line.starts_with("total,")).unwrap();
    let value: f64 = total
        .split(',')
        .nth(column.unwrap())
        .unwrap()
        .parse()
        .unwrap();
    assert!(value > 0.0, "{csv}");
    let html = folder.path("report.html");
    throng(&format!("report {record} -o {html}")).succeeded();
    let html = std::fs::read_to_string(html).unwrap();
    assert!(html.contains("Where the time went") && html.contains("wire and server"));
}

#[test]
fn conditions_are_on_the_parts_of_the_latency() {
    let run = "run --quiet --rate 200 --duration 300ms --delay 5ms";
    let stamped = format!("{run} --timestamps kernel");
    let met = "--require wire.p50>=4ms --require reader.max<1m --fail-if generator.p99>1m";
    throng(&format!("{stamped} {met}")).succeeded();
    let failed = throng(&format!("{stamped} --fail-if wire.p50>4ms"));
    assert!(failed.stderr.contains("wire.p50 is "), "{}", failed.stderr);
    failed.ended_with(3);
}

#[test]
fn hardware_that_stamps_nothing_is_refused_before_anything_is_sent() {
    let (error, hint) = throng("run --timestamps hardware").refused();
    let what = "--timestamps hardware: lo has no clock (PTP hardware clock)";
    assert!(error.contains(what), "{error}");
    assert!(hint.contains("--timestamps kernel"), "{hint}");
}
