//! How the load fared before, around and after what was done to the target in mid-run.
//!
//! The time around an event lasts from the interval in which it began until [`AFTER_NS`] after its
//! end, in whole intervals: shorter ones have a better resolution. Queries count when they were
//! due, latencies when their responses came. The three parts together are the whole run.

use crate::event::Event;
use crate::histogram::Histogram;
use crate::interval::Interval;
use crate::record::RunRecord;
use crate::timeline::{Bin, Timeline};

/// Time after an event that still belongs to it: connections are re-established, caches are filled.
pub const AFTER_NS: u64 = 1_000_000_000;

/// A part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Queries due.
    pub due: u64,
    /// Of those, the ones that got no response.
    pub lost: u64,
    /// 99th percentile of the latency of responses that came; none without any.
    pub p99_ns: Option<u64>,
}

/// A run as an event divides it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Around {
    /// Before its first interval.
    pub before: Part,
    /// Around it.
    pub around: Part,
    /// After that, with the drain.
    pub after: Part,
    /// The longest time without a response that began around it, in whole bins of the timeline.
    pub silence_ns: u64,
}

impl Event {
    /// How the load of a run fared around it; none in a record without a timeline.
    pub fn around(&self, record: &RunRecord) -> Option<Around> {
        let timeline = record.timeline.as_ref()?;
        let (from_ns, until_ns) = self.span_ns(&record.intervals);
        let mut parts: [(Bin, Histogram); 3] = Default::default();
        let part_of = |at_ns: u64| match at_ns {
            _ if at_ns < from_ns => 0,
            _ if at_ns < until_ns => 1,
            _ => 2,
        };
        for (bin, number) in timeline.bins().iter().zip(0..) {
            parts[part_of(number * timeline.width_ns())].0.add(bin);
        }
        for interval in &record.intervals {
            let latency = &interval.distributions.latency;
            parts[part_of(interval.start_ns)].1.merge(latency);
        }
        let [before, around, after] = parts.map(|(bin, latency)| Part {
            due: bin.due,
            lost: bin.lost,
            p99_ns: latency.percentile(0.99),
        });
        let silence_ns = silence_ns(timeline, (from_ns, until_ns), record.measured_ns);
        Some(Around {
            before,
            around,
            after,
            silence_ns,
        })
    }

    /// From when to when is around it.
    fn span_ns(&self, intervals: &[Interval]) -> (u64, u64) {
        let over_ns = self.ended_ns.saturating_add(AFTER_NS);
        let first = intervals.iter().rfind(|it| it.start_ns <= self.began_ns);
        let last = intervals.iter().find(|it| over_ns <= it.end_ns);
        let from_ns = first.map_or(self.began_ns, |it| it.start_ns);
        (from_ns, last.map_or(u64::MAX, |it| it.end_ns))
    }
}

/// The longest time without a response that begins within a span, before the window ends.
fn silence_ns(timeline: &Timeline, (from_ns, until_ns): (u64, u64), window_ns: u64) -> u64 {
    let (width_ns, bins) = (timeline.width_ns(), timeline.bins());
    let (mut longest, mut current) = (0, 0);
    for number in from_ns / width_ns..window_ns / width_ns {
        let is_silent = bins.get(number as usize).is_none_or(|it| it.responses == 0);
        if !is_silent {
            current = 0;
        } else if current > 0 || number * width_ns < until_ns {
            current += width_ns;
        }
        longest = longest.max(current);
    }
    longest
}

impl RunRecord {
    /// The first event, with how the load fared around it.
    pub fn first_event(&self) -> Option<(&Event, Around)> {
        let event = self.events.first()?;
        Some((event, event.around(self)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{SECOND, interval, record};
    use crate::timeline::WIDTH_NS_MIN;

    fn event(began_ns: u64, ended_ns: u64) -> Event {
        Event {
            name: "restart".into(),
            began_ns,
            ended_ns,
            down_ns: None,
            error: None,
        }
    }

    /// Five seconds with ten queries in each bin; in the third second those of the first 20 bins
    /// get no response.
    fn run() -> RunRecord {
        let intervals = (0..5).map(|index| interval(index, &[(1_000_000 * (index + 1), 1_000)]));
        let mut run = record(intervals.collect());
        let mut timeline = Timeline::new();
        for bin in 0..500 {
            let is_lost = (200..220).contains(&bin);
            let what = Bin {
                due: 10,
                responses: if is_lost { 0 } else { 10 },
                lost: if is_lost { 10 } else { 0 },
                ..Bin::default()
            };
            timeline.add(bin * WIDTH_NS_MIN, &what);
        }
        run.timeline = Some(timeline);
        run
    }

    #[test]
    fn losses_and_latencies_are_those_of_the_intervals_around_an_event() {
        let mut run = run();
        // A second after it is over is within the fourth.
        run.events = vec![event(2 * SECOND + SECOND / 10, 2 * SECOND + SECOND / 5)];
        let (_, found) = run.first_event().unwrap();
        let losses = [found.before, found.around, found.after].map(|part| (part.due, part.lost));
        assert_eq!(losses, [(2_000, 0), (2_000, 200), (1_000, 0)]);
        let p99 = |part: Part| part.p99_ns.unwrap() / 1_000_000;
        assert_eq!(
            [found.before, found.around, found.after].map(p99),
            [2, 4, 5]
        );
        assert_eq!(found.silence_ns, 20 * WIDTH_NS_MIN);
    }

    #[test]
    fn an_event_at_the_end_has_nothing_after_it_and_one_elsewhere_no_silence() {
        let mut run = run();
        run.events = vec![event(4 * SECOND, 4 * SECOND + SECOND / 2)];
        let (_, found) = run.first_event().unwrap();
        assert_eq!(found.after, Part::default());
        assert_eq!((found.before.lost, found.around.lost), (200, 0));
        assert_eq!(found.silence_ns, 0);
        assert_eq!(
            event(2, 1).check().unwrap_err(),
            "the event `restart` ended before it began"
        );
    }
}
