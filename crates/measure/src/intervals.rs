//! The intervals of a run in progress, in bounded memory however long it is.
//!
//! When there are [`INTERVALS_MAX`] of them, or their histograms hold [`BUCKETS_MAX`] buckets, all
//! are merged in pairs. So they all have one width, the requested length times a power of two,
//! except for the last one of the window and the drain after it. Counts and histograms add, so
//! nothing is lost and totals are the same. Merging depends only on the measurements, so a
//! simulated run is reproducible.
//!
//! Order of calls: [`Intervals::push`] for each interval as it ends, then [`Intervals::finish`].

use crate::counts::Counts;
use crate::interval::Interval;
use crate::timeline::Steps;

/// Most intervals of a record: a run of a day has 675, of 128 s each.
pub const INTERVALS_MAX: usize = 1_024;

/// Most buckets of their histograms together: 32 MiB of memory, and at most 45 MB of a record.
pub const BUCKETS_MAX: usize = 1 << 22;

/// Successive intervals, merged over all workers.
#[derive(Clone, Debug)]
pub struct Intervals {
    each: Vec<Interval>,
    /// Intervals of the length asked for in each of them.
    merged: u64,
    /// Intervals of that length in all of them.
    number: u64,
    /// Buckets of all but the last of them.
    buckets: usize,
    /// The latest one. Whether it is of the window is known at the end.
    latest: Option<Interval>,
    buckets_max: usize,
    /// What outages are looked for in.
    steps: Steps,
}

impl Default for Intervals {
    fn default() -> Self {
        Intervals::with_buckets(BUCKETS_MAX)
    }
}

impl Intervals {
    /// An empty list, for at most this number of buckets.
    fn with_buckets(buckets_max: usize) -> Self {
        Intervals {
            each: Vec::new(),
            merged: 1,
            number: 0,
            buckets: 0,
            latest: None,
            buckets_max,
            steps: Steps::default(),
        }
    }

    /// Adds the next interval, which begins where the one before it ended: workers that are
    /// stopped, or that lose their target, end their last interval at moments of their own.
    pub fn push(&mut self, mut interval: Interval) {
        if let Some(before) = self.latest.take() {
            interval.start_ns = before.end_ns;
            interval.end_ns = interval.end_ns.max(before.end_ns + 1);
            self.add(before);
        }
        self.steps.push(&interval);
        self.latest = Some(interval);
    }

    fn add(&mut self, interval: Interval) {
        let index = (self.number / self.merged) as usize;
        self.number += 1;
        if let Some(open) = self.each.get_mut(index) {
            open.append_in_time(&interval);
            return;
        }
        self.buckets += self.each.last_mut().map_or(0, Interval::shrink_to_fit);
        self.each.push(interval);
        while self.each.len() > INTERVALS_MAX || self.is_too_large() {
            self.widen();
        }
    }

    fn is_too_large(&self) -> bool {
        self.each.len() > 1 && self.buckets > self.buckets_max
    }

    fn widen(&mut self) {
        widen(&mut self.each, 2, u64::MAX);
        self.merged *= 2;
        let complete = self.each.len() - 1;
        let complete = self.each[..complete].iter_mut();
        self.buckets = complete.map(Interval::shrink_to_fit).sum();
    }

    /// When the last of them ended, in nanoseconds since the start of the measured run.
    pub fn end_ns(&self) -> u64 {
        let last = self.latest.as_ref().or(self.each.last());
        last.map_or(0, |interval| interval.end_ns)
    }

    /// Adds what lacks for the accounts of all of them to balance: see [`Interval::rest_of`].
    pub fn end_accounts(&mut self) {
        let mut all = Counts::default();
        let each = self.each.iter().chain(&self.latest);
        each.for_each(|interval| all.add(&interval.counts));
        if let Some(rest) = Interval::rest_of(&all, self.end_ns()) {
            self.push(rest);
        }
    }

    /// All of them as steps, which are not kept any longer here.
    pub fn take_steps(&mut self) -> Steps {
        std::mem::take(&mut self.steps)
    }

    /// All of them, and how many intervals of the length asked for are in each; one that begins
    /// after the window stays apart.
    pub fn finish(mut self, window_ns: u64) -> (Vec<Interval>, u64) {
        match self.latest.take() {
            Some(latest) if latest.start_ns < window_ns => self.add(latest),
            Some(latest) => self.each.push(latest),
            None => {}
        }
        for interval in &mut self.each {
            interval.shrink_to_fit();
        }
        (self.each, self.merged)
    }
}

/// Merges each `by` successive intervals, those within the window apart from those after it.
pub(crate) fn widen(intervals: &mut Vec<Interval>, by: u64, window_ns: u64) {
    let by = usize::try_from(by).unwrap_or(usize::MAX).max(1);
    let mut after = intervals.iter().map(|it| it.start_ns >= window_ns);
    let within = after.position(|it| it).unwrap_or(intervals.len());
    let mut wide: Vec<Interval> = Vec::with_capacity(intervals.len().div_ceil(by) + 1);
    for (index, interval) in std::mem::take(intervals).into_iter().enumerate() {
        let place = index.checked_sub(within).unwrap_or(index);
        match wide.last_mut() {
            Some(open) if place % by != 0 => open.append_in_time(&interval),
            _ => wide.push(interval),
        }
    }
    *intervals = wide;
}

/// Queries open at the end of each of successive intervals; none from where on more have ended than
/// were offered, which cannot be.
fn open_at_ends(intervals: &[Interval]) -> impl Iterator<Item = Option<u64>> {
    let each = intervals.iter().map(|interval| &interval.counts);
    each.scan((0_u64, 0_u64), |(offered, ended), counts| {
        *offered = offered.saturating_add(counts.offered);
        *ended = ended.saturating_add(counts.ended());
        Some(offered.checked_sub(*ended))
    })
}

/// Notes in each interval how many queries were open at its end.
pub(crate) fn note_open(intervals: &mut [Interval]) {
    let open: Vec<Option<u64>> = open_at_ends(intervals).collect();
    for (interval, open) in intervals.iter_mut().zip(open) {
        interval.open = open;
    }
}

/// Checks that at the end of every interval what was offered has ended or is open.
///
/// # Errors
/// Names the interval in which more has ended than was offered, or is open than can be.
pub(crate) fn check_open(intervals: &[Interval]) -> Result<(), String> {
    for (index, open) in open_at_ends(intervals).enumerate() {
        let position = index + 1;
        let Some(open) = open else {
            return Err(format!(
                "by the end of interval {position} more queries have ended than were offered"
            ));
        };
        if let Some(told) = intervals[index].open.filter(|told| *told != open) {
            return Err(format!(
                "{told} queries are open at the end of interval {position}, but {open} were \
                 offered and have not ended"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
