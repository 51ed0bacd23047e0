//! `throng capacity`: how much a target can take. Runs, one after the other, until the highest rate
//! is found, or the most clients.

mod arguments;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lab::capacity::{Attempt, Bench, Made};
use lab::files;
use lab::host::{CpuReading, Host};
use lab::live::{Live, Place};
use measure::capacity::{CapacityPlan, Purpose, Trial};
use measure::facts::CpuUse;
use measure::notation::seconds;
use report::Answer;

use crate::args::capacity::CapacityArguments;
use crate::args::{Format, RunArguments};
use crate::conditions::{Gate, exit_code};
use crate::failure::{Failure, print};
use crate::records::{Destination, Links, keep_one};
use crate::reports::page_of_answer;
use crate::run::group::Group;
use crate::run::{self, Runner};
use crate::signals;
use crate::streams;
use crate::views::Views;

/// The answer's file in the folder of records.
const ANSWER: &str = "capacity.json";

/// Searches and prints.
pub(crate) fn execute(arguments: &CapacityArguments) -> Result<ExitCode, Failure> {
    let plan = arguments::plan(arguments)?;
    let base = arguments::base(arguments, &plan)?;
    let links = Links::with_force(arguments.run.force);
    let gate = Gate::of(&arguments.run.conditions, links)?;
    let answer_to = (arguments.records.as_deref())
        .map(|folder| Destination::check("--records", &make_folder(folder)?, links))
        .transpose()?;
    let interrupt = signals::watch(|| {
        tell!("ending the search; waiting for open queries (interrupt again to abort)");
    });
    let live = Live::default();
    let views = Views::begin(&live, &arguments.run.views(), "capacity")?;
    let quiet = arguments.run.quiet;
    if !quiet {
        announce(&plan);
    }
    let mut trials = Trials {
        arguments,
        base: &base,
        plan: &plan,
        runner: Runner::new(&interrupt, &live, quiet),
        all_kept: true,
        are_shown: are_shown(&arguments.run),
    };
    let found = lab::capacity::find(&plan, &mut trials);
    // Before anything is printed, which may wait for a reader.
    trials.runner.end();
    let Some(capacity) = found? else {
        return Err(Failure::interrupted(
            "interrupted within the first trial: nothing is known",
        ));
    };
    let is_failure = capacity.answer.value.is_none() || !trials.all_kept;
    let below_trials = (trials.are_shown && streams::output_is_terminal())
        .then(|| report::capacity::text_below_trials(&capacity));
    let answer = Answer::Capacity(Box::new(capacity));
    let written = answer_to.map_or(Ok(()), |it| it.write_text(&answer.json()));
    let format = arguments.run.format;
    let text = match below_trials {
        Some(text) if format == Format::Text => text,
        _ => format.of(&answer),
    };
    written.and(print(&text))?;
    let has_failed = gate.conclude_answer(&answer, (format, &text))?;
    views.finish(|| page_of_answer(answer));
    Ok(exit_code(is_failure, has_failed))
}

/// True if each trial has a line on standard error when it ends. The result as text has all trials:
/// they are shown before it on a terminal only.
fn are_shown(flags: &RunArguments) -> bool {
    let is_watched = streams::columns_of_error().is_some() && !flags.tui;
    !flags.quiet && (is_watched || flags.format != Format::Text)
}

/// Makes the folder of the records; where the answer goes.
fn make_folder(folder: &Path) -> Result<PathBuf, Failure> {
    files::make_folders(folder).map_err(|error| {
        Failure::unwritable(
            format!("cannot create the folder {}: {error}", folder.display()),
            &error,
            "give --records a folder that exists or can be created",
        )
    })?;
    Ok(folder.join(ANSWER))
}

/// Says what is about to happen, and how long it takes.
fn announce(plan: &CapacityPlan) {
    let facts = &plan.search;
    let trials = plan.trials_estimated();
    let long_ns = facts.length_ns(Purpose::Confirmation);
    let load_ns = trials * facts.trial_ns + long_ns;
    let all_ns = (load_ns + load_ns / 10).min(facts.time_max_ns);
    tell!(
        "searching for the highest load with {}",
        plan.objective.text()
    );
    tell!(
        "some {trials} trials of {} and one of {}, about {}, at most {} (--max-duration)",
        seconds(facts.trial_ns),
        seconds(long_ns),
        seconds(all_ns),
        seconds(facts.time_max_ns)
    );
}

fn purpose(of: Purpose) -> &'static str {
    match of {
        Purpose::Search => "search",
        Purpose::Confirmation => "confirmation",
        Purpose::Latency => "latency",
    }
}

/// What makes the trials.
struct Trials<'a> {
    arguments: &'a CapacityArguments,
    /// What all of them have in common.
    base: &'a Group,
    plan: &'a CapacityPlan,
    runner: Runner<'a>,
    /// Every record could be written.
    all_kept: bool,
    /// See [`are_shown`].
    are_shown: bool,
}

impl Bench for Trials<'_> {
    type Error = Failure;

    fn make(&mut self, attempt: Attempt) -> Result<Made, Failure> {
        let mut trial = arguments::trial(self.base, attempt);
        // A bar goes away by itself; lines between those of the trials would be too many.
        trial.output.quiet |= streams::columns_of_error().is_none();
        let destination = self.destination(attempt)?;
        let load = self.plan.search.sought.text(attempt.value);
        let name = format!("{}, {load}", purpose(attempt.purpose));
        let place = Place::new(name, attempt.position as u64, None);
        self.runner.live.begin(place);
        let record = run::measure(&trial, &self.runner)?;
        self.all_kept &= keep_one(&record, destination.as_ref());
        Ok(Made {
            record,
            file: destination.as_ref().map(Destination::name),
        })
    }

    fn read_cpu(&mut self) -> Option<CpuReading> {
        (!self.base.run.is_simulated()).then(|| Host::this().cpu_reading(None))
    }

    fn show_host(&mut self, before: &CpuUse) {
        if let Some(warning) = measure::capacity::not_quiet(before) {
            tell!("warning: {warning}");
        }
    }

    fn show(&mut self, attempt: Attempt, trial: &Trial) {
        if self.are_shown {
            let sought = self.plan.search.sought;
            let line = report::capacity::trial_line(sought, attempt.position, trial);
            tell!("{line}");
        }
    }

    fn is_interrupted(&self) -> bool {
        self.runner.interrupt.has_come()
    }

    fn words(error: &Failure) -> String {
        error.what().to_owned()
    }
}

impl Trials<'_> {
    fn destination(&self, attempt: Attempt) -> Result<Option<Destination>, Failure> {
        let Some(folder) = &self.arguments.records else {
            return Ok(None);
        };
        let file = format!("trial-{:03}.json", attempt.position);
        let links = Links::with_force(self.arguments.run.force);
        Destination::check("--records", &folder.join(file), links).map(Some)
    }
}
