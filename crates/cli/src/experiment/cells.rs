//! The runs of an experiment: every combination of what is varied, in the order of the runs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::Parser;
use lab::experiment::{self, Order};

use super::file::{Axis, Experiment, Level};
use super::hooks::Hooks;
use crate::args::Arguments;
use crate::failure::Failure;
use crate::scenario::Given;
use crate::secrets;
use crate::shell::quoted;

/// Most runs of an experiment.
const RUNS_MAX: usize = 100_000;

/// Longest name of a run: that of a file (255 octets) without its ending and the repetition's
/// further digits.
const NAME_OCTETS_MAX: usize = 235;

/// One run.
#[derive(Clone, Debug)]
pub(super) struct Turn {
    /// What is varied and its value in this run.
    pub(super) levels: Vec<(String, String)>,
    /// Which run of its cell, from 1.
    pub(super) repetition: u32,
    labels: Vec<(String, String)>,
    flags: Vec<Given>,
    scenario: Option<PathBuf>,
    /// Those of its servers and variants, in their order.
    pub(super) hooks: Vec<Hooks>,
}

impl Turn {
    /// A name for its files: what is varied, and the repetition. Two turns that differ in either
    /// have different names.
    pub(super) fn name(&self) -> String {
        experiment::file_name(&self.levels, self.repetition)
    }

    /// The arguments of `throng` for it, without the place of its record.
    pub(super) fn arguments(&self) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["run".into()];
        words.extend(self.scenario.iter().map(|path| path.as_os_str().to_owned()));
        words.extend(self.flags.iter().flat_map(Given::arguments));
        for (name, value) in &self.labels {
            words.push(format!("--label={name}={value}").into());
        }
        words
    }

    /// As it would be typed, without what may be a secret.
    pub(super) fn command_line(&self) -> String {
        let words = self.arguments();
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        let shown = secrets::shown(words.iter().map(|word| &**word));
        let quoted = shown.iter().map(|word| quoted(word));
        format!("throng {}", quoted.collect::<Vec<_>>().join(" "))
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.levels {
            write!(f, "{name} {value}, ")?;
        }
        write!(f, "repetition {}", self.repetition)
    }
}

/// Refuses cells whose records would be one file, or none.
fn check_names(cells: &[Turn]) -> Result<(), Failure> {
    let mut names = BTreeSet::new();
    for cell in cells {
        let name = cell.name();
        if name.len() > NAME_OCTETS_MAX {
            return Err(Failure::usage(
                format!("{cell}: its record would be called {name}, which is too long for a file"),
                "give the levels shorter names",
            ));
        }
        if !names.insert(name) {
            return Err(Failure::usage(
                format!("{cell}: it occurs twice"),
                "give the levels different names, or use `repetitions`",
            ));
        }
    }
    Ok(())
}

/// All runs in their order. Their flags are checked: nothing is started if one is wrong.
pub(super) fn turns(experiment: &Experiment) -> Result<Vec<Turn>, Failure> {
    let cells = cells(experiment)?;
    for cell in &cells {
        check(cell)?;
    }
    let order = match experiment.is_listed {
        true => Order::Listed,
        false => Order::Random {
            seed: experiment.seed,
        },
    };
    let turns = experiment::turns(cells.len(), experiment.repetitions, order);
    let turns = turns.into_iter().map(|turn| Turn {
        repetition: turn.repetition,
        ..cells[turn.cell].clone()
    });
    Ok(turns.collect())
}

fn cells(experiment: &Experiment) -> Result<Vec<Turn>, Failure> {
    let levels: Vec<usize> = experiment.axes.iter().map(|it| it.levels.len()).collect();
    let repetitions = experiment.repetitions.max(1) as usize;
    let all = experiment::combinations(&levels, RUNS_MAX / repetitions).map_err(|many| {
        let runs = many.number.saturating_mul(repetitions);
        Failure::usage(
            format!("{runs} runs: an experiment has at most {RUNS_MAX}"),
            "vary less at a time",
        )
    })?;
    let nothing_varied = Turn {
        levels: Vec::new(),
        repetition: 1,
        labels: Vec::new(),
        flags: experiment.flags.clone(),
        scenario: experiment.scenario.clone(),
        hooks: Vec::new(),
    };
    let cell = |positions: Vec<usize>| {
        let axes = experiment.axes.iter().zip(positions);
        axes.fold(nothing_varied.clone(), |cell, (axis, level)| {
            extended(cell, axis, &axis.levels[level])
        })
    };
    let cells: Vec<Turn> = all.into_iter().map(cell).collect();
    check_names(&cells)?;
    Ok(cells)
}

/// The cell with one more thing decided; later flags go before earlier ones.
fn extended(mut cell: Turn, axis: &Axis, level: &Level) -> Turn {
    cell.levels.push((axis.name.clone(), level.label.clone()));
    if axis.is_label {
        cell.labels.push((axis.name.clone(), level.label.clone()));
    }
    cell.flags
        .retain(|given| level.flags.iter().all(|other| other.name != given.name));
    cell.flags.extend(level.flags.iter().cloned());
    if level.scenario.is_some() {
        cell.scenario.clone_from(&level.scenario);
    }
    if !level.hooks.is_empty() {
        cell.hooks.push(level.hooks.clone());
    }
    cell
}

/// Flags that cannot be understood, and scenarios that are not there.
fn check(cell: &Turn) -> Result<(), Failure> {
    let words = [OsString::from("throng")]
        .into_iter()
        .chain(cell.arguments());
    Arguments::try_parse_from(words).map_err(|error| {
        Failure::of_flags(&error, "run").of(&format!("the run with {}", without_repetition(cell)))
    })?;
    match &cell.scenario {
        Some(path) if !Path::new(path).is_file() => Err(Failure::usage(
            format!("there is no scenario {}", path.display()),
            "paths are relative to the experiment's file",
        )),
        _ => Ok(()),
    }
}

fn without_repetition(cell: &Turn) -> String {
    let each = cell.levels.iter();
    let words: Vec<String> = each
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    match words.is_empty() {
        true => "the flags of [run]".to_owned(),
        false => words.join(", "),
    }
}
