//! What went wrong, for people: what, where, the cure, and the exit code.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use measure::printable;

use crate::args::values::CURE;
use crate::signals;
use crate::streams;
use crate::terminal;

/// Exit code of a command that did what it was asked to, and whose result is not as a condition
/// demands.
pub(crate) const CONDITION_FAILED: u8 = 3;

/// Exit code of a run that a condition of `--abort-if` ended early.
pub(crate) const ABORTED: u8 = 4;

/// Exit code of a command that could not be started.
const USAGE: u8 = 2;

/// Stands for that of the signal that came.
const INTERRUPTED: u8 = 128;

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    hint: Option<String>,
    code: u8,
    /// The file for CI has it.
    is_in_junit: bool,
}

impl Failure {
    /// Wrong usage or bad input: nothing was started. Exit code 2.
    pub(crate) fn usage(what: impl Display, hint: impl Display) -> Self {
        Failure {
            hint: Some(hint.to_string()),
            ..Failure::plain(what)
        }
    }

    /// The reason of a parser of values, which may end with its cure or with what it expects.
    pub(crate) fn of_value(reason: &str) -> Self {
        match (reason.split_once(CURE), reason.split_once(": expected ")) {
            (Some((what, cure)), _) => Failure::usage(what, cure),
            (None, Some((what, form))) => Failure::usage(what, format!("expected {form}")),
            (None, None) => Failure::plain(reason),
        }
    }

    /// As [`Failure::usage`], where the message says it all.
    pub(crate) fn plain(what: impl Display) -> Self {
        Failure {
            what: what.to_string(),
            hint: None,
            code: USAGE,
            is_in_junit: false,
        }
    }

    /// It could not be started, for a reason that has an exit code of its own.
    pub(crate) fn coded(what: impl Display, hint: impl Display, code: u8) -> Self {
        Failure {
            code,
            ..Failure::usage(what, hint)
        }
    }

    /// A file or folder that cannot be written; the hint is that of the error, if it has one.
    pub(crate) fn unwritable(what: impl Display, error: &io::Error, hint: &str) -> Self {
        Failure::usage(what, lab::files::cure(error).unwrap_or(hint))
    }

    /// It was started and failed. Exit code 1.
    pub(crate) fn in_operation(what: impl Display) -> Self {
        Failure {
            code: 1,
            ..Failure::plain(what)
        }
    }

    /// It was interrupted before there was anything to tell. The exit code is the signal's.
    pub(crate) fn interrupted(what: impl Display) -> Self {
        Failure {
            code: INTERRUPTED,
            ..Failure::in_operation(what)
        }
    }

    /// What is wrong, without the hint.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// True if the file for CI has it.
    pub(crate) fn is_in_junit(&self) -> bool {
        self.is_in_junit
    }

    /// The same once the file for CI has it.
    pub(crate) fn in_junit(self) -> Self {
        Failure {
            is_in_junit: true,
            ..self
        }
    }

    /// The same with that hint, if it has none.
    pub(crate) fn or_hint(self, hint: &str) -> Self {
        let hint = self.hint.or_else(|| Some(hint.to_owned()));
        Failure { hint, ..self }
    }

    /// The same with what it belongs to before it.
    pub(crate) fn of(self, what: &str) -> Self {
        Failure {
            what: format!("{what}: {}", self.what),
            ..self
        }
    }

    /// Prints it on standard error.
    pub(crate) fn report(&self) -> ExitCode {
        tell!("error: {}", self.what);
        if let Some(hint) = &self.hint {
            tell!("hint: {hint}");
        }
        match self.code {
            INTERRUPTED => signals::exit_code(ExitCode::FAILURE),
            // Why it could not start does not matter any more.
            USAGE => signals::exit_code(ExitCode::from(USAGE)),
            code => ExitCode::from(code),
        }
    }
}

/// Refuses the first of these flags that is given, with its cure: it has no place in `what`.
pub(crate) fn refuse(flags: &[(&str, bool, &str)], what: &str) -> Result<(), Failure> {
    match flags.iter().find(|(_, is_given, _)| *is_given) {
        None => Ok(()),
        Some((flag, _, cure)) => Err(Failure::usage(
            format!("{flag} cannot be used {what}"),
            format!("leave it out: {cure}"),
        )),
    }
}

impl Failure {
    /// For the lead of this process.
    pub(crate) fn agent_error(&self) -> lab::agents::AgentError {
        lab::agents::AgentError {
            what: self.what.clone(),
            hint: self.hint.clone(),
            code: self.code,
        }
    }
}

impl From<lab::agents::AgentsError> for Failure {
    fn from(error: lab::agents::AgentsError) -> Self {
        use lab::agents::AgentsError::{Broken, Refused};
        let (error, code) = match error {
            Refused(error) => (error, USAGE),
            Broken(error) => (error, 1),
        };
        Failure {
            code,
            ..error.into()
        }
    }
}

impl From<lab::run::RunError> for Failure {
    fn from(error: lab::run::RunError) -> Self {
        Failure {
            hint: error.hint,
            ..Failure::plain(error.what)
        }
    }
}

impl From<anyhow::Error> for Failure {
    /// A server that could not be started: a message may end with its hint.
    fn from(error: anyhow::Error) -> Self {
        let mut whats = Vec::new();
        let mut hint = None;
        for message in error.chain().map(ToString::to_string) {
            let (what, cure) = message.split_once("\nhint: ").unwrap_or((&message, ""));
            whats.push(what.to_owned());
            hint = hint.or_else(|| (!cure.is_empty()).then(|| cure.to_owned()));
        }
        let mut causes = error.chain().filter_map(<dyn Error>::downcast_ref);
        if causes.any(|it: &io::Error| it.kind() == io::ErrorKind::StorageFull) {
            let cure = "free some space there, or name another folder in TMPDIR";
            hint = hint.or_else(|| Some(cure.to_owned()));
        }
        Failure {
            hint,
            ..Failure::plain(whats.join(": "))
        }
    }
}

impl From<load::PlanError> for Failure {
    fn from(error: load::PlanError) -> Self {
        Failure::usage(format!("--{}: {}", error.setting, error.what), error.hint)
    }
}

/// Writes the result of a run to standard output, with colours where it has them.
pub(crate) fn print_result(text: &str) -> Result<(), Failure> {
    let text = printable(text);
    match streams::output_has_colors() {
        true => write(&terminal::colored(&text)),
        false => write(&text),
    }
}

/// Writes to standard output; a reader that has gone away is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    write(&printable(text))
}

fn write(text: &str) -> Result<(), Failure> {
    match terminal::output(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::in_operation(
            format!("cannot write to standard output: {error}"),
        )),
        _ => Ok(()),
    }
}
