//! The command line of a process, or of one that would be started.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};

use crate::args::values::CURE;
use crate::args::{Arguments, Command, RunArguments, endpoint};
use crate::failure::Failure;
use crate::scenario::keys::given;
use crate::{habits, help, streams, terminal};

/// Reads the words of a command line, the program's name the first.
///
/// # Errors
/// As [`wrong`] says it.
pub(crate) fn parse(arguments: Vec<OsString>) -> Result<Arguments, clap::Error> {
    if let Some(reason) = habits::clash(&arguments) {
        return Err(refused(&reason));
    }
    let mut command = help::commands();
    let matches = command.try_get_matches_from_mut(arguments)?;
    let mut parsed = Arguments::from_arg_matches(&matches)?;
    let run = run_of(&mut parsed.command);
    if let (Some(run), Some((name, matches))) = (run, matches.subcommand()) {
        run.given = given(name, matches);
    }
    // A comparison of transports names one before each of its servers.
    let is_compared = matches!(parsed.command, Command::CompareTransports(_));
    if let Some(run) = run_of(&mut parsed.command).filter(|_| !is_compared) {
        endpoint::apply(run).map_err(|reason| refused(&reason))?;
    }
    Ok(parsed)
}

/// An error that the parser does not find itself; the reason has its cure.
fn refused(reason: &str) -> clap::Error {
    clap::Error::raw(ErrorKind::ValueValidation, format!("{reason}\n"))
}

/// The flags of the run, or of the runs, that a command makes.
pub(crate) fn run_of(command: &mut Command) -> Option<&mut RunArguments> {
    match command {
        Command::Run(command) => Some(&mut command.run),
        Command::Replay(replay) => Some(&mut replay.run),
        Command::CompareTransports(comparison) => Some(&mut comparison.run),
        Command::Capacity(search) => Some(&mut search.run),
        Command::Ramp(ramp) => Some(&mut ramp.run),
        Command::Ping(ping) => Some(&mut ping.probe.run),
        Command::Eval(eval) => Some(&mut eval.probe.run),
        Command::Trace(trace) => Some(&mut trace.probe.run),
        _ => None,
    }
}

/// Warns of a key among the words of this process, which other users can read in `/proc`.
pub(crate) fn warn_of_visible_key(arguments: &mut Arguments) {
    let run = run_of(&mut arguments.command);
    let key = run.and_then(|run| run.tsig.as_deref());
    // What is no key is refused.
    if key.is_some_and(|key| key.parse::<proto::tsig::Key>().is_ok()) {
        tell!(
            "warning: --tsig: other users of this host can read the key in the list of processes\n\
             hint: write the key to a file that only you can read, `(umask 077; tsig-keygen NAME > \
             FILE)`, and give --tsig-file FILE"
        );
    }
}

/// Prints the help or the version if that is what was asked for; returns the exit code then.
pub(crate) fn help(error: &clap::Error) -> Option<ExitCode> {
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if !is_help {
        return None;
    }
    // That it cannot be printed is not reported: nothing was done that could fail.
    let _ = match (streams::are_substituted(), error.use_stderr()) {
        (false, _) => error.print(),
        (true, true) => terminal::octets(error.to_string().as_bytes()),
        (true, false) => terminal::output(error.to_string().as_bytes()),
    };
    u8::try_from(error.exit_code()).ok().map(ExitCode::from)
}

/// Flags that cannot be understood, in the form of all other errors.
///
/// [`help`] has to be looked at before: help and version are no errors.
pub(crate) fn wrong(error: &clap::Error, subcommand: &str) -> Failure {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let (what, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    if let Some((what, cure)) = what.split_once(CURE) {
        return Failure::usage(what, cure.trim_end());
    }
    if let Some((what, cure)) = unread_value(what) {
        return Failure::usage(what, cure);
    }
    if let Some((what, cure)) = habits::meant(error, subcommand) {
        return Failure::usage(what, cure);
    }
    let tip = rest
        .lines()
        .find_map(|line| line.trim_start().strip_prefix("tip: "))
        // A mistyped flag is not meant as a value.
        .filter(|tip| !tip.contains(" as a value"));
    let values = what.split_once("\n  [").map(|(_, values)| values);
    let hint = match (tip, values) {
        (Some(tip), _) => tip.to_owned(),
        (None, Some(values)) => values.trim_end().trim_end_matches(']').to_owned(),
        (None, None) if error.kind() == ErrorKind::ArgumentConflict => {
            "leave out one of them".to_owned()
        }
        (None, None) => format!("see `throng{} --help`", known_subcommand(subcommand)),
    };
    let what = what.split("\n  [").next().unwrap_or(what);
    let words: Vec<&str> = what.split_whitespace().collect();
    Failure::usage(words.join(" "), hint)
}

/// What the parsers of the standard library and of clap say of a value, in words, with the cure.
fn unread_value(what: &str) -> Option<(String, String)> {
    if let Some((flag, _)) = what.split_once(" but none was supplied") {
        let flag = flag.rsplit_once("for '").map_or(flag, |(_, flag)| flag);
        let cure = format!("write {} with its value", flag.trim_end_matches('\''));
        return Some((what.to_owned(), cure));
    }
    let (place, reason) = what.strip_prefix("invalid value '")?.split_once("': ")?;
    let value = place.split_once("' for ").map_or(place, |(value, _)| value);
    let (reason, cure) = match reason {
        "invalid digit found in string" | "number too large to fit in target type" => (
            format!("`{value}` is not a whole number that fits"),
            "write it in digits".to_owned(),
        ),
        "invalid float literal" => (
            format!("`{value}` is not a number"),
            "write it in digits, such as 0.5".to_owned(),
        ),
        "invalid socket address syntax" => (
            format!("`{value}` is not an address with a port"),
            "write ADDRESS:PORT, such as 127.0.0.1:9350".to_owned(),
        ),
        reason => match (
            reason.split_once(": expected "),
            reason.split_once(" is not in "),
        ) {
            (Some((reason, expected)), _) => (reason.to_owned(), format!("expected {expected}")),
            (None, Some((_, range))) => {
                let (min, max) = range.split_once("..=")?;
                (
                    reason.to_owned(),
                    format!("give a number from {min} to {max}"),
                )
            }
            (None, None) => return None,
        },
    };
    Some((format!("invalid value '{place}': {reason}"), cure))
}

/// The subcommand after a blank, if there is one of that name.
fn known_subcommand(name: &str) -> String {
    let is_known = Arguments::command().find_subcommand(name).is_some();
    match is_known {
        true => format!(" {name}"),
        false => String::new(),
    }
}
