//! Counters of several processes, added up while processes start and end.
//!
//! A server that replaces its workers (NSD on a reload) takes their counters with them. What they
//! had counted at the last scrape stays in the sum, which so never runs backwards.

use std::collections::BTreeMap;

use super::{Root, Stat, TICKS_PER_SECOND};

/// A process: its number, and when it started in ticks since boot.
pub(super) type ProcessKey = (u32, u64);

/// What one process has counted since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counters {
    pub(super) user_s: f64,
    pub(super) system_s: f64,
    pub(super) major_faults: f64,
    pub(super) run_queue_s: f64,
    pub(super) voluntary: f64,
    pub(super) involuntary: f64,
}

impl From<&Stat> for Counters {
    fn from(stat: &Stat) -> Counters {
        Counters {
            user_s: stat.user_s,
            system_s: stat.system_s,
            major_faults: stat.major_faults as f64,
            ..Counters::default()
        }
    }
}

impl Counters {
    /// Adds others, each value times `sign`.
    fn add(&mut self, other: &Counters, sign: f64) {
        self.user_s += sign * other.user_s;
        self.system_s += sign * other.system_s;
        self.major_faults += sign * other.major_faults;
        self.run_queue_s += sign * other.run_queue_s;
        self.voluntary += sign * other.voluntary;
        self.involuntary += sign * other.involuntary;
    }
}

/// The sum over all processes that were seen.
#[derive(Clone, Debug, Default)]
pub(super) struct ProcessSums {
    /// Of each process at the last scrape.
    latest: BTreeMap<ProcessKey, Counters>,
    /// Of processes that have ended, without what others had counted before they were found.
    ended: Counters,
    /// Ticks since boot at the last scrape; none before the first.
    read_at: Option<u64>,
}

impl ProcessSums {
    /// Takes the counters of a scrape; returns the sum.
    pub(super) fn add(
        &mut self,
        counters: BTreeMap<ProcessKey, Counters>,
        uptime_ticks: Option<u64>,
    ) -> Counters {
        for (_, before) in self
            .latest
            .iter()
            .filter(|(key, _)| !counters.contains_key(key))
        {
            self.ended.add(before, 1.0);
        }
        for (key, now) in counters
            .iter()
            .filter(|(key, _)| !self.latest.contains_key(key))
        {
            // One that ran already did other work until then.
            if self.read_at.is_some_and(|read_at| key.1 < read_at) {
                self.ended.add(now, -1.0);
            }
        }
        self.latest = counters;
        self.read_at = uptime_ticks.or(self.read_at);
        let mut sum = self.ended;
        self.latest.values().for_each(|each| sum.add(each, 1.0));
        sum
    }
}

/// Ticks since boot.
pub(super) fn uptime_ticks(root: &Root) -> Option<u64> {
    let text = root.text("proc/uptime")?;
    let seconds: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some((seconds * TICKS_PER_SECOND) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrape(sums: &mut ProcessSums, at: u64, processes: &[(u32, u64, f64)]) -> f64 {
        let each = processes.iter().map(|(pid, started, user_s)| {
            let counters = Counters {
                user_s: *user_s,
                ..Counters::default()
            };
            ((*pid, *started), counters)
        });
        sums.add(each.collect(), Some(at)).user_s
    }

    #[test]
    fn sum_keeps_what_ended_workers_had_counted() {
        let mut sums = ProcessSums::default();
        assert_eq!(scrape(&mut sums, 100, &[(1, 10, 1.0), (2, 20, 5.0)]), 6.0);
        assert_eq!(scrape(&mut sums, 200, &[(1, 10, 1.0), (2, 20, 9.0)]), 10.0);
        // Worker 2 was replaced by worker 3.
        assert_eq!(scrape(&mut sums, 300, &[(1, 10, 1.0), (3, 250, 0.5)]), 10.5);
        // Another process has got its number.
        assert_eq!(scrape(&mut sums, 400, &[(1, 10, 1.0), (3, 350, 2.0)]), 12.5);
        assert_eq!(scrape(&mut sums, 500, &[]), 12.5);
    }

    #[test]
    fn process_that_ran_before_it_opened_the_port_adds_what_it_does_from_then_on() {
        let mut sums = ProcessSums::default();
        assert_eq!(scrape(&mut sums, 100, &[(1, 10, 1.0)]), 1.0);
        assert_eq!(
            scrape(&mut sums, 200, &[(1, 10, 1.0), (2, 5, 1_000.0)]),
            1.0
        );
        assert_eq!(
            scrape(&mut sums, 300, &[(1, 10, 1.0), (2, 5, 1_000.5)]),
            1.5
        );
    }
}
