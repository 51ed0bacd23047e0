//! Several runs: what varies between them, and which of them repeat each other.
//!
//! Runs whose scenarios agree in all that varies are repeats of one *cell*; their figures are shown
//! as median with the least and the greatest, each of which one run has measured. Means over
//! repeats are shown for counts only, beside their spread; percentiles of a cell come from its
//! merged histograms.

use measure::{Histogram, RunRecord};

mod dimension;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use dimension::{CLIENTS, Dimension, RATE, TRANSPORT, Value, server_cpu};
pub(crate) use table::{busiest, per_client};
pub use table::{csv, json};

/// A record with the file that keeps it.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name, as it is shown.
    pub file: String,
    /// What it holds.
    pub record: RunRecord,
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
}

/// Runs of the same scenario.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    /// One value for each of what varies.
    pub(crate) values: Vec<Value>,
    /// Positions of its runs.
    pub(crate) runs: Vec<usize>,
}

/// A figure of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// The middle one; of an even number the lower.
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
    pub(crate) mean: f64,
}

impl Spread {
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        Some(Spread {
            median: values[(values.len() - 1) / 2],
            min,
            max,
            mean: values.iter().sum::<f64>() / values.len() as f64,
        })
    }
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
        })
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

    /// The records of a cell.
    pub(crate) fn records<'a>(&'a self, cell: &'a Cell) -> impl Iterator<Item = &'a RunRecord> {
        cell.runs.iter().map(|run| &self.runs[*run].record)
    }

    /// A figure of the runs of a cell; none if none of them has it.
    pub(crate) fn spread(
        &self,
        cell: &Cell,
        figure: impl Fn(&RunRecord) -> Option<f64>,
    ) -> Option<Spread> {
        Spread::of(self.records(cell).filter_map(figure))
    }

    /// The median of the achieved rates of a cell.
    pub(crate) fn achieved(&self, cell: &Cell) -> f64 {
        let spread = self.spread(cell, |record| Some(record.achieved_qps()));
        spread.map_or(0.0, |it| it.median)
    }

    /// Latency of all runs of a cell.
    pub(crate) fn latency(&self, cell: &Cell) -> Histogram {
        let mut all = Histogram::on_demand();
        let each = self.records(cell);
        each.for_each(|record| all.merge(&record.total.distributions.latency));
        all
    }

    /// What tells a cell from the others: `DoT, 200 clients`, or the one name that is enough.
    pub(crate) fn name(&self, cell: &Cell) -> String {
        if let Some(at) = self.naming() {
            return self.varies[at].words(&cell.values[at]);
        }
        let each = self.varies.iter().zip(&cell.values);
        let words: Vec<String> = each.map(|(it, value)| it.words(value)).collect();
        match words.is_empty() {
            true => "all runs".to_owned(),
            false => words.join(", "),
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
