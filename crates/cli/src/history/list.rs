//! The list of runs.

use std::collections::{BTreeMap, BTreeSet};

use history::{Entry, FIXED_FACTS};
use measure::metric::Metric;
use report::table::{Align, Table};
use schemars::JsonSchema;
use serde::Serialize;

use super::{csv_line, csv_name};
use crate::args::Format;

/// Figures that the text shows; CSV has the main ones, JSON all.
const COLUMNS: [Metric; 4] = [Metric::Qps, Metric::P50, Metric::P99, Metric::Loss];

pub(super) fn render(entries: &[Entry], format: Format) -> String {
    match format {
        Format::Json => json(entries),
        Format::Csv => csv(entries),
        // Not offered for lists.
        Format::Text | Format::Markdown => text(entries),
    }
}

/// The labels that the runs have, in the order of their names.
fn labels(entries: &[Entry]) -> Vec<String> {
    let names = entries.iter().flat_map(|entry| entry.facts.keys());
    let is_label = |name: &&String| !FIXED_FACTS.contains(&name.as_str());
    let labels: BTreeSet<&String> = names.filter(is_label).collect();
    labels.into_iter().cloned().collect()
}

fn fact(entry: &Entry, name: &str) -> String {
    entry.facts.get(name).cloned().unwrap_or_default()
}

fn figure(entry: &Entry, metric: Metric) -> Option<f64> {
    entry.figures.get(metric.name()).copied()
}

/// A run in what `throng history list --format json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Run<'a> {
    /// Its number.
    run: i64,
    /// File of its record, from the folder of the records on.
    record: &'a str,
    /// What it was, by name, with its labels.
    facts: &'a BTreeMap<String, String>,
    /// What it measured, by the names of the metrics.
    figures: &'a BTreeMap<String, f64>,
}

fn json(entries: &[Entry]) -> String {
    let runs = entries.iter().map(|entry| Run {
        run: entry.id,
        record: &entry.file,
        facts: &entry.facts,
        figures: &entry.figures,
    });
    let runs: Vec<Run<'_>> = runs.collect();
    report::json::pretty(&serde_json::to_value(runs).unwrap_or_default())
}

fn csv(entries: &[Entry]) -> String {
    let labels = labels(entries);
    let mut head = vec!["run".to_owned(), "record".to_owned()];
    head.extend(FIXED_FACTS.map(str::to_owned));
    head.extend(labels.iter().cloned());
    head.extend(Metric::main().map(csv_name));
    let mut text = csv_line(&head);
    for entry in entries {
        let mut cells = vec![entry.id.to_string(), entry.file.clone()];
        cells.extend(FIXED_FACTS.map(|name| fact(entry, name)));
        cells.extend(labels.iter().map(|name| fact(entry, name)));
        let figures = Metric::main().map(|metric| figure(entry, metric));
        cells.extend(figures.map(|it| it.map_or_else(String::new, |value| value.to_string())));
        text.push_str(&csv_line(&cells));
    }
    text
}

fn text(entries: &[Entry]) -> String {
    use Align::{Left, Right};
    let mut table = Table::new([
        Right, Left, Left, Right, Left, Left, Right, Right, Right, Right, Left,
    ]);
    let head = [
        "run",
        "started",
        "transport",
        "clients",
        "load",
        "limit",
        "qps",
        "p50",
        "p99",
        "loss",
        "labels",
    ];
    table.row(head.map(str::to_owned));
    let labels = labels(entries);
    for entry in entries {
        let [qps, p50, p99, loss] = COLUMNS.map(|metric| {
            let value = figure(entry, metric);
            value.map_or_else(|| "-".to_owned(), |value| metric.show(value))
        });
        let own = labels.iter().filter_map(|name| {
            let value = entry.facts.get(name)?;
            Some(format!("{name}={value}"))
        });
        table.row([
            entry.id.to_string(),
            to_the_second(&fact(entry, "started")),
            fact(entry, "transport"),
            fact(entry, "clients"),
            fact(entry, "arrival"),
            fact(entry, "limit"),
            qps,
            p50,
            p99,
            loss,
            own.collect::<Vec<_>>().join(" "),
        ]);
    }
    let mut text = String::new();
    table.write_to(&mut text);
    text
}

/// As people read it.
fn to_the_second(rfc3339: &str) -> String {
    let seconds = rfc3339.get(..19).unwrap_or(rfc3339);
    seconds.replace('T', " ")
}
