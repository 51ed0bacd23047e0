//! Seats of a run for agents that dial their lead: each agent has a number, and each number one
//! agent.

use serde::{Deserialize, Serialize};

use crate::message::Hello;

/// The first message of an agent that dials its lead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// Its number, from 0.
    pub index: u32,
    /// Its displayed name: its host, or its pod.
    pub name: String,
    /// Its greeting.
    pub hello: Hello,
}

/// Why an agent that dialled its lead was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// It is another program; what is different.
    OtherProgram(String),
    /// There is no agent of that number; how many there are.
    NoSuchAgent(u32),
    /// Another agent has that number; its name.
    Taken(String),
    /// The run has begun without it.
    Late,
}

impl Refusal {
    /// The exit code of an agent's process that was refused.
    pub const EXIT_CODE: u8 = 95;
    /// The exit code of one that came too late.
    pub const LATE_EXIT_CODE: u8 = 96;

    /// The exit code that fits this refusal.
    pub fn exit_code(&self) -> u8 {
        match self {
            Refusal::Late => Refusal::LATE_EXIT_CODE,
            _ => Refusal::EXIT_CODE,
        }
    }
}

/// How many agents a run is to have, and how many are enough to begin when the wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quorum {
    /// All of them.
    pub agents: u32,
    /// The fewest that are enough.
    pub min: u32,
}

/// The agent of each number.
#[derive(Debug)]
pub struct Seats {
    own: Hello,
    min: u32,
    names: Vec<Option<String>>,
    is_closed: bool,
}

impl Seats {
    /// Seats for these agents, which have to be the same program as their lead.
    pub fn new(own: Hello, quorum: Quorum) -> Self {
        Seats {
            own,
            min: quorum.min,
            names: vec![None; quorum.agents as usize],
            is_closed: false,
        }
    }

    /// Gives an agent its seat.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn take(&mut self, join: &Join) -> Result<(), Refusal> {
        join.hello.check(&self.own).map_err(Refusal::OtherProgram)?;
        if self.is_closed {
            return Err(Refusal::Late);
        }
        let count = self.count();
        match self.names.get_mut(join.index as usize) {
            None => Err(Refusal::NoSuchAgent(count)),
            Some(Some(other)) => Err(Refusal::Taken(other.clone())),
            Some(seat) => {
                *seat = Some(join.name.clone());
                Ok(())
            }
        }
    }

    /// Frees the seat of an agent that has gone before the run.
    pub fn free(&mut self, index: usize) {
        self.names[index] = None;
    }

    /// Whether the run can begin: all agents are there, or the wait is over and these are enough.
    pub fn can_begin(&self, is_time: bool) -> bool {
        let present = self.names.iter().flatten().count();
        present == self.names.len() || is_time && present >= self.min as usize
    }

    /// Begins the run with the seated agents: all others are late.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// How many seats there are.
    pub fn count(&self) -> u32 {
        self.names.len() as u32
    }

    /// The numbers, from 0, of the empty seats.
    pub fn missing(&self) -> Vec<u32> {
        let numbered = (0..).zip(&self.names);
        let missing = numbered.filter(|(_, name)| name.is_none());
        missing.map(|(index, _)| index).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(index: u32, name: &str, binary: &str) -> Join {
        Join {
            index,
            name: name.to_owned(),
            hello: Hello::new(binary.to_owned(), (1, 1_024), None, None),
        }
    }

    #[test]
    fn each_number_has_one_agent_and_latecomers_have_none() {
        let own = Hello::new("aa".to_owned(), (4, 4_096), None, None);
        let mut seats = Seats::new(own, Quorum { agents: 2, min: 2 });
        assert_eq!(seats.take(&join(1, "b", "aa")), Ok(()));
        let taken = Refusal::Taken("b".to_owned());
        assert_eq!(seats.take(&join(1, "c", "aa")), Err(taken.clone()));
        assert_eq!(
            seats.take(&join(2, "c", "aa")),
            Err(Refusal::NoSuchAgent(2))
        );
        let other = seats.take(&join(0, "c", "bb")).unwrap_err();
        assert!(matches!(&other, Refusal::OtherProgram(what) if what.contains("bb")));
        assert_eq!(seats.missing(), [0]);
        seats.free(1);
        assert_eq!(seats.missing(), [0, 1]);
        assert_eq!(seats.take(&join(1, "c", "aa")), Ok(()));
        seats.close();
        assert_eq!(seats.take(&join(0, "d", "aa")), Err(Refusal::Late));
        let codes = [taken, other, Refusal::Late].map(|it| it.exit_code());
        assert_eq!(codes, [95, 95, 96]);
    }

    #[test]
    fn run_begins_with_all_agents_or_with_enough_of_them_when_it_is_time() {
        let own = Hello::new("aa".to_owned(), (4, 4_096), None, None);
        let mut seats = Seats::new(own, Quorum { agents: 3, min: 2 });
        seats.take(&join(0, "a", "aa")).unwrap();
        assert!(!seats.can_begin(true));
        seats.take(&join(2, "c", "aa")).unwrap();
        assert!(!seats.can_begin(false));
        assert!(seats.can_begin(true));
        // One that has gone counts no longer.
        seats.free(0);
        assert!(!seats.can_begin(true));
        for index in [0, 1] {
            seats.take(&join(index, "b", "aa")).unwrap();
        }
        assert!(seats.can_begin(false));
    }
}
