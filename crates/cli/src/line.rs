//! `throng line`: a delay line between two network namespaces, and a command at its near end.

use std::ffi::OsStr;
use std::io::IsTerminal;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use lab::line::{Ended, Line, LineRequest, clear_leftovers};
use measure::line::Impairment;
use measure::notation::counted;
use rustix::process::Signal;
use signal_hook::consts::SIGINT;

use crate::args::DocumentFormat;
use crate::args::line::{EachWay, LineArguments};
use crate::child::{self, LOOK_EVERY};
use crate::failure::{Failure, print};
use crate::records;
use crate::signals::{self, BY_SIGNAL};

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

/// Runs the command at the near end and waits for its end; signals are passed on to it.
fn run_near(arguments: &LineArguments, signals: &Receiver<i32>) -> Result<ExitCode, Failure> {
    // A terminal sends Ctrl-C to all of its foreground, and lets nobody else read.
    let has_terminal = std::io::stdin().is_terminal();
    let mut child = start_near(arguments, has_terminal)?;
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait().map_err(Failure::in_operation)? {
            return Ok(code_of(status));
        }
        let Ok(number) = signals.recv_timeout(LOOK_EVERY) else {
            continue;
        };
        let signal = match is_told {
            true => Signal::KILL,
            false => Signal::from_named_raw(number).unwrap_or(Signal::TERM),
        };
        if has_terminal && (number != SIGINT || is_told) {
            child::signal_alone(&child, signal);
        } else if !has_terminal {
            child::signal(&child, signal);
        }
        is_told = true;
    }
}

/// It ends with this process: `setpriv` has the kernel kill it then.
fn start_near(arguments: &LineArguments, has_terminal: bool) -> Result<Child, Failure> {
    let [near, far] = &arguments.between.0;
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", "ip", "netns", "exec", near]);
    command.args(&arguments.command);
    command.env("THRONG_NEAR", near).env("THRONG_FAR", far);
    if !has_terminal {
        command.process_group(0);
    }
    command.spawn().map_err(|error| {
        let words = arguments.command.join(OsStr::new(" "));
        let what = format!("cannot start `{}`: {error}", words.display());
        Failure::usage(what, "install the package util-linux, which has setpriv")
    })
}

/// As a shell has it.
fn code_of(status: ExitStatus) -> ExitCode {
    let code = status.code();
    let code = code.or_else(|| status.signal().map(|signal| BY_SIGNAL + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from)
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
        Some(path) => records::replace(path, &text).map_err(|error| {
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
