//! A run in short steps: what was due, sent, answered and lost, and what went wrong when.
//!
//! A [`Timeline`] has [`Bin`]s of one width, the first of which begins where the measured run does;
//! what comes after the window, in the drain, has bins too. The width is [`WIDTH_NS_MIN`], doubled
//! as often as needed for at most [`BINS_MAX`] bins, so any run has a bounded timeline, and
//! timelines of different widths merge exactly: the wider one's bins are whole bins of the narrower
//! one. Each column of a timeline adds up to the count of the run that it is named after.
//!
//! An event is booked where its name says: `due` and `lost` at the instant in which the query was
//! due, everything else at the instant in which it happened. So over any span `due - lost` is what
//! was answered in the end, and a loss shows where the query was asked, not where its timeout
//! landed.
//!
//! [`RunRecord::timeline`](crate::RunRecord) has the whole run's, and of several groups each
//! [`GroupRecord`](crate::GroupRecord) its own. [`Timeline::points`] is what charts draw,
//! [`Timeline::span_of`] says from when to when something happened, and
//! [`RunRecord::outages`](crate::RunRecord::outages) finds what an average hides.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::{Interval, per};

mod columns;
pub mod outages;
pub mod steps;
#[cfg(test)]
mod tests;

pub use columns::Bin;
use columns::Columns;
pub use outages::{Outage, OutageKind, Outages, outages};
pub use steps::{FoundOutages, Steps};

/// Width of a bin of a short run: 10 ms.
pub const WIDTH_NS_MIN: u64 = 10_000_000;

/// Most bins of a timeline; one that needs more has bins of twice the width.
pub const BINS_MAX: usize = 2_048;

impl Bin {
    /// What an interval counted, as a bin. What no count tells is zero: `lost`, `frozen_us` and
    /// `cut_off_us`.
    pub fn of(interval: &Interval) -> Bin {
        let counts = &interval.counts;
        let connections = &counts.connections;
        let failed = &connections.failed;
        let usual = counts.rcodes.by_rcode[0] + counts.rcodes.by_rcode[3];
        let latency_us = interval.distributions.latency.sum_ns() / 1_000;
        let in_order = connections.ended_by_target() - connections.reset_by_target;
        let for_cause = in_order + connections.closed_for_violation.total();
        let refused = failed.refused + failed.reset + failed.closed;
        let handshakes = failed.handshakes();
        let no_resources = failed.no_resources + failed.no_local_port;
        let other = failed.total() - refused - handshakes - no_resources;
        Bin {
            due: counts.offered,
            sent: counts.sent,
            responses: counts.responses,
            errors: counts.responses.saturating_sub(usual),
            latency_us: u64::try_from(latency_us).unwrap_or(u64::MAX),
            lost: 0,
            unanswered: counts.lost(),
            refused: failed.refused + counts.port_unreachable,
            reset: failed.reset + connections.reset_by_target,
            closed: failed.closed + for_cause,
            handshakes_failed: handshakes,
            attempts_failed: other + connections.ended_by_silence(),
            no_resources,
            send_failed: counts.not_sent.send_failed + connections.quic_datagrams_not_sent,
            frozen_us: 0,
            cut_off_us: 0,
        }
    }

    /// Mean latency in nanoseconds of the responses that came; none if none did.
    pub fn latency_ns_mean(&self) -> Option<f64> {
        (self.responses > 0).then(|| self.latency_us as f64 * 1e3 / self.responses as f64)
    }

    /// Adds everything in `other`.
    pub fn add(&mut self, other: &Bin) {
        self.each_with(other, |own, other| *own = own.saturating_add(other));
    }

    /// What has come since `earlier`, none of whose figures is greater.
    pub fn since(mut self, earlier: &Bin) -> Bin {
        self.each_with(earlier, |own, earlier| *own -= earlier);
        self
    }

    /// True if nothing happened.
    pub fn is_empty(&self) -> bool {
        *self == Bin::default()
    }

    /// Responses that are of use: of RCODE NOERROR or NXDOMAIN.
    pub fn usable(&self) -> u64 {
        self.responses.saturating_sub(self.errors)
    }
}

/// The bins of one worker, or, merged, of all; in JSON one array for each column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Columns", into = "Columns")]
#[schemars(with = "Columns")]
pub struct Timeline {
    width_ns: u64,
    workers: u64,
    bins: Vec<Bin>,
}

