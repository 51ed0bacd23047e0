//! Outages: spans in which nothing came back, told from overload, from loss and from slow patches.
//!
//! A span is an outage if no usable response came in it although queries waited for one, if it was
//! long, and if many responses would have come in it at the rate outside. Time in which no query
//! was due or waited belongs to none. The bins show which queries waited: those due earlier and
//! answered later, and those due within the span, except its last moments. Queries lost before the
//! span do not count: slots of a closed loop that time out one after the other are loss and not an
//! outage. Overload and random loss leave no such span, because some responses always come.
//!
//! The bins of a long run are wide. There outages are looked for in shorter
//! [`Steps`](super::Steps), as long as the run's intervals, and are part of the record.
//!
//! Not found: an outage shorter than two bins or steps (two seconds in a run of a day), one from
//! which some of the target is spared, and a target that never answered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::steps::{Answered, FoundOutages};
use super::{Bin, Timeline};
use crate::interval::per;

/// Shortest outage: a TCP segment that was lost is sent again after 200 ms.
pub const LENGTH_NS_MIN: u64 = 250_000_000;

/// Shortest outage that fewer than [`MET_MIN`] queries met: a few can be slow by themselves.
pub const LENGTH_NS_MIN_OF_FEW: u64 = 500_000_000;

/// Queries that an outage meets in open loop, and responses that it keeps from coming.
pub const MET_MIN: u64 = 20;

/// A span has to be longer than this many usual latencies: the first response of a run takes one.
const LATENCIES: u64 = 3;

/// A load pauses where nothing is due for this many times the mean time between two queries: of
/// queries at random, that is chance once in 20,000 times.
const IDLE_GAPS: f64 = 10.0;

/// Bins with responses before a span that define the usual latency, minimum and maximum.
const BINS_BEFORE_MIN: usize = 5;
const BINS_BEFORE_MAX: usize = 50;

/// If a link was down for this share of a span, late responses are attributed to it: TCP
/// retransmits after doubling pauses, a new connection after a second.
const CUT_OFF_SHARE: u64 = 4;

/// The cause, as far as the generator could observe it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum OutageKind {
    /// Workers of the generator did not get to run: they were stopped, or starved of their CPU.
    OwnFreeze,
    /// The generator's kernel sent nothing: interface down or gone, no carrier, no route.
    Unsendable,
    /// The generator's host had no open file, memory or local port left for new connections.
    NoResources,
    /// Connections were refused, or datagrams answered by ICMP port unreachable.
    Refusal,
    /// Handshakes of TLS, QUIC or HTTP failed.
    Handshakes,
    /// Every response was an error.
    Errors,
    /// Connections were reset or closed.
    Reset,
    /// Nothing came back.
    Silence,
}

impl OutageKind {
    /// What happened, without full stop.
    pub fn words(self) -> &'static str {
        match self {
            OutageKind::OwnFreeze => "the generator was not scheduled",
            OutageKind::Unsendable => "this host could send nothing (interface down, or no route)",
            OutageKind::NoResources => {
                "this host ran out of file descriptors, memory or local ports for new connections"
            }
            OutageKind::Refusal => "the target refused everything",
            OutageKind::Handshakes => "every handshake failed",
            OutageKind::Errors => "every response was an error",
            OutageKind::Reset => "the target reset or closed every connection",
            OutageKind::Silence => "nothing came back",
        }
    }
}

/// One outage. Instants are in nanoseconds since the start of the measured run, and to 10 ms or the
/// width of a bin of the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// The last response came before.
    pub begin_ns: u64,
    /// Responses came again; the end of the window if `lasts` is true.
    pub end_ns: u64,
    /// Queued queries were answered.
    pub recovered_ns: u64,
    /// What was in the way.
    pub kind: OutageKind,
    /// Queries due within it. In a closed loop none are due while all outstanding queries wait.
    pub due: u64,
    /// Of those, the ones that got no response.
    pub lost: u64,
    /// Queries that were answered when it was over.
    pub late: u64,
    /// It had not ended when the window did.
    pub lasts: bool,
}

