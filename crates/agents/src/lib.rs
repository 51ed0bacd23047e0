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
//! | preparing | `Input`, `Setup` | `Beat` twice a second | 10 s of silence |
//! | ready | `Clock` until enough is known | `Ready`, `Clock` | |
//! | armed | `Arm` | `Armed`, `Late` | a start that was put off 20 times |
//! | running | `Go`; `Clock` or `Beat` twice a second | `Interval`, `Checkpoint` | a late start |
//! | ended | | `Record` | |
//!
//! All start at one instant, which [`ToAgent::Arm`] proposes. If not all confirm in time, the lead
//! proposes a later one; no agent sends a query before [`ToAgent::Go`]. An agent that receives that
//! up to a second late is behind its schedule, and one that receives it later does not start, which
//! ends the run.
//!
//! An agent that receives nothing from its lead for [`DEAD_MAN`] ([`DEAD_MAN_HERE`] on the lead's
//! own host), or no setup for two minutes, stops sending and ends. A lead considers a silent agent
//! lost: the result is then the last checkpoint of all agents ([`Outcome::degraded`]). What such an
//! agent may have sent is bounded, whatever stopped it: each question for the clock says which
//! answer the lead has read, and [`DEAD_MAN`] after that answer an agent on another host pauses
//! ([`Order::PauseAt`]).
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
pub use message::{AgentError, FromAgent, Hello, ToAgent};
pub use seats::{Join, Quorum, Refusal, Seats};

/// How long an agent continues without a message from its lead on another host.
pub const DEAD_MAN: Duration = Duration::from_secs(10);
/// The same for an agent on its lead's own host. There the end of the pipe shows that the lead's
/// process has ended; a silent lead waits for a CPU, or for a disk.
pub const DEAD_MAN_HERE: Duration = Duration::from_secs(60);
/// How long an agent may take to stop sending.
pub const STOP_MAX: Duration = Duration::from_secs(1);
/// Interval of heartbeats in both directions.
pub const BEAT_EVERY: Duration = Duration::from_millis(500);
