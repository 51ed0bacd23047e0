//! What a lead keeps so that the loss of an agent does not lose the result: the last checkpoint of
//! all agents, and what each has reported since.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use engine::Gathering;
use measure::degraded::LostAgent;
use measure::{Counts, Degraded, Interval, Intervals, RunRecord};

use super::fate::Known;
use super::place;

/// The agents' reports, as far as they are needed after the loss of one.
#[derive(Debug)]
pub(super) struct Checkpoints {
    /// Checkpoints that only some agents have reported, by interval number from 1: the records as
    /// they came.
    told: BTreeMap<u64, Vec<Option<String>>>,
    /// The last checkpoint that all have reported.
    common: Option<Common>,
    each: Vec<Since>,
    /// From the first loss on: the intervals of the remaining agents after the last common
    /// checkpoint.
    degraded: Option<Gathering>,
}

/// A checkpoint of all agents.
#[derive(Debug)]
struct Common {
    records: Vec<String>,
    intervals: Intervals,
}

/// An agent's reports.
#[derive(Clone, Debug, Default)]
struct Since {
    intervals_told: u64,
    /// End of the last interval that it reported.
    told_until_ns: u64,
    /// Counts of all its intervals together.
    counts: Counts,
    /// Until the first loss: its intervals after the last common checkpoint, by number.
    intervals: VecDeque<(u64, Interval)>,
    /// Its record, if its run is over.
    record: Option<String>,
    lost: Option<Loss>,
}

/// How an agent was lost.
#[derive(Clone, Debug)]
pub(super) struct Loss {
    pub(super) how: String,
    /// Nanoseconds since the start of the measured run.
    pub(super) noticed_ns: u64,
    /// Upper bound of the queries that it sent after its last report.
    pub(super) sent_unknown_max: u64,
}

/// The results of all agents at the end.
pub(super) struct Ended {
    pub(super) records: Vec<RunRecord>,
    /// The intervals until the last common checkpoint, if an agent was lost.
    pub(super) intervals: Option<Intervals>,
    pub(super) degraded: Option<Degraded>,
}

impl Checkpoints {
    pub(super) fn new(agents: usize) -> Self {
        Checkpoints {
            told: BTreeMap::new(),
            common: None,
            each: vec![Since::default(); agents],
            degraded: None,
        }
    }

    /// Takes an interval of an agent.
    pub(super) fn add(&mut self, agent: usize, interval: &Interval) {
        let since = &mut self.each[agent];
        since.intervals_told += 1;
        since.told_until_ns = interval.end_ns;
        since.counts.add(&interval.counts);
        let number = since.intervals_told;
        match &mut self.degraded {
            Some(degraded) => {
                degraded.add(place(agent), interval.clone());
                degraded.settle(|_| {});
            }
            None => since.intervals.push_back((number, interval.clone())),
        }
    }

    /// Takes the record of an agent whose run is over; it replaces its later checkpoints.
    pub(super) fn end(&mut self, agent: usize, record: &str) {
        self.each[agent].record = Some(record.to_owned());
        if let Some(degraded) = &mut self.degraded {
            degraded.end(place(agent));
        }
    }

    /// Takes an agent's record at the end of the interval that it reported last. True once all have
    /// reported it; `intervals` are those of all until then.
    pub(super) fn note(
        &mut self,
        agent: usize,
        record: &str,
        intervals: impl FnOnce() -> Intervals,
    ) -> bool {
        if self.degraded.is_some() {
            // After a loss there are no more common checkpoints.
            return false;
        }
        let (number, agents) = (self.each[agent].intervals_told, self.each.len());
        let told = self.told.entry(number);
        let told = told.or_insert_with(|| vec![None; agents]);
        told[agent] = Some(record.to_owned());
        let is_there =
            |(own, since): (&Option<String>, &Since)| own.is_some() || since.record.is_some();
        if !told.iter().zip(&self.each).all(is_there) {
            return false;
        }
        let told = std::mem::take(told).into_iter().zip(&self.each);
        let records = told.filter_map(|(own, since)| own.or_else(|| since.record.clone()));
        let records = records.collect();
        self.told = self.told.split_off(&(number + 1));
        self.common = Some(Common {
            records,
            intervals: intervals(),
        });
        for since in &mut self.each {
            since.intervals.retain(|(of, _)| *of > number);
        }
        true
    }

    /// The records of the last common checkpoint, as they came.
    pub(super) fn common(&self) -> Option<Vec<String>> {
        self.common.as_ref().map(|common| common.records.clone())
    }

    /// True if there is a result, even if agents are lost from now on.
    pub(super) fn is_there(&self) -> bool {
        self.common.is_some()
    }

    /// Until when an agent's reports reach, in nanoseconds since the start of the measured run.
    fn known_until_ns(&self, agent: usize) -> u64 {
        let common = self.common.as_ref().map(|it| it.intervals.end_ns());
        self.each[agent]
            .told_until_ns
            .max(common.unwrap_or_default())
    }

