//! What the parent of parts keeps so that one that is lost does not take the result with it: the
//! last checkpoint that all parts have told, and what each has done since.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use measure::degraded::LostPart;
use measure::{Counts, Degraded, Interval, Intervals, RunRecord};

use super::agents::Agents;
use super::fate::Known;
use super::parent::{Parts, PartsError};
use crate::run::RunRequest;
use crate::run::record;

/// What all parts have told, as far as it is needed after the loss of one.
pub(super) struct Checkpoints {
    /// Checkpoints that some parts have told and others have not, by their interval from 1: the
    /// records as they came.
    told: BTreeMap<u64, Vec<Option<String>>>,
    /// The last one that all have told.
    common: Option<Common>,
    each: Vec<Since>,
}

/// A checkpoint of all parts.
struct Common {
    records: Vec<String>,
    intervals: Intervals,
    /// What the host's kernel had counted by then since the beginning.
    kernel: BTreeMap<String, u64>,
}

/// What a part has told.
#[derive(Clone, Default)]
struct Since {
    intervals_told: u64,
    /// What all of them have counted together.
    counts: Counts,
    /// Its intervals after the last common checkpoint, by their numbers.
    intervals: VecDeque<(u64, Interval)>,
    /// Its record, if its run is over.
    record: Option<String>,
    lost: Option<Loss>,
}

/// How a part was lost.
#[derive(Clone)]
pub(super) struct Loss {
    pub(super) how: String,
    /// Nanoseconds since the start of the measured run.
    pub(super) noticed_ns: u64,
    /// Queries that it may have sent in the time of which nothing is known, at most.
    pub(super) sent_unknown_max: u64,
}

/// Reads what a part has said.
fn read(part: usize, text: &str) -> Result<RunRecord, PartsError> {
    RunRecord::from_json(text).map_err(|reason| Parts::nonsense(part, reason))
}

impl Checkpoints {
    pub(super) fn new(parts: usize) -> Self {
        Checkpoints {
            told: BTreeMap::new(),
            common: None,
            each: vec![Since::default(); parts],
        }
    }

    /// A part has ended an interval.
    pub(super) fn add(&mut self, part: usize, interval: &Interval) {
        let since = &mut self.each[part];
        since.intervals_told += 1;
        since.counts.add(&interval.counts);
        let number = since.intervals_told;
        since.intervals.push_back((number, interval.clone()));
    }

    /// The record of a part whose run is over, which stands for its later checkpoints.
    pub(super) fn end(&mut self, part: usize, record: &str) {
        self.each[part].record = Some(record.to_owned());
    }

    /// The record of a part at the end of the interval that it told last. Once all have told it,
    /// `intervals` are those of all until then.
    pub(super) fn note(
        &mut self,
        part: usize,
        record: &str,
        (intervals, kernel): (
            impl FnOnce() -> Intervals,
            impl FnOnce() -> BTreeMap<String, u64>,
        ),
    ) {
        if self.has_losses() {
            // There will be no further one of all.
            self.told.clear();
            return;
        }
        let (number, parts) = (self.each[part].intervals_told, self.each.len());
        let told = self.told.entry(number);
        told.or_insert_with(|| vec![None; parts])[part] = Some(record.to_owned());
        let told = &self.told[&number];
        let of_part = |(own, since): (&Option<String>, &Since)| {
            own.as_ref().or(since.record.as_ref()).cloned()
        };
        let records: Option<Vec<String>> = told.iter().zip(&self.each).map(of_part).collect();
        let Some(records) = records else { return };
        self.told = self.told.split_off(&(number + 1));
        self.common = Some(Common {
            records,
            intervals: intervals(),
            kernel: kernel(),
        });
        for since in &mut self.each {
            since.intervals.retain(|(of, _)| *of > number);
        }
    }

    /// True if there is a result already, whoever is lost now.
    pub(super) fn is_there(&self) -> bool {
        self.common.is_some()
    }

    /// Until when is known what a part did, in nanoseconds since the start of the measured run.
    pub(super) fn known_until_ns(&self, part: usize) -> u64 {
        let since = &self.each[part];
        let told = since.intervals.back().map(|(_, interval)| interval.end_ns);
        told.or_else(|| self.common.as_ref().map(|it| it.intervals.end_ns()))
            .unwrap_or_default()
    }

