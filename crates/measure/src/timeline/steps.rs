//! A run in steps as long as its intervals, which in a long run are finer than the bins of its
//! timeline. They are kept while the run goes on, and what they show of its outages is in the
//! record.
//!
//! A step is what all workers counted in one interval, and when usable responses came first and
//! last in it. An outage that is longer than two steps has a whole one without any; it began with
//! the last response of the step before and ended with the first of the step after.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outages::{LENGTH_NS_MIN, Outage, OutageKind, Search, Usual};
use super::{Bin, Timeline};
use crate::interval::Interval;

/// Most steps: those of 36 hours, of a second each. When there are more, all are merged in pairs.
pub const STEPS_MAX: usize = 1 << 17;

/// Most outages of a record.
pub const OUTAGES_MAX: usize = 256;

/// From the first usable response to the last, in nanoseconds since the start of the measured run.
pub(super) type Answered = Option<(u64, u64)>;

#[derive(Clone, Copy, Debug)]
struct Step {
    start_ns: u64,
    /// Without `lost`, which no interval knows.
    what: Bin,
    /// Of those that got no response, the ones that timed out.
    timed_out: u64,
    answered: Answered,
}

impl Step {
    fn of(interval: &Interval) -> Step {
        let counts = &interval.counts;
        Step {
            start_ns: interval.start_ns,
            what: Bin::of(interval),
            timed_out: counts.timeouts + counts.not_sent.timed_out_waiting,
            answered: interval.first_usable_ns.zip(interval.last_usable_ns),
        }
    }

    /// Adds the step that follows.
    fn append(&mut self, next: &Step) {
        self.what.add(&next.what);
        self.timed_out += next.timed_out;
        self.answered = match (self.answered, next.answered) {
            (Some((first, _)), Some((_, last))) => Some((first, last)),
            (own, next) => own.or(next),
        };
    }
}

/// The steps of a run in progress.
#[derive(Clone, Debug)]
pub struct Steps {
    each: Vec<Step>,
    /// Intervals in each of them.
    merged: u64,
    intervals: u64,
}

impl Default for Steps {
    fn default() -> Self {
        Steps {
            each: Vec::new(),
            merged: 1,
            intervals: 0,
        }
    }
}

impl Steps {
    /// Adds the next interval, merged over all workers.
    pub fn push(&mut self, interval: &Interval) {
        let step = Step::of(interval);
        let index = (self.intervals / self.merged) as usize;
        self.intervals += 1;
        if let Some(open) = self.each.get_mut(index) {
            open.append(&step);
            return;
        }
        self.each.push(step);
        if self.each.len() > STEPS_MAX {
            self.widen();
        }
    }

    fn widen(&mut self) {
        let pairs = self.each.len().div_ceil(2);
        for pair in 0..pairs {
            let mut both = self.each[2 * pair];
            if let Some(second) = self.each.get(2 * pair + 1) {
                both.append(second);
            }
            self.each[pair] = both;
        }
        self.each.truncate(pairs);
        self.merged *= 2;
    }

    /// Nanoseconds of a step; none if there are not two.
    pub fn width_ns(&self) -> Option<u64> {
        let [first, second, ..] = self.each[..] else {
            return None;
        };
        second.start_ns.checked_sub(first.start_ns)
    }

    /// The outages of a run whose `timeline` has wider bins than these steps; none if it has not.
    pub(crate) fn outages(
        &self,
        timeline: &Timeline,
        usual: Usual,
        timeout_ns: u64,
    ) -> Option<FoundOutages> {
        let width_ns = self.width_ns().filter(|it| *it > 0)?;
        if width_ns >= timeline.width_ns() {
            return None;
        }
        let within = self.each.iter().filter(|it| it.start_ns < usual.window_ns);
        let answered: Vec<Answered> = within.map(|step| step.answered).collect();
        let bins = self.bins(timeline, usual.window_ns, timeout_ns.div_ceil(width_ns));
        let own = Timeline {
            width_ns,
            workers: timeline.workers(),
            bins,
        };
        let search = Search::new(&own, usual, &answered);
        let mut found = FoundOutages::new(width_ns);
        search.found().for_each(|outage| found.push(outage));
        Some(found)
    }

