//! Why a scrape gave nothing: an outcome, which becomes a note and missing samples.

use std::fmt;
use std::io;
use std::time::Duration;

/// Why a scrape gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// Nothing answers there, or the source is gone.
    Gone(String),
    /// The answer took longer than a scrape may take.
    Slow(Duration),
    /// The answer is longer than it may be, in octets.
    Large(u64),
    /// The answer is a refusal.
    Refused(String),
    /// The answer is not what the profile expects.
    Malformed(String),
}

impl Gap {
    /// What a failed read or write was.
    pub(crate) fn of_io(error: &io::Error, limit: Duration) -> Gap {
        match error.kind() {
            // The kernel reports the timeout of a socket as either.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Gap::Slow(limit),
            _ => Gap::Gone(error.to_string()),
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Gap::Gone(what) => f.write_str(what),
            Gap::Slow(limit) => write!(f, "no complete answer within {limit:?}"),
            Gap::Large(limit) => {
                write!(
                    f,
                    "the answer has more than {limit} bytes, the rest was not read"
                )
            }
            Gap::Refused(what) => write!(f, "refused: {what}"),
            Gap::Malformed(what) => write!(f, "the answer is not understood: {what}"),
        }
    }
}

impl std::error::Error for Gap {}
