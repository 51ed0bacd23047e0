//! Several runs: what varies between them, and which of them repeat each other.
//!
//! Runs of which the same was asked are repeats of one *cell*: whatever else was asked is something
//! that varies. The figures of a cell are what [`OverRuns`] says, everywhere on a page; means over
//! repeats are shown for counts only. Runs that say nothing about the target have no part in them
//! (`RunRecord::why_left_out`), and are named.

use measure::left_out::rate_at_least;
use measure::{Histogram, Metric, OverRuns, RunRecord};

mod dimension;
mod settings;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use dimension::{CLIENTS, Dimension, RATE, TRANSPORT, Value, server_cpu};
pub use table::{csv, json, json_schema};

/// A record with the file that keeps it.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name, as it is shown.
    pub file: String,
    /// The record in the file.
    pub record: RunRecord,
    /// Why it says nothing about its target, if so.
    pub(crate) left_out: Option<String>,
}

impl Source {
    /// What the file of this name holds.
    pub fn new(file: impl Into<String>, record: RunRecord) -> Self {
        Source {
            file: file.into(),
            left_out: record.why_left_out(),
            record,
        }
    }
}

/// Runs put in order.
#[derive(Clone, Debug)]
pub struct Collection {
    /// In the order in which they were made.
    pub(crate) runs: Vec<Source>,
    /// What differs between cells.
    pub(crate) varies: Vec<Dimension>,
    /// In the order of their values.
    pub(crate) cells: Vec<Cell>,
    /// The experiment that they belong to, by its name.
    pub(crate) experiment: Option<String>,
}

/// Runs of the same scenario.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// One value for each of what varies.
    pub(crate) values: Vec<Value>,
    /// Positions of its runs.
    pub(crate) runs: Vec<usize>,
}

impl Collection {
    /// Puts runs in order; none without any.
    pub fn new(mut runs: Vec<Source>) -> Option<Collection> {
        if runs.is_empty() {
            return None;
        }
        let age = |source: &Source| (source.record.started_at.clone(), source.file.clone());
        runs.sort_by_cached_key(age);
        let records: Vec<&RunRecord> = runs.iter().map(|source| &source.record).collect();
        let varies = dimension::varying(&records);
        let mut cells: Vec<Cell> = Vec::new();
        for (run, record) in records.iter().enumerate() {
            let values: Vec<Value> = varies.iter().map(|it| it.value(record)).collect();
            match cells.iter_mut().find(|cell| cell.values == values) {
                Some(cell) => cell.runs.push(run),
                None => cells.push(Cell {
                    values,
                    runs: vec![run],
                }),
            }
        }
        let rank = |cell: &Cell| -> Vec<usize> {
            let each = varies.iter().zip(&cell.values);
            each.map(|(dimension, value)| dimension.rank(value))
                .collect()
        };
        cells.sort_by_cached_key(rank);
        Some(Collection {
            runs,
            varies,
            cells,
            experiment: None,
        })
    }

    /// The same as runs of an experiment, whose name is the title of their report.
    pub fn of_experiment(mut self, name: Option<String>) -> Collection {
        self.experiment = name;
        self
    }

    /// The only run, if there is no other.
    pub fn only(&self) -> Option<&Source> {
        match self.runs.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Every run in the order in which it was made.
    pub fn runs(&self) -> &[Source] {
        &self.runs
    }

    /// The runs of a cell.
    fn of_cell<'a>(&'a self, cell: &'a Cell) -> impl Iterator<Item = &'a Source> {
        cell.runs.iter().map(|run| &self.runs[*run])
    }

    /// The records of a cell.
    pub(crate) fn records<'a>(&'a self, cell: &'a Cell) -> impl Iterator<Item = &'a RunRecord> {
        self.of_cell(cell).map(|run| &run.record)
    }

    /// A metric of a cell; none if none of its runs that count measured it.
    pub(crate) fn metric(&self, cell: &Cell, metric: Metric) -> Option<OverRuns> {
        match metric.is_of_target() {
            true => metric.over_runs(self.counted(cell)),
            false => metric.over_runs(self.records(cell)),
        }
    }

    /// The records of a cell that say something about the target.
    pub(crate) fn counted<'a>(&'a self, cell: &'a Cell) -> impl Iterator<Item = &'a RunRecord> {
        let runs = self.of_cell(cell).filter(|run| run.left_out.is_none());
        runs.map(|run| &run.record)
    }

    /// What the target can do at least in a cell of which no run counts.
    pub(crate) fn rate_at_least(&self, cell: &Cell) -> Option<f64> {
        let runs = self.of_cell(cell);
        rate_at_least(runs.map(|run| (&run.record, run.left_out.as_ref())))
    }

    /// The runs that are left out of figures of the target, each with its file, and why.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = (&str, &str)> {
        let runs = self.runs.iter();
        runs.filter_map(|run| Some((run.file.as_str(), run.left_out.as_deref()?)))
    }

