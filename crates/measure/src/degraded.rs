//! The part of a run after the loss of an agent. It does not belong to the result, which is that of
//! the last checkpoint of all agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::interval::Interval;
use crate::notation::{counted, seconds};

/// The time after the result, in which the load was not all there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Degraded {
    /// The agents that were lost, in the order of time.
    #[schemars(length(min = 1))]
    pub lost: Vec<LostAgent>,
    /// Agents that were not lost.
    pub survivors: u64,
    /// The sum of `intervals`.
    pub total: Interval,
    /// Successive intervals of the agents that were not lost first, from the end of the result on,
    /// each until it ended or was lost itself. The ends of queries that were open then are counted
    /// here too, so the accounting identity need not hold.
    pub intervals: Vec<Interval>,
}

/// An agent that was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LostAgent {
    /// Its number, from 1.
    #[serde(alias = "process")]
    #[schemars(range(min = 1))]
    pub agent: u64,
    /// How it was lost, such as `signal 9`.
    pub how: String,
    /// When that was noticed, in nanoseconds since the start of the measured run.
    pub noticed_ns: u64,
    /// Until when is known what it did.
    pub known_until_ns: u64,
    /// Queries that it sent from the end of the result until then, and that are not in `intervals`.
    pub sent: u64,
    /// The most that it may have sent beyond `intervals` until it must have stopped.
    pub fate_unknown_max: u64,
}

impl Degraded {
    /// Consequences for a result of this duration, one sentence each.
    pub fn warnings(&self, measured_ns: u64, agents: u64) -> Vec<String> {
        let mut warnings: Vec<String> = Vec::new();
        for lost in &self.lost {
            warnings.push(format!(
                "agent {} of {agents} was lost {} after the start of the measured run \
                 ({}): the result is that of the first {}, the last checkpoint of all; it may \
                 have sent at most {} since",
                lost.agent,
                seconds(lost.noticed_ns),
                lost.how,
                seconds(measured_ns),
                counted(lost.fate_unknown_max, "query"),
            ));
        }
        if self.survivors > 0 {
            let counts = &self.total.counts;
            let others = match self.survivors {
                1 => "the other agent".to_owned(),
                number => format!("the other {number} agents"),
            };
            warnings.push(format!(
                "{others} went on for {}: {} and {} are reported separately (`degraded`), and are \
                 not part of the result",
                seconds(self.total.length_ns()),
                counted(counts.sent, "query"),
                counted(counts.responses, "response"),
            ));
        }
        warnings
    }

    /// Checks its consistency, after a result of this duration.
    ///
    /// # Errors
    /// Names what does not.
    pub(crate) fn check(&self, measured_ns: u64) -> Result<(), String> {
        if self.lost.is_empty() {
            return Err("degraded: no agent was lost".to_owned());
        }
        let sum = Interval::total(&self.intervals);
        if sum.counts != self.total.counts || sum.distributions != self.total.distributions {
            return Err(format!(
                "degraded: the total of {} sent queries is not the sum of its intervals ({})",
                self.total.counts.sent, sum.counts.sent
            ));
        }
        let is_wrong = |lost: &&LostAgent| {
            lost.agent == 0
                || lost.fate_unknown_max < lost.sent
                || lost.noticed_ns < lost.known_until_ns
        };
        if let Some(wrong) = self.lost.iter().find(is_wrong) {
            return Err(format!("degraded: {wrong:?} contradicts itself"));
        }
        let is_before = |it: &&Interval| it.start_ns < measured_ns;
        match self.intervals.iter().find(is_before) {
            Some(before) => Err(format!(
                "degraded: an interval begins at {} ns, within the result of {measured_ns} ns",
                before.start_ns
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn interval(start_ns: u64, end_ns: u64, sent: u64) -> Interval {
        let mut interval = Interval {
            start_ns,
            end_ns,
            ..Interval::default()
        };
        interval.counts.sent = sent;
        interval
    }

    fn degraded() -> Degraded {
        degraded_after(100)
    }

    /// Behind a result of that length.
    pub(crate) fn degraded_after(result_ns: u64) -> Degraded {
        let intervals = vec![
            interval(result_ns, result_ns + 100, 3),
            interval(result_ns + 100, result_ns + 150, 1),
        ];
        Degraded {
            lost: vec![LostAgent {
                agent: 2,
                how: "signal 9".to_owned(),
                noticed_ns: result_ns + 50,
                known_until_ns: result_ns + 20,
                sent: 1,
                fate_unknown_max: 4,
            }],
            survivors: 1,
            total: Interval::total(&intervals),
            intervals,
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        assert_eq!(degraded().check(100), Ok(()));
        type Change = fn(&mut Degraded);
        let wrong: [(&str, Change); 5] = [
            ("no agent was lost", |it| it.lost.clear()),
            ("is not the sum", |it| it.total.counts.sent += 1),
            ("contradicts itself", |it| it.lost[0].fate_unknown_max = 0),
            ("contradicts itself", |it| it.lost[0].noticed_ns = 119),
            ("within the result", |it| it.intervals[0].start_ns = 99),
        ];
        for (reason, change) in wrong {
            let mut changed = degraded();
            change(&mut changed);
            let error = changed.check(100).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn warnings_name_the_lost_agent_and_what_the_others_did() {
        let told = degraded().warnings(100, 2);
        assert!(told[0].contains("agent 2 of 2 was lost"), "{told:?}");
        assert!(told[0].contains("at most 4 queries"), "{told:?}");
        assert!(told[1].contains("the other agent went on"), "{told:?}");
    }
}
