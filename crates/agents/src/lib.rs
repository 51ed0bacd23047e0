//! A run of several processes: the messages between its lead and its agents, and their order.
//!
//! The *lead* is the process that decides a run, takes its agents through it and merges what they
//! measured. An *agent* is a process that generates a share of the load. Both are state machines
//! without I/O: messages and instants go in; messages, events and the next instant come out. What
//! carries the messages (pipes, ssh, TCP with TLS) is `lab`'s.
//!
//! | state of an agent | the lead says | the agent says | what ends the run |
//! |---|---|---|---|
//! | greeting | `Seated`, `Refused` to one that dials | `Hello`, `Join` | another program; 60 s |
//! | preparing | `Input`, `Setup` | `Beat` twice a second | 30 s of silence |
//! | ready | `Clock` until enough is known | `Ready`, `Clock` | |
//! | armed | `Arm` | `Armed`, `Late` | a start that was put off 20 times |
//! | running | `Go`; `Clock` or `Beat` | `Interval`, `Checkpoint` | a late start; 10 s of silence |
//! | ended | | `Record` | |
//!
//! All start at one instant, which [`ToAgent::Arm`] proposes. If not all confirm in time, the lead
//! proposes a later one; no agent sends a query before [`ToAgent::Go`]. An agent that receives that
//! up to a second late is behind its schedule, and one that receives it later does not start, which
//! ends the run.
//!
//! A lead considers a silent agent lost: the result is then the last checkpoint of all agents
//! ([`Outcome::degraded`]). What such an agent may have sent is bounded, whatever stopped it: each
//! question for the clock says which answer the lead has read, and [`DeadMan::pauses`] after that
//! answer the agent sends no more queries until its lead has read a later one
//! ([`Order::PauseAt`]). It ends after [`DeadMan::ends`] without a message from its lead. Before
//! the start, when it sends nothing, it waits two minutes.
//!
//! # Where to look
//!
//! * `message`: the messages; `frame`: their encoding; `inputs`: files that agents need.
//! * `lead`: the lead's side, `agent`: the agent's.
//! * `seats`: assigns agents that dial their lead to the run.
//! * `clocks`: the offset of an agent's clock from that of its lead, with its maximum error.

#![forbid(unsafe_code)]

mod agent;
mod clocks;
mod frame;
mod inputs;
mod lead;
mod message;
mod seats;

use std::time::Duration;

pub use agent::{Abandoned, AgentLink, Order};
pub use frame::{Decoder, FrameError, encode};
pub use inputs::{Inputs, Part, hash as content_hash};
pub use lead::{Event, Failure, Lead, Outcome, Place, RunShape, SoFar, Why};
pub use message::{AgentError, FromAgent, Hello, ProcessName, ToAgent};
pub use seats::{Join, Quorum, Refusal, Seats};

/// How long an agent continues in a run whose lead is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadMan {
    /// Time from the last of its answers that the lead has read until it sends no more queries.
    pub pauses: Duration,
    /// Time without a message from its lead until it ends.
    pub ends: Duration,
}

impl DeadMan {
    /// For an agent whose lead is on another host. A lead that waits for a CPU for some seconds
    /// still gets its result.
    pub const FAR: DeadMan = DeadMan {
        pauses: Duration::from_secs(10),
        ends: Duration::from_secs(30),
    };
    /// For an agent on its lead's own host. There the end of the pipe shows that the lead's process
    /// has ended; a silent lead waits for a CPU, or for a disk.
    pub const HERE: DeadMan = DeadMan {
        pauses: Duration::from_secs(60),
        ends: Duration::from_secs(60),
    };
}

/// How long an agent may take to stop sending.
pub const STOP_MAX: Duration = Duration::from_secs(1);
/// Interval of heartbeats in both directions.
pub const BEAT_EVERY: Duration = Duration::from_millis(500);