    /// A figure of a cell that is no metric; none if none of its runs that count has it.
    pub(crate) fn figure(
        &self,
        cell: &Cell,
        figure: impl Fn(&RunRecord) -> Option<f64>,
    ) -> Option<OverRuns> {
        OverRuns::median(self.counted(cell).filter_map(figure))
    }

    /// The achieved rate of a cell; none if none of its runs counts.
    pub(crate) fn achieved(&self, cell: &Cell) -> Option<f64> {
        Some(self.metric(cell, Metric::Qps)?.value)
    }

    /// The latencies of each run of a cell that counts.
    pub(crate) fn latencies<'a>(&'a self, cell: &'a Cell) -> Vec<&'a Histogram> {
        let each = self.counted(cell);
        each.map(|record| &record.total.distributions.latency)
            .collect()
    }

    /// What tells a cell from the others: `DoT, 200 clients`, or the one name that is enough.
    pub(crate) fn name(&self, cell: &Cell) -> String {
        if let Some(at) = self.naming() {
            return self.varies[at].words(&cell.values[at]);
        }
        let words = self.words(cell, None);
        match words.is_empty() {
            true => "all runs".to_owned(),
            false => words.join(", "),
        }
    }

    /// What a cell has of all that varies, but for one of them. What it lacks is not told, unless
    /// it has nothing else.
    pub(crate) fn words(&self, cell: &Cell, without: Option<usize>) -> Vec<String> {
        let each = self.varies.iter().zip(&cell.values).enumerate();
        let each = each.filter(|(at, _)| Some(*at) != without);
        let (missing, there): (Vec<_>, Vec<_>) =
            each.partition(|(_, (_, value))| **value == Value::None);
        let words = there.iter().map(|(_, (it, value))| it.words(value));
        match there.is_empty() {
            true => missing
                .iter()
                .map(|(_, (it, _))| format!("no {}", it.name))
                .collect(),
            false => words.collect(),
        }
    }

    /// The position of what by itself tells all cells apart in words.
    fn naming(&self) -> Option<usize> {
        let is_enough = |at: &usize| {
            let dimension = &self.varies[*at];
            dimension.is_words() && dimension.values.len() == self.cells.len()
        };
        (0..self.varies.len()).find(is_enough)
    }

    /// The position of what varies under that name.
    pub(crate) fn dimension(&self, name: &str) -> Option<usize> {
        self.varies.iter().position(|it| it.name == name)
    }

    /// The position of the number that most differs, for the x axis of charts; none where words
    /// tell all cells apart.
    pub(crate) fn axis(&self) -> Option<usize> {
        if self.naming().is_some() {
            return None;
        }
        let numeric = self
            .varies
            .iter()
            .enumerate()
            .filter(|(_, it)| it.is_numeric());
        // Of equals the first: clients before what follows from them.
        let most = numeric.max_by_key(|(at, it)| (it.values.len(), usize::MAX - at));
        most.map(|(at, _)| at)
    }

    /// True if some cell has several runs.
    pub(crate) fn has_repeats(&self) -> bool {
        self.cells.iter().any(|cell| cell.runs.len() > 1)
    }
}
