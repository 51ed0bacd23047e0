//! Agents that wait for a run, one after the other.

use std::collections::BTreeSet;
use std::time::Duration;

use agents::{Hello, Lead, ToAgent};
use driver::clock::Clock;

use super::carrier::{AgentsError, Carried, Carrier, TURN, Task};
use super::gate::Gate;

/// How long agents may take to end that have no more to do. A lead that has gone resets the
/// connection of one that is on a busy host and still says something, which then does not read that
/// it may end.
const END_MAX: Duration = Duration::from_secs(10);

/// Agents that have said who they are. They end when it is dropped, and by themselves with
/// [`Fleet::end`].
#[derive(Debug)]
pub struct Fleet {
    pub(super) carrier: Carrier,
    pub(super) lead: Lead,
    pub(super) clock: Clock,
    /// Where they came in, if they have dialled: latecomers are answered as long as this is there.
    pub(super) _gate: Option<Gate>,
    /// Those that have been lost, by position.
    pub(super) lost: BTreeSet<usize>,
    /// Those that had not dialled when it began, by their index.
    pub(super) absent: Vec<u32>,
}

impl Fleet {
    /// Who the agents of other hosts are.
    pub fn hellos(&self) -> impl Iterator<Item = &Hello> {
        self.lead.hellos()
    }

    /// The processes of agents that no lead has started here; none if one is not seen from here.
    pub(super) fn processes_here(&self) -> Option<Vec<u32>> {
        let here = super::process::processes();
        let pid_here = |hello: &Hello| {
            let process = hello.process.as_ref()?;
            (Some(&process.namespace) == here.as_ref()).then_some(process.pid)
        };
        self.hellos().map(pid_here).collect()
    }

    /// How many agents there are.
    pub fn count(&self) -> u32 {
        self.carrier.count()
    }

    /// An agent, for people.
    pub fn name(&self, agent: usize) -> String {
        self.carrier.name(agent)
    }

    /// Gives all agents what they are to do, and what they have not read yet.
    pub(super) fn give(&mut self, task: Task) -> Result<(), AgentsError> {
        self.carrier.note_waiting(false);
        self.carrier.give(&task.inputs)?;
        self.carrier.say_to_all(&ToAgent::Setup(task.setup))?;
        if task.is_last {
            self.carrier.say_to_all(&ToAgent::Forget)?;
        }
        Ok(())
    }

    /// Waits for the next run; returns what led this one.
    pub(super) fn next_lead(&mut self) -> Lead {
        let agents = self.lead.agents().enumerate();
        let lost = agents.filter(|(_, (_, _, is_lost))| *is_lost);
        self.lost = lost.map(|(agent, _)| agent).collect();
        let next = self.lead.next(self.clock.now());
        self.carrier.note_waiting(true);
        std::mem::replace(&mut self.lead, next)
    }

    /// True if no agent has been lost.
    pub fn is_whole(&self) -> bool {
        self.lost.is_empty()
    }

    /// There is no further run: all agents end by themselves, with exit code 0.
    pub fn end(mut self) {
        let until = self.clock.now() + END_MAX;
        // It is short enough for a frame.
        let _ = self.carrier.say_to_all(&ToAgent::End);
        self.carrier.say_no_more();
        // A lost one may close its connection only now, which says nothing of the others.
        let all = 0..self.carrier.count() as usize;
        let mut awaited: BTreeSet<usize> = all.filter(|it| !self.lost.contains(it)).collect();
        while !awaited.is_empty() && self.clock.now() < until {
            if let Some((agent, Carried::Closed(_) | Carried::Unreadable(_))) =
                self.carrier.next(TURN)
            {
                awaited.remove(&agent);
            }
        }
    }
}
