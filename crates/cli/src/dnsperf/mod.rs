//! `throng dnsperf ...`: dnsperf's command line and output over our engine.
//!
//! Accepts the options of dnsperf 2.14 and prints its output line for line, so that scripts keep
//! working. What is different:
//!
//! - there are no lines for single queries (`-v`, and `[Timeout]`): nothing is logged per query;
//! - Ctrl-C waits for the queries in flight, so none are `interrupted`; a second one aborts;
//! - no limit of 256 clients a thread;
//! - over TCP, DoT and DoH a server that nobody listens on is an error before the run, not a long
//!   wait;
//! - with `http://` in `-O doh-uri`, DNS over HTTP/2 goes without TLS;
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
mod questions;
mod request;
pub(crate) mod resperf;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use engine::Progress;
use lab::run::RunRequest;
use measure::RunRecord;

use crate::failure::print;
use crate::signals;
use args::{Invocation, Settings};
use complaint::{Complaint, Messages, note};
use figures::Figures;
use output::{Layout, Scope};

/// Runs dnsperf's command line, `arguments` without the program's name; the exit codes are
/// dnsperf's: 0, or 1 if it could not run.
pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    match execute(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err((complaint, messages)) => complaint.report(&messages),
    }
}

fn execute(arguments: &[OsString]) -> Result<(), (Complaint, Messages)> {
    let early = |complaint| (complaint, Messages::default());
    show(&output::banner()).map_err(early)?;
    let settings = match args::parse::<Settings>(arguments).map_err(early)? {
        Invocation::Help => return show_help(&usage::help()),
        Invocation::LongHelp => return show_help(&usage::long_help()),
        Invocation::Run(settings) => settings,
    };
    let messages = Messages {
        to_stdout: settings.log_to_stdout,
    };
    run(&settings, &messages).map_err(|complaint| (complaint, messages))
}

fn show_help(text: &str) -> Result<(), (Complaint, Messages)> {
    note(text.trim_end());
    Ok(())
}

fn show(text: &str) -> Result<(), Complaint> {
    print(text).map_err(|_| Complaint::plain("cannot write to standard output"))
}

fn run(settings: &Settings, messages: &Messages) -> Result<(), Complaint> {
    let request = request::build(settings, messages)?;
    if settings.verbose {
        messages.warn("single queries are not reported (-v): nothing is logged per query here");
    }
    let now = jiff::Zoned::now()
        .strftime("%a %b %e %H:%M:%S %Y")
        .to_string();
    show(&output::initial_status(settings, request.plan.target, &now))?;
    let control = lab::run::control(std::slice::from_ref(&request));
    signals::watch(|| {}).stops(&control);
    let mut display = Intervals::new(settings, &request);
    let record = lab::run::run(&request, &control, |progress| {
        if display.show(progress).is_err() {
            // Nobody can read the result; the failure is reported when it is printed.
            control.stop();
        }
    })?;
    show(&output::final_status(record.ended_by))?;
    show(
        &display
            .layout
            .statistics(&Figures::of_run(&record), Scope::Run),
    )?;
    warn_of_unsent(settings, &record, messages);
    conclude(settings, &request, &record);
    Ok(())
}

/// Prints the intervals of `-S`, whole ones within the run only.
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
            layout: Layout {
                unit: settings.unit(),
                histogram: settings.long.latency_histogram,
                http: settings.transport.is_doh(),
            },
            interval_ns: settings.stats_interval.map(nanos),
            limit_ns: request.plan.duration.map_or(u64::MAX, nanos),
            verbose: settings.long.verbose_interval_stats,
        }
    }

    fn show(&mut self, progress: &Progress) -> Result<(), Complaint> {
        let interval = &progress.interval;
        let whole = self.interval_ns == Some(interval.length_ns());
        if !whole || interval.start_ns >= self.limit_ns {
            // The first one that is cut short is the last; what follows is the drain.
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
    if unsent.send_failed > 0 && !settings.long.suppress_send_failures {
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
fn conclude(settings: &Settings, request: &RunRequest, record: &RunRecord) {
    let verdict = &record.verdict;
    let reason = verdict.evidence.first().map_or("", String::as_str);
    note(&format!("limit: {}: {reason}", verdict.limit.name()));
    note(&format!(
        "equivalent: {}",
        equivalent::command(settings, &request.plan)
    ));
}
