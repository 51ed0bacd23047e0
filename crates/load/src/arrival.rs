//! When queries are due, and how rates are written.

use std::sync::Arc;

use proto::Instant;
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
pub use settings::Process;
use settings::number::parse_number;

use crate::client_arrival::ClientArrival;
use crate::plan_error::PlanError;
use crate::profile::ProfiledClients;
use crate::random;
use crate::replay::Replay;
use crate::script_text::ScriptText;

/// The lowest rate that can be offered, in queries a second: one in 11 days.
pub const RATE_QPS_MIN: f64 = 1e-6;
/// The highest rate that can be offered, in queries a second: one every nanosecond.
pub const RATE_QPS_MAX: f64 = 1e9;

/// Most queries that are due together.
pub const BURST_MAX: u32 = 10_000;

/// The shape of arrivals over all workers.
#[derive(Clone, Debug)]
pub enum Arrival {
    /// Closed loop: a new query as soon as fewer than `outstanding` are in flight.
    Closed {
        /// Queries in flight over all workers, at least 1.
        outstanding: u32,
        /// Cap on queries a second (dnsperf's `-Q` beside `-q`).
        rate_qps_max: Option<f64>,
    },
    /// Open loop: queries are due at their instants, independent of the target's responses.
    Open {
        /// Mean rate over all workers, in queries a second.
        rate_qps: f64,
        /// How they are spread.
        process: Process,
        /// Queries that are due at the same instant, all of one client; from 1 to [`BURST_MAX`].
        burst: u32,
    },
    /// Each client sends queries independent of the others.
    Clients(ClientArrival),
    /// Each client runs this script.
    Script(Arc<ScriptText>),
    /// Each client is drawn from a profile.
    Profile(Arc<ProfiledClients>),
    /// Each client repeats the queries of one client of a capture, at the captured times.
    Replay(Arc<Replay>),
}

/// Reads a rate in queries a second: `20000`, `50k`, `1.5M`, `1e6`, `1,000`, `0.5`.
///
/// # Errors
/// The text is not a number ([`parse_number`]), or is outside [`RATE_QPS_MIN`] to
/// [`RATE_QPS_MAX`].
pub fn parse_rate(text: &str) -> Result<f64, PlanError> {
    let rate = parse_number(text).ok_or_else(|| {
        let cure = match text {
            "max" | "maximum" | "unlimited" | "inf" | "infinite" => {
                "leave it out: without a rate, queries are sent as fast as they are answered"
            }
            _ => "write queries a second, such as 20000, 50k, 1.5M or 0.5",
        };
        PlanError::new("rate", format!("`{text}` is not a rate"), cure)
    })?;
    check_rate("rate", rate)
}

/// Refuses a burst of zero queries, or of more than a client can have open.
pub(crate) fn check_burst(burst: u32) -> Result<(), PlanError> {
    if (1..=BURST_MAX).contains(&burst) {
        return Ok(());
    }
    Err(PlanError::new(
        "burst",
        format!("{burst} queries cannot be due together"),
        format!("a burst has 1 to {BURST_MAX} queries"),
    ))
}

/// `rate_qps` if it can be offered.
pub(crate) fn check_rate(setting: &'static str, rate: f64) -> Result<f64, PlanError> {
    if (RATE_QPS_MIN..=RATE_QPS_MAX).contains(&rate) {
        return Ok(rate);
    }
    Err(PlanError::new(
        setting,
        format!("{rate} a second cannot be offered"),
        "rates go from 0.000001 to 1000000000 a second",
    ))
}

/// The due instants of one worker's share, in order.
#[derive(Debug)]
pub struct Schedule {
    next: Instant,
    gaps: Gaps,
    /// Queries of a burst, which are due together.
    burst: u32,
    /// Remaining queries of the current burst.
    burst_left: u32,
}

#[derive(Debug)]
enum Gaps {
    Constant(ConstantGaps),
    Poisson(PoissonGaps),
}

impl Schedule {
    /// The schedule of `worker` (of `workers`), starting at `start`.
    ///
    /// Constant: worker `w`'s k-th query is due at `start + (k * workers + w) / rate`, exact to the
    /// nanosecond below however large k gets; the rate counts in millionths of a query a second.
    /// Poisson: exponential gaps at the worker's share of the rate, seeded by `seed` and `worker`,
    /// the first of them before the first query.
    ///
    /// # Panics
    /// If the rate is not positive, or `worker` is not below `workers`.
    pub fn new(
        rate_qps: f64,
        process: Process,
        share: (u32, u32),
        seed: u64,
        start: Instant,
    ) -> Self {
        let (worker, workers) = share;
        assert!(rate_qps > 0.0, "a rate is positive");
        assert!(worker < workers, "workers count from 0");
        match process {
            Process::Constant => {
                let (gaps, offset_ns) = ConstantGaps::new(rate_qps, worker, workers);
                Schedule {
                    next: later(start, offset_ns),
                    gaps: Gaps::Constant(gaps),
                    burst: 1,
                    burst_left: 1,
                }
            }
            Process::Poisson => {
                let mut schedule = Schedule {
                    next: start,
                    gaps: Gaps::Poisson(PoissonGaps::new(rate_qps, worker, workers, seed)),
                    burst: 1,
                    burst_left: 1,
                };
                schedule.advance();
                schedule
            }
        }
    }

