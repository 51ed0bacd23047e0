//! `throng resperf ...`: resperf's command line, output and plot data over our engine.
//!
//! Accepts the options of resperf 2.14 and prints its output line for line. What is different:
//!
//! - responses count in the point of the plot in which they came, not in that of their query;
//! - the input file is read whole before anything is sent, and lines that are no questions are
//!   named once;
//! - a client has at most 61,440 queries outstanding, so `-q` may need more of them (`-C`);
//! - limits are looked at ten times a second;
//! - connections are set up before the ramp begins;
//! - a public target needs `-O allow-public`.
//!
//! What limited the run and the equivalent `throng ramp` follow on standard error.

mod args;
mod output;
mod usage;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use engine::Progress;
use lab::files::{self, Access};
use lab::ramp;
use lab::run::RunRequest;
use load::plan::OUTSTANDING_PER_CLIENT_MAX;
use load::{Arrival, QuestionSet, Shape};
use measure::RunRecord;
use measure::ramp::{Ramp, RampPlan, Stop, Watch};
use measure::record::EndedBy;

use super::args::{Invocation, Options, parse};
use super::complaint::{Complaint, Messages, note};
use super::figures::Figures;
use super::output::http_statistics;
use super::request::Load;
use super::{equivalent, questions, request, show, show_help};
use crate::signals;
use args::Settings;

/// Runs resperf's command line, `arguments` without the program's name; the exit codes are
/// resperf's: 0, or 1 if it could not run.
pub(crate) fn main(arguments: Vec<OsString>) -> ExitCode {
    match execute(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err((complaint, messages)) => {
            args::with_letters(complaint).report(&messages, &usage::help())
        }
    }
}

fn execute(arguments: &[OsString]) -> Result<(), (Complaint, Messages)> {
    let early = |complaint| (complaint, Messages::default());
    show(&output::banner()).map_err(early)?;
    let mut settings = match parse::<Settings>(arguments).map_err(early)? {
        Invocation::Help => return show_help(&usage::help()),
        Invocation::LongHelp => return show_help(&usage::long_help()),
        Invocation::Run(settings) => settings,
    };
    let messages = Messages {
        to_stdout: settings.base.log_to_stdout,
    };
    run(&mut settings, &messages).map_err(|complaint| (complaint, messages))
}

fn run(settings: &mut Settings, messages: &Messages) -> Result<(), Complaint> {
    settings.complete()?;
    request::check_families(&settings.base)?;
    let plan = plan(settings, messages);
    let load = Load::fit(&settings.base, messages);
    // What cannot be written is known before anything is sent.
    let plot = &settings.plot_file;
    let unwritable = |error: std::io::Error| {
        Complaint::plain(format!("could not open {}: {error}", plot.display()))
    };
    files::write(plot, Access::Umask, "").map_err(unwritable)?;
    show(&output::initial_status(settings))?;
    let read = questions::read(&settings.base, messages).map_err(|complaint| {
        match complaint == questions::no_data() {
            true => out_of_data(),
            false => complaint,
        }
    })?;
    if read.set.is_empty() {
        return Err(out_of_data());
    }
    let request = request(settings, read.set, load)?;
    request::check_scope(&settings.base, &request)?;
    let control = lab::run::control(std::slice::from_ref(&request));
    signals::watch(|| {}).stops(&control);
    let mut statuses = Statuses::new(plan, request.plan.queries_max);
    let record = lab::run::run(&request, &control, |progress| {
        if statuses.show(progress).is_err() || statuses.stop.is_some() {
            control.stop();
        }
    })?;
    if record.ended_by == EndedBy::Queries && statuses.stop.is_none() {
        return Err(out_of_data());
    }
    let ramp = Ramp::new(&plan, &record, statuses.stop);
    statuses.finish()?;
    files::write(plot, Access::Umask, report::ramp::plot(&ramp)).map_err(unwritable)?;
    let figures = Figures::of_run(&record);
    show(&output::statistics(&figures, &ramp))?;
    if settings.base.transport.is_doh() {
        show(&http_statistics(&figures))?;
    }
    conclude((settings, read.left_out), &request, (&plan, &record));
    Ok(())
}

fn out_of_data() -> Complaint {
    Complaint::new(
        "ran out of query data",
        "use a longer file, or -R to begin it anew",
    )
}

