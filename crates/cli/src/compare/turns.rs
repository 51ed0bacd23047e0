//! Runs of A and B in turn: A B, B A, A B, ... so that what drifts on the host meets both alike.
//!
//! Each run is a process of its own: runs of one process share its memory layout, and a comparison
//! must not take that for a difference. A run of this binary gets its request as a type; another
//! version reads its flags itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use lab::experiment::{Order, turns};
use lab::files;
use lab::live::{Phase, Place, Shown};
use measure::record::EndedBy;

use super::Records;
use crate::args::compare::AbArguments;
use crate::args::{Command, RunCommand};
use crate::failure::Failure;
use crate::run::group::Group;
use crate::run::progress;
use crate::turn::{Made, Maker, Places};
use crate::views::Views;
use crate::{child, command_line, records, run, scenario, secrets, signals};

/// Runs of each side, unless told.
const ROUNDS: u32 = 10;

/// Where records are kept, unless told.
const FOLDER: &str = "throng-compare";

/// One side as a command.
struct Side {
    name: char,
    text: String,
    runner: Runner,
    folder: PathBuf,
}

/// Who makes the runs of a side.
enum Runner {
    /// This binary, of these groups of clients.
    Own(Vec<Group>),
    /// Another one, with what follows `run`.
    Other {
        program: PathBuf,
        arguments: Vec<String>,
    },
}

/// Makes all runs; after an interrupt what was made until then.
pub(super) fn make(
    a: &str,
    b: &str,
    arguments: &AbArguments,
    views: &mut Option<Views>,
) -> Result<(Records, Records), Failure> {
    let rounds = arguments.repeat.unwrap_or(ROUNDS);
    let folder = arguments.records.clone().unwrap_or_else(|| FOLDER.into());
    let sides = [Side::new('a', a, &folder)?, Side::new('b', b, &folder)?];
    for side in &sides {
        make_folder(&side.folder)?;
    }
    let interrupt = signals::watch(|| {
        tell!("ending the comparison; waiting for open queries (interrupt again to abort)");
    });
    let maker = Maker::new(&interrupt);
    let views = views.insert(Views::begin(&maker.live, &arguments.views(), "compare")?);
    let is_shown = !arguments.quiet;
    let _progress = is_shown.then(|| progress::follow_runs(&maker.live));
    let mut made = [Vec::new(), Vec::new()];
    let turns = turns(sides.len(), rounds, Order::ThereAndBack);
    for (index, turn) in turns.iter().enumerate() {
        let (side, round) = (&sides[turn.cell], turn.repetition);
        let name = side.name.to_ascii_uppercase();
        let (position, all) = (index as u64 + 1, turns.len() as u64);
        if is_shown {
            tell!("run {position} of {all}: {name} (round {round} of {rounds})");
        }
        let place = Place::new(format!("{name} {round}"), position, Some(all));
        maker.live.begin(place);
        match side.run((round, rounds), &maker)? {
            Some((file, record))
                if !interrupt.has_come() && record.ended_by != EndedBy::Interrupted =>
            {
                made[turn.cell].push((file, record));
            }
            _ => {
                tell!("interrupted in round {round} of {rounds}: the runs before are compared");
                break;
            }
        }
    }
    views.keep_page();
    if made.iter().any(Vec::is_empty) {
        return Err(Failure::interrupted(
            "interrupted within the first round: nothing to compare",
        ));
    }
    let [of_a, of_b] = made;
    let [a, b] = sides;
    Ok((a.records(of_a), b.records(of_b)))
}

/// A folder without records: those of another comparison must not be taken for this one's.
fn make_folder(folder: &Path) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        Failure::unwritable(
            format!("cannot create the folder {}: {error}", folder.display()),
            &error,
            "give --records a folder that can be created",
        )
    };
    files::make_folders(folder).map_err(cannot)?;
    match fs::read_dir(folder).map_err(cannot)?.next() {
        Some(_) => Err(Failure::usage(
            format!("the folder {} is not empty", folder.display()),
            "give --records another folder, or compare what is in it: throng compare \
             FOLDER/a FOLDER/b",
        )),
        None => Ok(()),
    }
}

/// A command as it was given, but for what may be a secret.
fn without_secrets(text: &str) -> String {
    let words = shlex::split(text).unwrap_or_default();
    let shown = secrets::shown(words.iter().map(String::as_str));
    match shown == words {
        true => text.to_owned(),
        false => shown.join(" "),
    }
}