impl Outage {
    /// How long no response came, in nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.end_ns - self.begin_ns
    }
}

/// The run without its outages and recoveries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outside {
    /// Nanoseconds of the window.
    pub length_ns: u64,
    /// Queries due a second.
    pub due_qps: f64,
    /// Responses a second.
    pub responses_qps: f64,
    /// Queries due.
    pub due: u64,
    /// Of those, the ones that got no response.
    pub lost: u64,
    /// Mean latency in nanoseconds of the responses; none without any.
    pub latency_ns_mean: Option<f64>,
}

/// The outages of a run, in order, and the rest of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outages {
    /// In order; none overlaps another, but for those of kind [`OutageKind::OwnFreeze`].
    pub each: Vec<Outage>,
    /// Shorter ones that the record does not list.
    pub omitted: u64,
    /// The rest of the run.
    pub outside: Outside,
}

impl Outages {
    /// True if an outage, or what followed from it, was under way between those instants.
    pub fn touch(&self, start_ns: u64, end_ns: u64) -> bool {
        let within = |it: &Outage| it.begin_ns < end_ns && start_ns < it.recovered_ns;
        self.each.iter().any(within)
    }
}

/// What is usual for the run in question.
#[derive(Clone, Copy, Debug)]
pub struct Usual {
    /// Length of the measured window in nanoseconds.
    pub window_ns: u64,
    /// Median latency in nanoseconds. That of a run may be the doing of an outage: shortly before
    /// each, it may have been less.
    pub latency_ns: u64,
    /// Places of the closed loop; none in open loop.
    pub places: Option<u64>,
}

/// Finds the outages of a run.
pub fn outages(timeline: &Timeline, usual: Usual) -> Outages {
    let search = Search::new(timeline, usual, &[]);
    let each = search.found().collect();
    search.outages(each, 0)
}

impl Search<'_> {
    /// Those outages with the times in which a worker stood still, and the rest of the run.
    fn outages(&self, mut each: Vec<Outage>, omitted: u64) -> Outages {
        let search = self;
        for (first, end) in search.freezes() {
            let begin_ns = first as u64 * search.width_ns;
            let is_known = |it: &Outage| {
                it.kind == OutageKind::OwnFreeze
                    && it.begin_ns < end as u64 * search.width_ns
                    && begin_ns < it.end_ns
            };
            if !each.iter().any(is_known) {
                each.push(Outage {
                    kind: OutageKind::OwnFreeze,
                    ..search.outage((first, end))
                });
            }
        }
        each.sort_by_key(|outage| outage.begin_ns);
        let mut found = Outages {
            each,
            omitted,
            outside: Outside::default(),
        };
        found.outside = search.outside(&found);
        found
    }
}

/// What is to be said of outages that were found in steps: what was outside of them, by the
/// timeline.
pub(crate) fn completed(timeline: &Timeline, usual: Usual, found: &FoundOutages) -> Outages {
    Search::new(timeline, usual, &[]).outages(found.each.clone(), found.omitted)
}

/// From the first bin to the one after the last.
type Span = (usize, usize);

pub(super) struct Search<'a> {
    bins: Vec<Bin>,
    /// All of them together.
    all: Bin,
    /// When usable responses came in each bin, where that is known.
    answered: &'a [Answered],
    width_ns: u64,
    workers: u64,
    usual: Usual,
    /// Of the queries due until the end of each bin, those that will be answered later.
    waiting: Vec<u64>,
    /// The same of those that will get no response, and have not ended then.
    open: Vec<u64>,
    /// Errors are what the target answers most of the time.
    errors_are_usual: bool,
    /// Responses a second where there were any.
    responses_qps: f64,
}

/// More than the bins or steps of any run; a record that was tampered with may claim any window.
const BINS_SEARCHED_MAX: usize = 1 << 18;

