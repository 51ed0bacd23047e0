//! `throng experiment`: every cell of a matrix, several times, with a record of each run.
//!
//! A run is a process of its own (`turn`), and asks for what `throng run` with the flags of its
//! cell does: what one run leaves behind cannot touch the next, and each can be repeated by hand.
//! What is done is what is in the folder, so that an experiment that was interrupted goes on where
//! it stopped.

mod ceilings;
mod cells;
pub(crate) mod claims;
mod file;
mod folder;
mod gate;
mod hooks;
mod matrix;
mod operation;
mod repeats;
pub(crate) mod results;
pub(crate) mod schema;
mod servers;
mod turn;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use lab::live::Place;
use lab::target::{Network, check_cluster};
use measure::notation::{about, counted};

use crate::args::experiment::{ExperimentArguments, ExperimentCommand, ExperimentRun, Extent};
use crate::args::{DocumentFormat, Given};
use crate::failure::{Failure, print};
use crate::inputs;
use crate::reports::page_of_folder;
use crate::run::progress;
use crate::signals::{self, Interrupt};
use crate::turn::Maker;
use crate::views::Views;
use cells::Turn;
use file::Experiment;
use folder::Folder;
pub(crate) use folder::name_of;
use matrix::Cells;
use results::Results;

/// Successive failed runs after which the experiment ends.
const FAILURES_MAX: u32 = 3;

/// Does what the command says.
pub(crate) fn execute(arguments: &ExperimentArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        ExperimentCommand::Plan { file, extent } => {
            let (experiment, _) = read(file, extent)?;
            print(&plan(&experiment, &cells::turns(&experiment)?))?;
            Ok(ExitCode::SUCCESS)
        }
        ExperimentCommand::Run(arguments) => run_file(arguments, None),
        ExperimentCommand::Results {
            folder,
            metric,
            format,
        } => {
            let found = Results::read(folder)?.found(*metric)?;
            print(&match format {
                DocumentFormat::Text => found.text(),
                DocumentFormat::Json => found.json(),
            })?;
            Ok(ExitCode::SUCCESS)
        }
        ExperimentCommand::Claims(arguments) => claims::execute(arguments),
    }
}

/// Agents that all runs of an experiment have in another place.
pub(crate) trait Agents {
    /// Flags of each run; the experiment has that folder.
    fn flags(&self, folder: &Path) -> Vec<Given>;

    /// Waits until all of them can be started; before each start of a server.
    ///
    /// # Errors
    /// They cannot.
    fn wait(&self, folder: &Path, interrupt: &Interrupt) -> Result<(), Failure>;
}

/// Makes the runs of the file that are missing; the agents are processes here, or those.
pub(crate) fn run_file(
    arguments: &ExperimentRun,
    agents: Option<&dyn Agents>,
) -> Result<ExitCode, Failure> {
    let (mut experiment, text) = read(&arguments.file, &arguments.extent)?;
    let output = output(arguments);
    if let Some(agents) = agents {
        experiment.lead(agents.flags(&output))?;
    }
    let turns = cells::turns(&experiment)?;
    check_changes(&turns, arguments.allow_change)?;
    if agents.is_some() {
        check_reach(&turns)?;
    }
    let folder = Folder::open(&output, &text)?;
    run(&experiment, &turns, &folder, (agents, arguments))
}

/// The folder of its records.
pub(crate) fn output(arguments: &ExperimentRun) -> PathBuf {
    let output = arguments.output.clone();
    output.unwrap_or_else(|| default_output(&arguments.file, &arguments.extent))
}

/// Refuses servers on this host, which agents in another place do not reach.
fn check_reach(turns: &[Turn]) -> Result<(), Failure> {
    let is_here = |turn: &&Turn| turn.server.is_some() && !turn.is_in_kubernetes();
    match turns.iter().find(is_here) {
        None => Ok(()),
        Some(turn) => Err(Failure::usage(
            format!("{turn}: agents in pods do not reach a server that is started on this host"),
            "write topology = \"kubernetes\" under [lab], or the `server` that runs under [run]",
        )),
    }
}

/// Refuses to change what somebody else runs, unless that is allowed.
fn check_changes(turns: &[Turn], allows: bool) -> Result<(), Failure> {
    match turns.iter().find(|turn| turn.change.is_some()) {
        Some(turn) if !allows => Err(Failure::usage(
            format!("{turn}: this changes what the cluster runs"),
            "pass --allow-change to permit this; it is restored after each start",
        )),
        _ => Ok(()),
    }
}