    /// What is known of a part that has been silent for so long, so long after the start of the
    /// measured run.
    ///
    /// # Errors
    /// What it said cannot be understood.
    pub(super) fn known(&self, part: usize, run: Duration) -> Result<Known, PartsError> {
        let until = Duration::from_nanos(self.known_until_ns(part));
        let common = self.common.as_ref().map(|common| &common.records[part]);
        let record = common.map(|text| read(part, text)).transpose()?;
        Ok(Known {
            silence: run.saturating_sub(until),
            run,
            warmup: record.map(|it| it.warmup.counts).unwrap_or_default(),
            total: self.each[part].counts.clone(),
        })
    }

    /// A part was lost.
    pub(super) fn lose(&mut self, part: usize, loss: Loss) {
        self.each[part].lost = Some(loss);
    }

    /// True if nothing more comes from this part.
    pub(super) fn is_lost(&self, part: usize) -> bool {
        self.each[part].lost.is_some()
    }

    /// True if any was lost.
    pub(super) fn has_losses(&self) -> bool {
        self.each.iter().any(|since| since.lost.is_some())
    }

    /// The result of a run that has lost parts: its last common checkpoint, and beside it what is
    /// known of the time after that.
    pub(super) fn result(
        mut self,
        groups: &[RunRequest],
        agents: &Agents,
    ) -> Result<RunRecord, PartsError> {
        let degraded = self.degraded();
        let nothing = || PartsError::refused("there is no checkpoint of all processes");
        let common = self.common.take().ok_or_else(nothing)?;
        let records = common
            .records
            .iter()
            .enumerate()
            .map(|(part, text)| read(part, text));
        let records: Vec<RunRecord> = records.collect::<Result<_, _>>()?;
        let mut merged = agents.merged(records, common.kernel).ok_or_else(nothing)?;
        merged.ended_by = measure::EndedBy::AgentLost;
        let mut intervals = common.intervals;
        intervals.end_accounts();
        record::finish(&mut merged, groups, intervals);
        let warnings = degraded.warnings(merged.measured_ns, merged.processes);
        merged.warnings.splice(0..0, warnings);
        merged.degraded = Some(degraded);
        Ok(merged)
    }

    fn degraded(&self) -> Degraded {
        let lost = self.each.iter().enumerate().filter_map(|(part, since)| {
            let loss = since.lost.as_ref()?;
            let sent = since.intervals.iter().map(|(_, it)| it.counts.sent).sum();
            Some(LostPart {
                process: part as u64 + 1,
                how: loss.how.clone(),
                noticed_ns: loss.noticed_ns.max(self.known_until_ns(part)),
                known_until_ns: self.known_until_ns(part),
                sent,
                fate_unknown_max: sent.saturating_add(loss.sent_unknown_max),
            })
        });
        let mut lost: Vec<LostPart> = lost.collect();
        lost.sort_by_key(|lost| lost.noticed_ns);
        let mut by_number: BTreeMap<u64, Interval> = BTreeMap::new();
        let survivors = self.each.iter().filter(|since| since.lost.is_none());
        for (number, interval) in survivors.clone().flat_map(|since| &since.intervals) {
            match by_number.get_mut(number) {
                Some(all) => all.merge(interval),
                None => drop(by_number.insert(*number, interval.clone())),
            }
        }
        let mut intervals = Intervals::default();
        by_number.into_values().for_each(|it| intervals.push(it));
        let (intervals, _) = intervals.finish(u64::MAX);
        Degraded {
            lost,
            survivors: survivors.count() as u64,
            total: Interval::total(&intervals),
            intervals,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_after_a_loss_are_not_kept() {
        let mut checkpoints = Checkpoints::new(2);
        let tell = |checkpoints: &mut Checkpoints, part| {
            checkpoints.add(part, &Interval::default());
            checkpoints.note(part, "{}", (Intervals::default, BTreeMap::new));
        };
        for part in [0, 1, 0] {
            tell(&mut checkpoints, part);
        }
        assert!(checkpoints.is_there());
        assert_eq!(checkpoints.told.len(), 1);
        let loss = Loss {
            how: "signal 9".to_owned(),
            noticed_ns: 0,
            sent_unknown_max: 0,
        };
        checkpoints.lose(1, loss);
        for _ in 0..100 {
            tell(&mut checkpoints, 0);
        }
        assert!(checkpoints.told.is_empty());
    }
}