/// Rates at one instant: what a chart draws. In events a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The middle of the time that the point stands for, in nanoseconds since the start of the
    /// measured run.
    pub at_ns: u64,
    /// Queries due.
    pub due_qps: f64,
    /// Queries sent.
    pub sent_qps: f64,
    /// Responses that came.
    pub responses_qps: f64,
    /// Of the queries due, those that got no response.
    pub lost_qps: f64,
    /// Responses with another RCODE than NOERROR and NXDOMAIN.
    pub errors_qps: f64,
    /// Mean latency in nanoseconds of the responses that came; none if none did.
    pub latency_ns_mean: Option<f64>,
}

impl Default for Timeline {
    /// Of no worker.
    fn default() -> Self {
        Timeline {
            workers: 0,
            ..Timeline::new()
        }
    }
}

impl Timeline {
    /// Of a worker that has done nothing yet. Allocates nothing.
    pub fn new() -> Self {
        Timeline {
            width_ns: WIDTH_NS_MIN,
            workers: 1,
            bins: Vec::new(),
        }
    }

    /// Makes room for as many bins as there may be, so that adding allocates nothing.
    pub fn reserve(&mut self) {
        self.bins.reserve_exact(BINS_MAX - self.bins.len());
    }

    /// Width of each bin in nanoseconds: [`WIDTH_NS_MIN`] times a power of two.
    pub fn width_ns(&self) -> u64 {
        self.width_ns
    }

    /// Workers whose timelines are merged in this one.
    pub fn workers(&self) -> u64 {
        self.workers
    }

    /// The bins, from the start of the measured run; none after the last in which something
    /// happened.
    pub fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// Adds to the bin in which `at_ns` is, in nanoseconds since the start of the measured run.
    pub fn add(&mut self, at_ns: u64, what: &Bin) {
        if !what.is_empty() {
            self.at(at_ns).add(what);
        }
    }

    /// Books queries as lost that were due at `due_ns`.
    pub fn lose(&mut self, due_ns: u64, queries: u64) {
        if queries > 0 {
            self.at(due_ns).lost += queries;
        }
    }

    /// Books the time in which a worker took no turn, each part in its bin.
    pub fn freeze(&mut self, from_ns: u64, until_ns: u64) {
        self.spread(from_ns, until_ns, |bin| &mut bin.frozen_us);
    }

    /// Books the time in which nothing could leave the host of a worker for the target.
    pub fn cut_off(&mut self, from_ns: u64, until_ns: u64) {
        self.spread(from_ns, until_ns, |bin| &mut bin.cut_off_us);
    }

    /// Adds the microseconds of a span, each part to its bin.
    fn spread(&mut self, from_ns: u64, until_ns: u64, column: impl Fn(&mut Bin) -> &mut u64) {
        let mut from = from_ns;
        while from < until_ns {
            self.at(from);
            let end = (from / self.width_ns + 1) * self.width_ns;
            let part_us = end.min(until_ns) / 1_000 - from / 1_000;
            *column(self.at(from)) += part_us;
            from = end;
        }
    }

    fn at(&mut self, at_ns: u64) -> &mut Bin {
        while at_ns / self.width_ns >= BINS_MAX as u64 {
            self.widen();
        }
        let index = (at_ns / self.width_ns) as usize;
        if index >= self.bins.len() {
            self.bins.resize(index + 1, Bin::default());
        }
        &mut self.bins[index]
    }

    /// Doubles the width; merges bins in pairs.
    fn widen(&mut self) {
        self.width_ns *= 2;
        let pairs = self.bins.len().div_ceil(2);
        for pair in 0..pairs {
            let mut both = self.bins[2 * pair];
            if let Some(second) = self.bins.get(2 * pair + 1) {
                both.add(second);
            }
            self.bins[pair] = both;
        }
        self.bins.truncate(pairs);
    }

    /// Adds the timeline of other workers that ran at the same time; exact and associative.
    pub fn merge(&mut self, other: &Timeline) {
        while self.width_ns < other.width_ns {
            self.widen();
        }
        self.workers += other.workers;
        for (index, bin) in other.bins.iter().enumerate() {
            self.add(index as u64 * other.width_ns, bin);
        }
        self.trim();
    }

