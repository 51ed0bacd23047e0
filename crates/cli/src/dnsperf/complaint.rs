//! Why nothing was run, and where messages go.
//!
//! The words, their streams and the usage after them are dnsperf's, for scripts look for them; a
//! `hint:` line of our own may follow.

use std::process::ExitCode;

use crate::terminal;

/// dnsperf's exit code for everything that keeps it from running.
const EXIT_CODE: u8 = 1;

/// What is printed around the words of a complaint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The words alone on standard error, then the usage: an option that cannot be read.
    Usage,
    /// `Warning: ` before them, then the usage: a value that means nothing.
    WarningUsage,
    /// `Error: ` before them.
    Error,
    /// The words alone on standard error: options that exclude each other.
    Bare,
}

/// What was wrong, with the cure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Complaint {
    form: Form,
    /// What and where.
    pub(super) what: String,
    /// What to do about it.
    pub(super) hint: Option<String>,
}

impl Complaint {
    fn of(form: Form, what: impl Into<String>) -> Self {
        Complaint {
            form,
            what: what.into(),
            hint: None,
        }
    }

    /// An option that cannot be read.
    pub(super) fn usage(what: impl Into<String>) -> Self {
        Complaint::of(Form::Usage, what)
    }

    /// A value that means nothing.
    pub(super) fn value(what: impl Into<String>) -> Self {
        Complaint::of(Form::WarningUsage, what)
    }

    /// Options that exclude each other.
    pub(super) fn bare(what: impl Into<String>) -> Self {
        Complaint::of(Form::Bare, what)
    }

    pub(super) fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Complaint::plain(what).with_hint(hint)
    }

    pub(super) fn plain(what: impl Into<String>) -> Self {
        Complaint::of(Form::Error, what)
    }

    pub(super) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Prints it, with the program's usage where dnsperf shows it; returns the exit code.
    pub(super) fn report(&self, messages: &Messages, usage: &str) -> ExitCode {
        match self.form {
            Form::Usage | Form::Bare => note(&self.what),
            Form::WarningUsage => messages.warn(&self.what),
            Form::Error => messages.print(&format!("Error: {}", self.what)),
        }
        if let Some(hint) = &self.hint {
            note(&format!("hint: {hint}"));
        }
        if matches!(self.form, Form::Usage | Form::WarningUsage) {
            note(usage.trim_end());
        }
        ExitCode::from(EXIT_CODE)
    }
}

/// Long flags in hints of the library crates, and dnsperf's letters for them.
const FLAGS: [(&str, &str); 5] = [
    ("--clients", "-c"),
    ("--local-address", "-a"),
    ("--timeout", "-t"),
    ("--workers", "-T"),
    ("--outstanding", "-q"),
];

fn with_letters(text: &str) -> String {
    let replaced = |text: String, (flag, letter): &(&str, &str)| text.replace(flag, letter);
    FLAGS.iter().fold(text.to_owned(), replaced)
}

impl From<lab::run::RunError> for Complaint {
    fn from(error: lab::run::RunError) -> Self {
        let complaint = Complaint::plain(with_letters(&error.what));
        Complaint {
            hint: error.hint.as_deref().map(with_letters),
            ..complaint
        }
    }
}

impl From<load::PlanError> for Complaint {
    fn from(error: load::PlanError) -> Self {
        let option = match error.setting {
            "clients" => "-c",
            "workers" => "-T",
            "outstanding" => "-q",
            "rate" => "-Q",
            "timeout" => "-t",
            "interval" => "-S",
            "duration" => "-l",
            "queries" => "-n",
            "server" => "-p",
            "names" => "-d",
            "local-address" => "-a",
            "local-port" => "-x",
            other => other,
        };
        Complaint::new(format!("{option}: {}", error.what), error.hint)
    }
}

/// Where warnings and errors go: standard error, or with `-W` standard output.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Messages {
    /// `-W` was given.
    pub(super) to_stdout: bool,
}

impl Messages {
    pub(super) fn warn(&self, text: &str) {
        self.print(&format!("Warning: {text}"));
    }

    fn print(&self, line: &str) {
        if self.to_stdout {
            // A reader that has gone away misses nothing it wanted.
            let _ = crate::failure::print(&format!("{line}\n"));
        } else {
            note(line);
        }
    }
}

/// Prints a line on standard error.
pub(super) fn note(line: &str) {
    let _ = terminal::octets(format!("{line}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_libraries_name_the_letters() {
        let error = lab::run::RunError::new("300 clients need 332", "use --clients 10, or more");
        assert_eq!(
            Complaint::from(error).hint.as_deref(),
            Some("use -c 10, or more")
        );
    }
}
