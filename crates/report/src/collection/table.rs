//! Several runs as CSV and JSON: one row a run, with what varies and its figures.

use std::fmt::Write;

use measure::metric::Unit;
use measure::{Metric, OverRuns, RunRecord};
use serde_json::{Map, Number, Value as Json, json};

use super::{Cell, Collection, Value};
use crate::csv;
use crate::document::{Remark, Subject};

/// A figure of a run, and of several.
#[derive(Clone, Copy)]
enum Figure {
    /// A metric, times in seconds.
    Of(Metric),
    /// Anything else, of several runs the median.
    Other(fn(&RunRecord) -> f64),
}

/// Figures by name, with the unit in it.
const FIGURES: [(&str, Figure); 18] = [
    ("duration_s", Figure::Other(RunRecord::measured_seconds)),
    (
        "offered_queries",
        Figure::Other(|it| it.total.counts.offered as f64),
    ),
    (
        "sent_queries",
        Figure::Other(|it| it.total.counts.sent as f64),
    ),
    (
        "responses",
        Figure::Other(|it| it.total.counts.responses as f64),
    ),
    (
        "lost_queries",
        Figure::Other(|it| it.total.counts.lost() as f64),
    ),
    ("goodput_responses", Figure::Other(|it| it.goodput() as f64)),
    ("offered_qps", Figure::Of(Metric::Offered)),
    ("achieved_qps", Figure::Of(Metric::Qps)),
    ("goodput_qps", Figure::Of(Metric::Goodput)),
    ("lost_share", Figure::Of(Metric::Loss)),
    ("qps_per_client", Figure::Other(per_client)),
    (
        "mean_in_flight_queries",
        Figure::Other(RunRecord::mean_in_flight),
    ),
    ("latency_mean_s", Figure::Of(Metric::Mean)),
    ("latency_p50_s", Figure::Of(Metric::P50)),
    ("latency_p95_s", Figure::Of(Metric::P95)),
    ("latency_p99_s", Figure::Of(Metric::P99)),
    ("latency_p99.9_s", Figure::Of(Metric::P999)),
    ("generator_cpu_share", Figure::Other(busiest)),
];

impl Figure {
    /// The figure over runs of one cell; none if none of them has it.
    fn over<'a>(self, runs: impl Iterator<Item = &'a RunRecord>) -> Option<OverRuns> {
        match self {
            Figure::Other(of) => OverRuns::median(runs.map(of)),
            Figure::Of(metric) => {
                let unit = match metric.unit() {
                    Unit::Nanoseconds => 1e9,
                    Unit::PerSecond | Unit::Share => 1.0,
                };
                metric.over_runs(runs).map(|it| OverRuns {
                    value: it.value / unit,
                    min: it.min / unit,
                    max: it.max / unit,
                })
            }
        }
    }

    /// The figure of one run.
    fn of(self, record: &RunRecord) -> Option<f64> {
        self.over(std::iter::once(record)).map(|it| it.value)
    }
}

/// Responses a second and client.
pub(crate) fn per_client(record: &RunRecord) -> f64 {
    record.achieved_qps() / record.scenario.clients.max(1) as f64
}

/// Share of its CPU that the busiest worker used.
pub(crate) fn busiest(record: &RunRecord) -> f64 {
    let shares = record.workers.iter().map(|worker| worker.busy_share());
    shares.fold(0.0, f64::max)
}

/// One row a run, RFC 4180; the columns of what varies come after the file.
pub fn csv(collection: &Collection) -> String {
    let mut text = String::from("file,started_at");
    for dimension in &collection.varies {
        let _ = write!(text, ",{}", csv::field(&dimension.name));
    }
    for (name, _) in FIGURES {
        let _ = write!(text, ",{name}");
    }
    text.push_str(",limit\r\n");
    for source in &collection.runs {
        let record = &source.record;
        let _ = write!(
            text,
            "{},{}",
            csv::field(&source.file),
            csv::field(&record.started_at)
        );
        for dimension in &collection.varies {
            let value = match dimension.value(record) {
                Value::None => String::new(),
                Value::Number(number) => number.to_string(),
                Value::Text(text) => text,
            };
            let _ = write!(text, ",{}", csv::field(&value));
        }
        for (_, figure) in FIGURES {
            let value = figure
                .of(record)
                .map_or_else(String::new, |value| value.to_string());
            let _ = write!(text, ",{value}");
        }
        let _ = write!(text, ",{}\r\n", record.verdict.limit.name());
    }
    text
}

/// Version of the JSON form; changes when an older reader could misread it.
const REPORT_VERSION: &str = "1";

/// All runs, the cells that they are repeats of, and the remarks, ending in a line break.
pub fn json(collection: &Collection) -> String {
    let varies: Vec<&str> = collection
        .varies
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let runs = collection.runs.iter().map(|source| {
        let record = &source.record;
        let values = collection.varies.iter().map(|it| it.value(record));
        json!({
            "file": source.file,
            "started_at": record.started_at,
            "values": values_of(collection, values),
            "figures": figures(|figure| figure.of(record)),
            "limit": record.verdict.limit.name(),
            "evidence": record.verdict.evidence,
        })
    });
    let cells = collection
        .cells
        .iter()
        .map(|cell| of_cell(collection, cell));
    let remarks = crate::several::remarks(collection);
    let value = json!({
        "report_version": REPORT_VERSION,
        "varies": varies,
        "cells": cells.collect::<Vec<Json>>(),
        "runs": runs.collect::<Vec<Json>>(),
        "remarks": remarks.iter().map(remark).collect::<Vec<Json>>(),
    });
    crate::json::pretty(&value)
}

fn of_cell(collection: &Collection, cell: &Cell) -> Json {
    let of = |choice: fn(OverRuns) -> f64| {
        figures(|figure| figure.over(collection.records(cell)).map(choice))
    };
    json!({
        "values": values_of(collection, cell.values.iter().cloned()),
        "runs": cell.runs.len(),
        "median": of(|it| it.value),
        "min": of(|it| it.min),
        "max": of(|it| it.max),
    })
}

fn values_of(collection: &Collection, values: impl Iterator<Item = Value>) -> Json {
    let names = collection.varies.iter().map(|it| it.name.clone());
    let values = values.map(|value| match value {
        Value::None => Json::Null,
        Value::Number(number) => json_number(number),
        Value::Text(text) => Json::String(text),
    });
    Json::Object(names.zip(values).collect())
}

fn figures(value: impl Fn(Figure) -> Option<f64>) -> Json {
    let each = FIGURES.iter().map(|(name, figure)| {
        let value = value(*figure).map_or(Json::Null, json_number);
        ((*name).to_owned(), value)
    });
    Json::Object(each.collect::<Map<String, Json>>())
}

/// A whole number as such.
fn json_number(number: f64) -> Json {
    match number.fract() == 0.0 && number.abs() < 9e15 {
        true => Json::from(number as i64),
        false => Number::from_f64(number).map_or(Json::Null, Json::Number),
    }
}

fn remark(remark: &Remark) -> Json {
    let subject = match remark.subject {
        Subject::Shows => "shows",
        Subject::Limits => "limits",
        Subject::Advice => "advice",
    };
    json!({ "subject": subject, "text": remark.text })
}