    /// The same for queries that are due `burst` at a time: bursts are spread like single queries
    /// at a rate lower by that factor.
    ///
    /// # Panics
    /// As [`Schedule::new`], and if a burst is empty.
    pub fn of_bursts(
        (rate_qps, process, burst): (f64, Process, u32),
        share: (u32, u32),
        seed: u64,
        start: Instant,
    ) -> Self {
        assert!(burst > 0, "a burst has a query");
        let rate = rate_qps / f64::from(burst);
        Schedule {
            burst,
            burst_left: burst,
            ..Schedule::new(rate, process, share, seed, start)
        }
    }

    /// True if the next query is the first of its burst.
    #[inline]
    pub fn starts_burst(&self) -> bool {
        self.burst_left == self.burst
    }

    /// When the next query is due.
    #[inline]
    pub fn next_due(&self) -> Instant {
        self.next
    }

    /// Moves on to the query after that.
    #[inline]
    pub fn advance(&mut self) {
        self.burst_left -= 1;
        if self.burst_left > 0 {
            return;
        }
        self.burst_left = self.burst;
        let gap_ns = match &mut self.gaps {
            Gaps::Constant(gaps) => gaps.next_gap_ns(),
            Gaps::Poisson(gaps) => gaps.next_gap_ns(),
        };
        self.next = later(self.next, gap_ns);
    }

    /// Skips the queries due before `end`, at most `most` of them; returns how many. Takes constant
    /// time, however many spans are skipped: beyond `DRAWN_MAX`, Poisson arrivals are skipped by
    /// the mean rate.
    pub fn skip_until(&mut self, end: Instant, most: u64) -> u64 {
        if self.next >= end {
            return 0;
        }
        let of_this_burst = self.burst_left.into();
        if most < of_this_burst {
            // Less than the u32 that it is compared with.
            self.burst_left -= most as u32;
            return most;
        }
        self.burst_left = 1;
        self.advance();
        let size = u64::from(self.burst);
        let skipped = of_this_burst + size * self.skip_bursts(end, (most - of_this_burst) / size);
        let of_last_burst = match self.next < end {
            true => most - skipped,
            false => 0,
        };
        // The whole bursts in it were skipped.
        self.burst_left -= of_last_burst as u32;
        skipped + of_last_burst
    }

    fn skip_bursts(&mut self, end: Instant, most: u64) -> u64 {
        match &mut self.gaps {
            Gaps::Constant(gaps) => {
                let (skipped, gap_ns) = gaps.skip(end.nanos_since(self.next), most);
                self.next = later(self.next, gap_ns);
                skipped
            }
            Gaps::Poisson(_) => self.skip_poisson(end, most),
        }
    }

    fn skip_poisson(&mut self, end: Instant, most: u64) -> u64 {
        let mut skipped = 0;
        while self.next < end && skipped < most {
            let Gaps::Poisson(gaps) = &mut self.gaps else {
                break;
            };
            if gaps.skips_drawn == DRAWN_MAX {
                let span_ns = end.nanos_since(self.next);
                let (rest, passed_ns) = gaps.skip_evenly(span_ns, most - skipped);
                self.next = later(self.next, passed_ns);
                return skipped + rest;
            }
            gaps.skips_drawn += 1;
            self.burst_left = 1;
            self.advance();
            skipped += 1;
        }
        skipped
    }
}

/// Poisson arrivals of one schedule that [`Schedule::skip_until`] draws one by one.
const DRAWN_MAX: u64 = 1_000_000;

#[inline]
fn later(instant: Instant, gap_ns: u64) -> Instant {
    Instant::from_nanos(instant.as_nanos().saturating_add(gap_ns))
}

/// Gaps of whole nanoseconds whose sum follows an exact rate.
///
/// A gap is `workers / rate` seconds, in general no whole number of nanoseconds. Its remainder is
/// carried in units of 1/`rate_micro` ns, so that every due instant is the exact one rounded down,
/// without a 128-bit division for each.
#[derive(Debug)]
struct ConstantGaps {
    gap_ns: u64,
    gap_remainder: u64,
    remainder: u64,
    /// Millionths of a query a second.
    rate_micro: u64,
}

