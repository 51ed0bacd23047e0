//! What went wrong, for people: what, where, the cure, and the exit code.

use std::fmt::Display;
use std::process::ExitCode;

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    what: String,
    hint: Option<String>,
    code: u8,
}

impl Failure {
    /// Wrong usage or bad input: nothing was started. Exit code 2.
    pub(crate) fn usage(what: impl Display, hint: impl Display) -> Self {
        Failure {
            what: what.to_string(),
            hint: Some(hint.to_string()),
            code: 2,
        }
    }

    /// As [`Failure::usage`], where the message says it all.
    pub(crate) fn plain(what: impl Display) -> Self {
        Failure {
            what: what.to_string(),
            hint: None,
            code: 2,
        }
    }

    /// It was started and failed. Exit code 1.
    pub(crate) fn in_operation(what: impl Display) -> Self {
        Failure {
            what: what.to_string(),
            hint: None,
            code: 1,
        }
    }

    /// Prints it on standard error.
    pub(crate) fn report(&self) -> ExitCode {
        eprintln!("error: {}", self.what);
        if let Some(hint) = &self.hint {
            eprintln!("hint: {hint}");
        }
        ExitCode::from(self.code)
    }
}

impl From<lab::run::RunError> for Failure {
    fn from(error: lab::run::RunError) -> Self {
        Failure {
            what: error.what,
            hint: error.hint,
            code: 2,
        }
    }
}

impl From<load::PlanError> for Failure {
    fn from(error: load::PlanError) -> Self {
        Failure::usage(format!("--{}: {}", error.setting, error.what), error.hint)
    }
}

/// Writes to standard output; a reader that has gone away is no error.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    use std::io::{ErrorKind, Write};
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::in_operation(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}
