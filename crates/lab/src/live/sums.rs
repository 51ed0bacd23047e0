//! Adds up the snapshots of a command, for readers that show totals.

use std::collections::BTreeMap;
use std::sync::Arc;

use measure::Interval;
use settings::Transport;

use super::scrapes::Scrapes;
use super::{Next, Snapshot};

/// Most groups of clients whose counts are kept: each has three histograms of 30 KB.
pub const GROUPS_MAX: usize = 64;

/// The name of the transport of a run whose groups differ in it.
const MIXED: &str = "mixed";

/// What all snapshots of a command have shown so far.
#[derive(Debug, Default)]
pub struct Sums {
    /// The sums of all intervals, by the transport of their runs.
    pub totals: BTreeMap<&'static str, Interval>,
    /// The sums of the intervals of each group of clients.
    pub groups: BTreeMap<String, Interval>,
    /// Intervals of groups above [`GROUPS_MAX`].
    pub group_intervals_dropped: u64,
    /// What is observed beside the run.
    pub scrapes: Scrapes,
    /// The newest snapshot.
    pub newest: Option<Arc<Snapshot>>,
    /// Snapshots that are in the sums.
    pub snapshots_read: u64,
    /// Snapshots that are not: they had left the ring.
    pub snapshots_missed: u64,
}

impl Sums {
    /// Adds what a reader of snapshots was given.
    pub fn read(&mut self, next: &Next) {
        self.snapshots_missed += next.missed.end.saturating_sub(next.missed.start);
        for snapshot in &next.snapshots {
            self.add(snapshot);
        }
    }

    /// Adds one snapshot.
    pub fn add(&mut self, snapshot: &Arc<Snapshot>) {
        self.snapshots_read += 1;
        let shown = &snapshot.shown;
        let total = self.totals.entry(snapshot.transport_name()).or_default();
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
        for scrape in &shown.observations {
            self.scrapes.add(scrape);
        }
        self.newest = Some(Arc::clone(snapshot));
    }
}

impl Snapshot {
    /// The transport of its run; `mixed` if groups of clients differ.
    pub fn transport_name(&self) -> &'static str {
        self.shown.transport.map_or(MIXED, Transport::name)
    }
}