fn read(path: &Path, extent: &Extent) -> Result<(Experiment, String), Failure> {
    let mut text = inputs::text(path).map_err(|error| {
        Failure::usage(
            format!("cannot read the experiment {}: {error}", path.display()),
            "give a TOML file; there are some in the folder experiments",
        )
    })?;
    let mut experiment = file::parse(path, &text)?;
    if extent.short {
        // The folder of its records keeps it as it was run.
        text.insert_str(0, "short = true\n");
        experiment = file::parse(path, &text)?;
    }
    experiment.repetitions = extent.repeat.unwrap_or(experiment.repetitions);
    Ok((experiment, text))
}

/// The experiment's name, in the current folder.
fn default_output(file: &Path, extent: &Extent) -> PathBuf {
    let stem = file.file_stem().unwrap_or("experiment".as_ref());
    let mut name = stem.to_owned();
    name.push(if extent.short {
        "-short-records"
    } else {
        "-records"
    });
    PathBuf::from(name)
}

/// What would be run of an experiment with this text.
pub(crate) fn plan_of(path: &Path, text: &str) -> Result<String, Failure> {
    let experiment = file::parse(path, text)?;
    Ok(plan(&experiment, &cells::turns(&experiment)?))
}

/// What would be run.
fn plan(experiment: &Experiment, turns: &[Turn]) -> String {
    let mut text = format!("{}: {}\n", experiment.name, counts(experiment, turns));
    for (number, turn) in turns.iter().enumerate() {
        text.push_str(&format!("{:>5}  {turn}\n", number + 1));
    }
    if let Some(first) = turns.first() {
        text.push_str(&format!(
            "\nthe first of them is\n  {}\n",
            first.command_line()
        ));
    }
    text
}

fn counts(experiment: &Experiment, turns: &[Turn]) -> String {
    let repetitions = u64::from(experiment.repetitions);
    let cells = turns.len() as u64 / repetitions.max(1);
    let least = experiment
        .least_duration()
        .map(|each| each * turns.len() as u32);
    let least = least.map(|time| format!(", {} at least", about(time)));
    let each = match experiment.runs_per_start {
        1 => counted(repetitions, "repetition"),
        runs => format!("{} with {runs} runs", counted(repetitions, "start")),
    };
    let runs = turns.len() as u64 * u64::from(experiment.runs_per_start);
    format!(
        "{}, {each}: {}{}",
        counted(cells, "cell"),
        counted(runs, "run"),
        least.unwrap_or_default()
    )
}

/// Makes the runs that are not made yet.
fn run(
    experiment: &Experiment,
    turns: &[Turn],
    folder: &Folder,
    (agents, arguments): (Option<&dyn Agents>, &ExperimentRun),
) -> Result<ExitCode, Failure> {
    if turns.iter().any(|turn| turn.topology.needs_network()) {
        Network::check()?;
    }
    if turns.iter().any(Turn::is_in_kubernetes) {
        check_cluster()?;
    }
    let interrupt = signals::watch(|| {
        tell!("ending this run, then the experiment (interrupt again to abort)");
    });
    // A first hook or a server's start may take long, and `after` hooks follow both.
    interrupt.leave_to_command();
    let is_made = |turn: &Turn| folder.has(turn, experiment.runs_per_start);
    let waiting: Vec<&Turn> = turns.iter().filter(|it| !is_made(it)).collect();
    let cells = Cells::of(experiment, turns, is_made);
    tell!("{}: {}", experiment.name, counts(experiment, turns));
    if turns
        .iter()
        .any(|turn| turn.server.is_some() || turn.change.is_some())
    {
        crate::servers::clear()?;
    }
    if waiting.len() < turns.len() {
        let made = turns.len() - waiting.len();
        tell!(
            "{} of them are already made and are kept",
            counted(made as u64, "run")
        );
    }
    let maker = Maker::new(&interrupt);
    let views = Views::begin(&maker.live, &arguments.views(), "experiment")?;
    let _progress = progress::follow_runs(&maker.live);
    if experiment.has_ceilings && !waiting.is_empty() {
        let all = ceilings::turns(turns, experiment.is_short)?;
        ceilings::measure(&all, folder, &maker)?;
    }
    let progress = Progress {
        maker: &maker,
        agents,
        began: Instant::now(),
        cells: &cells,
        all: turns.len(),
        before: turns.len() - waiting.len(),
    };
    let mut failed = progress.make(experiment, &waiting, folder)?;
    // A short one shows that it works; how well is not asked.
    if !experiment.is_short {
        failed += repeat(experiment, turns, folder, &progress)?;
    }
    let update = folder.index()?;
    let records = folder.path().display();
    tell!("{} in {records}", counted(update.runs, "record"));
    tell!(
        "next: throng experiment results {records}; throng report {records} -o report.html; \
         throng history list --records {records}"
    );
    views.finish(|| page_of_folder(folder.path()));
    Ok(match failed {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(1),
    })
}