impl ConstantGaps {
    /// The gaps, and the nanoseconds from the start to the first query.
    fn new(rate_qps: f64, worker: u32, workers: u32) -> (Self, u64) {
        let rate_micro = ((rate_qps * 1e6).round() as u64).max(1);
        let divide = |queries: u32| {
            let dividend = u128::from(queries) * 1_000_000_000_000_000;
            let quotient = dividend / u128::from(rate_micro);
            let remainder = dividend % u128::from(rate_micro);
            (
                u64::try_from(quotient).unwrap_or(u64::MAX),
                remainder as u64, // less than `rate_micro`, which is 64 bits wide
            )
        };
        let (offset_ns, remainder) = divide(worker);
        let (gap_ns, gap_remainder) = divide(workers);
        let gaps = ConstantGaps {
            gap_ns,
            gap_remainder,
            remainder,
            rate_micro,
        };
        (gaps, offset_ns)
    }

    /// How many queries are due within `span_ns` from the next one on, that one included, at most
    /// `most`; and the nanoseconds from it to the one after them.
    fn skip(&mut self, span_ns: u64, most: u64) -> (u64, u64) {
        let rate = u128::from(self.rate_micro);
        // One gap in units of 1/`rate_micro` ns; the products stay far below 2^128.
        let gap = u128::from(self.gap_ns) * rate + u128::from(self.gap_remainder);
        let span = (u128::from(span_ns) * rate).saturating_sub(u128::from(self.remainder));
        let due = if gap == 0 {
            u128::from(most)
        } else {
            span.div_ceil(gap)
        };
        let skipped = due.min(u128::from(most)) as u64;
        let passed = u128::from(skipped) * gap + u128::from(self.remainder);
        self.remainder = (passed % rate) as u64;
        (skipped, u64::try_from(passed / rate).unwrap_or(u64::MAX))
    }

    #[inline]
    fn next_gap_ns(&mut self) -> u64 {
        // Both remainders are below `rate_micro`; written so that no sum can overflow.
        let room = self.rate_micro - self.gap_remainder;
        if self.remainder >= room {
            self.remainder -= room;
            self.gap_ns.saturating_add(1)
        } else {
            self.remainder += self.gap_remainder;
            self.gap_ns
        }
    }
}

/// The distance of two numbers of 53 random bits in the range up to 1.
const UNIFORM_STEP: f64 = 1.0 / (1u64 << 53) as f64;

/// Exponential gaps.
#[derive(Debug)]
struct PoissonGaps {
    generator: Xoshiro256PlusPlus,
    gap_ns_mean: f64,
    /// The fraction of a nanosecond by which the last due instant was rounded down, carried so that
    /// rounding errors do not add up.
    fraction_ns: f64,
    /// Gaps that were drawn only to be skipped.
    skips_drawn: u64,
}

impl PoissonGaps {
    /// Keeps these random numbers apart from others that are drawn with the same seed.
    const STREAM: u64 = 0x6172_7269_7661_6c73; // "arrivals"

    fn new(rate_qps: f64, worker: u32, workers: u32, seed: u64) -> Self {
        PoissonGaps {
            generator: random::generator(seed, Self::STREAM, worker),
            gap_ns_mean: f64::from(workers) / rate_qps * 1e9,
            fraction_ns: 0.0,
            skips_drawn: 0,
        }
    }

    /// Skips arrivals as if each gap were the mean: the number within `span_ns` from the next one
    /// on (included), at most `most`, and the nanoseconds from it to the one after them.
    fn skip_evenly(&mut self, span_ns: u64, most: u64) -> (u64, u64) {
        let due = (span_ns as f64 - self.fraction_ns) / self.gap_ns_mean;
        let due = (due.ceil() as u64).max(1);
        let skipped = due.min(most);
        let passed_ns = skipped as f64 * self.gap_ns_mean + self.fraction_ns;
        let whole_ns = passed_ns.floor();
        self.fraction_ns = passed_ns - whole_ns;
        // Past the end of the span if all in it are skipped, in spite of rounding.
        let least_ns = if skipped == due { span_ns } else { 0 };
        (skipped, least_ns.max(whole_ns as u64))
    }

    #[inline]
    fn next_gap_ns(&mut self) -> u64 {
        // 53 random bits as a number above 0 and up to 1, whose logarithm is always finite.
        let uniform = ((self.generator.next_u64() >> 11) + 1) as f64 * UNIFORM_STEP;
        let gap_ns = -uniform.ln() * self.gap_ns_mean + self.fraction_ns;
        let whole_ns = gap_ns.floor();
        self.fraction_ns = gap_ns - whole_ns;
        whole_ns as u64
    }
}

#[cfg(test)]
mod tests;
