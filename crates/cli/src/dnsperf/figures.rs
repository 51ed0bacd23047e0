//! dnsperf's figures out of ours.
//!
//! Latency is dnsperf's, from sending to response (our service time). Its time of a run ends with
//! the last response, so that the drain counts where responses came in it. What was lost with its
//! connection is lost here; dnsperf waits for it until it times out.

use measure::counts::Connections;
use measure::{Counts, Histogram, Interval, RunRecord};

/// Mantissa bits of a bucket of dnsperf's histogram: 32 buckets for each power of two.
const BUCKET_BITS: u32 = 5;

/// Everything that a block of statistics shows.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    pub(super) counts: Counts,
    pub(super) latency: Latency,
    /// Connections, those made before the run included.
    pub(super) connections: Connections,
    /// Connection attempts that succeeded.
    pub(super) connections_usable: u64,
    pub(super) connection_latency: Latency,
    /// Since the start of the run.
    pub(super) run_time_ns: u64,
    /// In which the queries of `counts` completed.
    pub(super) rate_time_ns: u64,
}

impl Figures {
    /// Those of a whole run.
    pub(super) fn of_run(record: &RunRecord) -> Self {
        let mut connecting = record.warmup.clone();
        connecting.append_in_time(&record.total);
        let run_time_ns = run_time_ns(record);
        Figures::new(&record.total, &connecting, (run_time_ns, run_time_ns))
    }

    /// Those of one interval.
    pub(super) fn of_interval(interval: &Interval) -> Self {
        Figures::new(interval, interval, (interval.end_ns, interval.length_ns()))
    }

    fn new(queries: &Interval, connecting: &Interval, times_ns: (u64, u64)) -> Self {
        let connections = &connecting.counts.connections;
        let (tcp, tls) = (
            Latency::of(&connecting.distributions.connections.tcp_connect),
            Latency::of(&connecting.distributions.connections.tls_handshake),
        );
        let with_tls = connections.handshakes.total() > 0;
        Figures {
            counts: queries.counts.clone(),
            latency: Latency::of(&queries.distributions.service),
            connections: connections.clone(),
            connections_usable: match with_tls {
                true => connections.handshakes.total(),
                false => connections.established,
            },
            connection_latency: if with_tls { tls.after(&tcp) } else { tcp },
            run_time_ns: times_ns.0,
            rate_time_ns: times_ns.1,
        }
    }

    /// Queries sent that got no response.
    pub(super) fn lost(&self) -> u64 {
        let counts = &self.counts;
        counts.timeouts + counts.connection_losses + counts.exchange_failures.total()
    }

    /// Responses that fit no open query; dnsperf looks at the ID alone.
    pub(super) fn unexpected(&self) -> u64 {
        let unexpected = &self.counts.unexpected;
        let strangers = unexpected.wrong_id + unexpected.wrong_question + unexpected.wrong_source;
        self.counts.late + self.counts.duplicate + strangers
    }

    /// Responses a second.
    pub(super) fn rate_qps(&self) -> f64 {
        match self.rate_time_ns {
            0 => 0.0,
            time_ns => self.counts.responses as f64 * 1e9 / time_ns as f64,
        }
    }
}

/// From the start to the last response, and at least as long as queries were sent.
fn run_time_ns(record: &RunRecord) -> u64 {
    let drain = record
        .intervals
        .iter()
        .filter(|each| each.start_ns >= record.measured_ns);
    let latest = drain
        .filter_map(|each| each.distributions.service.max_ns())
        .max();
    // A response of the drain came no later than its latency after the last query was sent.
    record.measured_ns + latest.unwrap_or(0).min(record.phases.drain_ns)
}

/// A latency distribution as dnsperf shows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Latency {
    pub(super) count: u64,
    pub(super) mean_ns: f64,
    pub(super) min_ns: u64,
    pub(super) max_ns: u64,
    /// Of the sample; none for less than two values.
    pub(super) stddev_ns: Option<f64>,
    /// First and last microsecond of each non-empty bucket, and its count.
    pub(super) buckets: Vec<(u64, u64, u64)>,
}

impl Latency {
    pub(super) fn of(histogram: &Histogram) -> Self {
        let count = histogram.count();
        let correction = (count as f64 / (count as f64 - 1.0)).sqrt();
        let stddev_ns = histogram.stddev_ns().filter(|_| count > 1);
        Latency {
            count,
            mean_ns: histogram.mean_ns().unwrap_or(0.0),
            min_ns: histogram.min_ns().unwrap_or(0),
            max_ns: histogram.max_ns().unwrap_or(0),
            stddev_ns: stddev_ns.map(|population| population * correction),
            buckets: buckets(histogram),
        }
    }

