//! Adds up the snapshots of a command.

use std::collections::BTreeMap;
use std::sync::Arc;

use lab::live::{Next, Snapshot};
use measure::Interval;
use settings::Transport;

use crate::family::{Family, ScrapeCounts};
use crate::format::Format;
use crate::{protobuf, table, text};

/// Most groups of clients whose counts are kept: each has three histograms of 30 KB.
pub const GROUPS_MAX: usize = 64;

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
    /// The sums of all intervals, by the transport of their runs.
    pub(crate) totals: BTreeMap<&'static str, Interval>,
    /// The sums of the intervals of each group of clients.
    pub(crate) groups: BTreeMap<String, Interval>,
    /// Intervals of groups above [`GROUPS_MAX`].
    pub(crate) group_intervals_dropped: u64,
    pub(crate) newest: Option<Arc<Snapshot>>,
    pub(crate) snapshots_read: u64,
    pub(crate) snapshots_missed: u64,
}

/// The label of a run whose groups differ in their transport.
const MIXED: &str = "mixed";

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
        self.snapshots_missed += next.missed.end.saturating_sub(next.missed.start);
        for snapshot in &next.snapshots {
            self.add(snapshot);
        }
    }

    fn add(&mut self, snapshot: &Arc<Snapshot>) {
        self.snapshots_read += 1;
        let shown = &snapshot.shown;
        let total = self.totals.entry(transport(snapshot)).or_default();
        if let Some(interval) = &shown.interval {
            total.append_in_time(interval);
        }
        for group in &shown.groups {
            if !self.groups.contains_key(&group.name) && self.groups.len() >= GROUPS_MAX {
                self.group_intervals_dropped += 1;
                continue;
            }
            let total = self.groups.entry(group.name.clone()).or_default();
            total.append_in_time(&group.interval);
        }
        self.newest = Some(Arc::clone(snapshot));
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

/// The transport of the run of a snapshot, as label.
pub(crate) fn transport(snapshot: &Snapshot) -> &'static str {
    snapshot.shown.transport.map_or(MIXED, Transport::name)
}

#[cfg(test)]
mod tests;
