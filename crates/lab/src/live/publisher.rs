//! The publisher of one run.

use std::sync::Arc;
use std::time::Duration;

use engine::Progress;
use measure::{Intervals, RunRecord};
use observe::Newest;

use super::judge::Judge;
use super::{Judged, Live, Phase, Shown, ShownAgent, ShownEvent, ShownGroup};
use crate::run::RunRequest;

/// Publishes what a run shows, from before it begins until it is over.
#[derive(Debug)]
pub(crate) struct Publisher {
    live: Live,
    /// When the load ends, in nanoseconds since the start of the measured run; none if no duration
    /// ends it.
    run_ns: Option<u64>,
    group_names: Vec<String>,
    shown: Shown,
    /// What is observed beside the run.
    observed: Newest,
    /// All intervals so far; none unless verdicts are wanted.
    judging: Option<(Judge, Intervals)>,
}

impl Publisher {
    /// Of a run of these groups.
    pub(crate) fn begin(live: &Live, groups: &[RunRequest]) -> Publisher {
        Publisher::with(live, groups, Judge::default())
    }

    /// The same, in virtual time.
    pub(crate) fn begin_in_virtual_time(live: &Live, groups: &[RunRequest]) -> Publisher {
        Publisher::with(live, groups, Judge::in_virtual_time())
    }

    fn with(live: &Live, groups: &[RunRequest], judge: Judge) -> Publisher {
        let ends = groups.iter().map(|group| group.plan.duration);
        let ends: Option<Vec<Duration>> = ends.collect();
        let ends = ends.and_then(|all| all.into_iter().max());
        let transport = groups.first().map(|group| group.plan.transport);
        let is_common = |group: &RunRequest| Some(group.plan.transport) == transport;
        let publisher = Publisher {
            live: live.clone(),
            run_ns: ends.and_then(|end| u64::try_from(end.as_nanos()).ok()),
            group_names: groups.iter().map(|group| group.group.clone()).collect(),
            shown: Shown {
                transport: transport.filter(|_| groups.iter().all(is_common)),
                left: ends,
                ..Shown::default()
            },
            observed: Newest::default(),
            judging: live.wants_verdicts().then(|| (judge, Intervals::default())),
        };
        publisher.publish();
        publisher
    }

    /// An interval has ended.
    pub(crate) fn show(&mut self, progress: &Progress) {
        let interval = &progress.interval;
        let is_load = self.run_ns.is_none_or(|end| interval.start_ns < end);
        self.shown.phase = match is_load {
            true => Phase::Load,
            false => Phase::Drain,
        };
        let left = self.run_ns.map(|end| end.saturating_sub(interval.end_ns));
        self.shown.left = left.map(Duration::from_nanos);
        self.shown.interval = Some(Arc::new(interval.clone()));
        let groups = self.group_names.iter().zip(&progress.groups);
        let groups = groups.map(|(name, interval)| ShownGroup {
            name: name.clone(),
            interval: Arc::new(interval.clone()),
        });
        self.shown.groups = groups.collect();
        if let Some((judge, intervals)) = &mut self.judging {
            if let Some(found) = judge.found() {
                self.shown.judged = Some(found.judged);
                self.live.keep(Some(found.record));
            }
            intervals.push(interval.clone());
        }
        self.publish();
    }

    /// How the agents are that the next snapshots show.
    pub(crate) fn note_agents(&mut self, agents: Vec<ShownAgent>) {
        self.shown.agents = agents;
    }

    /// What is observed beside the run, and shown from the next snapshot on.
    pub(crate) fn note_observed(&mut self, observed: &Newest) {
        self.observed.clone_from(observed);
    }

    /// True if a reader wants verdicts.
    pub(crate) fn judges(&self) -> bool {
        self.judging.is_some()
    }

    /// Until the interval that was shown last there is a checkpoint: `record` makes a record of it
    /// and of the intervals until there, and concludes it.
    pub(crate) fn judge(
        &mut self,
        record: impl FnOnce(Intervals) -> Option<RunRecord> + Send + 'static,
    ) {
        if let Some((judge, intervals)) = &mut self.judging {
            let (until_ns, mut so_far) = (intervals.end_ns(), intervals.clone());
            so_far.end_accounts();
            judge.ask(until_ns, Box::new(move || record(so_far)));
        }
    }

    /// The run has this result.
    pub(crate) fn end(mut self, record: &RunRecord) {
        self.shown.judged = Some(Arc::new(Judged::of(record)));
        self.shown.events = ShownEvent::of_record(record);
    }

    fn publish(&self) {
        self.live.publish(Shown {
            observations: self.observed.scrapes(),
            ..self.shown.clone()
        });
    }
}

impl Drop for Publisher {
    /// The run is over, however it ended.
    fn drop(&mut self) {
        self.shown.phase = Phase::Ended;
        (self.shown.left, self.shown.interval) = (None, None);
        self.shown.groups.clear();
        self.live.keep(None);
        self.publish();
    }
}
