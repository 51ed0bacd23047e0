//! Why a names file or an update file cannot be used: where, what, and the cure.

use std::fmt;

use proto::name::NameError;

/// The one fault that makes an input file unusable; the first one found.
///
/// Shown as `line 17: unknown type ...`, without the file's name, which only the caller knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamesError {
    /// Where in the input.
    pub place: FilePosition,
    /// What is wrong there.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

/// A place in an input file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilePosition {
    /// The file as a whole.
    Whole,
    /// A line of a text.
    Line {
        /// The line, from 1.
        line: usize,
        /// The octet within the line, from 1.
        column: usize,
    },
    /// A message of a binary stream.
    Message {
        /// The message, from 1.
        number: usize,
        /// The octet of the file at which its length prefix starts, from 0.
        offset: usize,
    },
}

impl fmt::Display for NamesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            FilePosition::Whole => write!(f, "{}", self.what),
            FilePosition::Line { line, .. } => write!(f, "line {line}: {}", self.what),
            FilePosition::Message { number, offset } => {
                write!(f, "message {number} at byte {offset}: {}", self.what)
            }
        }
    }
}

impl std::error::Error for NamesError {}

/// A fault within one line, before anything knows the number of that line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Octet within the line, from 1.
    pub(crate) column: usize,
    pub(crate) what: String,
    pub(crate) hint: String,
}

impl Fault {
    pub(crate) fn new(column: usize, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Fault {
            column,
            what: what.into(),
            hint: hint.into(),
        }
    }

    /// The error at `line` (from 1), quoting the line's text.
    pub(crate) fn at_line(self, line: usize, text: &str) -> NamesError {
        NamesError {
            place: FilePosition::Line {
                line,
                column: self.column,
            },
            what: format!("{} in `{}`", self.what, excerpt(text)),
            hint: self.hint,
        }
    }
}

/// At most 80 characters of `text`, with nothing in them that would upset a terminal.
pub(crate) fn excerpt(text: &str) -> String {
    const CHARACTERS_MAX: usize = 80;
    let text = text.trim();
    let mut excerpt: String = text
        .chars()
        .take(CHARACTERS_MAX)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if text.chars().nth(CHARACTERS_MAX).is_some() {
        excerpt.push_str("...");
    }
    excerpt
}

/// What is wrong with the domain name `text`.
pub(crate) fn name_fault(text: &str, error: NameError) -> String {
    format!("bad name `{}`: {error}", excerpt(text))
}

/// The cure for a domain name with a fault.
pub(crate) const NAME_HINT: &str = "labels have 1 to 63 bytes, names at most 255, the root is \
     `.`; bytes that cannot be typed are written `\\DDD` in decimal";