/// What the ramp is to do.
fn plan(settings: &Settings, messages: &Messages) -> RampPlan {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let open_max = OUTSTANDING_PER_CLIENT_MAX * u64::from(settings.base.clients);
    if settings.outstanding > open_max && settings.outstanding != args::OUTSTANDING {
        messages.warn(&format!(
            "{} queries outstanding (-q) are more than the clients may have open, lowered to \
             {open_max}",
            settings.outstanding
        ));
    }
    RampPlan {
        rate_qps_max: settings.max_qps,
        ramp_ns: nanos(settings.ramp),
        sustain_ns: nanos(settings.constant),
        point_ns: nanos(ramp::point(settings.plot_interval)),
        outstanding_max: settings.outstanding.min(open_max),
        behind_max: settings.fall_behind,
        lost_share_max: settings.max_loss_percent / 100.0,
        ignores_losses: true,
    }
}

/// The request of dnsperf's options, made a ramp.
fn request(
    settings: &Settings,
    questions: QuestionSet,
    load: Load,
) -> Result<RunRequest, Complaint> {
    let mut request = request::build(&settings.base, questions, load)?;
    let plan = &mut request.plan;
    let shape = ramp::shape(settings.ramp);
    let times = (settings.ramp, settings.constant);
    plan.arrival = Arrival::Clients(ramp::in_turns(settings.max_qps, plan.clients, times));
    plan.shape = match shape {
        Some(text) => Some(Shape::parse(&text)?.into()),
        None => None,
    };
    plan.duration = Some(settings.ramp + settings.constant);
    plan.interval = ramp::interval(settings.plot_interval);
    if settings.reopen {
        plan.queries_max = None;
    }
    plan.validate()?;
    Ok(request)
}

/// The lines that say how far the run is.
struct Statuses {
    plan: RampPlan,
    /// Queries that are left of the file, if it ends.
    left: Option<u64>,
    watch: Watch,
    stop: Option<Stop>,
    is_constant: bool,
    is_waiting: bool,
}

impl Statuses {
    fn new(plan: RampPlan, left: Option<u64>) -> Self {
        Statuses {
            plan,
            left,
            watch: Watch::new(plan),
            stop: None,
            is_constant: false,
            is_waiting: false,
        }
    }

    fn show(&mut self, progress: &Progress) -> Result<(), Complaint> {
        let interval = &progress.interval;
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(interval.counts.offered);
        }
        // Once the file is used up nothing is due any more.
        if self.stop.is_some() || self.left == Some(0) {
            return Ok(());
        }
        let begins_constant = interval.end_ns >= self.plan.ramp_ns && self.plan.sustain_ns > 0;
        if begins_constant && !self.is_constant {
            self.is_constant = true;
            show("[Status] Ramp-up done, sending constant traffic\n")?;
        }
        self.stop = self.watch.look(interval);
        match self.stop {
            Some(Stop::Outstanding(_)) => {
                let most = self.plan.outstanding_max;
                show(&format!("[Status] Reached {most} outstanding queries\n"))?;
            }
            Some(Stop::Behind(queries)) => {
                let qps = self.plan.rate_qps_at(interval.end_ns);
                show(&format!(
                    "[Status] Fell behind by {queries} queries, ending test at {qps:.0} qps\n"
                ))?;
            }
            _ if interval.end_ns < self.plan.length_ns() => return Ok(()),
            _ => {}
        }
        self.wait()
    }

    fn wait(&mut self) -> Result<(), Complaint> {
        if self.is_waiting {
            return Ok(());
        }
        self.is_waiting = true;
        show("[Status] Waiting for more responses\n")
    }

    fn finish(&mut self) -> Result<(), Complaint> {
        self.wait()?;
        show("[Status] Testing complete\n\n")
    }
}

/// What limited the run, and how to run it again.
fn conclude(
    (settings, left_out): (&Settings, usize),
    request: &RunRequest,
    (plan, record): (&RampPlan, &RunRecord),
) {
    let verdict = &record.verdict;
    let reason = verdict.evidence.first().map_or("", String::as_str);
    note(&format!("limit: {}: {reason}", verdict.limit.name()));
    let words = args::words(settings, plan);
    let command = equivalent::ramp(&settings.base, &request.plan, (&words, left_out));
    note(&format!("equivalent: {command}"));
}