    /// This step of connecting together with the one before it.
    ///
    /// The mean is exact; minimum and maximum are bounds, the deviation takes the steps as
    /// independent, and the buckets are those of this step moved by the mean of the other.
    fn after(&self, before: &Latency) -> Latency {
        let squares = |latency: &Latency| latency.stddev_ns.unwrap_or(0.0).powi(2);
        let stddev_ns = (squares(self) + squares(before)).sqrt();
        let shift_us = (before.mean_ns / 1e3) as u64;
        let mut moved = Buckets::default();
        for (low, high, count) in &self.buckets {
            moved.add(low + (high - low) / 2 + shift_us, *count);
        }
        Latency {
            count: self.count,
            mean_ns: self.mean_ns + before.mean_ns,
            min_ns: self.min_ns + before.min_ns,
            max_ns: self.max_ns + before.max_ns,
            stddev_ns: self.stddev_ns.map(|_| stddev_ns),
            buckets: moved.0,
        }
    }
}

/// Our buckets, 128 for each power of two in nanoseconds, as dnsperf's in microseconds.
fn buckets(histogram: &Histogram) -> Vec<(u64, u64, u64)> {
    let mut merged = Buckets::default();
    let (min_ns, max_ns) = (
        histogram.min_ns().unwrap_or(0),
        histogram.max_ns().unwrap_or(0),
    );
    for (low, high, count) in histogram.buckets() {
        let middle_ns = (low + (high - low) / 2).clamp(min_ns, max_ns);
        merged.add(middle_ns / 1_000, count);
    }
    if histogram.overflow() > 0 {
        merged.add(max_ns / 1_000, histogram.overflow());
    }
    merged.0
}

/// Ascending buckets.
#[derive(Default)]
struct Buckets(Vec<(u64, u64, u64)>);

impl Buckets {
    /// Adds values that are not below those added before.
    fn add(&mut self, value_us: u64, count: u64) {
        let (low, high) = bucket_bounds_us(value_us);
        match self.0.last_mut() {
            Some(last) if last.0 == low => last.2 += count,
            _ => self.0.push((low, high, count)),
        }
    }
}

/// The first and the last microsecond of the bucket of `value_us`.
fn bucket_bounds_us(value_us: u64) -> (u64, u64) {
    let bits = u64::BITS - value_us.leading_zeros();
    let shift = bits.saturating_sub(BUCKET_BITS + 1);
    let low = value_us >> shift << shift;
    (low, low + ((1 << shift) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values_ns: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values_ns.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    #[test]
    fn buckets_are_those_that_dnsperf_prints() {
        // Pairs as in the output of 2.14.0.
        for bounds in [
            (58, 58),
            (70, 71),
            (128, 131),
            (256, 263),
            (560, 575),
            (1376, 1407),
        ] {
            assert_eq!(bucket_bounds_us(bounds.0), bounds);
            assert_eq!(bucket_bounds_us(bounds.1), bounds);
        }
        assert_eq!(bucket_bounds_us(0), (0, 0));
    }

    #[test]
    fn buckets_keep_every_value() {
        let values: Vec<u64> = (1..2_000)
            .map(|n| n * n * 317)
            .chain([80_000_000_000])
            .collect();
        let buckets = buckets(&histogram(&values));
        assert_eq!(buckets.iter().map(|bucket| bucket.2).sum::<u64>(), 2_000);
        assert!(buckets.windows(2).all(|pair| pair[0].1 < pair[1].0));
        assert_eq!(buckets[0].0, 0);
    }

    #[test]
    fn deviation_is_that_of_a_sample() {
        let latency = Latency::of(&histogram(&[1_000, 3_000]));
        assert_eq!(
            (latency.mean_ns, latency.min_ns, latency.max_ns),
            (2_000.0, 1_000, 3_000)
        );
        assert!((latency.stddev_ns.unwrap() - 2_000_000f64.sqrt()).abs() < 1e-6);
        assert_eq!(Latency::of(&histogram(&[5])).stddev_ns, None);
        assert_eq!(Latency::of(&histogram(&[])), Latency::default());
    }

    #[test]
    fn the_handshake_comes_on_top_of_the_connection() {
        let tcp = Latency::of(&histogram(&[10_000, 30_000]));
        let both = Latency::of(&histogram(&[500_000, 700_000])).after(&tcp);
        assert_eq!((both.count, both.mean_ns), (2, 620_000.0));
        assert_eq!((both.min_ns, both.max_ns), (510_000, 730_000));
        assert_eq!(both.buckets.iter().map(|bucket| bucket.2).sum::<u64>(), 2);
    }
}
