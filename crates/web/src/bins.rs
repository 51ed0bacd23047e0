//! The intervals of a run in a bounded number of points, however long it is.
//!
//! Where there are more intervals than points, successive ones are put together: counts are added
//! and histograms merged, so a percentile is that of all their responses. The least and the
//! greatest of them stay beside it.

use measure::{Histogram, Interval};
use report::live::{Figure, Moment};

/// Most points of a line, as in the charts of a finished run.
pub const POINTS_MAX: usize = 360;
/// Most rows of a table.
const ROWS_MAX: usize = 30;

/// The least and the greatest of a figure; none without values.
type Band = Option<(f64, f64)>;

/// Successive intervals together.
#[derive(Clone, Debug)]
struct Bin {
    intervals: u64,
    start_ns: u64,
    end_ns: u64,
    sent: u64,
    responses: u64,
    lost: u64,
    latency: Histogram,
    bands: [Band; 5],
}

impl Bin {
    fn of(interval: &Interval) -> Bin {
        let counts = &interval.counts;
        let mut latency = interval.distributions.latency.clone();
        latency.shrink_to_fit();
        let mut bin = Bin {
            intervals: 1,
            start_ns: interval.start_ns,
            end_ns: interval.end_ns,
            sent: counts.sent,
            responses: counts.responses,
            lost: counts.lost(),
            latency,
            bands: [None; 5],
        };
        bin.bands = bin.values().map(|value| value.map(|it| (it, it)));
        bin
    }

    fn append(&mut self, next: &Bin) {
        self.intervals += next.intervals;
        self.end_ns = next.end_ns.max(self.end_ns);
        self.sent += next.sent;
        self.responses += next.responses;
        self.lost += next.lost;
        self.latency.merge(&next.latency);
        self.latency.shrink_to_fit();
        for (band, other) in self.bands.iter_mut().zip(next.bands) {
            *band = match (*band, other) {
                (Some((low, high)), Some((least, greatest))) => {
                    Some((low.min(least), high.max(greatest)))
                }
                (one, other) => one.or(other),
            };
        }
    }

    /// True for what is left of a run that waits for its last responses: rates of so short a time
    /// would be those of an instant.
    fn is_short_beside(&self, before: &Bin) -> bool {
        let length_ns = |bin: &Bin| bin.end_ns.saturating_sub(bin.start_ns) / bin.intervals;
        length_ns(self) < length_ns(before) / 2
    }

    /// Adds the end of the run to its last interval.
    fn append_end(&mut self, end: &Bin) {
        let (intervals, bands) = (self.intervals, self.bands);
        self.append(end);
        (self.intervals, self.bands) = (intervals, bands);
    }

    /// Sent, responses and lost a second, p50 and p99 in nanoseconds.
    fn values(&self) -> [Option<f64>; 5] {
        let seconds = self.end_ns.saturating_sub(self.start_ns) as f64 / 1e9;
        let rate = |count: u64| (seconds > 0.0).then(|| count as f64 / seconds);
        let percentile = |p| self.latency.percentile(p).map(|ns| ns as f64);
        [
            rate(self.sent),
            rate(self.responses),
            rate(self.lost),
            percentile(0.5),
            percentile(0.99),
        ]
    }

    fn moment(&self) -> Moment {
        let mut figures = self.values().into_iter().zip(self.bands);
        let mut next = || {
            let (value, band) = figures.next().unwrap_or_default();
            // Of one interval both ends are the value.
            let band = band.filter(|_| self.intervals > 1);
            Figure { value, band }
        };
        Moment {
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            sent: next(),
            responses: next(),
            lost: next(),
            p50: next(),
            p99: next(),
        }
    }
}

/// The intervals of a run.
#[derive(Debug)]
pub(crate) struct Bins {
    /// Intervals that a point has together.
    intervals: u64,
    /// Each with its point, so that a page does not search all histograms again.
    bins: Vec<(Bin, Moment)>,
}

impl Default for Bins {
    fn default() -> Self {
        Bins {
            intervals: 1,
            bins: Vec::new(),
        }
    }
}

impl Bins {
    pub(crate) fn push(&mut self, interval: &Interval) {
        let next = Bin::of(interval);
        if self.bins.len() >= POINTS_MAX && self.has_full_end() {
            self.halve();
        }
        match self.bins.last_mut() {
            Some((last, moment)) if next.is_short_beside(last) => {
                last.append_end(&next);
                *moment = last.moment();
            }
            Some((last, moment)) if last.intervals < self.intervals => {
                last.append(&next);
                *moment = last.moment();
            }
            _ => {
                let moment = next.moment();
                self.bins.push((next, moment));
            }
        }
    }

    fn has_full_end(&self) -> bool {
        let last = self.bins.last();
        last.is_some_and(|(bin, _)| bin.intervals >= self.intervals)
    }

