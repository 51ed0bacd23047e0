//! Several runs as CSV and JSON: one row a run, with what varies and its figures.

use std::fmt::Write;

use measure::metric::TimeUnit;
use measure::{Limit, Metric, OverRuns};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema, schema_for};
use serde::Serialize;
use serde_json::{Map, Number, Value as Json};

use super::{Cell, Collection, Value};
use crate::csv;
use crate::document::Subject;

/// The column before the metrics, which have their times in seconds too.
const DURATION: &str = "duration_s";

/// One row a run, RFC 4180; the columns of what varies come after the file.
pub fn csv(collection: &Collection) -> String {
    let mut text = String::from("file,started_at");
    for dimension in &collection.varies {
        let _ = write!(text, ",{}", csv::field(&dimension.name));
    }
    let _ = write!(text, ",{DURATION}");
    for metric in Metric::ALL {
        let _ = write!(text, ",{}", metric.key(TimeUnit::Seconds));
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
        let _ = write!(text, ",{}", record.measured_seconds());
        for metric in Metric::ALL {
            let value = metric.of(record).map(|value| in_table(*metric, value));
            let value = value.map_or_else(String::new, |value| value.to_string());
            let _ = write!(text, ",{value}");
        }
        let _ = write!(text, ",{}\r\n", record.verdict.limit.name());
    }
    text
}

/// Version of the JSON form; changes when an older reader could misread it.
const REPORT_VERSION: &str = "1";

/// What `throng report --format json` prints of several records.
#[derive(Serialize, JsonSchema)]
struct Document<'a> {
    /// Version of this form.
    report_version: &'static str,
    /// Names of what differs between the runs.
    varies: Vec<&'a str>,
    /// Sets of runs that differ in nothing.
    cells: Vec<OfCell>,
    /// The runs, in the order of the records.
    runs: Vec<OfRun<'a>>,
    /// What the runs show together, and what limits that.
    remarks: Vec<OfRemark>,
}

/// Runs that differ in nothing.
#[derive(Serialize, JsonSchema)]
struct OfCell {
    /// The value of each name in `varies`.
    #[schemars(schema_with = "any_object")]
    values: Json,
    /// Number of runs.
    runs: usize,
    /// Median of each figure.
    #[schemars(schema_with = "figures_schema")]
    median: Json,
    /// Lowest value of each figure.
    #[schemars(schema_with = "figures_schema")]
    min: Json,
    /// Highest value of each figure.
    #[schemars(schema_with = "figures_schema")]
    max: Json,
}

/// A run.
#[derive(Serialize, JsonSchema)]
struct OfRun<'a> {
    /// File of its record.
    file: &'a str,
    /// When it started, RFC 3339.
    started_at: &'a str,
    /// The value of each name in `varies`.
    #[schemars(schema_with = "any_object")]
    values: Json,
    /// Its figures.
    #[schemars(schema_with = "figures_schema")]
    figures: Json,
    /// What limited it.
    limit: Limit,
    /// The signs of that.
    evidence: &'a [String],
}

/// A remark.
#[derive(Serialize, JsonSchema)]
struct OfRemark {
    /// What it is about.
    subject: Subject,
    /// The remark, a sentence or more.
    text: String,
}

fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}

/// Figures by their keys, which CSV has as columns; null where there is none.
fn figures_schema(_: &mut SchemaGenerator) -> Schema {
    let metrics = Metric::ALL.iter().map(|metric| {
        let schema = json_schema!({ "description": metric.meaning(), "type": ["number", "null"] });
        (metric.key(TimeUnit::Seconds), schema.to_value())
    });
    let duration = json_schema!({ "description": "Measured time", "type": "number" });
    let all = std::iter::once((DURATION.to_owned(), duration.to_value())).chain(metrics);
    let all: Map<String, Json> = all.collect();
    let names: Vec<String> = all.keys().cloned().collect();
    json_schema!({
        "type": "object",
        "properties": all,
        "required": names,
        "additionalProperties": false,
    })
}

/// The JSON Schema (2020-12) of [`json`].
pub fn json_schema() -> Json {
    schema_for!(Document<'_>).to_value()
}

/// All runs, the cells that they are repeats of, and the remarks, ending in a line break.
pub fn json(collection: &Collection) -> String {
    let varies = collection.varies.iter().map(|it| it.name.as_str());
    let runs = collection.runs.iter().map(|source| {
        let record = &source.record;
        let values = collection.varies.iter().map(|it| it.value(record));
        OfRun {
            file: &source.file,
            started_at: &record.started_at,
            values: values_of(collection, values),
            figures: figures(record.measured_seconds(), |metric| metric.of(record)),
            limit: record.verdict.limit,
            evidence: &record.verdict.evidence,
        }
    });
    let cells = collection
        .cells
        .iter()
        .map(|cell| of_cell(collection, cell));
    let remarks = crate::several::remarks(collection);
    let remarks = remarks.into_iter().map(|it| OfRemark {
        subject: it.subject,
        text: it.text,
    });
    let document = Document {
        report_version: REPORT_VERSION,
        varies: varies.collect(),
        cells: cells.collect(),
        runs: runs.collect(),
        remarks: remarks.collect(),
    };
    crate::json::pretty(&serde_json::to_value(document).unwrap_or_default())
}

fn of_cell(collection: &Collection, cell: &Cell) -> OfCell {
    let seconds = collection.figure(cell, |it| Some(it.measured_seconds()));
    let of = |choice: fn(OverRuns) -> f64| {
        let seconds = seconds.map_or(0.0, choice);
        figures(seconds, |it| collection.metric(cell, it).map(choice))
    };
    OfCell {
        values: values_of(collection, cell.values.iter().cloned()),
        runs: cell.runs.len(),
        median: of(|it| it.value),
        min: of(|it| it.min),
        max: of(|it| it.max),
    }
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

fn figures(seconds: f64, value: impl Fn(Metric) -> Option<f64>) -> Json {
    let each = Metric::ALL.iter().map(|metric| {
        let value = value(*metric).map(|value| in_table(*metric, value));
        let key = metric.key(TimeUnit::Seconds);
        (key, value.map_or(Json::Null, json_number))
    });
    let duration = (DURATION.to_owned(), json_number(seconds));
    let all = std::iter::once(duration).chain(each);
    Json::Object(all.collect::<Map<String, Json>>())
}

/// A value of a metric as it stands under its key.
fn in_table(metric: Metric, value: f64) -> f64 {
    metric.scaled(value, TimeUnit::Seconds)
}

/// A whole number as such.
fn json_number(number: f64) -> Json {
    match number.fract() == 0.0 && number.abs() < 9e15 {
        true => Json::from(number as i64),
        false => Number::from_f64(number).map_or(Json::Null, Json::Number),
    }
}
