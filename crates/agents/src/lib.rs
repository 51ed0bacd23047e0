//! A run that several processes share: what its lead and its agents say to each other, and when.
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
//! All begin at one instant, which [`ToAgent::Arm`] names. Where not all say in time that they can,
//! the lead names a later one; nothing is sent before [`ToAgent::Go`]. An agent that hears that too
//! late does not begin, which ends the run.
//!
//! An agent that hears nothing from its lead for [`DEAD_MAN`] ([`DEAD_MAN_HERE`] on the lead's own
//! host), or is given nothing to do for two minutes, stops sending and ends. A lead that hears
//! nothing from an agent takes it for lost: the result is then the last checkpoint of all agents
//! ([`Outcome::degraded`]).
//!
//! # Where to look
//!
//! * `message`: everything that is said; `frame`: the same as octets; `inputs`: what agents read.
//! * `lead`: the lead's side, `agent`: the agent's.
//! * `seats`: which agents a run has that dial their lead.
//! * `clocks`: what an agent's clock shows beside that of its lead, and by how much that may be
//!   wrong.

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
pub use message::{FromAgent, Hello, ToAgent, Told};
pub use seats::{Join, Refusal, Seats};

/// For how long an agent goes on without a word of its lead on another host.
pub const DEAD_MAN: Duration = Duration::from_secs(10);
/// The same of an agent that its lead has started on its own host. The end of the pipe tells that
/// the lead's process has ended; one that says nothing waits for a CPU, or for a disk.
pub const DEAD_MAN_HERE: Duration = Duration::from_secs(60);
/// How long an agent may take to stop sending.
pub const STOP_MAX: Duration = Duration::from_secs(1);
/// How often either side says that it is there.
pub const BEAT_EVERY: Duration = Duration::from_millis(500);
