//! What a ramp showed, as text, JSON, CSV, and as the plot data of resperf.

use std::fmt::Write;

use measure::notation::{count, fraction, latency, rate, seconds};
use measure::ramp::{Point, Ramp, Stop};
use measure::scenario::DriverKind;

use crate::table::{Align, Table};
use crate::text::questions;

/// Points that the text shows; the other forms show all.
const ROWS_MAX: usize = 20;

/// The result for people, ending in a line break.
pub fn text(ramp: &Ramp) -> String {
    let mut text = header(ramp);
    let _ = write!(text, "\nRamp\n{}", result(ramp));
    if !ramp.points.is_empty() {
        let _ = write!(text, "\nOver time\n{}", points(ramp));
    }
    text.push('\n');
    for note in &ramp.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// The result as JSON, ending in a line break.
pub fn json(ramp: &Ramp) -> String {
    let mut json = ramp.to_json_pretty();
    json.push('\n');
    json
}

fn header(ramp: &Ramp) -> String {
    let (scenario, plan) = (&ramp.scenario, &ramp.plan);
    let kind = match (ramp.driver, ramp.self_test) {
        (DriverKind::Sim, _) => "SIMULATION in virtual time, ",
        (_, true) => "self-test, ",
        _ => "",
    };
    let target = scenario.server_name.as_ref().unwrap_or(&scenario.target);
    let mut text = format!(
        "throng {}: {kind}ramp of {target} over {}\n",
        ramp.throng_version, scenario.transport
    );
    let mut table = Table::new([Align::Left, Align::Left]);
    let then = match plan.sustain_ns {
        0 => String::new(),
        ns => format!(", then held for {}", seconds(ns)),
    };
    let load = format!(
        "0 to {} within {}{then}",
        rate(plan.rate_qps_max),
        seconds(plan.ramp_ns)
    );
    table.row(["load".into(), load]);
    table.row(["questions".into(), questions::questions(scenario)]);
    table.write_to(&mut text);
    text
}

/// Why a ramp ended, in words.
pub fn ended(stop: &Stop) -> String {
    match stop {
        Stop::Completed => "the ramp was complete".into(),
        Stop::Outstanding(queries) => format!("{} queries were outstanding", count(*queries)),
        Stop::Behind(queries) => format!(
            "{} queries that were due had not been sent: the generator fell behind",
            count(*queries)
        ),
        Stop::Lost(share) => format!("{} of the queries had no response", fraction(*share)),
        Stop::Questions => "the questions were used up".into(),
        Stop::Interrupted => "interrupted".into(),
    }
}

fn result(ramp: &Ramp) -> String {
    let mut table = Table::new([Align::Left, Align::Left]);
    let peak = match &ramp.peak {
        None => "no response".into(),
        Some(peak) => format!(
            "{} answered from {} on, while {} got no response",
            rate(peak.responses_qps),
            seconds(peak.start_ns),
            fraction(peak.lost_share)
        ),
    };
    table.row(["peak".into(), peak]);
    table.row(["ended because".into(), ended(&ramp.ended_by)]);
    let sums = format!(
        "{} queries, {} responses, {} lost",
        count(ramp.sent),
        count(ramp.responses),
        count(ramp.lost)
    );
    table.row(["in all".into(), sums]);
    table.row(["limited by".into(), ramp.verdict.limit.name().into()]);
    let mut text = String::new();
    table.write_to(&mut text);
    if let Some(evidence) = ramp.verdict.evidence.first() {
        let _ = writeln!(text, "  - {evidence}");
    }
    text
}

/// What is shown of each point.
pub(crate) const POINT_COLUMNS: [&str; 8] = [
    "from",
    "wanted",
    "sent",
    "responses",
    "failures",
    "p50",
    "p99",
    "lost",
];

fn points(ramp: &Ramp) -> String {
    let mut table = Table::new([Align::Right; POINT_COLUMNS.len()]);
    table.row(POINT_COLUMNS.map(str::to_owned));
    let step = ramp.points.len().div_ceil(ROWS_MAX);
    let is_peak = |point: &Point| {
        let peak = ramp.peak.as_ref();
        peak.is_some_and(|peak| peak.start_ns == point.start_ns)
    };
    for (index, point) in ramp.points.iter().enumerate() {
        if index % step != 0 && !is_peak(point) {
            continue;
        }
        let quantile = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| latency(ns as f64));
        table.row([
            seconds(point.start_ns),
            rate(point.target_qps),
            rate(point.sent_qps),
            rate(point.responses_qps),
            rate(point.failures_qps),
            quantile(point.latency_p50_ns),
            quantile(point.latency_p99_ns),
            fraction(point.lost_share),
        ]);
    }
    let mut text = String::new();
    table.write_to(&mut text);
    if step > 1 {
        let all = ramp.points.len();
        let _ = writeln!(text, "  every {step}. of {all} points, and the peak");
    }
    text
}

