//! What one of several agents did over time, in bounded memory.
//!
//! A step is an interval of the agent. One that has more of them than it may have steps has two,
//! four and so on in each: counts add up, and of their percentiles the highest stays.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::Interval;

/// Most steps of all agents of a run together: 2 MB of JSON.
const STEPS_OF_ALL: usize = 65_536;
/// Most steps of one agent.
const STEPS_MAX: usize = 512;
/// Steps that each agent of a large fleet has at least.
const STEPS_MIN: usize = 32;

/// The steps of an agent, an array for each column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentSeries {
    /// Intervals of `scenario.interval_ns` in each step, a power of two.
    #[schemars(range(min = 1))]
    pub intervals_merged: u64,
    /// When each step ended, microseconds since the start of the measured run; the first one began
    /// with that, each other one where the one before it ended.
    pub end_us: Vec<u64>,
    /// Queries sent.
    pub sent: Vec<u64>,
    /// Responses that came.
    pub responses: Vec<u64>,
    /// Queries that were given up without a response.
    pub lost: Vec<u64>,
    /// 99th percentile of the latencies of an interval, nanoseconds: the highest of those in the
    /// step. None without a response.
    pub latency_p99_max_ns: Vec<Option<u64>>,
}

/// One step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentStep {
    /// When it began, microseconds since the start of the measured run.
    pub start_us: u64,
    /// When it ended.
    pub end_us: u64,
    /// Queries sent.
    pub sent: u64,
    /// Responses that came.
    pub responses: u64,
    /// Queries that were given up without a response.
    pub lost: u64,
    /// The highest 99th percentile of latency of its intervals, nanoseconds.
    pub latency_p99_max_ns: Option<u64>,
}

impl AgentStep {
    fn of(interval: &Interval) -> AgentStep {
        AgentStep {
            start_us: interval.start_ns / 1_000,
            end_us: interval.end_ns / 1_000,
            sent: interval.counts.sent,
            responses: interval.counts.responses,
            lost: interval.counts.lost(),
            latency_p99_max_ns: interval.distributions.latency.percentile(0.99),
        }
    }

    fn append(&mut self, later: &AgentStep) {
        self.end_us = later.end_us;
        self.sent += later.sent;
        self.responses += later.responses;
        self.lost += later.lost;
        self.latency_p99_max_ns = self.latency_p99_max_ns.max(later.latency_p99_max_ns);
    }

    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        self.end_us.saturating_sub(self.start_us) as f64 / 1e6
    }
}

impl AgentSeries {
    /// The steps, in the order of time.
    pub fn steps(&self) -> impl Iterator<Item = AgentStep> {
        let starts = std::iter::once(0).chain(self.end_us.iter().copied());
        let each = starts.zip(0..self.end_us.len());
        each.map(|(start_us, index)| AgentStep {
            start_us,
            end_us: self.end_us[index],
            sent: self.sent[index],
            responses: self.responses[index],
            lost: self.lost[index],
            latency_p99_max_ns: self.latency_p99_max_ns[index],
        })
    }

    /// Checks that all columns are of the same steps.
    ///
    /// # Errors
    /// Names what differs.
    pub(crate) fn check(&self) -> Result<(), String> {
        let steps = self.end_us.len();
        let counts = [&self.sent, &self.responses, &self.lost];
        let columns = counts.map(Vec::len).into_iter();
        let mut columns = columns.chain([self.latency_p99_max_ns.len()]);
        if let Some(other) = columns.find(|it| *it != steps) {
            return Err(format!("series of an agent: {steps} steps, and {other}"));
        }
        match self.end_us.is_sorted() {
            true => Ok(()),
            false => Err("series of an agent: steps end before they begin".to_owned()),
        }
    }
}

/// Makes the series of an agent while it runs.
#[derive(Clone, Debug)]
pub struct SeriesBuilder {
    steps: Vec<AgentStep>,
    steps_max: usize,
    /// Intervals in each step.
    merged: u64,
    /// Intervals in all steps.
    number: u64,
}

impl SeriesBuilder {
    /// For the series of one of `agents` agents.
    pub fn new(agents: usize) -> Self {
        SeriesBuilder {
            steps: Vec::new(),
            steps_max: (STEPS_OF_ALL / agents.max(1)).clamp(STEPS_MIN, STEPS_MAX),
            merged: 1,
            number: 0,
        }
    }

