//! What the snapshots of a command add up to, and how it is encoded.

use lab::live::{Next, Sums};

use crate::family::{Family, ScrapeCounts};
use crate::format::Format;
use crate::{protobuf, table, text};

/// What a command is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Version of Throng.
    pub version: String,
    /// The command, such as `run`.
    pub command: String,
}

/// What all snapshots of a command have shown so far.
#[derive(Debug, Default)]
pub struct Accumulator {
    pub(crate) about: About,
    pub(crate) sums: Sums,
}

impl Accumulator {
    /// Of a command that has shown nothing yet.
    pub fn new(about: About) -> Accumulator {
        Accumulator {
            about,
            ..Accumulator::default()
        }
    }

    /// Adds what a reader of snapshots was given.
    pub fn read(&mut self, next: &Next) {
        self.sums.read(next);
    }

    /// Everything that was counted, in a format that a scraper accepts.
    pub fn encode(&self, format: Format, scrapes: ScrapeCounts) -> Vec<u8> {
        encode(&table::families(self, scrapes), format)
    }
}

/// Families in a format that a scraper accepts.
pub(crate) fn encode(families: &[Family], format: Format) -> Vec<u8> {
    match format {
        Format::Text | Format::OpenMetrics => text::encode(families, format).into_bytes(),
        Format::Protobuf => protobuf::encode(families),
    }
}

#[cfg(test)]
mod tests;
