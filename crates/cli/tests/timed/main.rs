//! What of the command line needs a quiet host: times read back, verdicts by rate, and programs
//! that use up CPUs on purpose. Run last, one test at a time.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod disturbed;
mod generators;
mod host;
mod latencies;
mod servers;

#[allow(dead_code, reason = "the tests of the command line use the rest of it")]
#[path = "../real/command_line/experiments.rs"]
mod experiments;
#[allow(dead_code, reason = "the tests of the command line use the rest of it")]
#[path = "../real/command_line/fleet.rs"]
mod fleet;
#[allow(dead_code, reason = "the tests of the command line use the rest of it")]
#[path = "../real/command_line/parts.rs"]
mod parts;
#[allow(dead_code, reason = "the tests of the command line use the rest of it")]
#[path = "../real/command_line/process.rs"]
mod process;
#[path = "../real/command_line/stopped.rs"]
mod stopped;
