//! Everything that a lead and an agent say to each other.

use measure::Interval;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::inputs::Part;
use crate::seats::{Join, Refusal};

/// Version of these messages.
const PROTOCOL: u32 = 4;

/// What a lead says.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToAgent {
    /// To one that has dialled: it has a part in the run.
    Seated {
        /// Its number, from 0.
        index: u32,
        /// How many agents there are.
        count: u32,
    },
    /// The same: it has none.
    Refused(Refusal),
    /// A part of what there is to read.
    Input(Part),
    /// What it has been given to read is not needed for another run.
    Forget,
    /// Then: what to do. With secrets, so it is on no command line.
    Setup(Value),
    /// The same of a responder, which sends no load: it goes on while its lead says nothing.
    Serve(Value),
    /// What does your clock show?
    Clock {
        /// What the lead's clock showed when this was written, in nanoseconds.
        asked_ns: u64,
    },
    /// The lead is there: said to agents that are not asked for their clocks.
    Beat,
    /// Can you start at this instant of your clock?
    Arm {
        /// Nanoseconds.
        at_ns: u64,
    },
    /// All agents can: start at it.
    Go {
        /// Nanoseconds.
        at_ns: u64,
    },
    /// End early, and report.
    Stop,
    /// The same, and wait for open queries for a second at most.
    Interrupt,
    /// The same as `Stop`, because nothing was answered.
    GiveUp,
    /// There is no further run: last.
    End,
}

/// What an agent says.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromAgent {
    /// First, from another host: who it is.
    Hello(Hello),
    /// First, from one that dials its lead: which agent it is.
    Join(Join),
    /// It is there.
    Beat,
    /// Its clients are set up.
    Ready,
    /// What its clock shows.
    Clock {
        /// As it was asked.
        asked_ns: u64,
        /// What its own clock showed when it read that.
        theirs_ns: u64,
    },
    /// It can start at this instant of its clock.
    Armed {
        /// Nanoseconds.
        at_ns: u64,
    },
    /// It cannot, since it is too late for that.
    Late {
        /// When it was to start.
        at_ns: u64,
        /// When it noticed.
        now_ns: u64,
    },
    /// The first queries of all its workers have failed.
    Vain,
    /// An interval is over on all its threads.
    Interval(Box<Interval>),
    /// Its record until the end of that interval.
    Checkpoint(Box<RawValue>),
    /// Its own host has asked it to end (SIGTERM): what follows is its last.
    Leaving,
    /// Its run is over, and it waits for the next.
    Record(Box<RawValue>),
    /// The addresses at which a responder listens, by transport.
    Listening(Value),
    /// What a responder counted: last.
    Counters(Vec<u64>),
    /// Why it could not: last.
    Failed(Told),
}

/// An error that an agent tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// What happened.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The exit code that fits it.
    pub code: u8,
}

/// Who an agent on another host is, so that only equal programs run together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    protocol: u32,
    /// Of the record.
    schema: String,
    /// Of the program.
    version: String,
    /// SHA-256 of the program's file.
    binary: String,
    /// CPUs that it may use.
    pub cpus: u32,
    /// Files that it may have open.
    pub open_files_max: u64,
    /// The network that it is in: that of its host, or a namespace; none if that is not known.
    pub network: Option<String>,
}

impl Hello {
    /// Of a program whose file has that hash, and what its host gives it.
    pub fn new(
        binary: String,
        (cpus, open_files_max): (u32, u64),
        network: Option<String>,
    ) -> Hello {
        Hello {
            protocol: PROTOCOL,
            schema: measure::record::SCHEMA_VERSION.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            binary,
            cpus,
            open_files_max,
            network,
        }
    }

    /// Refuses an agent that is not the same program as its lead.
    ///
    /// # Errors
    /// What is different.
    pub(crate) fn check(&self, own: &Hello) -> Result<(), String> {
        let differ = |what: &str, theirs: &str, own: &str| {
            Err(format!("its {what} is {theirs}, and the one here is {own}"))
        };
        if self.version != own.version {
            return differ("throng", &self.version, &own.version);
        }
        if self.protocol != own.protocol {
            let (theirs, own) = (self.protocol.to_string(), own.protocol.to_string());
            return differ("protocol", &theirs, &own);
        }
        if self.schema != own.schema {
            return differ("schema version", &self.schema, &own.schema);
        }
        match self.binary == own.binary {
            true => Ok(()),
            false => differ("program (SHA-256)", &self.binary, &own.binary),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_program_is_let_in() {
        let own = Hello::new("aa".to_owned(), (2, 1_024), None);
        assert_eq!(own.check(&own), Ok(()));
        let others = [
            Hello {
                version: "0.0.9".to_owned(),
                ..own.clone()
            },
            Hello {
                protocol: 0,
                ..own.clone()
            },
            Hello {
                schema: "1".to_owned(),
                ..own.clone()
            },
            Hello {
                binary: "bb".to_owned(),
                ..own.clone()
            },
        ];
        for (other, told) in others.iter().zip(["0.0.9", "is 0,", "is 1,", "is bb,"]) {
            let error = other.check(&own).unwrap_err();
            assert!(error.contains(told), "{error}");
        }
        // Hosts may differ.
        let larger = Hello {
            cpus: own.cpus + 1,
            ..own.clone()
        };
        assert_eq!(larger.check(&own), Ok(()));
    }
}
