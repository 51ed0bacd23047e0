//! `throng compare`: is B slower than A? Of records that there are, or of runs made in turn.

mod turns;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use measure::RunRecord;
use measure::ab::{AbComparison, Settings, Side, doubts};
use report::Answer;

use crate::args::compare::AbArguments;
use crate::conditions::{Conditions, exit_code};
use crate::failure::{Failure, print};
use crate::records::{self, Links};
use crate::reports::page_of_answer;
pub(crate) use turns::run_command;

/// A side: what it is called, and its records with their files.
struct Records {
    label: String,
    runs: Vec<(String, RunRecord)>,
}

/// Compares and prints.
pub(crate) fn execute(arguments: &AbArguments) -> Result<ExitCode, Failure> {
    let of_output = (arguments.fail_undecided, Links::with_force(arguments.force));
    let conditions = Conditions::of_comparison(&arguments.conditions, of_output)?;
    let compared = compare(arguments, &conditions);
    compared.map_err(|failure| conditions.fail("throng compare", failure))
}

fn compare(arguments: &AbArguments, conditions: &Conditions) -> Result<ExitCode, Failure> {
    let noise = match &arguments.noise {
        Some(path) => Some(read_side(path)?),
        None => None,
    };
    let mut views = None;
    let (a, b) = match (&arguments.a, &arguments.b, &arguments.one, &arguments.other) {
        (Some(a), Some(b), _, _) => turns::make(a, b, arguments, &mut views)?,
        (_, _, Some(a), Some(b)) => (read_side(a)?, read_side(b)?),
        _ => {
            return Err(Failure::usage(
                "nothing to compare",
                "give two records or folders, or two commands with --a and --b",
            ));
        }
    };
    let doubts = look_for_doubts((&a, &b), noise.as_ref(), arguments.force)?;
    let of_noise = noise.iter().flat_map(|noise| &noise.runs);
    let of_noise: Vec<&RunRecord> = of_noise.map(|(_, record)| record).collect();
    let mut comparison = AbComparison::new(&a.side(), &b.side(), &of_noise, &settings(arguments));
    comparison.notes.extend(doubts);
    comparison.conditions = conditions.check_comparison(&comparison);
    let answer = Answer::Sides(Box::new(comparison));
    let format = arguments.format;
    let text = format.of(&answer);
    print(&text)?;
    let (results, excerpt) = (answer.decisions(), format.excerpt(&text));
    let gate = &conditions.gate;
    let has_failed = gate.conclude(answer.command(), results, excerpt)?;
    if let Some(views) = views {
        views.finish(|| page_of_answer(answer));
    }
    Ok(exit_code(false, has_failed))
}

fn settings(arguments: &AbArguments) -> Settings {
    let mut settings = Settings {
        same_within: arguments.same_within,
        seed: arguments.seed,
        ..Settings::default()
    };
    if !arguments.metrics.is_empty() {
        settings.metrics.clone_from(&arguments.metrics);
    }
    settings
}

impl Records {
    fn side(&self) -> Side<'_> {
        let runs = self.runs.iter();
        Side {
            label: self.label.clone(),
            runs: runs.map(|(file, record)| (file.clone(), record)).collect(),
        }
    }
}

/// A record, or all records of a folder in the order of their names.
fn read_side(path: &Path) -> Result<Records, Failure> {
    let label = path.display().to_string();
    if !path.is_dir() {
        let record = records::read(path)?;
        return Ok(Records {
            runs: vec![(label.clone(), record)],
            label,
        });
    }
    let cannot = |error| {
        Failure::usage(
            format!("cannot read the folder {label}: {error}"),
            "check that it may be read",
        )
    };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(path).map_err(cannot)? {
        let file = entry.map_err(cannot)?.path();
        if file
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(file);
        }
    }
    if files.is_empty() {
        return Err(Failure::usage(
            format!("{label}: no run records in this folder"),
            "records are files that end in .json, as throng run --record FILE writes them",
        ));
    }
    files.sort();
    let mut runs = Vec::new();
    for file in files {
        runs.push((file.display().to_string(), records::read(&file)?));
    }
    Ok(Records { label, runs })
}

/// Refuses what cannot be compared; what makes a comparison doubtful belongs into its notes.
fn look_for_doubts(
    (a, b): (&Records, &Records),
    noise: Option<&Records>,
    is_forced: bool,
) -> Result<Vec<String>, Failure> {
    let mut found = doubts(&a.side(), &b.side());
    if let Some(noise) = noise {
        let of_noise = doubts(&a.side(), &noise.side());
        let named = |line: String| format!("--noise: {}", line.replacen("B (", "(", 1));
        found
            .refusals
            .extend(of_noise.refusals.into_iter().map(named));
    }
    if let (Some(first), false) = (found.refusals.first(), is_forced) {
        let more = match found.refusals.len() {
            1 => String::new(),
            number => format!(" (and {} more)", number - 1),
        };
        return Err(Failure::usage(
            format!("these cannot be compared: {first}{more}"),
            "compare runs of one scenario on one host, or add --force",
        ));
    }
    found.refusals.extend(found.warnings);
    Ok(found.refusals)
}