impl<'a> Search<'a> {
    pub(super) fn new(timeline: &Timeline, usual: Usual, answered: &'a [Answered]) -> Search<'a> {
        let width_ns = timeline.width_ns();
        let wanted = (usual.window_ns.div_ceil(width_ns) as usize).min(BINS_SEARCHED_MAX);
        let mut bins: Vec<Bin> = timeline.bins().iter().take(wanted).copied().collect();
        bins.resize(wanted, Bin::default());
        let mut asked = 0;
        let waiting = bins.iter().map(|bin| {
            asked += (bin.due as i64) - (bin.lost as i64) - (bin.responses as i64);
            asked.max(0) as u64
        });
        let waiting = waiting.collect();
        let mut open = 0_u64;
        let each_open = bins.iter().map(|bin| {
            open = open.saturating_add(bin.lost).saturating_sub(bin.unanswered);
            open
        });
        let open = each_open.collect();
        let mut all = Bin::default();
        bins.iter().for_each(|bin| all.add(bin));
        let errors_are_usual = 2 * all.errors > all.responses;
        let mut search = Search {
            bins,
            all,
            // They are those of other responses.
            answered: if errors_are_usual { &[] } else { answered },
            width_ns,
            workers: timeline.workers(),
            usual,
            waiting,
            open,
            errors_are_usual,
            responses_qps: 0.0,
        };
        search.responses_qps = search.rate_where_answered();
        search
    }

    fn usable(&self, bin: &Bin) -> u64 {
        match self.errors_are_usual {
            true => bin.responses,
            false => bin.usable(),
        }
    }

    fn of(&self, (first, end): Span) -> &[Bin] {
        &self.bins[first..end]
    }

    /// Length of whole bins, as far as the window goes.
    fn whole_ns(&self, (first, end): Span) -> u64 {
        let end_ns = (end as u64 * self.width_ns).min(self.usual.window_ns);
        end_ns.saturating_sub(first as u64 * self.width_ns)
    }

    fn answered_in(&self, bin: Option<usize>) -> Answered {
        self.answered.get(bin?).copied().flatten()
    }

    /// When a span without a usable response began: with the last one before it.
    fn begin_ns(&self, first: usize) -> u64 {
        let bin_ns = first as u64 * self.width_ns;
        let last = self.answered_in(first.checked_sub(1));
        last.map_or(bin_ns, |(_, last_ns)| last_ns.min(bin_ns))
    }

    /// When it ended: with the first one after it, or with the window.
    fn end_ns(&self, end: usize) -> u64 {
        let bin_ns = end as u64 * self.width_ns;
        let first = self.answered_in(Some(end));
        let end_ns = first.map_or(bin_ns, |(first_ns, _)| first_ns.max(bin_ns));
        end_ns.min(self.usual.window_ns)
    }

    /// Length of a span without a usable response.
    fn ns(&self, (first, end): Span) -> u64 {
        self.end_ns(end).saturating_sub(self.begin_ns(first))
    }

    /// What was due and lost of the bin before such a span since the last response, and of the bin
    /// after it until the first one: in proportion to the time.
    fn at_edges(&self, (first, end): Span) -> [(u64, u64); 2] {
        let part = |bin: Option<usize>, ns: u64| {
            let Some(bin) = bin.and_then(|it| self.bins.get(it)) else {
                return (0, 0);
            };
            let share = per(ns as f64, self.width_ns as f64).min(1.0);
            let due = (share * bin.due as f64) as u64;
            (due, bin.lost.min(due))
        };
        let before_ns = first as u64 * self.width_ns - self.begin_ns(first);
        let after_ns = self.end_ns(end).saturating_sub(end as u64 * self.width_ns);
        [
            part(first.checked_sub(1), before_ns),
            part(Some(end), after_ns),
        ]
    }

    /// Shortest span that can be distinguished from the width of a bin.
    fn told_ns(&self) -> u64 {
        match self.answered.is_empty() {
            true => 2 * self.width_ns,
            false => self.width_ns,
        }
    }

    /// Responses a second without the spans that might be outages.
    fn rate_where_answered(&self) -> f64 {
        let silent_ns: u64 = self.long_silences().map(|span| self.ns(span)).sum();
        let usable: u64 = self.bins.iter().map(|bin| self.usable(bin)).sum();
        let answered_ns = self.usual.window_ns.saturating_sub(silent_ns);
        per(usable as f64 * 1e9, answered_ns as f64)
    }

    /// The parts of a span in which queries were due or waited. What is left out is the time until
    /// the first is due, and each pause of the load that is longer than chance makes it. In a
    /// closed loop that is nothing: its places wait.
    fn waited_in(&self, (first, end): Span) -> Vec<Span> {
        if self.usual.places.is_some() {
            return vec![(first, end)];
        }
        let is_idle = self.are_idle((first, end));
        let gap_ns = per(self.usual.window_ns as f64, self.all.due as f64);
        let pause_ns = (IDLE_GAPS * gap_ns).max(LENGTH_NS_MIN as f64);
        let is_pause = |bins: usize| (bins as u64 * self.width_ns) as f64 > pause_ns;
        let mut parts: Vec<Span> = Vec::new();
        for (index, _) in (first..end).zip(is_idle).filter(|(_, is_idle)| !is_idle) {
            match parts.last_mut() {
                Some(last) if !is_pause(index - last.1) => last.1 = index + 1,
                _ => parts.push((index, index + 1)),
            }
        }
        // What may have happened since the last query is of the span too.
        if let Some(last) = parts.last_mut().filter(|last| !is_pause(end - last.1)) {
            last.1 = end;
        }
        parts
    }

    /// Of each bin, whether no query was due in it, and none that was due in the span waited.
    fn are_idle(&self, (first, end): Span) -> Vec<bool> {
        let [(_, mut open), _] = self.at_edges((first, end));
        let before = first.checked_sub(1).map_or(0, |before| self.open[before]);
        let mut earlier = before.saturating_sub(open);
        let is_idle = |index: usize| {
            let bin = &self.bins[index];
            let is_idle = open == 0 && bin.due == 0 && self.waiting[index] == 0;
            // They end in the order in which they were due.
            let ended = bin.unanswered.saturating_sub(earlier);
            earlier = earlier.saturating_sub(bin.unanswered);
            open = open.saturating_add(bin.lost).saturating_sub(ended);
            is_idle
        };
        (first..end).map(is_idle).collect()
    }

    /// Spans without a usable response that are long enough.
    fn long_silences(&self) -> impl Iterator<Item = Span> + '_ {
        let is_long = |span: &Span| {
            let usual_ns = || LATENCIES * self.latency_ns_before(span.0);
            let ns = self.ns(*span);
            ns >= LENGTH_NS_MIN.max(self.told_ns()) && ns >= usual_ns()
        };
        let silences = spans(&self.bins, |bin| self.usable(bin) == 0);
        silences.flat_map(|it| self.waited_in(it)).filter(is_long)
    }

