//! Agents of one command: processes that generate a share of its load, or serve a share of its
//! responder, because one process may not open enough files or one host does not do.
//!
//! The process that the user started is the lead. It starts its own binary once for each agent, on
//! this host or by ssh, says what to do and puts together what they report; it sends no load
//! itself. What both say, and when, is the crate `agents`; here are the processes and the streams
//! that carry it: standard input and output of each agent.
//!
//! Nothing is left behind: an agent whose standard input ends exits at once, whatever ended its
//! lead, and agents end with the value that owns them ([`Carrier`]).
//!
//! * `carrier`: starting agents, their streams, their end; `process`: the same on the agent's side.
//! * `greeting`: until all agents of other hosts have said who they are; `fleet`: agents that wait
//!   for their next run; `run`: a run.
//! * `gate`: agents that dial; `secured`: their connections, `keys`: their certificates.
//! * `serve`: a responder.

mod carrier;
mod fleet;
mod gate;
mod greeting;
mod keys;
mod merged;
mod process;
mod run;
mod secured;
mod serve;
#[cfg(test)]
mod tests;

pub use agents::{
    Abandoned, AgentError, FromAgent, Hello, Inputs, Join, Place, Quorum, Refusal, content_hash,
};
pub use carrier::{AgentCommand, AgentsError, Carrier, Task};
pub use fleet::Fleet;
pub use gate::{Gate, describe};
pub use greeting::{GreetingError, greet};
pub use keys::{KeyFiles, Side, make_keys, read_keys};
pub use process::{Connection, End, OnEnd, own_hello};
pub use run::{lead_run, run_share};
pub use serve::{serve_all, serve_share, start_responders};
