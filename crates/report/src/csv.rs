//! The run record as CSV (RFC 4180): one row per interval and a last row named `total`.
//!
//! Columns are where the row stands and every metric, under its key with times in microseconds
//! (`throng schema metrics`). Decimal point, no thousands separators, empty where there is no value
//! (a percentile of no responses). The rates of an interval are over its length, those of the total
//! over the measured window: responses that came in the drain are counted in the total, and not in
//! its rate. Of a record that was merged by force the last row is named `total, merged by force`:
//! its rates never existed.

use std::borrow::Cow;

use measure::metric::{Metric, TimeUnit, Unit};
use measure::{Interval, RunRecord, SteadyState};

/// Columns before the metrics: position from 0 or `total`; start and end in seconds since the start
/// of the measured run.
const POSITION: [&str; 3] = ["interval", "start_s", "end_s"];
/// The column after them: beginning, sustained or drain; empty where there are too few intervals to
/// tell.
const PART: &str = "part";

/// The names of all columns, in order.
pub fn columns() -> impl Iterator<Item = String> {
    let metrics = Metric::ALL.iter();
    let metrics = metrics.map(|metric| metric.key(TimeUnit::Microseconds));
    let position = POSITION.into_iter().map(str::to_owned);
    position.chain(metrics).chain([PART.to_owned()])
}

/// The record as CSV with a header line; lines end in CR LF as RFC 4180 says.
pub fn render(record: &RunRecord) -> String {
    let mut csv = String::new();
    push_row(&mut csv, columns());
    let course = SteadyState::in_record(record);
    for (index, interval) in record.intervals.iter().enumerate() {
        let part = part(record, course.as_ref(), interval);
        let figure = |metric: Metric| metric.of_part(record, interval);
        push_figures(&mut csv, (&index.to_string(), part), interval, figure);
    }
    let name = match record.merged_by_force.is_empty() {
        true => "total",
        false => "total, merged by force",
    };
    let figure = |metric: Metric| metric.of(record);
    push_figures(&mut csv, (name, ""), &record.total, figure);
    csv
}

/// Which part of the run an interval belongs to.
fn part(record: &RunRecord, course: Option<&SteadyState>, interval: &Interval) -> &'static str {
    match course.and_then(|course| course.sustained.as_ref()) {
        _ if interval.start_ns >= record.measured_ns => "drain",
        Some(sustained) if interval.start_ns < sustained.start_ns => "beginning",
        Some(_) => "sustained",
        None => "",
    }
}

fn push_figures(
    csv: &mut String,
    (name, part): (&str, &str),
    interval: &Interval,
    figure: impl Fn(Metric) -> Option<f64>,
) {
    let times = [interval.start_ns, interval.end_ns].map(seconds);
    let cells = Metric::ALL
        .iter()
        .map(|metric| cell(*metric, figure(*metric)));
    let position = std::iter::once(name.to_owned()).chain(times);
    push_row(csv, position.chain(cells).chain([part.to_owned()]));
}

/// A figure with as many decimals as its unit has use for.
fn cell(metric: Metric, value: Option<f64>) -> String {
    let places = match metric.unit() {
        Unit::Count | Unit::Octets => 0,
        Unit::PerSecond | Unit::Nanoseconds | Unit::Times | Unit::Number => 3,
        Unit::Share => 6,
        Unit::Seconds => 9,
    };
    value.map_or_else(String::new, |value| {
        let value = metric.scaled(value, TimeUnit::Microseconds);
        format!("{value:.places$}")
    })
}