/// Makes those starts once more that say nothing about their server; returns how many failed.
fn repeat(
    experiment: &Experiment,
    turns: &[Turn],
    folder: &Folder,
    first: &Progress<'_>,
) -> Result<u32, Failure> {
    let again = repeats::of(turns, experiment, folder)?;
    if again.is_empty() {
        return Ok(0);
    }
    let number = counted(again.len() as u64, "repetition");
    tell!("{number} measured the generator or its host: repeated");
    for turn in &again {
        folder.set_aside(turn, experiment.runs_per_start)?;
    }
    let progress = Progress {
        began: Instant::now(),
        all: again.len(),
        before: 0,
        ..*first
    };
    progress.make(experiment, &again, folder)
}

/// How far an experiment has come.
struct Progress<'a> {
    maker: &'a Maker<'a>,
    agents: Option<&'a dyn Agents>,
    began: Instant,
    cells: &'a Cells,
    /// Runs of the experiment, and those made before.
    all: usize,
    before: usize,
}

impl Progress<'_> {
    /// Makes the runs in `waiting`; returns how many failed.
    fn make(
        &self,
        experiment: &Experiment,
        waiting: &[&Turn],
        folder: &Folder,
    ) -> Result<u32, Failure> {
        let (mut failed, mut in_a_row) = (0, 0);
        for (number, turn) in waiting.iter().enumerate() {
            let position = self.before + number + 1;
            tell!("[{position}/{}] {turn}", self.all);
            let all = Some(self.all as u64);
            self.maker.live.begin(Place {
                cell: self.cells.cell_of(turn),
                ..Place::new(turn.to_string(), position as u64, all)
            });
            let waited = match self.agents {
                Some(agents) => agents.wait(folder.path(), self.maker.interrupt),
                None => Ok(()),
            };
            let made = match waited {
                // Without them no run can be made.
                Err(failure) if !self.maker.interrupt.has_come() => return Err(failure),
                waited => waited.and_then(|()| turn::make(experiment, turn, folder, self.maker)),
            };
            if self.maker.interrupt.has_come() {
                let done = self.before + number + usize::from(made.is_ok());
                return Err(Failure::interrupted(format!(
                    "interrupted with {done} of {} runs made; the same command goes on from there",
                    self.all
                )));
            }
            match made {
                Ok(figures) => {
                    in_a_row = 0;
                    tell!("    {figures}{}", self.left(number + 1, waiting.len()));
                }
                Err(failure) => {
                    failed += 1;
                    in_a_row += 1;
                    failure.report();
                    folder.check_space()?;
                }
            }
            if in_a_row == FAILURES_MAX {
                return Err(Failure::in_operation(format!(
                    "{FAILURES_MAX} runs failed one after the other; the same command tries again \
                     once the cause is fixed"
                )));
            }
            if number + 1 < waiting.len() {
                self.cool_down(experiment.cool_down);
            }
        }
        if failed > 0 {
            let runs = counted(failed.into(), "run");
            tell!("{runs} failed; the same command tries them again");
        }
        Ok(failed)
    }

    /// How long the rest may take, from what it took so far.
    fn left(&self, made: usize, waiting: usize) -> String {
        let left = (waiting - made) as u32;
        if left == 0 {
            return String::new();
        }
        let each = self.began.elapsed() / made as u32;
        format!("  (about {} to go)", about(each * left))
    }

    fn cool_down(&self, time: Duration) {
        let (until, interrupt) = (Instant::now() + time, self.maker.interrupt);
        while Instant::now() < until && !interrupt.has_come() {
            interrupt.wait(until.saturating_duration_since(Instant::now()));
        }
    }
}
