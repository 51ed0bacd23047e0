//! The cells of a command's runs, for readers that show which of them are measured.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The cells of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matrix {
    /// What is varied.
    pub factors: Vec<String>,
    /// Each cell, in the order of the experiment.
    pub cells: Vec<Cell>,
    /// Runs that each cell gets.
    pub repetitions: u32,
}

/// A combination of values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// The value of each factor.
    pub values: Vec<String>,
    /// Runs of it that were made before this command.
    pub made_before: u32,
}

/// Which cell of a matrix a run measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellOf {
    /// All cells.
    pub matrix: Arc<Matrix>,
    /// The position of this one among them, from 0.
    pub cell: usize,
    /// Which run of its cell it is, from 1. One that is made again replaces the one before it.
    pub repetition: u32,
}

/// Responses a second of the runs that have ended, by cell and repetition.
#[derive(Debug, Default)]
pub struct Measured(BTreeMap<(usize, u32), f64>);

impl Measured {
    /// Adds a run.
    pub(super) fn add(&mut self, of: &CellOf, responses_qps: f64) {
        self.0.insert((of.cell, of.repetition), responses_qps);
    }

    /// Those of a cell.
    pub fn rates(&self, cell: usize) -> impl Iterator<Item = f64> {
        self.0.range((cell, 0)..=(cell, u32::MAX)).map(|it| *it.1)
    }
}
