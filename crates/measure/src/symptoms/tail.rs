//! Responses far later than most: how many, and in which pattern.

use super::Figures;
use super::generator::{late_sends, out_of_cpu};
use super::host::target_starved;
use super::instances::{self, SomeInstances};
use super::significance::{self, EVENTS_MIN};
use super::stalls;
use crate::histogram::Histogram;
use crate::interval::{Interval, per};
use crate::timeline::Timeline;

/// A response is far later than most from this many times the median on...
const TIMES: u64 = 50;
/// ... and from this latency on: below it are caches' misses and the way through the Internet.
const LATENCY_NS_MIN: u64 = 50_000_000;
/// The same of responses that have a pattern, which these do not make.
const TIMES_OF_PATTERN: u64 = 5;
const LATENCY_NS_MIN_OF_PATTERN: u64 = 20_000_000;
/// The same of responses that are a group of their own: a host that is busy, or a server that is
/// stopped by its quota, makes the median longer, and no gap between two groups.
const TIMES_OF_GROUP: u64 = 3;
/// A gap before such a group has this width...
const GAP: f64 = 1.5;
/// ... and at most this share of the number in the group.
const IN_GAP: f64 = 0.1;
/// From this share of the responses on, they are reported.
const SHARE_MIN: f64 = 0.001;
/// From this share on, most were not answered on time in any sense that a client knows.
const SHARE_MUCH: f64 = 0.005;
/// Spans closer than that many bins are one.
const APART: usize = 2;
/// Spans are periodic from that many on, if their distances differ by no more than that factor.
const PERIODS_MIN: usize = 3;
const PERIODS_ALIKE: f64 = 1.25;
/// A host that made a response late by a latency held up a query by this part of it at least...
const OF_LATENESS: u64 = 4;
/// ... and that many times the share of the time in which it stalled is more than it explains.
const TIMES_STALLED: f64 = 2.0;
/// At most this share of the clients that chance would choose have late responses where they are
/// a pattern.
const OF_CHANCE: f64 = 0.6;

/// Responses that came far later than most.
pub(crate) struct FarTail {
    pub(crate) number: u64,
    pub(crate) from_ns: u64,
    pub(crate) p50_ns: u64,
    pub(crate) pattern: TailPattern,
    is_much: bool,
}

impl FarTail {
    pub(crate) fn is_much(&self) -> bool {
        self.is_much
    }
}

/// Where late responses are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TailPattern {
    /// In these spans, each its begin and end.
    Spans(Vec<(u64, u64)>),
    /// In this many spans, one after each such period.
    Periodic { spans: u64, period_ns: u64 },
    /// At `late` of `all` clients.
    Clients { late: u64, all: u64 },
    /// At `late` of `all` targets.
    Targets { late: u64, all: u64 },
    /// At these server instances.
    Instances(SomeInstances),
    /// Everywhere.
    Spread,
}

pub(super) fn far_tail(figures: &Figures<'_>) -> Option<FarTail> {
    let service = &figures.record.total.distributions.service;
    let p50_ns = figures.service_p50_ns?;
    let above = |times: u64, least_ns: u64| least_ns.max(times.saturating_mul(p50_ns));
    let later = |from_ns: u64| {
        let number = service.count_from(from_ns);
        let is_above = |share| significance::is_above(number, service.count(), share);
        (number >= EVENTS_MIN && is_above(SHARE_MIN)).then(|| FarTail {
            number,
            from_ns,
            p50_ns,
            pattern: pattern(figures, number, p50_ns, from_ns),
            is_much: is_above(SHARE_MUCH),
        })
    };
    let of_pattern = later(above(TIMES_OF_PATTERN, LATENCY_NS_MIN_OF_PATTERN));
    let of_pattern = of_pattern.filter(|it| it.pattern != TailPattern::Spread);
    of_pattern
        .or_else(|| later(above(TIMES, LATENCY_NS_MIN)))
        .or_else(|| later(group_from(service, above(TIMES_OF_GROUP, LATENCY_NS_MIN))?))
}

/// More responses were far late than a host which stalls explains.
pub(crate) struct TailBeyondHost;

/// Of an open loop: queries that a stalled host held up left late too, and a target that waits for
/// its CPU holds up those of that time.
pub(super) fn tail_beyond_host(figures: &Figures<'_>) -> Option<TailBeyondHost> {
    let it = far_tail(figures).filter(FarTail::is_much)?;
    let distributions = &figures.record.total.distributions;
    let lateness = &distributions.send_lateness;
    let late = per(
        lateness.count_from(it.from_ns / OF_LATENESS) as f64,
        lateness.count() as f64,
    );
    let starved = target_starved(figures);
    let has_stalled = late_sends(figures).is_some() || out_of_cpu(figures).is_some();
    let starved_share = starved.as_ref().map_or(0.0, |it| it.waited);
    let tail = per(it.number as f64, distributions.service.count() as f64);
    let is_beyond =
        tail >= TIMES_STALLED * (late + starved_share) || is_beside_stalls(figures, it.from_ns);
    let is_shown = (has_stalled || starved.is_some()) && !figures.has_no_time_left();
    (figures.record.is_open_loop() && is_shown && is_beyond).then_some(TailBeyondHost)
}

