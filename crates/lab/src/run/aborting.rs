//! Ends a run early when a condition of `--abort-if` is met.
//!
//! The thread that gathers the intervals of all workers asks, or the lead of several agents;
//! workers see the same stop flag as otherwise. In virtual time the simulation asks itself, between
//! two turns of workers, so the same seed ends at the same instant.

use engine::{Control, Progress};
use measure::abort::{AbortCondition, AbortWatch};
use measure::condition::ConditionError;
use measure::{Aborted, EndedBy, Interval, RunRecord};

use super::{RunError, RunRequest};

/// A condition, and the groups of clients that it is about; none for all of them.
#[derive(Debug)]
struct Watch {
    watch: AbortWatch,
    positions: Option<Vec<usize>>,
}

impl Watch {
    fn look_at(&mut self, progress: &Progress) -> Option<Aborted> {
        let Some(positions) = &self.positions else {
            return self.watch.add_interval(&progress.interval);
        };
        let mut part = Interval::default();
        for position in positions {
            part.merge(progress.groups.get(*position)?);
        }
        // A group without a running worker has an interval without a time.
        (part.start_ns, part.end_ns) = (progress.interval.start_ns, progress.interval.end_ns);
        self.watch.add_interval(&part)
    }
}

/// The conditions of one run.
#[derive(Debug, Default)]
pub(crate) struct Aborting {
    watches: Vec<Watch>,
    /// When the load ends, in nanoseconds since the start of the measured run; none if no duration
    /// ends it.
    load_end_ns: Option<u64>,
    found: Option<Aborted>,
}

impl Aborting {
    /// Those of a run of these groups, which have them in common.
    pub(crate) fn of(groups: &[RunRequest]) -> Result<Aborting, RunError> {
        let Some(first) = groups.first() else {
            return Ok(Aborting::default());
        };
        let mut watches = Vec::new();
        for text in &first.asked.limits.abort_if {
            let refused = |error: ConditionError| {
                RunError::new(format!("--abort-if {}", error.what), error.hint)
            };
            let condition = AbortCondition::parse(text).map_err(refused)?;
            let names = groups
                .iter()
                .map(|it| (it.group.as_str(), it.plan.transport));
            let positions = condition.condition().positions(names).map_err(refused)?;
            watches.push(Watch {
                // A run of one group has no intervals of groups.
                positions: positions.filter(|it| it.len() < groups.len()),
                watch: AbortWatch::new(condition, &first.asked.goodput_rcodes),
            });
        }
        let durations = groups.iter().map(|group| group.plan.duration);
        let longest = durations
            .collect::<Option<Vec<_>>>()
            .and_then(|all| all.into_iter().max());
        Ok(Aborting {
            watches,
            load_end_ns: longest.and_then(|it| u64::try_from(it.as_nanos()).ok()),
            found: None,
        })
    }

    /// True if a condition is about some of the groups, whose intervals agents have to send.
    pub(crate) fn needs_groups(&self) -> bool {
        self.watches.iter().any(|it| it.positions.is_some())
    }

    /// Looks at an interval that all workers have finished, and stops the run if a condition is
    /// met. What is met only when the load is over ends nothing.
    pub(crate) fn look_at(&mut self, progress: &Progress, control: &Control) {
        let end_ns = progress.interval.end_ns;
        let is_over = self.load_end_ns.is_some_and(|end| end_ns >= end);
        if self.found.is_some() || is_over {
            return;
        }
        let mut watches = self.watches.iter_mut();
        self.found = watches.find_map(|watch| watch.look_at(progress));
        if self.found.is_some() {
            control.stop();
        }
    }

    /// Notes in the record what ended the run, and concludes it again. A run that had ended by
    /// itself when it was stopped, or that the user interrupted too, was not aborted.
    pub(crate) fn note(self, record: &mut RunRecord, control: &Control) {
        let was_ended = record.ended_by == EndedBy::Interrupted && !control.is_interrupted();
        let Some(aborted) = self.found.filter(|_| was_ended) else {
            return;
        };
        record.ended_by = EndedBy::Aborted;
        record.warnings.insert(0, aborted.sentence());
        record.aborted = Some(aborted);
        record.conclude();
    }
}