    /// Merges timelines of different workers.
    pub fn merged<'a>(each: impl Iterator<Item = &'a Timeline>) -> Timeline {
        let mut all = Timeline::default();
        each.for_each(|one| all.merge(one));
        all
    }

    /// Adds what other workers did; none if that is not known of some of them.
    pub(crate) fn join(own: &mut Option<Timeline>, other: Option<&Timeline>) {
        match (own.as_mut(), other) {
            (Some(own), Some(other)) => own.merge(other),
            _ => *own = None,
        }
    }

    /// Drops bins at the end in which nothing happened, and the memory that is not needed.
    pub fn trim(&mut self) {
        let used = self.bins.iter().rposition(|bin| !bin.is_empty());
        self.bins.truncate(used.map_or(0, |last| last + 1));
        self.bins.shrink_to_fit();
    }

    /// All bins together.
    pub fn total(&self) -> Bin {
        let mut total = Bin::default();
        self.bins.iter().for_each(|bin| total.add(bin));
        total
    }

    /// From when to when something was counted, in nanoseconds since the start of the measured run;
    /// none if it never was.
    pub fn span_of(&self, count: impl Fn(&Bin) -> u64) -> Option<(u64, u64)> {
        let first = self.bins.iter().position(|bin| count(bin) > 0)?;
        let last = self.bins.iter().rposition(|bin| count(bin) > 0)?;
        Some((
            first as u64 * self.width_ns,
            (last as u64 + 1) * self.width_ns,
        ))
    }

    /// What was counted between two instants, to the width of a bin; in nanoseconds since the start
    /// of the measured run.
    pub fn between(&self, start_ns: u64, end_ns: u64) -> Bin {
        let middle_ns = |number: u64| number * self.width_ns + self.width_ns / 2;
        let mut all = Bin::default();
        let within = self.bins.iter().zip(0..);
        within
            .filter(|(_, number)| (start_ns..end_ns).contains(&middle_ns(*number)))
            .for_each(|(bin, _)| all.add(bin));
        all
    }

    /// Share of the queries due between two instants that got no response.
    pub fn lost_share(&self, start_ns: u64, end_ns: u64) -> f64 {
        let all = self.between(start_ns, end_ns);
        per(all.lost as f64, all.due as f64)
    }

    /// Rates over the run as at most `most` points, each of as many whole bins; of the first
    /// `window_ns` alone, the drain having no rate.
    pub fn points(&self, window_ns: u64, most: usize) -> Vec<Point> {
        let bins = window_ns.div_ceil(self.width_ns) as usize;
        let each = bins.div_ceil(most.max(1)).max(1);
        let points = bins.div_ceil(each);
        let point = |number: usize| self.point(number * each, each, window_ns);
        (0..points).map(point).collect()
    }

    /// What `bins` from number `first` on were; bins beyond the last are empty.
    fn point(&self, first: usize, bins: usize, window_ns: u64) -> Point {
        let mut all = Bin::default();
        let within = self.bins.iter().skip(first).take(bins);
        within.for_each(|bin| all.add(bin));
        let start_ns = first as u64 * self.width_ns;
        let end_ns = ((first + bins) as u64 * self.width_ns).min(window_ns);
        let length_ns = end_ns - start_ns;
        let rate = |count: u64| per(count as f64 * 1e9, length_ns as f64);
        Point {
            at_ns: start_ns + length_ns / 2,
            due_qps: rate(all.due),
            sent_qps: rate(all.sent),
            responses_qps: rate(all.responses),
            lost_qps: rate(all.lost),
            errors_qps: rate(all.errors),
            latency_ns_mean: all.latency_ns_mean(),
        }
    }

    /// Checks that the columns add up to what the run counted.
    ///
    /// # Errors
    /// Names the column that does not, with both numbers.
    pub fn check(&self, total: &Interval) -> Result<(), String> {
        let (own, counted) = (self.total(), Bin::of(total));
        let columns = [
            ("due", own.due, counted.due),
            ("sent", own.sent, counted.sent),
            ("responses", own.responses, counted.responses),
            ("errors", own.errors, counted.errors),
            ("lost", own.lost, counted.unanswered),
            ("unanswered", own.unanswered, counted.unanswered),
            ("refused", own.refused, counted.refused),
            ("reset", own.reset, counted.reset),
            ("closed", own.closed, counted.closed),
            (
                "handshakes_failed",
                own.handshakes_failed,
                counted.handshakes_failed,
            ),
            (
                "attempts_failed",
                own.attempts_failed,
                counted.attempts_failed,
            ),
            ("send_failed", own.send_failed, counted.send_failed),
        ];
        let wrong = columns.iter().find(|(_, own, counted)| own != counted);
        wrong.map_or(Ok(()), |(column, own, counted)| {
            Err(format!(
                "timeline: the column `{column}` adds up to {own}, the run counted {counted}"
            ))
        })
    }
}
