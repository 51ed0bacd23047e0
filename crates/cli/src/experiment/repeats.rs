//! Which starts are made once more: those with a run that says nothing about its server, for the
//! host may be quiet the next time. Where no run of a cell says anything because the generator is
//! its limit, the next one would not either.

use std::collections::BTreeMap;
use std::path::Path;

use measure::{Limit, RunRecord};

use super::cells::{Levels, Turn};
use super::file::Experiment;
use super::folder::Folder;
use super::results::records;
use crate::failure::Failure;

/// The starts among `turns` that are to be made once more; none is twice.
pub(super) fn of<'a>(
    turns: &'a [Turn],
    experiment: &Experiment,
    folder: &Folder,
) -> Result<Vec<&'a Turn>, Failure> {
    let mut cells: BTreeMap<&Levels, Cell<'_>> = BTreeMap::new();
    for turn in turns {
        let cell = cells.entry(&turn.levels).or_default();
        cell.add(turn, folder.path(), experiment)?;
    }
    let again = cells.into_values().filter(|cell| cell.may_do_better);
    let again = again.flat_map(|cell| cell.left_out);
    Ok(again.filter(|turn| !folder.has_repeated(turn)).collect())
}

#[derive(Default)]
struct Cell<'a> {
    left_out: Vec<&'a Turn>,
    /// A run counts, or something else than the generator's limit is why one does not.
    may_do_better: bool,
}

impl<'a> Cell<'a> {
    fn add(
        &mut self,
        turn: &'a Turn,
        folder: &Path,
        experiment: &Experiment,
    ) -> Result<(), Failure> {
        let records = records(folder, turn, experiment)?;
        let mut each = records.iter().map(|(_, record)| record);
        // The generator's limit is always a reason to leave a run out.
        let is_limited = |record: &RunRecord| record.verdict.limit == Limit::Generator;
        self.may_do_better |= each.clone().any(|record| !is_limited(record));
        if each.any(|record| record.why_left_out().is_some()) {
            self.left_out.push(turn);
        }
        Ok(())
    }
}