/// Many responses took longer than the host, in the time of each, stalled for.
fn is_beside_stalls(figures: &Figures<'_>, from_ns: u64) -> bool {
    let later = |it: &Interval| {
        let service = &it.distributions.service;
        // They were sent as long before.
        let from = it.start_ns.saturating_sub(service.max_ns().unwrap_or(0));
        let stall_ns = stalls::longest_ns(figures, (from, it.end_ns)).unwrap_or(u64::MAX);
        service.count_from(from_ns.max(stall_ns.saturating_mul(OF_LATENESS)))
    };
    let later: u64 = figures.record.intervals.iter().map(later).sum();
    let all = figures.record.total.distributions.service.count();
    let are_many = later >= EVENTS_MIN && significance::is_above(later, all, SHARE_MUCH);
    are_many && stalls::waits_as_target(figures)
}

/// Where a group of values begins, at `least_ns` or later, that a gap divides from all before it.
fn group_from(times: &Histogram, least_ns: u64) -> Option<u64> {
    // Each bucket's lowest value, with the number of values below it.
    let mut below = 0;
    let buckets = times.buckets().map(|(low, _, number)| {
        below += number;
        (low, below - number)
    });
    let buckets: Vec<(u64, u64)> = buckets.collect();
    let starts = buckets.iter().filter(|(low, _)| *low >= least_ns);
    let mut starts = starts.map(|(start, below)| {
        let gap = (*start as f64 / GAP) as u64;
        let before_gap = buckets.partition_point(|(low, _)| *low < gap);
        (*start, below - buckets[before_gap].1, times.count() - below)
    });
    let first = starts.find(|(_, in_gap, group)| *in_gap as f64 <= IN_GAP * *group as f64);
    first.map(|(start, ..)| start)
}

fn pattern(figures: &Figures<'_>, number: u64, p50_ns: u64, from_ns: u64) -> TailPattern {
    let timeline = figures.record.timeline.as_ref();
    (timeline.and_then(|it| in_time(it, p50_ns)))
        .or_else(|| by_target(figures, from_ns))
        .or_else(|| by_instance(figures, from_ns))
        .or_else(|| by_client(figures, number, from_ns))
        .unwrap_or(TailPattern::Spread)
}

/// Spans of the timeline that hold most of the latency beyond the median.
fn in_time(timeline: &Timeline, p50_ns: u64) -> Option<TailPattern> {
    let usual_us = p50_ns as f64 / 1e3;
    let beyond = |bin: &crate::timeline::Bin| {
        (bin.latency_us as f64 - usual_us * bin.responses as f64).max(0.0)
    };
    let beyond: Vec<f64> = timeline.bins().iter().map(beyond).collect();
    let answered = timeline.bins().iter().filter(|it| it.responses > 0).count();
    let spans = stalls::concentrated(&beyond, answered, APART, timeline.width_ns());
    // Without latencies in the timeline there are none.
    if spans.is_empty() {
        return None;
    }
    Some(periodic(&spans).unwrap_or(TailPattern::Spans(spans)))
}

fn periodic(spans: &[(u64, u64)]) -> Option<TailPattern> {
    let pairs = spans.iter().zip(spans.iter().skip(1));
    let periods: Vec<u64> = pairs.map(|(one, next)| next.0 - one.0).collect();
    let (least, most) = (periods.iter().min()?, periods.iter().max()?);
    let are_alike = *most as f64 <= PERIODS_ALIKE * *least as f64;
    let period_ns = periods.iter().sum::<u64>() / periods.len() as u64;
    (spans.len() >= PERIODS_MIN && are_alike).then_some(TailPattern::Periodic {
        spans: spans.len() as u64,
        period_ns,
    })
}

fn by_target(figures: &Figures<'_>, from_ns: u64) -> Option<TailPattern> {
    let targets = &figures.record.targets;
    let is_late = |of: &Histogram| of.percentile(0.99) >= Some(from_ns);
    let late = targets.iter();
    let late = late
        .filter(|it| is_late(&it.total.distributions.service))
        .count() as u64;
    let all = targets.len() as u64;
    (late > 0 && late < all).then_some(TailPattern::Targets { late, all })
}

fn by_instance(figures: &Figures<'_>, from_ns: u64) -> Option<TailPattern> {
    let some = instances::that_have(figures, |it| it.service.count_from(from_ns));
    some.map(TailPattern::Instances)
}

/// Clients have a socket each: a client is a source port, or a connection.
fn by_client(figures: &Figures<'_>, number: u64, from_ns: u64) -> Option<TailPattern> {
    let experience = figures.record.experience()?;
    let each = &experience.latency.max;
    let (all, late) = (each.count(), each.count_from(from_ns));
    // By chance, that many clients would have one at least.
    let responses = figures.record.total.distributions.service.count() as f64;
    let none = (1.0 - per(number as f64, responses)).powf(per(responses, all as f64));
    let are_some = late > 0 && late as f64 <= OF_CHANCE * all as f64 * (1.0 - none);
    are_some.then_some(TailPattern::Clients { late, all })
}

/// Queries for which clients went on to another server.
pub(crate) struct Failovers {
    pub(crate) number: u64,
    are_many: bool,
}

impl Failovers {
    pub(crate) fn are_many(&self) -> bool {
        self.are_many
    }
}

pub(super) fn failovers(figures: &Figures<'_>) -> Option<Failovers> {
    let number = figures.counts.stub.failovers.total();
    (number > 0).then(|| Failovers {
        number,
        are_many: significance::is_above(number, figures.counts.sent, SHARE_MUCH),
    })
}
