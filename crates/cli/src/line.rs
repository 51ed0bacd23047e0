//! `throng line`: a delay line between two network namespaces, and a command at its near end.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use lab::files::{self, Access};
use lab::line::{Ended, Line, LineRequest, clear_leftovers};
use measure::line::Impairment;
use measure::notation::counted;

use crate::args::DocumentFormat;
use crate::args::line::{EachWay, LineArguments};
use crate::child;
use crate::failure::{Failure, print};
use crate::signals;

/// How long a line without --duration may last: a forgotten one must end some day.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Lays the line, keeps it until something ends it, and says what it did.
pub(crate) fn execute(arguments: &LineArguments) -> Result<ExitCode, Failure> {
    let request = request(arguments);
    lab::line::check(&request)?;
    let signals = signals::receiver()?;
    for left in clear_leftovers() {
        let with = match left.processes {
            0 => String::new(),
            processes => format!(", with {} in it", counted(processes as u64, "process")),
        };
        let name = left.name;
        tell!("removed the network namespace `{name}`{with}: a line that was killed had left it");
    }
    let line = Line::lay(&request)?;
    let ended = match arguments.command.is_empty() {
        true => {
            tell!("{}", announcement(&request));
            let time = arguments.duration.unwrap_or(DURATION_MAX);
            // Either a signal or the end of the time ends it.
            let _ = signals.recv_timeout(time);
            Ok(ExitCode::SUCCESS)
        }
        false => run_near(arguments, &signals),
    };
    let result = line.end();
    report(arguments, &result)?;
    ended
}

fn request(arguments: &LineArguments) -> LineRequest {
    let asked = |direction: usize| {
        let ns = |times: &EachWay<Duration>| {
            u64::try_from(times.0[direction].as_nanos()).unwrap_or(u64::MAX)
        };
        Impairment {
            delay_ns: ns(&arguments.delay),
            jitter_ns: ns(&arguments.jitter),
            loss: arguments.loss.0[direction],
            reorder: arguments.reorder.0[direction],
            reorder_by_ns: ns(&arguments.reorder_by),
            duplicate: arguments.duplicate.0[direction],
            rate_bps: arguments.rate.as_ref().map(|rate| rate.0[direction]),
            queue: arguments.queue.0[direction],
        }
    };
    LineRequest {
        between: arguments.between.0.clone(),
        joins: arguments.join,
        addresses: [&arguments.near_addresses, &arguments.far_addresses].map(Clone::clone),
        seed: arguments.seed,
        asked: [0, 1].map(asked),
    }
}

/// `throng-near (10.98.0.1) and throng-far (10.98.0.2) are joined: 10.00 ms each way`.
fn announcement(request: &LineRequest) -> String {
    let ends = request.between.iter().zip(&request.addresses);
    let ends = ends.map(|(name, addresses)| {
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        format!("{name} ({})", addresses.join(", "))
    });
    let ends: Vec<String> = ends.collect();
    let [to_far, to_near] = &request.asked;
    let asked = report::line::asked([to_far, to_near]);
    format!("{} are joined: {asked}; Ctrl-C ends it", ends.join(" and "))
}

/// Runs the command at the near end and waits for its end.
fn run_near(arguments: &LineArguments, signals: &Receiver<i32>) -> Result<ExitCode, Failure> {
    let [near, far] = &arguments.between.0;
    let words = ["ip", "netns", "exec", near].map(OsStr::new);
    let words: Vec<&OsStr> = words
        .into_iter()
        .chain(arguments.command.iter().map(OsString::as_os_str))
        .collect();
    let environment = [("THRONG_NEAR", near), ("THRONG_FAR", far)];
    let environment = environment.map(|(name, value)| (name.to_owned(), value.into()));
    child::run_beside(&words, environment, signals)
}

/// Says what the line did, where it was asked to.
fn report(arguments: &LineArguments, ended: &Ended) -> Result<(), Failure> {
    if ended.processes > 0 {
        let processes = counted(ended.processes as u64, "process");
        tell!("ended {processes} that still ran in the line's namespaces");
    }
    let is_json = |path: &std::path::Path| path.extension().is_some_and(|it| it == "json");
    let by_name = match arguments.output.as_deref().is_some_and(is_json) {
        true => DocumentFormat::Json,
        false => DocumentFormat::Text,
    };
    let text = match arguments.format.unwrap_or(by_name) {
        DocumentFormat::Text => report::line::text(&ended.line),
        DocumentFormat::Json => {
            let json = serde_json::to_string_pretty(&ended.line);
            format!("{}\n", json.map_err(Failure::in_operation)?)
        }
    };
    match &arguments.output {
        Some(path) => files::write(path, Access::Umask, &text).map_err(|error| {
            crate::terminal::text(&text);
            let what = format!("cannot write {}: {error}", path.display());
            Failure::in_operation(what)
        }),
        // Standard output is the command's.
        None if !arguments.command.is_empty() => {
            crate::terminal::text(&text);
            Ok(())
        }
        None => print(&text),
    }
}
