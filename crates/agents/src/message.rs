//! Everything that a lead and an agent say to each other.

use engine::Progress;
use measure::Interval;
use measure::interval::Distributions;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::inputs::Part;
use crate::seats::{Join, Refusal};

/// Version of these messages.
const PROTOCOL: u32 = 5;

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
    /// Send the intervals of each group of clients too: a reader of the lead shows them.
    ShowGroups,
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
    Interval {
        /// Of all its groups together.
        all: Box<Interval>,
        /// Of each group, if the lead has asked for them: see [`FromAgent::of_progress`].
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        groups: Vec<Interval>,
    },
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

impl FromAgent {
    /// An interval that has ended. Of its groups counts and latency alone are sent: each adds about
    /// a quarter of the octets.
    pub fn of_progress(progress: &Progress, shows_groups: bool) -> FromAgent {
        let all = &progress.interval;
        let groups = progress.groups.iter().filter(|_| shows_groups);
        FromAgent::Interval {
            groups: groups.map(|group| counts_and_latency(group, all)).collect(),
            all: Box::new(all.clone()),
        }
    }
}

/// What a lead shows of a group. One that has no worker here, or no longer, did nothing in the time
/// of `all`: agents are merged by the times of their intervals.
fn counts_and_latency(group: &Interval, all: &Interval) -> Interval {
    let time = match group.length_ns() {
        0 => all,
        _ => group,
    };
    Interval {
        start_ns: time.start_ns,
        end_ns: time.end_ns,
        counts: group.counts.clone(),
        distributions: Distributions {
            latency: group.distributions.latency.clone(),
            ..Distributions::default()
        },
        ..*group
    }
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
    /// Which program it is: its build ID, or SHA-256 of its file.
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
            false => differ("program", &self.binary, &own.binary),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interval of a busy agent; its times are spread as those of a server are.
    fn busy(start_ns: u64, spread: u64) -> Interval {
        let mut interval = Interval {
            start_ns,
            end_ns: start_ns + 1_000_000_000,
            ..Interval::default()
        };
        let Distributions {
            latency,
            service,
            send_lateness,
            ..
        } = &mut interval.distributions;
        for number in 1..2_000_u64 {
            let long_ns = 50_000 + number * number % spread * 1_000 + number * number * 7 % 977;
            latency.record(long_ns + number);
            service.record(long_ns);
            send_lateness.record(long_ns / 100);
        }
        interval
    }

    #[test]
    fn groups_cost_less_than_intervals_and_only_if_they_are_shown() {
        let idle = Interval::default();
        let progress = Progress {
            index: 0,
            interval: busy(7, 1_999),
            groups: vec![busy(7, 1_499), idle],
            checkpoint: None,
        };
        let bare = FromAgent::of_progress(&progress, false);
        let FromAgent::Interval { all, groups } = FromAgent::of_progress(&progress, true) else {
            panic!("it is an interval");
        };
        assert_eq!(*all, progress.interval);
        let time = |it: &Interval| (it.start_ns, it.end_ns);
        assert!(groups.iter().all(|it| time(it) == time(&all)));
        let own = &progress.groups[0];
        assert_eq!(groups[0].counts, own.counts);
        assert_eq!(groups[0].distributions.latency, own.distributions.latency);
        assert!(groups[1].distributions.latency.is_empty());
        let octets = |groups: &[Interval]| {
            let message = FromAgent::Interval {
                all: all.clone(),
                groups: groups.to_vec(),
            };
            crate::encode(&message).unwrap().len()
        };
        assert_eq!(octets(&[]), crate::encode(&bare).unwrap().len());
        let (without, with) = (octets(&[]), octets(&groups[..1]));
        assert!(2 * (with - without) < without, "{without}, {with}");
    }

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
