//! Whole runs in virtual time: the production engine against the production responder over a
//! simulated network. What arithmetic says about a run must be what its record says.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod achieved;
mod alarms;
mod capacity;
mod clock;
mod connections;
mod determinism;
mod early_data;
mod experience;
mod faults;
mod going_away;
mod lifecycle;
mod live;
mod load;
mod long;
mod losses_by_name;
mod octets;
mod opening;
mod questions;
mod scripts;
mod server_model;
mod sim;
mod stall;
mod stub;
mod targets;
mod timeline;
mod unexpected;
mod verdicts;

#[path = "../../rows/mod.rs"]
mod rows;
