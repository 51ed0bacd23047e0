//! One run a side: its intervals, in blocks long enough that one has little to do with the next.

use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Metric, Reckoned, Settings, scaled};
use crate::interval::Interval;
use crate::record::RunRecord;
use crate::statistics::{Bootstrap, ConfidenceInterval};
use crate::statistics::{block_length, cliffs_delta, mann_whitney, quantile};

/// Blocks that a run must have: fewer do not show how blocks differ.
const BLOCKS_MIN: usize = 8;

/// Metrics whose memory decides how long blocks are, up to an eighth of the run. Of many metrics
/// one always seems to have a long memory by chance.
const METRICS_OF_LENGTH: [Metric; 3] = [Metric::Qps, Metric::P50, Metric::P99];

/// Draws of blocks, each of which merges as many histograms as there are blocks.
const RESAMPLES_MAX: usize = 1_000;

/// Two runs cut into blocks of intervals.
pub(super) struct Blocks {
    /// Intervals in a block.
    pub(super) length: usize,
    a: Vec<Interval>,
    b: Vec<Interval>,
    rcodes: Vec<u16>,
    /// Of each draw the difference in each metric, in the order of the settings.
    draws: Vec<Vec<Option<f64>>>,
}

impl Blocks {
    /// Cuts both runs into blocks and draws them anew; none if they have too few intervals.
    pub(super) fn of(
        (a, b): (&RunRecord, &RunRecord),
        settings: &Settings,
        generator: &mut Xoshiro256PlusPlus,
    ) -> Option<Blocks> {
        let rcodes = a.scenario.goodput_rcodes.clone();
        // Blocks of both are equally long, even if intervals of the longer run were merged.
        let width_ns = a.interval_ns().max(b.interval_ns());
        let (first, second) = (whole_intervals(a, width_ns), whole_intervals(b, width_ns));
        let length = |intervals: &[Interval]| {
            let each = METRICS_OF_LENGTH.iter().map(|metric| {
                let values = intervals.iter().map(|it| metric.of_interval(it, &rcodes));
                block_length(&values.flatten().collect::<Vec<f64>>())
            });
            let longest = (intervals.len() / BLOCKS_MIN).max(1);
            each.max().unwrap_or(1).min(longest)
        };
        let length = length(&first).max(length(&second));
        let merged = |intervals: &[Interval]| -> Vec<Interval> {
            let blocks = intervals.chunks_exact(length);
            blocks.map(|block| Interval::joined(block.iter())).collect()
        };
        let (a, b) = (merged(&first), merged(&second));
        if a.len().min(b.len()) < BLOCKS_MIN {
            return None;
        }
        let mut blocks = Blocks {
            length,
            a,
            b,
            rcodes,
            draws: Vec::new(),
        };
        for _ in 0..settings.bootstrap.resamples.min(RESAMPLES_MAX) {
            let (a, b) = (redrawn(&blocks.a, generator), redrawn(&blocks.b, generator));
            let metrics = settings.metrics.iter();
            let difference =
                |metric: &Metric| Some(blocks.value(*metric, &b)? - blocks.value(*metric, &a)?);
            let differences = metrics.map(difference).collect();
            blocks.draws.push(differences);
        }
        Some(blocks)
    }

    fn value(&self, metric: Metric, block: &Interval) -> Option<f64> {
        scaled(metric, metric.of_interval(block, &self.rcodes)?)
    }

    /// The metric at `position` of the settings, from all blocks. The difference is that of the
    /// whole runs.
    pub(super) fn reckon(
        &self,
        (position, metric): (usize, Metric),
        difference: f64,
        level: f64,
    ) -> Option<Reckoned> {
        let of = |blocks: &[Interval]| -> Option<Vec<f64>> {
            blocks
                .iter()
                .map(|block| self.value(metric, block))
                .collect()
        };
        let (a, b) = (of(&self.a)?, of(&self.b)?);
        let differences = self.draws.iter().map(|draw| draw[position]);
        let differences: Vec<f64> = differences.collect::<Option<_>>()?;
        let tail = (1.0 - level) / 2.0;
        Some(Reckoned {
            difference,
            interval: Some(ConfidenceInterval {
                low: quantile(&differences, tail)?,
                high: quantile(&differences, 1.0 - tail)?,
                level,
            }),
            p_value: mann_whitney(&a, &b).map(|test| test.p_value),
            delta: Some(cliffs_delta(&a, &b)),
            floor: None,
        })
    }
}

/// The intervals of the window but the last, if it was cut short, each of `width_ns` as nearly as
/// whole ones make it.
fn whole_intervals(record: &RunRecord, width_ns: u64) -> Vec<Interval> {
    let own_ns = record.interval_ns().max(1);
    let within = record.intervals_in_window();
    let whole: Vec<&Interval> = within.filter(|it| it.length_ns() >= own_ns / 2).collect();
    let each = usize::try_from(width_ns / own_ns).unwrap_or(usize::MAX);
    let wide = |them: &[&Interval]| {
        let mut wide = Interval::joined(them.iter().copied());
        wide.shrink_to_fit();
        wide
    };
    whole.chunks_exact(each.max(1)).map(wide).collect()
}

/// As many blocks as there are, drawn with replacement and merged.
fn redrawn(blocks: &[Interval], generator: &mut Xoshiro256PlusPlus) -> Interval {
    let drawn = Bootstrap::blocks(blocks.len(), 1, generator);
    Interval::joined(drawn.map(|index| &blocks[index]))
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;
    use crate::example::{SECOND, interval, record};

    #[test]
    fn run_whose_intervals_were_merged_has_blocks_as_long_as_those_of_another() {
        let intervals = (0..1_600).map(|at| interval(at, &[(1_000_000 + at * at % 977, 20)]));
        let fine = record(intervals.collect());
        let mut wide = fine.clone();
        wide.widen_intervals(4);
        assert_eq!(
            (wide.intervals.len(), wide.interval_ns()),
            (400, 4 * SECOND)
        );
        let settings = Settings::default();
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(1);
        let blocks = Blocks::of((&fine, &wide), &settings, &mut generator).expect("there are many");
        assert_eq!(blocks.a, blocks.b);
        let alone = Blocks::of((&wide, &wide), &settings, &mut generator).expect("there are many");
        assert_eq!((blocks.length, blocks.a), (alone.length, alone.a));
    }
}
