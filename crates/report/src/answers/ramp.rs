//! The report on a ramp: what was sent and answered, and how latency went, over the rate wanted.

use measure::Ramp;
use measure::notation::{count, fraction, latency, per_second, rate, seconds};
use measure::ramp::Point as RampPoint;

use super::{blank, section};
use crate::chart::{Axis, Chart, Form, Point, Scale, Series, Unit};
use crate::document::{Banner, Block, Column, Document, Section, Sheet, Tile};
use crate::ramp::{POINT_COLUMNS, ended};
use crate::run::transport;

/// One value of a point.
type Of = fn(&RampPoint) -> Option<f64>;

pub(super) fn document(ramp: &Ramp) -> Document {
    let scenario = &ramp.scenario;
    let target = scenario.server_name.as_ref().unwrap_or(&scenario.target);
    let over = scenario.transport.to_string();
    let title = format!("Ramp of {target} over {}", transport(&over));
    let subtitle = format!(
        "{} \u{b7} 0 to {} within {} \u{b7} ended because {}",
        ramp.started_at,
        rate(ramp.plan.rate_qps_max),
        seconds(ramp.plan.ramp_ns),
        ended(&ramp.ended_by)
    );
    let mut document = blank(title, subtitle, &ramp.notes);
    document.verdict = Some(Banner {
        limit: ramp.verdict.limit.name(),
        meaning: ramp.verdict.limit.meaning(),
        evidence: ramp.verdict.evidence.clone(),
    });
    document.tiles = tiles(ramp);
    let charts = [throughput(ramp), latencies(ramp)];
    let charts = charts.into_iter().filter(Chart::is_worthwhile);
    let blocks = charts.map(Block::from).collect();
    document
        .sections
        .push(Section::new("Over the rate", blocks));
    document.sections.push(section("Points", points(ramp)));
    document
        .sections
        .retain(|section| !section.blocks.is_empty());
    document
}

fn tiles(ramp: &Ramp) -> Vec<Tile> {
    let peak = ramp.peak.as_ref();
    let peak = peak.map(|peak| Tile {
        label: "Peak",
        value: rate(peak.responses_qps),
        note: format!("{} without response", fraction(peak.lost_share)),
    });
    let lost = Tile {
        label: "Lost",
        value: count(ramp.lost),
        note: format!("of {} queries", count(ramp.sent)),
    };
    peak.into_iter().chain([lost]).collect()
}

fn chart(ramp: &Ramp, (id, title): (&str, &str), y: Axis, lines: &[(&str, Of)]) -> Chart {
    let series = lines.iter().enumerate().map(|(look, (name, of))| {
        let points = ramp.points.iter();
        let points = points.filter_map(|it| Some(Point::new(it.target_qps, of(it)?)));
        Series {
            name: (*name).into(),
            form: Form::Line,
            look,
            points: points.collect(),
        }
    });
    let series: Vec<Series> = series.collect();
    let mut columns = vec![Column::figures("wanted")];
    columns.extend(lines.iter().map(|(name, _)| Column::figures(*name)));
    let mut sheet = Sheet::new(&format!("{id}-figures"), title, columns);
    let unit = y.unit;
    for point in &ramp.points {
        let cell = |of: &Of| match (of(point), unit) {
            (None, _) => "-".to_owned(),
            (Some(value), Unit::Nanoseconds) => latency(value),
            (Some(value), _) => per_second(value),
        };
        let mut row = vec![per_second(point.target_qps)];
        row.extend(lines.iter().map(|(_, of)| cell(of)));
        sheet.rows.push(row);
    }
    Chart {
        id: id.into(),
        title: title.into(),
        description: String::new(),
        x: Axis::new(
            "rate wanted, queries a second",
            Scale::FromZero,
            Unit::Number,
        ),
        y,
        series,
        marks: Vec::new(),
        sheet,
        notes: Vec::new(),
    }
}

fn throughput(ramp: &Ramp) -> Chart {
    let y = Axis::new("a second", Scale::FromZero, Unit::Number);
    let lines: [(&str, Of); 3] = [
        ("sent", |it| Some(it.sent_qps)),
        ("responses", |it| Some(it.responses_qps)),
        ("failures", |it| Some(it.failures_qps)),
    ];
    let mut chart = chart(ramp, ("ramp-rates", "Sent and answered"), y, &lines);
    chart.description =
        "Responses where they came; failures are outside of the goodput set.".into();
    chart
}

fn latencies(ramp: &Ramp) -> Chart {
    let y = Axis::new("latency (log scale)", Scale::Log, Unit::Nanoseconds);
    let lines: [(&str, Of); 2] = [
        ("p50", |it| it.latency_p50_ns.map(|ns| ns as f64)),
        ("p99", |it| it.latency_p99_ns.map(|ns| ns as f64)),
    ];
    let mut chart = chart(ramp, ("ramp-latency", "Latency"), y, &lines);
    chart.description = "Latency from the instant at which a query was due.".into();
    chart
}

fn points(ramp: &Ramp) -> Sheet {
    let columns = POINT_COLUMNS.map(Column::figures).into();
    let mut sheet = Sheet::new("points", "Points", columns);
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), |ns| latency(ns as f64));
    for point in &ramp.points {
        sheet.rows.push(vec![
            seconds(point.start_ns),
            rate(point.target_qps),
            rate(point.sent_qps),
            rate(point.responses_qps),
            rate(point.failures_qps),
            time(point.latency_p50_ns),
            time(point.latency_p99_ns),
            fraction(point.lost_share),
        ]);
    }
    sheet
}