impl Side {
    /// Splits the command as a shell would, and checks all that can be checked before the first
    /// run.
    fn new(name: char, text: &str, folder: &Path) -> Result<Side, Failure> {
        let refuse =
            |what: &str, hint: &str| Err(Failure::usage(format!("--{name}: {what}"), hint));
        let Some(words) = shlex::split(text) else {
            return refuse("a quote is not closed", "quote as in a shell");
        };
        let mut words = words.as_slice();
        let own = std::env::current_exe().map_err(Failure::in_operation)?;
        let mut program = own.clone();
        match words {
            [first, rest @ ..]
                if first.contains('/') && rest.first().is_some_and(|it| it == "run") =>
            {
                program = first.into();
                words = rest;
            }
            [first, rest @ ..] if first == "throng" => words = rest,
            _ => {}
        }
        if let [first, rest @ ..] = words
            && first == "run"
        {
            words = rest;
        }
        if has(words, "--record") {
            return refuse(
                "the record of each run has its place already",
                "leave out --record; --records FOLDER says where they are kept",
            );
        }
        let runner = match program == own {
            true => {
                let groups = own_groups(words);
                Runner::Own(groups.map_err(|failure| failure.of(&format!("--{name}")))?)
            }
            false => Runner::Other {
                program,
                arguments: words.to_vec(),
            },
        };
        Ok(Side {
            name,
            text: without_secrets(text.trim()),
            runner,
            folder: folder.join(name.to_string()),
        })
    }

    /// Makes one run and reads its record; none if it was interrupted before it had one.
    fn run(
        &self,
        (round, rounds): (u32, u32),
        maker: &Maker<'_>,
    ) -> Result<Option<(String, measure::RunRecord)>, Failure> {
        // As many digits for each, so that names sort as the runs were made.
        let width = rounds.to_string().len();
        let file = self.folder.join(format!("{round:0width$}.json"));
        let interrupt = maker.interrupt;
        let made = match &self.runner {
            Runner::Own(groups) => {
                let places = Places {
                    record: &file,
                    log: None,
                    begun: None,
                };
                maker.make(groups, &places)
            }
            Runner::Other { program, arguments } => {
                let mut process = process(program, arguments, &file);
                // It shows nothing of itself.
                maker.live.publish(Shown {
                    phase: Phase::Load,
                    ..Shown::default()
                });
                child::run(&mut process, interrupt).map(Made::Died)
            }
        };
        let made = made.map_err(|error| {
            let program = match &self.runner {
                Runner::Own(_) => Path::new("a run").display(),
                Runner::Other { program, .. } => program.display(),
            };
            Failure::in_operation(format!("--{}: cannot start {program}: {error}", self.name))
        })?;
        if !file.exists() && interrupt.has_come() {
            return Ok(None);
        }
        if !file.exists() {
            return Err(Failure::in_operation(format!(
                "--{}: the run of round {round} failed ({made})",
                self.name
            )));
        }
        let record = records::read(&file)?;
        if let Some(aborted) = &record.aborted {
            return Err(Failure::in_operation(format!(
                "--{}, round {round}: {}",
                self.name,
                aborted.sentence()
            )));
        }
        Ok(Some((file.display().to_string(), record)))
    }

    fn records(self, runs: Vec<(String, measure::RunRecord)>) -> Records {
        Records {
            label: self.text,
            runs,
        }
    }
}

fn has(words: &[String], flag: &str) -> bool {
    let mut words = words.iter();
    words.any(|word| word.split('=').next() == Some(flag))
}

/// What the runs of this binary are asked for; everything that can be wrong with it before a run is
/// refused.
fn own_groups(words: &[String]) -> Result<Vec<Group>, Failure> {
    let command = run_command(words)?;
    let groups = scenario::only_run(scenario::Source::of_command(&command)?, &command.run)?;
    run::check_groups(&groups)?;
    let view = groups.iter().find_map(|group| {
        let asked = &group.output.views;
        let views = [
            (asked.metrics.is_some(), "--metrics", "--serve-metrics"),
            (asked.web.is_some(), "--web", "--web"),
            (asked.tui, "--tui", "--tui"),
            (asked.grafana.is_some(), "--grafana", "--grafana"),
        ];
        views.into_iter().find(|(is_given, _, _)| *is_given)
    });
    if let Some((_, flag, of_all)) = view {
        return Err(Failure::usage(
            format!("{flag}: the runs of a comparison are shown together"),
            format!("give {of_all} to `throng compare` instead"),
        ));
    }
    Ok(groups)
}

/// What follows `run` in a side, read.
pub(crate) fn run_command(words: &[String]) -> Result<Box<RunCommand>, Failure> {
    let line = ["throng", "run"].into_iter().map(Into::into);
    let line = line.chain(words.iter().map(Into::into)).collect();
    let parsed = command_line::parse(line).map_err(|error| command_line::wrong(&error, "run"))?;
    match parsed.command {
        Command::Run(command) => Ok(command),
        _ => Err(Failure::plain("only runs can be compared")),
    }
}

/// A run of another binary.
fn process(program: &Path, arguments: &[String], record: &Path) -> Process {
    let mut process = Process::new(program);
    process
        .arg("run")
        .args(arguments)
        .arg("--record")
        .arg(record);
    if !has(arguments, "--quiet") && !has(arguments, "-q") {
        process.arg("--quiet");
    }
    process.stdout(Stdio::null());
    process
}
