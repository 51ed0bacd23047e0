//! `throng queryperf ...`: the command line and output of queryperf, which came with BIND until
//! 9.12, over our engine.
//!
//! Accepts the options of its version 1.12 and prints its summary. What is different:
//!
//! - lines that are no questions are named in the words of dnsperf, once;
//! - configuration in the file (`#server ...`) is not followed, as with `-n`, and named;
//! - with `-T`, queries are not given up to keep the rate up;
//! - a public target needs `THRONG_ALLOW_PUBLIC`.
//!
//! What limited the run and the equivalent `throng run` follow on standard error.

mod args;
mod output;

use std::ffi::OsString;
use std::process::ExitCode;

use engine::Progress;
use lab::files::{self, Access};
use measure::record::EndedBy;
use measure::{Interval, RunRecord};

use super::complaint::{Complaint, Messages, note};
use super::figures::Figures;
use super::questions::{self, Questions};
use super::request::{self, Load};
use super::single::Singles;
use super::{conclude, run_observed, show};
use args::Settings;
use output::Span;

/// queryperf's exit code for everything that keeps it from running.
const EXIT_CODE: u8 = 255;

/// Runs queryperf's command line, `arguments` without the program's name; the exit codes are
/// queryperf's: 0, or 255 if it could not run.
pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    let messages = Messages::default();
    let refuse = |complaint: Complaint| {
        complaint.report(&messages, args::USAGE);
        ExitCode::from(EXIT_CODE)
    };
    if let Err(complaint) = show(&output::banner()) {
        return refuse(complaint);
    }
    let settings = match args::parse(&arguments) {
        Ok(settings) => settings,
        Err(refusal) => {
            refusal.iter().for_each(|what| note(what));
            note(args::USAGE);
            return ExitCode::from(EXIT_CODE);
        }
    };
    match run(&settings, &messages) {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => refuse(complaint),
    }
}

fn run(settings: &Settings, messages: &Messages) -> Result<(), Complaint> {
    let base = &settings.base;
    let load = Load::fit(base, messages);
    let Questions {
        set,
        lines,
        left_out,
        configuration,
    } = questions::read(base, messages)?;
    for line in &configuration {
        note(&format!("Ignoring configuration change: {line}"));
    }
    show(&output::beginning(base.target.ip()))?;
    let began = now();
    if set.is_empty() {
        return summary(settings, None, (began, 0));
    }
    let questions = set.len() as u64;
    let request = request::build(base, set, load)?;
    request::check_scope(base, &request)?;
    let singles = Singles::new(base, messages, &lines).without_latency();
    let mut intervals = Intervals::new(settings);
    let record = run_observed(request.clone(), &singles, |progress| {
        intervals.show(progress)
    })?;
    summary(settings, Some(&record), (began, questions))?;
    conclude(base, (&request, left_out), &record);
    Ok(())
}

fn now() -> String {
    jiff::Zoned::now()
        .strftime("%a %b %e %H:%M:%S %Y")
        .to_string()
}

fn summary(
    settings: &Settings,
    record: Option<&RunRecord>,
    (began, questions): (String, u64),
) -> Result<(), Complaint> {
    let figures = match record {
        Some(record) => Figures::of_run(record),
        None => Figures::of_interval(&Interval::default()),
    };
    let (sending_ns, drain_ns) = record.map_or((0, 0), |record| {
        (record.measured_ns, record.phases.drain_ns)
    });
    let by_file = record.is_none_or(|record| record.ended_by == EndedBy::Queries);
    let runs = figures.counts.sent.checked_div(questions).unwrap_or(0);
    let span = Span {
        figures: &figures,
        seconds: (sending_ns + drain_ns) as f64 / 1e9,
        sending_seconds: sending_ns as f64 / 1e9,
        times: (began, now()),
        ended: Some((runs, by_file)),
    };
    show("[Status] Testing complete\n")?;
    show(&output::statistics(settings, &span))?;
    if let Some(path) = &settings.histogram
        && files::write(
            path,
            Access::Umask,
            output::histogram(settings, &figures.latency),
        )
        .is_err()
    {
        note(&format!(
            "Error opening RTT histogram file: {}",
            path.display()
        ));
    }
    Ok(())
}

/// Prints the intervals of `-i`, which are shown in a run of limited time only.
struct Intervals<'a> {
    settings: &'a Settings,
    began: String,
}

impl<'a> Intervals<'a> {
    fn new(settings: &'a Settings) -> Self {
        Intervals {
            settings,
            began: now(),
        }
    }

    fn show(&mut self, progress: &Progress) -> Result<(), Complaint> {
        let (interval, base) = (&progress.interval, &self.settings.base);
        let nanos = |time: std::time::Duration| time.as_nanos();
        let whole = base.stats_interval.map(nanos) == Some(u128::from(interval.length_ns()));
        let limit_ns = base.time_limit.map_or(0, nanos);
        if !whole || u128::from(interval.end_ns) >= limit_ns {
            return Ok(());
        }
        let ended = now();
        let seconds = interval.length_ns() as f64 / 1e9;
        let span = Span {
            figures: &Figures::of_interval(interval),
            seconds,
            sending_seconds: seconds,
            times: (std::mem::replace(&mut self.began, ended.clone()), ended),
            ended: None,
        };
        show(&output::statistics(self.settings, &span))
    }
}
