//! The cells of an experiment as JSON.

use std::collections::BTreeMap;

use measure::statistics::ConfidenceInterval;
use schemars::JsonSchema;
use serde::Serialize;

use super::{LEVEL, Measured, ResultsOf};

/// What `throng experiment results --format json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Document<'a> {
    /// Folder of the records.
    folder: String,
    /// The metric; `throng schema metrics` has the unit of all figures.
    metric: &'a str,
    /// The cells, in the order of the experiment's file.
    cells: Vec<Cell<'a>>,
    /// What else is known of networks, servers, ceilings and A/A cells, one sentence each.
    notes: Vec<&'a str>,
}

/// A cell.
#[derive(Serialize, JsonSchema)]
struct Cell<'a> {
    /// What is varied, with its value.
    levels: BTreeMap<&'a str, &'a str>,
    /// The figures of the server; none where no run counts.
    figures: Option<Figures<'a>>,
    /// Its runs.
    runs: usize,
    /// Runs that say nothing about the server.
    left_out: Vec<LeftOutRun<'a>>,
    /// What the server can do at least, queries a second, where none of the runs counts.
    at_least_qps: Option<f64>,
}

/// What was measured in a cell.
#[derive(Serialize, JsonSchema)]
struct Figures<'a> {
    /// Mean of each start of the server.
    starts: &'a [f64],
    /// Mean of those.
    mean: f64,
    /// Interval of the mean; none with one start.
    interval: Option<Interval>,
    /// Standard deviation that starts add, beyond what runs do.
    between_starts: f64,
    /// Standard deviation of runs after the same start; none with one run a start.
    within_starts: Option<f64>,
    /// Smallest difference detectable with 80 % power; none with one start.
    detectable: Option<f64>,
}

/// An interval of confidence.
#[derive(Serialize, JsonSchema)]
struct Interval {
    /// Its lower end.
    low: f64,
    /// Its upper end.
    high: f64,
    /// Its coverage, 0 to 1.
    level: f64,
}

/// A run that is left out.
#[derive(Serialize, JsonSchema)]
struct LeftOutRun<'a> {
    /// Its name.
    run: &'a str,
    /// Why it says nothing about the server.
    why: &'a str,
}

impl ResultsOf<'_> {
    /// For programs.
    pub(crate) fn json(&self) -> String {
        let remarks = self.remarks();
        let document = Document {
            folder: self.folder.display().to_string(),
            metric: self.metric.name(),
            cells: self.measured.iter().map(cell).collect(),
            notes: remarks.lines().collect(),
        };
        report::json::pretty(&serde_json::to_value(document).unwrap_or_default())
    }
}

fn cell(measured: &Measured) -> Cell<'_> {
    let levels = measured.levels.iter();
    let left_out = measured.left_out.runs.iter();
    Cell {
        levels: levels
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect(),
        figures: measured.values.as_ref().map(|values| Figures {
            starts: &values.means,
            mean: values.mean,
            interval: values.interval.as_ref().map(interval),
            between_starts: values.between_starts,
            within_starts: values.within_starts,
            detectable: values.detectable(LEVEL),
        }),
        runs: measured.left_out.all,
        left_out: left_out.map(|(run, why)| LeftOutRun { run, why }).collect(),
        at_least_qps: measured.left_out.at_least,
    }
}

fn interval(of: &ConfidenceInterval) -> Interval {
    Interval {
        low: of.low,
        high: of.high,
        level: of.level,
    }
}
