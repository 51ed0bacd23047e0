//! The outages of a run, by its record.

use crate::interval::Interval;
use crate::record::RunRecord;
use crate::timeline::outages::{Usual, completed};
use crate::timeline::{FoundOutages, Outages, Steps, outages};

impl RunRecord {
    /// The outages of the run; none if the record has no timeline.
    pub fn outages(&self) -> Option<Outages> {
        let timeline = self.timeline.as_ref()?;
        Some(match &self.outages {
            None => outages(timeline, self.usual()),
            Some(found) => completed(timeline, self.usual(), found),
        })
    }

    /// The same as a list; of a short run, what its timeline shows.
    pub(crate) fn found_outages(&self) -> Option<FoundOutages> {
        if self.outages.is_some() {
            return self.outages.clone();
        }
        let timeline = self.timeline.as_ref()?;
        Some(FoundOutages {
            step_ns: timeline.width_ns(),
            each: outages(timeline, self.usual()).each,
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
            .and_then(|timeline| steps.outages(timeline, self.usual(), timeout_ns));
    }

    /// The intervals of the window that no outage touched, as one: latencies outside of outages.
    pub fn outside_of(&self, outages: &Outages) -> Interval {
        let is_outside = |it: &&Interval| !outages.touch(it.start_ns, it.end_ns);
        Interval::joined(self.intervals_in_window().filter(is_outside))
    }
}
