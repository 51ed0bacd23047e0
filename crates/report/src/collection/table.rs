//! Several runs as CSV and JSON: one row a run, with what varies and its figures.

use std::fmt::Write;

use measure::RunRecord;
use serde_json::{Map, Number, Value as Json, json};

use super::{Cell, Collection, Value};
use crate::csv;
use crate::document::{Remark, Subject};

/// Figures of a run by name, with the unit in it; none where there is none.
type Figure = fn(&RunRecord) -> Option<f64>;

fn p(record: &RunRecord, share: f64) -> Option<f64> {
    let ns = record.total.distributions.latency.percentile(share)?;
    Some(ns as f64 / 1e9)
}

const FIGURES: [(&str, Figure); 17] = [
    ("duration_s", |it| Some(it.measured_seconds())),
    ("offered_queries", |it| Some(it.total.counts.offered as f64)),
    ("sent_queries", |it| Some(it.total.counts.sent as f64)),
    ("responses", |it| Some(it.total.counts.responses as f64)),
    ("lost_queries", |it| Some(it.total.counts.lost() as f64)),
    ("goodput_responses", |it| Some(it.goodput() as f64)),
    ("offered_qps", |it| Some(it.offered_qps())),
    ("achieved_qps", |it| Some(it.achieved_qps())),
    ("goodput_qps", |it| Some(it.goodput_qps())),
    ("qps_per_client", |it| Some(per_client(it))),
    ("mean_in_flight_queries", |it| Some(it.mean_in_flight())),
    ("latency_mean_s", |it| {
        it.total.distributions.latency.mean_ns().map(|ns| ns / 1e9)
    }),
    ("latency_p50_s", |it| p(it, 0.5)),
    ("latency_p95_s", |it| p(it, 0.95)),
    ("latency_p99_s", |it| p(it, 0.99)),
    ("latency_p99.9_s", |it| p(it, 0.999)),
    ("generator_cpu_share", |it| Some(busiest(it))),
];

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
            let value = figure(record).map_or_else(String::new, |value| value.to_string());
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
            "figures": figures(|figure| figure(record)),
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
    let of = |choice: fn(super::Spread) -> f64| {
        figures(|figure| collection.spread(cell, figure).map(choice))
    };
    json!({
        "values": values_of(collection, cell.values.iter().cloned()),
        "runs": cell.runs.len(),
        "median": of(|it| it.median),
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