    /// The steps of the window as bins.
    pub(super) fn bins(&self, timeline: &Timeline, window_ns: u64, timeout_steps: u64) -> Vec<Bin> {
        let within = self.each.partition_point(|it| it.start_ns < window_ns);
        let (window, drain) = self.each.split_at(within);
        let mut bins: Vec<Bin> = window.iter().map(|step| step.what).collect();
        // Who timed out was due as long before; who was lost otherwise, shortly before.
        for (index, step) in window.iter().enumerate() {
            bins[index].lost += step.what.unanswered - step.timed_out;
            let due = index.saturating_sub(timeout_steps as usize);
            bins[due].lost += step.timed_out;
        }
        // What ended after the window was due at its end.
        let mut rest: u64 = drain.iter().map(|step| step.what.unanswered).sum();
        for bin in bins.iter_mut().rev() {
            let lost = rest.min(bin.due.saturating_sub(bin.lost));
            bin.lost += lost;
            rest -= lost;
        }
        spread(timeline, window, &mut bins);
        bins
    }
}

/// Puts the time in which workers stood still, or had no way to the target, where nothing was
/// answered: within a bin of the timeline, but in the order of time.
fn spread(timeline: &Timeline, window: &[Step], bins: &mut [Bin]) {
    let width_ns = timeline.width_ns();
    let step_us = match window {
        [first, second, ..] => (second.start_ns - first.start_ns) / 1_000,
        _ => 0,
    };
    let room_us = step_us * timeline.workers().max(1);
    let mut index = 0;
    for (coarse, number) in timeline.bins().iter().zip(1..) {
        let (mut frozen_us, mut cut_off_us) = (coarse.frozen_us, coarse.cut_off_us);
        while index < bins.len() && window[index].start_ns < number * width_ns {
            let bin = &mut bins[index];
            if bin.usable() == 0 {
                bin.frozen_us = frozen_us.min(room_us);
                bin.cut_off_us = cut_off_us.min(room_us);
                frozen_us -= bin.frozen_us;
                cut_off_us -= bin.cut_off_us;
            }
            index += 1;
        }
    }
}

/// The outages of a run, of which the timeline is too coarse to show them all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FoundOutages {
    /// Length of the steps in which they were looked for, nanoseconds: an outage of twice that
    /// length is found.
    pub step_ns: u64,
    /// In order of time; where there are more than 256, the longest ones.
    #[schemars(length(max = 256))]
    pub each: Vec<Outage>,
    /// Shorter ones beside them.
    pub omitted: u64,
}

impl FoundOutages {
    pub(super) fn new(step_ns: u64) -> Self {
        FoundOutages {
            step_ns,
            each: Vec::new(),
            omitted: 0,
        }
    }

    /// Checks the list, for a run with this number of offered queries.
    ///
    /// # Errors
    /// Says which outage does not.
    pub(crate) fn check(&self, offered: u64) -> Result<(), String> {
        if self.each.len() > OUTAGES_MAX {
            return Err(format!("outages: {} are too many", self.each.len()));
        }
        let is_wrong = |it: &&Outage| {
            let is_in_order = it.begin_ns <= it.end_ns && it.end_ns <= it.recovered_ns;
            !is_in_order || it.lost > it.due || it.due > offered || it.late > offered
        };
        match self.each.iter().find(is_wrong) {
            None => Ok(()),
            Some(wrong) => Err(format!(
                "outages: {wrong:?} contradicts itself or the total"
            )),
        }
    }

    /// Adds one that is later than all others.
    pub(super) fn push(&mut self, outage: Outage) {
        self.each.push(outage);
        if self.each.len() > OUTAGES_MAX {
            let lengths = self.each.iter().map(Outage::length_ns);
            let shortest = lengths.zip(0..).min().map_or(0, |(_, index)| index);
            self.each.remove(shortest);
            self.omitted += 1;
        }
    }

    /// What two generators of one load both saw: while one is answered, the target is there.
    pub(crate) fn common(&self, other: &FoundOutages) -> FoundOutages {
        let mut common = FoundOutages::new(self.step_ns.max(other.step_ns));
        for own in &self.each {
            for theirs in &other.each {
                let both = Outage {
                    begin_ns: own.begin_ns.max(theirs.begin_ns),
                    end_ns: own.end_ns.min(theirs.end_ns),
                    recovered_ns: own.recovered_ns.max(theirs.recovered_ns),
                    kind: match own.kind == theirs.kind {
                        true => own.kind,
                        false => OutageKind::Silence,
                    },
                    due: own.due + theirs.due,
                    lost: own.lost + theirs.lost,
                    late: own.late + theirs.late,
                    lasts: own.lasts && theirs.lasts,
                };
                if both.end_ns >= both.begin_ns + LENGTH_NS_MIN {
                    common.push(both);
                }
            }
        }
        common.omitted += self.omitted.max(other.omitted);
        common
    }
}