    /// Puts every two points together.
    fn halve(&mut self) {
        self.intervals *= 2;
        self.bins = together(&self.bins, 2);
    }

    /// Intervals that a point has together.
    pub(crate) fn intervals_of_point(&self) -> u64 {
        self.intervals
    }

    /// The points of all lines.
    pub(crate) fn points(&self) -> Vec<Moment> {
        self.bins.iter().map(|(_, moment)| *moment).collect()
    }

    /// The same as rows of a table.
    pub(crate) fn rows(&self) -> Vec<Moment> {
        match self.bins.len().div_ceil(ROWS_MAX) {
            0 | 1 => self.points(),
            each => {
                let rows = together(&self.bins, each);
                rows.into_iter().map(|(_, moment)| moment).collect()
            }
        }
    }
}

fn together(bins: &[(Bin, Moment)], each: usize) -> Vec<(Bin, Moment)> {
    let merged = bins.chunks(each).filter_map(|chunk| {
        let ((first, _), rest) = chunk.split_first()?;
        let mut bin = first.clone();
        rest.iter().for_each(|(next, _)| bin.append(next));
        let moment = bin.moment();
        Some((bin, moment))
    });
    merged.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(at: u64, responses: u64, latency_ns: u64) -> Interval {
        let mut interval = Interval {
            start_ns: at * 1_000_000_000,
            end_ns: (at + 1) * 1_000_000_000,
            ..Interval::default()
        };
        interval.counts.sent = responses + 1;
        interval.counts.responses = responses;
        interval.counts.timeouts = 1;
        let latency = &mut interval.distributions.latency;
        latency.record_many(latency_ns, responses);
        interval
    }

    #[test]
    fn short_run_has_a_point_for_each_interval() {
        let mut bins = Bins::default();
        (0..POINTS_MAX as u64).for_each(|at| bins.push(&interval(at, 10 + at, 1_000_000)));
        let points = bins.points();
        assert_eq!((points.len(), bins.intervals_of_point()), (POINTS_MAX, 1));
        assert_eq!(points[7].responses.value, Some(17.0));
        assert_eq!(points[7].responses.band, None);
        assert_eq!(points[7].lost.value, Some(1.0));
    }

    #[test]
    fn points_of_a_long_run_add_up_and_keep_the_least_and_the_greatest() {
        let mut bins = Bins::default();
        let count = 10 * POINTS_MAX as u64 + 5;
        for at in 0..count {
            let responses = if at == 1_234 { 5_000 } else { 100 };
            bins.push(&interval(at, responses, 1_000_000));
        }
        let points = bins.points();
        assert!(points.len() <= POINTS_MAX, "{}", points.len());
        assert!(points.len() > POINTS_MAX / 2, "{}", points.len());
        for moments in [&points, &bins.rows()] {
            let responses = moments.iter().map(|it| {
                let seconds = (it.end_ns - it.start_ns) as f64 / 1e9;
                it.responses.value.unwrap() * seconds
            });
            let all = responses.sum::<f64>().round() as u64;
            assert_eq!(all, (count - 1) * 100 + 5_000);
            let greatest = moments.iter().filter_map(|it| it.responses.band);
            assert_eq!(greatest.map(|it| it.1).fold(0.0, f64::max), 5_000.0);
            let gaps = moments
                .windows(2)
                .filter(|it| it[0].end_ns != it[1].start_ns);
            assert_eq!(gaps.count(), 0);
        }
        assert!(bins.rows().len() <= ROWS_MAX);
    }

    #[test]
    fn end_of_a_run_is_no_point_with_a_rate_that_no_second_had() {
        let mut bins = Bins::default();
        (0..3).for_each(|at| bins.push(&interval(at, 100, 1_000_000)));
        let mut end = interval(3, 2, 1_000_000);
        end.end_ns = end.start_ns + 1_000_000;
        bins.push(&end);
        let points = bins.points();
        assert_eq!((points.len(), points[2].end_ns), (3, end.end_ns));
        let rate = points[2].responses.value.unwrap();
        assert!((101.0..102.0).contains(&rate), "{rate}");
    }

    #[test]
    fn percentile_of_a_point_is_that_of_all_its_responses() {
        let mut bins = Bins::default();
        let count = 2 * POINTS_MAX as u64;
        for at in 0..count {
            // One interval of two is slow and has nearly all responses: no mean is near its p50.
            let (responses, latency_ns) = [(1, 1_000_000), (999, 100_000_000)][(at % 2) as usize];
            bins.push(&interval(at, responses, latency_ns));
        }
        let p50 = bins.points()[0].p50;
        assert!(p50.value.unwrap() > 95e6, "{p50:?}");
        let (low, high) = p50.band.unwrap();
        assert!(low < 1.1e6 && high > 95e6, "{p50:?}");
    }
}
