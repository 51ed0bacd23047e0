//! The messages between a lead and an agent.

use engine::Progress;
use measure::Interval;
use measure::interval::Distributions;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::inputs::Part;
use crate::seats::{Join, Refusal};

/// Version of these messages.
const PROTOCOL: u32 = 7;

/// A message of a lead.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToAgent {
    /// To an agent that has dialled: it takes part in the run. The lead says it again when the run
    /// begins, because agents that did not come have no number then.
    Seated {
        /// Its number, from 0.
        index: u32,
        /// How many agents there are.
        count: u32,
    },
    /// To an agent that has dialled: it is refused.
    Refused(Refusal),
    /// A part of an input.
    Input(Part),
    /// Drop all inputs: they are not needed for another run.
    Forget,
    /// After the inputs: the setup. It has secrets, so it is not passed on a command line.
    Setup(Value),
    /// The setup of a responder, which sends no load; it keeps running while its lead is silent.
    Serve(Value),
    /// Asks for the time of the agent's clock.
    Clock {
        /// The lead's clock when this was written, in nanoseconds.
        asked_ns: u64,
        /// The last answer that the lead has read: `theirs_ns` of [`FromAgent::Clock`].
        heard_ns: Option<u64>,
    },
    /// Send the intervals of each group of clients too: a reader of the lead shows them.
    ShowGroups,
    /// Heartbeat of the lead, for agents on its own host, which get no clock questions.
    Beat,
    /// Proposes a start at this instant of the agent's clock.
    Arm {
        /// Nanoseconds.
        at_ns: u64,
    },
    /// All agents have confirmed: start.
    Go {
        /// Nanoseconds.
        at_ns: u64,
    },
    /// End early, and report.
    Stop,
    /// The same, and wait for open queries for a second at most.
    Interrupt,
    /// The same as `Stop`, because no query was answered.
    GiveUp,
    /// There is no further run; the last message.
    End,
}

/// A message of an agent.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromAgent {
    /// The first message from another host: its greeting.
    Hello(Hello),
    /// The first message of an agent that dials its lead.
    Join(Join),
    /// Heartbeat.
    Beat,
    /// Its clients are set up.
    Ready,
    /// The time of its clock.
    Clock {
        /// From the question.
        asked_ns: u64,
        /// Its own clock when it read the question.
        theirs_ns: u64,
    },
    /// Confirms the start at this instant of its clock.
    Armed {
        /// Nanoseconds.
        at_ns: u64,
    },
    /// It cannot start, because it received the message too late.
    Late {
        /// The proposed or ordered start.
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
        /// Of each group, if the lead has requested them: see [`FromAgent::of_progress`].
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        groups: Vec<Interval>,
    },
    /// Its record until the end of that interval.
    Checkpoint(Box<RawValue>),
    /// Its host asked it to end (SIGTERM); its last reports follow.
    Leaving,
    /// Its run is over, and it waits for the next.
    Record(Box<RawValue>),
    /// The addresses at which a responder listens, by transport.
    Listening(Value),
    /// A responder's counters; the last message.
    Counters(Vec<u64>),
    /// Its error; the last message.
    Failed(AgentError),
}

impl FromAgent {
    /// An interval that has ended. Of groups only counts and latency are sent; each adds about a
    /// quarter of the bytes.
    pub fn of_progress(progress: &Progress, shows_groups: bool) -> FromAgent {
        let all = &progress.interval;
        let groups = progress.groups.iter().filter(|_| shows_groups);
        FromAgent::Interval {
            groups: groups.map(|group| counts_and_latency(group, all)).collect(),
            all: Box::new(all.clone()),
        }
    }
}

/// The figures of a group that a lead shows. A group without a running worker here is empty for the
/// time of `all`, because agents are merged by the times of their intervals.
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

/// An error that an agent reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentError {
    /// What happened.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// The exit code that fits it.
    pub code: u8,
}

/// Greeting of an agent on another host, so that only equal programs run together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    protocol: u32,
    /// Schema of the record.
    schema: String,
    /// Version of the program.
    version: String,
    /// The program's build ID, or SHA-256 of its file.
    binary: String,
    /// CPUs that it may use.
    pub cpus: u32,
    /// Files that it may have open.
    pub open_files_max: u64,
    /// Its network: that of its host, or a namespace; none if not known.
    pub network: Option<String>,
    /// None if not known.
    pub process: Option<ProcessName>,
}

/// A process among those of all hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessName {
    /// The PID namespace, of one host since its start.
    pub namespace: String,
    /// Its number there.
    pub pid: u32,
}

impl Hello {
    /// The greeting of a program with this hash, with its host's limits.
    pub fn new(
        binary: String,
        (cpus, open_files_max): (u32, u64),
        network: Option<String>,
        process: Option<ProcessName>,
    ) -> Hello {
        Hello {
            protocol: PROTOCOL,
            schema: measure::record::SCHEMA_VERSION.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            binary,
            cpus,
            open_files_max,
            network,
            process,
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
        let own = Hello::new("aa".to_owned(), (2, 1_024), None, None);
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