/// Name and meaning of every column of [`csv`], in order.
pub const CSV_COLUMNS: [(&str, &str); 11] = [
    ("start_s", "when the point began"),
    ("end_s", "when it ended"),
    ("target_qps", "rate wanted in its middle"),
    ("sent_qps", "queries sent a second"),
    ("responses_qps", "responses a second"),
    (
        "failures_qps",
        "responses a second outside of the goodput set",
    ),
    (
        "lost_percent",
        "queries of the point missing among its responses",
    ),
    (
        "service_mean_us",
        "mean time from sending to response; empty without one",
    ),
    (
        "latency_p50_us",
        "median latency from the scheduled instant",
    ),
    ("latency_p99_us", "its 99th percentile"),
    ("connections_per_second", "connections established a second"),
];

/// The points as CSV with a header line; lines end in CR LF as RFC 4180 says.
pub fn csv(ramp: &Ramp) -> String {
    let mut csv = format!("{}\r\n", CSV_COLUMNS.map(|(name, _)| name).join(","));
    let us = |ns: Option<f64>| ns.map_or_else(String::new, |ns| format!("{:.3}", ns / 1e3));
    for point in &ramp.points {
        let cells: [String; CSV_COLUMNS.len()] = [
            format!("{:.3}", point.start_ns as f64 / 1e9),
            format!("{:.3}", point.end_ns as f64 / 1e9),
            format!("{:.3}", point.target_qps),
            format!("{:.3}", point.sent_qps),
            format!("{:.3}", point.responses_qps),
            format!("{:.3}", point.failures_qps),
            format!("{:.4}", 100.0 * point.lost_share),
            us(point.service_mean_ns),
            us(point.latency_p50_ns.map(|ns| ns as f64)),
            us(point.latency_p99_ns.map(|ns| ns as f64)),
            format!("{:.3}", point.connections_per_second),
        ];
        let _ = write!(csv, "{}\r\n", cells.join(","));
    }
    csv
}

/// The points as resperf writes them for gnuplot, column for column.
pub fn plot(ramp: &Ramp) -> String {
    let mut text = String::from(
        "# time target_qps actual_qps responses_per_sec failures_per_sec avg_latency connections \
         conn_avg_latency\n",
    );
    for point in &ramp.points {
        let middle_s = (point.start_ns + point.end_ns) as f64 / 2e9;
        let _ = writeln!(
            text,
            "{middle_s:7.3} {:8.2} {:8.2} {:8.2} {:8.2} {:8.6} {:8.2} {:8.6}",
            point.target_qps,
            point.sent_qps,
            point.responses_qps,
            point.failures_qps,
            point.service_mean_ns.unwrap_or(0.0) / 1e9,
            point.connections_per_second,
            point.connect_mean_ns.unwrap_or(0.0) / 1e9,
        );
    }
    text
}
