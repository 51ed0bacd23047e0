//! Merges the intervals of all workers while the run is in progress.
//!
//! An interval is complete when every worker that has not ended has reported it. Memory is bounded
//! however long a run is: [`Intervals`], the totals of the groups, and the intervals that only some
//! workers have reported.
//!
//! Order of calls: [`Gathering::add`] and [`Gathering::end`] as workers report,
//! [`Gathering::settle`] after each, [`Gathering::finish`] when all have ended.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use measure::{Interval, Intervals};

use crate::Outcome;
use crate::worker::RunInputs;

/// A worker: its thread and its group.
pub(crate) type WorkerId = (usize, usize);

/// An interval that all workers have finished.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Its position in the run, from 0.
    pub index: usize,
    /// The merged figures of all workers of all groups.
    pub interval: Interval,
    /// Those of each group, by its position; none if there is only one.
    pub groups: Vec<Interval>,
    /// The outcome up to its end, if that is a checkpoint.
    pub checkpoint: Option<Box<Outcome>>,
}

/// The intervals of all workers.
#[derive(Debug)]
pub struct Gathering {
    /// Number of intervals that each worker has reported, while it has not ended.
    told: BTreeMap<WorkerId, usize>,
    /// Intervals that are not complete, by group; the first is number `complete`.
    waiting: VecDeque<Vec<Option<Interval>>>,
    complete: usize,
    /// Workers that have not ended and have not reported the first of those.
    behind: usize,
    intervals: Intervals,
    /// The total of each group.
    groups: Vec<Option<Interval>>,
}

/// The workers that the groups have on some of the threads.
pub(crate) fn worker_ids(
    groups: &[RunInputs],
    threads: &Range<u32>,
) -> impl Iterator<Item = WorkerId> {
    groups.iter().enumerate().flat_map(move |(group, inputs)| {
        let of_group = threads.start..threads.end.min(inputs.plan.workers);
        of_group.map(move |thread| (thread as usize, group))
    })
}

impl Gathering {
    /// Expects the workers that the groups have on these threads.
    pub fn of(groups: &[RunInputs], threads: &Range<u32>) -> Self {
        Gathering::at(worker_ids(groups, threads), groups.len())
    }

    /// Expects these workers, of this number of groups.
    pub fn at(workers: impl Iterator<Item = WorkerId>, groups: usize) -> Self {
        let told: BTreeMap<WorkerId, usize> = workers.map(|worker| (worker, 0)).collect();
        Gathering {
            behind: told.len(),
            told,
            waiting: VecDeque::new(),
            complete: 0,
            intervals: Intervals::default(),
            groups: vec![None; groups],
        }
    }

    /// Takes the next interval of a worker that has not ended.
    pub fn add(&mut self, place: WorkerId, interval: Interval) {
        let told = self.told.get_mut(&place).expect("made for every worker");
        let index = *told - self.complete;
        *told += 1;
        self.behind -= usize::from(index == 0);
        if index == self.waiting.len() {
            self.waiting.push_back(vec![None; self.groups.len()]);
        }
        match &mut self.waiting[index][place.1] {
            Some(others) => others.merge(&interval),
            none => *none = Some(interval),
        }
    }

    /// Number of intervals that a worker has reported, while it has not ended.
    pub(crate) fn told(&self, place: WorkerId) -> usize {
        self.told.get(&place).copied().unwrap_or_default()
    }

    /// The worker has reported all its intervals.
    pub fn end(&mut self, place: WorkerId) {
        let told = self.told.remove(&place);
        self.behind -= usize::from(told == Some(self.complete));
    }

    /// Shows the intervals that have become complete to `on_progress`, and keeps them.
    pub fn settle(&mut self, mut on_progress: impl FnMut(&Progress)) {
        while self.behind == 0
            && let Some(groups) = self.waiting.pop_front()
        {
            let mut all: Option<Interval> = None;
            let has_several = groups.len() > 1;
            let mut each = Vec::new();
            for (total, interval) in self.groups.iter_mut().zip(groups) {
                if has_several {
                    each.push(interval.clone().unwrap_or_default());
                }
                let Some(interval) = interval else { continue };
                interval.append_to(total);
                match &mut all {
                    Some(all) => all.merge(&interval),
                    none => *none = Some(interval),
                }
            }
            let progress = Progress {
                index: self.complete,
                interval: all.unwrap_or_default(),
                groups: each,
                checkpoint: None,
            };
            on_progress(&progress);
            self.intervals.push(progress.interval);
            self.complete += 1;
            let told = self.told.values();
            self.behind = told.filter(|told| **told == self.complete).count();
        }
    }