    /// What is known of an agent that was lost `run` after the start of the measured run.
    ///
    /// # Errors
    /// Its record cannot be read.
    pub(super) fn known(&self, agent: usize, run: Duration) -> Result<Known, String> {
        let until = Duration::from_nanos(self.known_until_ns(agent));
        let common = self.common.as_ref().map(|common| &common.records[agent]);
        let record = common.map(|text| RunRecord::from_json(text)).transpose()?;
        Ok(Known {
            silence: run.saturating_sub(until),
            run,
            warmup: record.map(|it| it.warmup.counts).unwrap_or_default(),
            total: self.each[agent].counts.clone(),
        })
    }

    /// An agent was lost.
    pub(super) fn lose(&mut self, agent: usize, loss: Loss) {
        self.each[agent].lost = Some(loss);
        self.told.clear();
        if let Some(degraded) = &mut self.degraded {
            // Its earlier intervals are complete.
            degraded.end(place(agent));
            return;
        }
        let others = self.each.iter().enumerate();
        let others = others.filter(|(_, since)| since.lost.is_none());
        let others: Vec<usize> = others.map(|(other, _)| other).collect();
        let mut degraded = Gathering::at(others.iter().copied().map(place), 1);
        for other in others {
            let since = &mut self.each[other];
            for (_, interval) in since.intervals.drain(..) {
                degraded.add(place(other), interval);
            }
            if since.record.is_some() {
                degraded.end(place(other));
            }
        }
        degraded.settle(|_| {});
        self.degraded = Some(degraded);
    }

    /// The records of all agents at the end. If one was lost, they are those of the last common
    /// checkpoint, with what is known of the time after it.
    ///
    /// # Errors
    /// The agent, and why its record cannot be read.
    pub(super) fn finish(mut self) -> Result<Ended, (usize, String)> {
        let read = |(agent, text): (usize, &String)| {
            RunRecord::from_json(text).map_err(|reason| (agent, reason))
        };
        let Some(gathering) = self.degraded.take() else {
            let own = self.each.iter().flat_map(|since| &since.record);
            return Ok(Ended {
                records: own.enumerate().map(read).collect::<Result<_, _>>()?,
                intervals: None,
                degraded: None,
            });
        };
        let degraded = self.degraded(gathering);
        let common = self.common.take();
        let common = common.ok_or((0, "there is no checkpoint of all agents".to_owned()))?;
        let records = common.records.iter().enumerate().map(read);
        Ok(Ended {
            records: records.collect::<Result<_, _>>()?,
            degraded: Some(degraded),
            intervals: Some(common.intervals),
        })
    }

    fn degraded(&self, gathering: Gathering) -> Degraded {
        let lost = self.each.iter().enumerate().filter_map(|(agent, since)| {
            let loss = since.lost.as_ref()?;
            let sent = since.intervals.iter().map(|(_, it)| it.counts.sent).sum();
            let known_until_ns = self.known_until_ns(agent);
            Some(LostAgent {
                agent: agent as u64 + 1,
                how: loss.how.clone(),
                noticed_ns: loss.noticed_ns.max(known_until_ns),
                known_until_ns,
                sent,
                fate_unknown_max: loss.sent_unknown_max.saturating_add(sent),
            })
        });
        let mut lost: Vec<LostAgent> = lost.collect();
        lost.sort_by_key(|lost| lost.noticed_ns);
        let (intervals, _) = gathering.finish().0.finish(u64::MAX);
        Degraded {
            survivors: (self.each.len() - lost.len()) as u64,
            lost,
            total: Interval::total(&intervals),
            intervals,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(number: u64, sent: u64) -> Interval {
        let mut interval = Interval {
            start_ns: number * 10,
            end_ns: (number + 1) * 10,
            ..Interval::default()
        };
        interval.counts.sent = sent;
        interval
    }

    fn loss() -> Loss {
        Loss {
            how: "signal 9".to_owned(),
            noticed_ns: 0,
            sent_unknown_max: 7,
        }
    }

    /// However long others continue after a loss, memory stays bounded.
    #[test]
    fn what_is_kept_after_a_loss_is_bounded() {
        let mut checkpoints = Checkpoints::new(3);
        for agent in 0..3 {
            checkpoints.add(agent, &interval(0, 1));
            checkpoints.note(agent, "{}", Intervals::default);
        }
        assert!(checkpoints.is_there());
        for agent in 0..3 {
            checkpoints.add(agent, &interval(1, 10));
        }
        checkpoints.lose(1, loss());
        for number in 2..10_000 {
            for agent in [0, 2] {
                checkpoints.add(agent, &interval(number, 100));
                checkpoints.note(agent, "{}", Intervals::default);
            }
            assert!(checkpoints.told.is_empty());
        }
        // The second is lost long after the first, and all its earlier reports are kept.
        checkpoints.lose(2, loss());
        checkpoints.add(0, &interval(10_000, 1_000));
        let gathering = checkpoints.degraded.take().unwrap();
        let degraded = checkpoints.degraded(gathering);
        assert!(degraded.intervals.len() <= measure::intervals::INTERVALS_MAX + 1);
        assert_eq!(degraded.total.counts.sent, 20 + 2 * 100 * 9_998 + 1_000);
        let sent = degraded
            .lost
            .iter()
            .map(|it| (it.agent, it.sent, it.fate_unknown_max));
        assert_eq!(sent.collect::<Vec<_>>(), [(2, 10, 17), (3, 0, 7)]);
        assert_eq!(degraded.survivors, 1);
    }
}
