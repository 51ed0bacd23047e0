//! `throng dnsperf ...`: dnsperf's command line and output over our engine.
//!
//! Accepts the options of dnsperf 2.14 and prints its messages and its output line for line, so
//! that scripts keep working. What is different:
//!
//! - an input file is read whole before anything is sent; each unusable line of it is named once;
//! - Ctrl-C waits up to a second for the queries in flight before they are `interrupted`; a second
//!   one aborts;
//! - no limit of 256 clients a thread;
//! - over TCP, DoT and DoH a query whose connection is not up in time is not sent, and the run goes
//!   on, where dnsperf waits for ever;
//! - a public target needs `-O allow-public`;
//! - the secret of `-y` is not repeated in the output.
//!
//! What limited the run and the equivalent `throng run` follow on standard error.

mod args;
mod command_line;
mod complaint;
mod equivalent;
mod figures;
mod options;
mod output;
pub(crate) mod queryperf;
mod questions;
mod request;
pub(crate) mod resperf;
mod single;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use engine::Progress;
use lab::run::RunRequest;
use measure::record::EndedBy;
use measure::{Interval, RunRecord};

use crate::failure::print;
use crate::signals;
use args::{Invocation, Options, Settings};
use complaint::{Complaint, Messages, note};
use figures::Figures;
use options::SEND_FAILED;
use output::{Layout, Scope};
use questions::Questions;
use request::Load;
use single::Singles;

/// Runs dnsperf's command line, `arguments` without the program's name; the exit codes are
/// dnsperf's: 0, or 1 if it could not run.
pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    match execute(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err((complaint, messages)) => complaint.report(&messages, &usage::help()),
    }
}

fn execute(arguments: &[OsString]) -> Result<(), (Complaint, Messages)> {
    let early = |complaint| (complaint, Messages::default());
    show(&output::banner()).map_err(early)?;
    let mut settings = match args::parse::<Settings>(arguments).map_err(early)? {
        Invocation::Help => return show_help(&usage::help()),
        Invocation::LongHelp => return show_help(&usage::long_help()),
        Invocation::Run(settings) => settings,
    };
    let messages = Messages {
        to_stdout: settings.log_to_stdout,
    };
    run(&mut settings, &messages).map_err(|complaint| (complaint, messages))
}

fn show_help(text: &str) -> Result<(), (Complaint, Messages)> {
    note(text.trim_end());
    Ok(())
}

fn show(text: &str) -> Result<(), Complaint> {
    print(text).map_err(|_| Complaint::plain("cannot write to standard output"))
}

fn run(settings: &mut Settings, messages: &Messages) -> Result<(), Complaint> {
    settings.complete()?;
    let load = Load::fit(settings, messages);
    let now = jiff::Zoned::now()
        .strftime("%a %b %e %H:%M:%S %Y")
        .to_string();
    show(&output::initial_status(settings, settings.target, &now))?;
    request::check_families(settings)?;
    let Questions {
        set,
        lines,
        left_out,
        ..
    } = questions::read(settings, messages)?;
    if set.is_empty() {
        return conclude_nothing(settings);
    }
    let request = request::build(settings, set, load)?;
    request::check_scope(settings, &request)?;
    let singles = Singles::new(settings, messages, &lines);
    let mut display = Intervals::new(settings, &request);
    let record = run_observed(request.clone(), &singles, |progress| display.show(progress))?;
    show(&output::final_status(record.ended_by))?;
    let layout = display.layout;
    show(&layout.statistics(&Figures::of_run(&record), Scope::Run))?;
    warn_of_unsent(settings, &record, messages);
    conclude(settings, (&request, left_out), &record);
    Ok(())
}

/// Runs, and prints intervals and lines for single queries on the way.
fn run_observed(
    mut request: RunRequest,
    singles: &Singles<'_>,
    mut show: impl FnMut(&Progress) -> Result<(), Complaint>,
) -> Result<RunRecord, Complaint> {
    let observations = singles.observe(&mut request);
    let control = lab::run::control(std::slice::from_ref(&request));
    signals::watch(|| {}).stops(&control);
    let record = std::thread::scope(|scope| {
        observations.map(|each| scope.spawn(move || singles.show(&each)));
        let record = lab::run::run(&request, &control, |progress| {
            if show(progress).is_err() {
                // Standard output is closed; the failure is reported when the result is printed.
                control.stop();
            }
        });
        // The lines end when the last sender of observations is dropped.
        drop(request);
        record
    })?;
    Ok(record)
}

/// Every line of the file was left out: nothing was asked.
fn conclude_nothing(settings: &Settings) -> Result<(), Complaint> {
    show(&output::final_status(EndedBy::Queries))?;
    let figures = Figures::of_interval(&Interval::default());
    show(&Layout::of(settings).statistics(&figures, Scope::Run))
}

/// Prints the intervals of `-S`: whole ones that end before the run does.
struct Intervals {
    layout: Layout,
    /// Length of a whole interval; none if none are printed.
    interval_ns: Option<u64>,
    limit_ns: u64,
    verbose: bool,
}

impl Intervals {
    fn new(settings: &Settings, request: &RunRequest) -> Self {
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Intervals {
            layout: Layout::of(settings),
            interval_ns: settings.stats_interval.map(nanos),
            limit_ns: request.plan.duration.map_or(u64::MAX, nanos),
            verbose: settings.long.verbose_interval_stats,
        }
    }

    fn show(&mut self, progress: &Progress) -> Result<(), Complaint> {
        let interval = &progress.interval;
        let whole = self.interval_ns == Some(interval.length_ns());
        if !whole || interval.end_ns >= self.limit_ns {
            // The first one that is cut short or ends with the run is the last.
            self.interval_ns = None;
            return Ok(());
        }
        let figures = Figures::of_interval(interval);
        if self.verbose {
            return show(&self.layout.statistics(&figures, Scope::Interval));
        }
        // A clock before 1970 shows as 0.
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        show(&output::rate_line(since_epoch, &figures))
    }
}

fn warn_of_unsent(settings: &Settings, record: &RunRecord, messages: &Messages) {
    let unsent = &record.total.counts.not_sent;
    if unsent.send_failed > 0 && !settings.long.suppresses(SEND_FAILED) {
        messages.warn(&format!("failed to send {} queries", unsent.send_failed));
    }
    let waiting = unsent.timed_out_waiting + unsent.run_ended;
    if waiting > 0 {
        messages.warn(&format!(
            "{waiting} queries were never sent: their connections were not up"
        ));
    }
}

/// What limited the run, and how to run it again.
fn conclude(settings: &Settings, (request, left_out): (&RunRequest, usize), record: &RunRecord) {
    let verdict = &record.verdict;
    let reason = verdict.evidence.first().map_or("", String::as_str);
    note(&format!("limit: {}: {reason}", verdict.limit.name()));
    note(&format!(
        "equivalent: {}",
        equivalent::command(settings, &request.plan, left_out)
    ));
}