pub(crate) fn push_row(csv: &mut String, cells: impl Iterator<Item = String>) {
    let cells: Vec<String> = cells.map(|cell| field(&cell)).collect();
    csv.push_str(&cells.join(","));
    csv.push_str("\r\n");
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// A field, in quotes where it needs them (RFC 4180). Text that a spreadsheet would take for a
/// formula gets an apostrophe before it.
pub fn field(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t']) && text.parse::<f64>().is_err();
    let text = match is_formula {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    };
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn text_is_quoted_where_a_reader_of_csv_or_a_spreadsheet_needs_it() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("=1+1", "'=1+1"),
            ("@SUM(A1,A2)", "\"'@SUM(A1,A2)\""),
            ("-2.5", "-2.5"),
            ("+a", "'+a"),
        ] {
            assert_eq!(field(text), expected);
        }
    }

    #[test]
    fn every_row_has_a_cell_for_every_column() {
        let csv = render(&example::dot());
        let rows: Vec<&str> = csv.split_terminator("\r\n").collect();
        assert_eq!(rows.len(), 1 + 3 + 1);
        for row in rows {
            assert_eq!(row.split(',').count(), columns().count(), "{row}");
        }
        // A name with a comma in it is one cell.
        let mut record = example::dot();
        record.merged_by_force = vec!["the targets differ".to_owned()];
        let csv = render(&record);
        let row = csv.split_terminator("\r\n").last().expect("has rows");
        let rest = row.strip_prefix("\"total, merged by force\",");
        let cells = rest.map(|rest| 1 + rest.split(',').count());
        assert_eq!(cells, Some(columns().count()), "{row}");
    }

    #[test]
    fn rows_hold_intervals_in_order_and_then_the_total() {
        let mut record = example::dot();
        record.responder = Some(measure::ResponderFacts {
            accepts_failed: 7,
            ..measure::ResponderFacts::default()
        });
        let csv = render(&record);
        let rows: Vec<&str> = csv.split_terminator("\r\n").collect();
        assert!(rows[0].starts_with("interval,start_s,end_s,offered_queries,offered_qps,"));
        // Shares of truncated responses and of each RCODE.
        let rcodes = format!(
            "0.600000,0.000000,0.100000,0.300000,{}",
            "0.000000,".repeat(16)
        );
        let first = "0,0.000000000,1.000000000,1000,1000.000,1000,1000.000,1000,1000.000,900,\
            900.000,1.000000,0,0,0,0,0,0,0.000000,600,0,300,100,0,0,0,";
        let first = format!(
            "{first}0.000000,{rcodes}0,0,0,40000,56000,0,0,0,0,0,5.050,,0,0,0,120,121,0,0,0,0,0,0,\
             0,,0.250000000,250.000,,1000.000,5050.000,1350.000,"
        );
        assert!(rows[1].starts_with(&first), "{}", rows[1]);
        let total = "total,0.000000000,3.000000000,3020,1510.000,3012,1506.000,3000,1000.000,2700,\
            900.000,0.993377,5,7,0,0,8,20,0.006623,1800,0,900,300,0,0,2,";
        let total = format!("{total}0.000667,{rcodes}3,1,4,120480,168000,0,0,0,0,0,");
        assert!(rows[4].starts_with(&total), "{}", rows[4]);
        // No timestamps: three parts with eight figures each, and those missing.
        let path = ",".repeat(3 * 8 + 1);
        // Nor was it observed, and nothing was done to its target.
        let observed = ",".repeat(8);
        let events = ",".repeat(4);
        // Three intervals have no quarters.
        let drifts = ",".repeat(4);
        let set_up = format!(
            ",10.000{path},250.000,2500.000,,,5185.175,5472.256,5472.256,1.000000{drifts},7,\
             {observed}{events}"
        );
        assert!(rows[4].ends_with(&set_up), "{}", rows[4]);
    }

    #[test]
    fn interval_without_responses_has_empty_cells_and_no_zero_latency() {
        let mut record = example::dot();
        record.intervals = vec![Interval::default()];
        let csv = render(&record);
        let mut rows = csv.lines().map(|row| row.split(',').collect::<Vec<_>>());
        let cpu = rows
            .next()
            .and_then(|row| row.iter().position(|it| *it == "cpu_s"));
        let cpu = cpu.expect("is a column");
        let row = rows.next().expect("has a row");
        assert_eq!(row[cpu], "0.000000000");
        assert!(row[cpu + 1..].iter().all(|cell| cell.is_empty()), "{row:?}");
    }

    #[test]
    fn run_without_queries_counts_its_connections() {
        let record = example::without_queries();
        let csv = render(&record);
        let mut rows = csv.lines().map(|row| row.split(',').collect::<Vec<_>>());
        let names = rows.next().expect("has a header");
        let column = |name| {
            names
                .iter()
                .position(|each| *each == name)
                .expect("is there")
        };
        let wanted = [
            ("sent_queries", ["0", "0", "0"]),
            ("connections_attempted", ["500", "500", "1000"]),
            ("connections_opened", ["494", "494", "988"]),
            ("connections_failed", ["6", "6", "12"]),
            ("handshakes_full", ["494", "494", "988"]),
            ("connect_p50_us", ["250.000"; 3]),
        ];
        let rows: Vec<_> = rows.collect();
        for (name, cells) in wanted {
            let found: Vec<_> = rows.iter().map(|row| row[column(name)]).collect();
            assert_eq!(found, cells, "{name}");
        }
    }
}