    /// Adds the next interval.
    pub fn push(&mut self, interval: &Interval) {
        let (mut step, index) = (AgentStep::of(interval), self.number / self.merged);
        self.number += 1;
        // The last interval of a run that ends early may end before the one that it follows.
        let before_us = self.steps.last().map_or(0, |it| it.end_us);
        step.end_us = step.end_us.max(before_us);
        match self.steps.get_mut(index as usize) {
            Some(open) => open.append(&step),
            None => self.steps.push(step),
        }
        if self.steps.len() > self.steps_max {
            let pairs = self.steps.chunks(2).map(|pair| {
                let mut first = pair[0];
                pair[1..].iter().for_each(|second| first.append(second));
                first
            });
            self.steps = pairs.collect();
            self.merged *= 2;
        }
    }

    /// What it did until then, in nanoseconds since the start of the measured run; a step that goes
    /// on is left out.
    pub fn until(&self, end_ns: u64) -> AgentSeries {
        let steps = self.steps.iter();
        let steps = steps.take_while(|step| step.end_us <= end_ns / 1_000);
        let mut series = AgentSeries {
            intervals_merged: self.merged,
            ..AgentSeries::default()
        };
        for step in steps {
            series.end_us.push(step.end_us);
            series.sent.push(step.sent);
            series.responses.push(step.responses);
            series.lost.push(step.lost);
            series.latency_p99_max_ns.push(step.latency_p99_max_ns);
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn interval(number: u64) -> Interval {
        let mut interval = Interval {
            start_ns: number * SECOND,
            end_ns: (number + 1) * SECOND,
            ..Interval::default()
        };
        (interval.counts.sent, interval.counts.responses) = (number, 1);
        interval.distributions.latency.record(1_000 * (number + 1));
        interval
    }

    fn series(agents: usize, intervals: u64) -> AgentSeries {
        let mut builder = SeriesBuilder::new(agents);
        (0..intervals).for_each(|number| builder.push(&interval(number)));
        let series = builder.until(u64::MAX);
        series.check().unwrap();
        series
    }

    #[test]
    fn steps_are_intervals_until_there_are_too_many() {
        let short = series(3, 512);
        assert_eq!((short.intervals_merged, short.end_us.len()), (1, 512));
        let steps: Vec<AgentStep> = short.steps().collect();
        assert_eq!((steps[2].start_us, steps[2].end_us), (2_000_000, 3_000_000));
        assert_eq!((steps[2].sent, steps[2].responses), (2, 1));
        for intervals in [513, 1_000, 1_024, 1_025, 5_001] {
            let long = series(3, intervals);
            assert!(long.end_us.len() <= 512, "{intervals}");
            assert_eq!(
                long.sent.iter().sum::<u64>(),
                intervals * (intervals - 1) / 2
            );
            assert_eq!(long.responses.iter().sum::<u64>(), intervals);
            assert_eq!(long.end_us.last(), Some(&(intervals * 1_000_000)));
            let widths = long.steps().map(|it| it.end_us - it.start_us);
            let mut widths: Vec<u64> = widths.collect();
            widths.pop();
            assert!(
                widths
                    .iter()
                    .all(|it| *it == long.intervals_merged * 1_000_000)
            );
        }
        assert_eq!(series(1_000, 5_000).end_us.len(), 40);
    }

    #[test]
    fn highest_percentile_of_a_step_stays_and_steps_after_the_end_are_left_out() {
        let mut builder = SeriesBuilder::new(1_000_000);
        (0..33).for_each(|number| builder.push(&interval(number)));
        let cut = builder.until(3 * SECOND);
        assert_eq!((cut.intervals_merged, cut.end_us), (2, vec![2_000_000]));
        let second = interval(1).distributions.latency.percentile(0.99);
        assert_eq!(cut.latency_p99_max_ns, [second]);
    }

    #[test]
    fn steps_of_a_run_that_ended_early_are_in_order() {
        let mut builder = SeriesBuilder::new(3);
        (0..4).for_each(|number| builder.push(&interval(number)));
        builder.push(&Interval {
            start_ns: 2 * SECOND,
            end_ns: 3 * SECOND + 5,
            ..interval(1)
        });
        let series = builder.until(u64::MAX);
        series.check().unwrap();
        assert_eq!(series.end_us.last(), Some(&4_000_000));
        assert_eq!(series.responses.iter().sum::<u64>(), 5);
    }

    /// What is kept of an agent and a minute.
    #[test]
    fn minute_of_an_agent_is_less_than_3_kb() {
        let mut builder = SeriesBuilder::new(20);
        for number in 0..60 {
            let mut busy = interval(number);
            (busy.counts.sent, busy.counts.responses) = (100_000, 99_990);
            busy.counts.timeouts = 10;
            busy.distributions.latency.record(123_456_789);
            builder.push(&busy);
        }
        let text = serde_json::to_string(&builder.until(u64::MAX)).unwrap();
        assert!(text.len() < 3_000, "{}", text.len());
    }
}