    /// The intervals that are complete.
    pub fn so_far(&self) -> Intervals {
        self.intervals.clone()
    }

    /// The intervals of all workers, and the total of each group.
    pub fn finish(mut self) -> (Intervals, Vec<Interval>) {
        self.told.clear();
        self.behind = 0;
        self.settle(|_| {});
        let groups = self.groups.into_iter().map(Option::unwrap_or_default);
        (self.intervals, groups.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(number: u64, responses: u64) -> Interval {
        let mut interval = Interval {
            start_ns: number * 10,
            end_ns: (number + 1) * 10,
            connections_open: responses,
            ..Interval::default()
        };
        interval.counts.responses = responses;
        interval.shrink_to_fit();
        interval
    }

    #[test]
    fn interval_is_shown_when_every_worker_at_work_has_told_it() {
        let mut gathering = Gathering::at([(0, 0), (1, 0), (1, 1)].into_iter(), 2);
        let mut shown = Vec::new();
        let mut settle = |gathering: &mut Gathering| {
            gathering.settle(|it| {
                let groups = it.groups.iter().map(|it| it.counts.responses);
                assert_eq!(groups.sum::<u64>(), it.interval.counts.responses);
                assert_eq!(it.groups.len(), 2);
                shown.push((it.index, it.interval.counts.responses));
            });
            shown.clone()
        };
        gathering.add((0, 0), interval(0, 1));
        gathering.add((0, 0), interval(1, 2));
        gathering.add((1, 0), interval(0, 30));
        assert_eq!(settle(&mut gathering), []);
        gathering.add((1, 1), interval(0, 400));
        assert_eq!(settle(&mut gathering), [(0, 431)]);
        // A worker that has ended holds no interval back.
        gathering.end((1, 1));
        gathering.add((1, 0), interval(1, 50));
        assert_eq!(settle(&mut gathering), [(0, 431), (1, 52)]);
        gathering.end((0, 0));
        gathering.end((1, 0));
        let (intervals, groups) = gathering.finish();
        let responses = |it: &Interval| (it.counts.responses, it.connections_open, it.end_ns);
        assert_eq!(
            groups.iter().map(responses).collect::<Vec<_>>(),
            [(83, 52, 20), (400, 400, 10)]
        );
        let (each, merged) = intervals.finish(20);
        assert_eq!(
            each.iter().map(responses).collect::<Vec<_>>(),
            [(431, 431, 10), (52, 52, 20)]
        );
        assert_eq!(merged, 1);
    }

    #[test]
    fn totals_are_exact_however_long_workers_run_and_whoever_is_first() {
        let places = [(0, 0, 3_000), (1, 0, 2_000), (0, 1, 2_999), (1, 1, 10)];
        let all = places.iter().map(|(thread, group, _)| (*thread, *group));
        let mut gathering = Gathering::at(all, 2);
        let mut told = [0; 4];
        let mut seed = 1_u64;
        while places
            .iter()
            .zip(told)
            .any(|((_, _, number), told)| told <= *number)
        {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let who = (seed >> 33) as usize % 4;
            let (thread, group, number) = places[who];
            match told[who].cmp(&number) {
                std::cmp::Ordering::Less => {
                    gathering.add((thread, group), interval(told[who], 1 + told[who] % 5));
                }
                std::cmp::Ordering::Equal => gathering.end((thread, group)),
                std::cmp::Ordering::Greater => continue,
            }
            told[who] += 1;
            gathering.settle(|_| {});
        }
        let responses = |number: u64| (0..number).map(|at| 1 + at % 5).sum::<u64>();
        let (intervals, groups) = gathering.finish();
        let (each, merged) = intervals.finish(3_000 * 10);
        assert_eq!((each.len(), merged), (750, 4));
        let all = Interval::total(&each);
        assert_eq!(
            groups[0].counts.responses,
            responses(3_000) + responses(2_000)
        );
        assert_eq!(groups[1].counts.responses, responses(2_999) + responses(10));
        let of_groups = groups[0].counts.responses + groups[1].counts.responses;
        assert_eq!((all.counts.responses, all.end_ns), (of_groups, 30_000));
    }
}