    /// The latency that was usual before a bin. What an outage kept waiting may be most of what the
    /// run asked: its median latency tells of the outage, that of the moments before does not.
    /// Where nothing was before, it is that of the tenth of the bins in which it was least.
    fn latency_ns_before(&self, first: usize) -> u64 {
        let means = |bins: &[Bin], most: usize| -> Vec<u64> {
            let last = bins.iter().rev().filter_map(Bin::latency_ns_mean);
            last.take(most).map(|ns| ns as u64).collect()
        };
        let before = means(&self.bins[..first], BINS_BEFORE_MAX);
        let (mut means, part) = match before.len() >= BINS_BEFORE_MIN {
            true => (before, 2),
            false => (means(&self.bins, usize::MAX), 10),
        };
        means.sort_unstable();
        let usual = means.get(means.len() / part).copied();
        self.usual.latency_ns.min(usual.unwrap_or(u64::MAX))
    }

    /// Those of them that are outages.
    pub(super) fn found(&self) -> impl Iterator<Item = Outage> + '_ {
        let spans = self.long_silences().filter(|span| self.is_outage(*span));
        spans.map(|span| self.outage(span))
    }

    fn is_outage(&self, span: Span) -> bool {
        let expected = self.responses_qps * self.ns(span) as f64 / 1e9;
        if expected < MET_MIN as f64 {
            return false;
        }
        let met = self.met(span);
        let waits_in_places =
            |places: u64| met >= places.div_ceil(2).max(1) && self.ns(span) >= LENGTH_NS_MIN_OF_FEW;
        met >= MET_MIN || self.usual.places.is_some_and(waits_in_places) || self.is_told(span)
    }

    /// Queries that waited within the span for longer than usual, or without a response.
    fn met(&self, (first, end): Span) -> u64 {
        let moments_ns = LATENCIES * self.latency_ns_before(first);
        let waiting = first.checked_sub(1);
        let waiting = waiting.map_or(0, |before| self.waiting[before]);
        if self.answered.is_empty() {
            let moments = moments_ns.div_ceil(self.width_ns) as usize;
            let until = end.saturating_sub(moments).max(first);
            let due: u64 = self.of((first, until)).iter().map(|bin| bin.due).sum();
            return due + waiting;
        }
        let due: u64 = self.of((first, end)).iter().map(|bin| bin.due).sum();
        // Of those of the bin before, the ones that will be answered wait already.
        let [(_, lost_before), (due_after, _)] = self.at_edges((first, end));
        let moments = per(moments_ns as f64, self.ns((first, end)) as f64).min(1.0);
        let long = (1.0 - moments) * (lost_before + due + due_after) as f64;
        long as u64 + waiting
    }

    /// A closed loop asks nothing while it has no connection, or while its places wait for the
    /// timeouts of queries that were refused.
    fn is_told(&self, (first, end): Span) -> bool {
        let is_told = |bin: &Bin| {
            let failed = bin.handshakes_failed + bin.attempts_failed + bin.no_resources;
            bin.refused + failed + bin.send_failed
        };
        let wide = (first.saturating_sub(1), end);
        self.usual.places.is_some() && self.stands_out(wide, is_told)
    }

    /// True if a count is more than twice what it would be as everywhere else. Clients lose their
    /// connections one after the other, so what led to an outage may have begun before it: of the
    /// time before a span, the last part is not what is usual.
    fn stands_out(&self, (first, end): Span, count: impl Fn(&Bin) -> u64) -> bool {
        let led_to = (first - (end - first).min(first / 2), first);
        let sum = |span: Span| self.of(span).iter().map(&count).sum::<u64>();
        let within = sum((first, end));
        let length = self.whole_ns((first, end)) as f64;
        let rest = self.usual.window_ns as f64 - length - self.whole_ns(led_to) as f64;
        let usual = per((count(&self.all) - within - sum(led_to)) as f64, rest) * length;
        within > 0 && within as f64 > 2.0 * usual
    }

    fn outage(&self, (first, end): Span) -> Outage {
        let lasts = end == self.bins.len();
        let sum = |of: fn(&Bin) -> u64| self.of((first, end)).iter().map(of).sum::<u64>();
        let [before, after] = self.at_edges((first, end));
        let recovered = self.recovered_at((first, end)) as u64 * self.width_ns;
        let end_ns = self.end_ns(end);
        let due = sum(|bin| bin.due) + before.0 + after.0;
        let lost = sum(|bin| bin.lost) + before.1 + after.1;
        Outage {
            begin_ns: self.begin_ns(first),
            end_ns,
            recovered_ns: recovered.min(self.usual.window_ns).max(end_ns),
            kind: self.kind((first, end)),
            due,
            lost: lost.min(due),
            late: self.waiting[end - 1],
            lasts,
        }
    }

    /// The first bin from the end of a span on at whose start no more queries waited than usual.
    fn recovered_at(&self, (first, end): Span) -> usize {
        let usual_ns = (2 * self.latency_ns_before(first)).max(self.width_ns) as f64;
        let usual = self.responses_qps * usual_ns / 1e9;
        // Of the queries in places of a closed loop all wait, always.
        let usual = (usual as u64).max(self.usual.places.unwrap_or(0));
        let later = &self.waiting[end.min(self.waiting.len())..];
        let recovered = later.iter().position(|waiting| *waiting <= usual);
        recovered.map_or(self.bins.len(), |bins| end + bins + 1)
    }

    fn kind(&self, (first, end): Span) -> OutageKind {
        let wide = (first.saturating_sub(1), (end + 1).min(self.bins.len()));
        let sum = |of: fn(&Bin) -> u64| self.of(wide).iter().map(of).sum::<u64>();
        let stands_out = |of: fn(&Bin) -> u64| self.stands_out(wide, of);
        let frozen_us = sum(|bin| bin.frozen_us) / self.workers.max(1);
        let cut_off_us = sum(|bin| bin.cut_off_us) / self.workers.max(1);
        let errors: u64 = self.of((first, end)).iter().map(|bin| bin.errors).sum();
        if 2 * frozen_us * 1_000 >= self.ns((first, end)) {
            OutageKind::OwnFreeze
        } else if stands_out(|bin| bin.send_failed)
            || cut_off_us.saturating_mul(1_000 * CUT_OFF_SHARE) >= self.ns((first, end))
        {
            OutageKind::Unsendable
        } else if stands_out(|bin| bin.no_resources) {
            OutageKind::NoResources
        } else if stands_out(|bin| bin.refused) {
            OutageKind::Refusal
        } else if stands_out(|bin| bin.handshakes_failed) {
            OutageKind::Handshakes
        } else if errors >= MET_MIN {
            OutageKind::Errors
        } else if stands_out(|bin| bin.reset + bin.closed) {
            OutageKind::Reset
        } else {
            OutageKind::Silence
        }
    }

    /// Spans in which a worker or more took no turn.
    fn freezes(&self) -> impl Iterator<Item = Span> + '_ {
        let is_frozen = |bin: &Bin| 2_000 * bin.frozen_us >= self.width_ns;
        spans(&self.bins, is_frozen).filter(|span| {
            let frozen_us: u64 = self.of(*span).iter().map(|bin| bin.frozen_us).sum();
            frozen_us * 1_000 >= LENGTH_NS_MIN
        })
    }

    fn outside(&self, found: &Outages) -> Outside {
        let (mut all, mut length_ns) = (Bin::default(), 0);
        for (index, bin) in self.bins.iter().enumerate() {
            let start_ns = index as u64 * self.width_ns;
            let bin_ns = self.whole_ns((index, index + 1));
            if !found.touch(start_ns, start_ns + bin_ns) {
                all.add(bin);
                length_ns += bin_ns;
            }
        }
        let rate = |count: u64| per(count as f64 * 1e9, length_ns as f64);
        Outside {
            length_ns,
            due_qps: rate(all.due),
            responses_qps: rate(all.responses),
            due: all.due,
            lost: all.lost,
            latency_ns_mean: all.latency_ns_mean(),
        }
    }
}

/// The longest spans all of whose bins are such.
fn spans<'a>(
    bins: &'a [Bin],
    is_such: impl Fn(&Bin) -> bool + 'a,
) -> impl Iterator<Item = Span> + 'a {
    let mut next = 0;
    std::iter::from_fn(move || {
        let first = next + bins[next..].iter().position(&is_such)?;
        let length = bins[first..].iter().position(|bin| !is_such(bin));
        next = length.map_or(bins.len(), |length| first + length);
        Some((first, next))
    })
}
