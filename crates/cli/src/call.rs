//! A command line as a function: from arguments, environment variables and standard input to the
//! exit code and what was printed. Tests of the command line call it, on the simulator; a process
//! each would take longer and depend on how busy the host is.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use crate::args::{Arguments, Command};
use crate::failure::{Failure, print};
use crate::streams::{self, Substitutes};
use crate::{
    capacity, ceiling, command_line, compare, compare_transports, defaults, dnsperf, doctor,
    experiment, fit, fleet, help, history, init, inputs, junit, line, manual, names, probe, ramp,
    records, replay, reports, responder, run_command, schemas, script, servers, signals, views,
};

/// What a command is given.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Without the program's name.
    pub arguments: Vec<OsString>,
    /// All environment variables that the command itself reads. Programs that it starts have those
    /// of this process.
    pub variables: BTreeMap<OsString, OsString>,
    /// Standard input.
    pub input: Vec<u8>,
}

/// How a command ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The exit code.
    pub code: u8,
    /// Standard output.
    pub output: Vec<u8>,
    /// Standard error.
    pub errors: Vec<u8>,
}

/// One command at a time: its streams are those of the process.
static CALLED: Mutex<()> = Mutex::new(());

impl Call {
    /// Runs the command in this process. Signals stay with the caller. Commands that start
    /// processes of this program do not work: the program is the caller's.
    #[must_use]
    pub fn run(self) -> Outcome {
        // One that panicked has left nothing behind that the next does not replace.
        let _alone = CALLED.lock().unwrap_or_else(PoisonError::into_inner);
        inputs::forget();
        signals::forget();
        streams::substitute(Some(Substitutes {
            variables: self.variables,
            input: self.input,
            ..Substitutes::default()
        }));
        let program = OsString::from("throng");
        let code = command([program].into_iter().chain(self.arguments).collect());
        let printed = streams::substitute(None).unwrap_or_default();
        Outcome {
            code: number_of(code),
            output: printed.output,
            errors: printed.errors,
        }
    }
}

/// The number of an exit code: one of the standard library can be compared, and not read.
pub(crate) fn number_of(code: ExitCode) -> u8 {
    let number = (0..=u8::MAX).find(|number| ExitCode::from(*number) == code);
    number.unwrap_or(u8::MAX)
}

/// Does what a command line asks for, the program's name its first word; what it does not say,
/// defaults say.
pub(crate) fn command(mut arguments: Vec<OsString>) -> ExitCode {
    let is_whole = defaults::are_refused(&mut arguments);
    execute_line(arguments, !is_whole)
}

/// As [`command`], without defaults.
pub(crate) fn whole_command(arguments: Vec<OsString>) -> ExitCode {
    execute_line(arguments, false)
}

fn execute_line(mut arguments: Vec<OsString>, has_defaults: bool) -> ExitCode {
    let called_as = (arguments.first()).and_then(|name| Path::new(name).file_name());
    if let Some(other) = called_as.and_then(drop_in) {
        return other(arguments.split_off(1));
    }
    if let Some(other) = arguments.get(1).and_then(|command| drop_in(command)) {
        return other(arguments.split_off(2));
    }
    if let [_, help, name] = &arguments[..]
        && help == "help"
        && let Some(other) = drop_in(name)
    {
        return other(vec!["-h".into()]);
    }
    if arguments.len() < 2 {
        tell!("{}", help::overview().trim_end());
        return ExitCode::from(2);
    }
    if let Some(page) = help::asked(&arguments) {
        return exit_code(print(&page).map(|()| ExitCode::SUCCESS));
    }
    let subcommand = arguments.get(1).cloned().unwrap_or_default();
    let line = match has_defaults {
        true => defaults::apply(arguments.clone())
            .map_err(|failure| junit::with_file(&arguments, failure)),
        false => Ok(defaults::Applied::none(arguments)),
    };
    let line = match line {
        Ok(line) => line,
        Err(failure) => return failure.report(),
    };
    let code = match command_line::parse(line.arguments.clone()) {
        Ok(mut arguments) => {
            if !line.has("tsig") {
                command_line::warn_of_visible_key(&mut arguments);
            }
            let ended = execute(arguments);
            exit_code(ended.map_err(|failure| junit::with_file(&line.arguments, failure)))
        }
        Err(error) => command_line::help(&error).unwrap_or_else(|| {
            let failure = command_line::wrong(&error, &subcommand.to_string_lossy());
            junit::with_file(&line.arguments, failure).report()
        }),
    };
    if let Some(note) = line.note().filter(|_| code == ExitCode::from(2)) {
        tell!("{note}");
    }
    code
}

/// The command of another program that `throng` stands in for, whose flags are that program's.
fn drop_in(name: &OsStr) -> Option<fn(Vec<OsString>) -> ExitCode> {
    match name.to_str()? {
        "dnsperf" => Some(dnsperf::main),
        "resperf" => Some(dnsperf::resperf::main),
        "queryperf" => Some(dnsperf::queryperf::main),
        _ => None,
    }
}

/// The exit code of a command that ended like this; a failure is printed.
pub(crate) fn exit_code(ended: Result<ExitCode, Failure>) -> ExitCode {
    match ended {
        Ok(code) => signals::exit_code(code),
        Err(failure) => failure.report(),
    }
}

/// The arguments; those of a run keep the flags as they were given too.
fn execute(arguments: Arguments) -> Result<ExitCode, Failure> {
    match arguments.command {
        Command::Run(command) => run_command::execute(&command),
        Command::Replay(arguments) => replay::execute(&arguments),
        Command::Compare(arguments) => compare::execute(&arguments),
        Command::CompareTransports(arguments) => compare_transports::execute(&arguments),
        Command::Capacity(arguments) => capacity::execute(&arguments),
        Command::Ramp(arguments) => ramp::execute(&arguments),
        Command::Ping(arguments) => probe::ping::execute(&arguments),
        Command::Eval(arguments) => probe::eval::execute(&arguments),
        Command::Trace(arguments) => probe::trace::execute(&arguments),
        Command::Experiment(arguments) => experiment::execute(&arguments),
        Command::History(arguments) => history::execute(&arguments),
        Command::Serve(arguments) => views::serve(&arguments),
        Command::Fleet(arguments) => fleet::execute(&arguments),
        Command::Responder(arguments) => responder::execute(&arguments),
        Command::Lab(arguments) => servers::execute(&arguments),
        Command::Line(arguments) => line::execute(&arguments),
        Command::Names(arguments) => names::execute(&arguments),
        Command::Fit(arguments) => fit::execute(&arguments),
        Command::Report(arguments) => reports::execute(&arguments),
        Command::Doctor(arguments) => doctor::execute(&arguments),
        Command::Merge(arguments) => records::merge(&arguments),
        Command::Script(arguments) => script::execute(&arguments),
        Command::Init(arguments) => init::execute(&arguments),
        Command::Config(arguments) => defaults::execute(&arguments),
        Command::Schema(arguments) => schemas::execute(arguments.of),
        Command::Ceiling(arguments) => ceiling::execute(&arguments),
        Command::Man(arguments) => manual::man(&arguments),
        Command::Licenses => manual::licenses(),
        Command::Completions(arguments) => manual::completions(&arguments),
        // Handled before the other commands are parsed: its flags are dnsperf's.
        Command::Dnsperf { arguments } => Ok(dnsperf::main(arguments)),
        Command::Resperf { arguments } => Ok(dnsperf::resperf::main(arguments)),
        Command::Queryperf { arguments } => Ok(dnsperf::queryperf::main(arguments)),
    }
}
