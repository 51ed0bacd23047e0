//! The outages of a run, by its record.

use crate::interval::Interval;
use crate::record::RunRecord;
use crate::timeline::outages::{Usual, completed};
use crate::timeline::{FoundOutages, Outage, OutageKind, Outages, Steps, outages};

/// What takes as long as a silence is usual if as many responses did, times this, as waited in it.
const ELSEWHERE: u64 = 2;

/// So many silences are what the target does all the time, if they are most of it.
const WAITS_MIN: usize = 3;

impl RunRecord {
    /// The outages of the run; none if the record has no timeline.
    pub fn outages(&self) -> Option<Outages> {
        let timeline = self.timeline.as_ref()?;
        match &self.outages {
            None => self.outages_by_timeline(),
            Some(found) => Some(completed(timeline, self.usual(), found)),
        }
    }

    fn outages_by_timeline(&self) -> Option<Outages> {
        let timeline = self.timeline.as_ref()?;
        let mut found = outages(timeline, self.usual());
        let number = found.each.len();
        found.each = self.without_usual_waits(found.each);
        if found.each.len() == number {
            return Some(found);
        }
        let found = FoundOutages {
            step_ns: timeline.width_ns(),
            each: found.each,
            omitted: 0,
        };
        Some(completed(timeline, self.usual(), &found))
    }

    /// Without silences of a closed loop in which all places waited for a part of the target that
    /// is slow: nothing was lost, and it took as long at other times too, or most of the time.
    fn without_usual_waits(&self, mut each: Vec<Outage>) -> Vec<Outage> {
        let Some(timeline) = self
            .timeline
            .as_ref()
            .filter(|_| self.outstanding().is_some())
        else {
            return each;
        };
        let is_wait = |it: &Outage| {
            // They may have been sent as long before.
            let from_ns = it.begin_ns.saturating_sub(it.length_ns());
            let is_complete = it.late > 0 && timeline.between(from_ns, it.end_ns).lost == 0;
            it.kind == OutageKind::Silence && is_complete
        };
        let waits: Vec<&Outage> = each.iter().filter(|it| is_wait(it)).collect();
        let Some(shortest_ns) = waits.iter().map(|it| it.length_ns()).min() else {
            return each;
        };
        let late: u64 = waits.iter().map(|it| it.late).sum();
        let length_ns: u64 = waits.iter().map(|it| it.length_ns()).sum();
        let as_late = self.total.distributions.latency.count_from(shortest_ns);
        let is_most = waits.len() >= WAITS_MIN && length_ns >= self.measured_ns / 2;
        if is_most || as_late >= late.saturating_mul(ELSEWHERE) {
            each.retain(|it| !is_wait(it));
        }
        each
    }

    /// The same as a list; of a short run, what its timeline shows.
    pub(crate) fn found_outages(&self) -> Option<FoundOutages> {
        if self.outages.is_some() {
            return self.outages.clone();
        }
        Some(FoundOutages {
            step_ns: self.timeline.as_ref()?.width_ns(),
            each: self.outages_by_timeline()?.each,
            omitted: 0,
        })
    }

    fn usual(&self) -> Usual {
        let latency = &self.total.distributions.latency;
        Usual {
            window_ns: self.measured_ns,
            latency_ns: latency.percentile(0.5).unwrap_or(0),
            places: self.outstanding(),
        }
    }

    /// Looks for outages in the steps of the run, if they are finer than its timeline. The total
    /// has to be there.
    pub fn find_outages(&mut self, steps: &Steps) {
        let timeout_ns = self.scenario.timeout_ns;
        self.outages = (self.timeline.as_ref())
            .and_then(|timeline| steps.outages(timeline, self.usual(), timeout_ns))
            .map(|found| FoundOutages {
                each: self.without_usual_waits(found.each),
                ..found
            });
    }

    /// The intervals of the window that no outage touched, as one: latencies outside of outages.
    pub fn outside_of(&self, outages: &Outages) -> Interval {
        let is_outside = |it: &&Interval| !outages.touch(it.start_ns, it.end_ns);
        Interval::joined(self.intervals_in_window().filter(is_outside))
    }
}
