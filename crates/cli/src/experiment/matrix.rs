//! The cells of an experiment as views show them.

use std::collections::BTreeMap;
use std::sync::Arc;

use lab::live::{Cell, CellOf, Matrix};

use super::cells::{TWIN, Turn, is_of_twin};
use super::file::Experiment;

/// The cells, and which of them each turn measures.
pub(super) struct Cells {
    matrix: Arc<Matrix>,
    /// The position of each, by its values.
    positions: BTreeMap<Vec<String>, usize>,
}

impl Cells {
    /// Those of these turns, in the order of the experiment's file; a cell's twin follows all
    /// others.
    pub(super) fn of(
        experiment: &Experiment,
        turns: &[Turn],
        is_made: impl Fn(&Turn) -> bool,
    ) -> Cells {
        let has_twins = turns.iter().any(|turn| is_of_twin(&turn.levels));
        let mut factors: Vec<String> = experiment.axes.iter().map(|it| it.name.clone()).collect();
        factors.extend(has_twins.then(|| TWIN.to_owned()));
        let order = |turn: &Turn| {
            let positions = experiment.axes.iter().zip(&turn.levels);
            let positions = positions.map(|(axis, (_, value))| {
                axis.levels.iter().position(|level| level.label == *value)
            });
            (is_of_twin(&turn.levels), positions.collect::<Vec<_>>())
        };
        let mut made: BTreeMap<_, Cell> = BTreeMap::new();
        for turn in turns {
            let cell = made.entry(order(turn)).or_insert_with(|| Cell {
                values: values(turn, factors.len()),
                made_before: 0,
            });
            cell.made_before += u32::from(is_made(turn));
        }
        let cells: Vec<Cell> = made.into_values().collect();
        let positions = cells.iter().enumerate();
        let positions = positions.map(|(at, cell)| (cell.values.clone(), at));
        Cells {
            positions: positions.collect(),
            matrix: Arc::new(Matrix {
                factors,
                cells,
                repetitions: experiment.repetitions,
            }),
        }
    }

    /// The cell of a turn.
    pub(super) fn cell_of(&self, turn: &Turn) -> Option<CellOf> {
        let cell = self.positions.get(&values(turn, self.matrix.factors.len()));
        cell.map(|cell| CellOf {
            matrix: Arc::clone(&self.matrix),
            cell: *cell,
            repetition: turn.repetition,
        })
    }
}

/// The value of each factor; none of `aa` for a cell that is no twin.
fn values(turn: &Turn, factors: usize) -> Vec<String> {
    let mut values: Vec<String> = turn.levels.iter().map(|(_, value)| value.clone()).collect();
    values.resize(factors, String::new());
    values
}
