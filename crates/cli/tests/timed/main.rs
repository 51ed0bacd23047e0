//! What needs a quiet host: times read back, ceilings, verdicts, and programs that use up CPUs on
//! purpose. Run last, one test at a time, with nothing beside.
//!
//! Each test repeats until the host was quiet, see [`testing::timed`]. Needs the servers that
//! `./test` installs.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod disturbed;
mod faults;
mod generators;
mod host;
mod latencies;
mod latency;
mod overload;
mod policies;
mod quic;
mod servers;
mod situations;

#[path = "../../../lab/tests/real/loopback/bench.rs"]
mod bench;
#[allow(dead_code, reason = "the tests of the command line use the rest of it")]
#[path = "../real/command_line/experiments.rs"]
mod experiments;
#[allow(dead_code, reason = "the tests of faults use the rest of it")]
#[path = "../faulty/mod.rs"]
mod faulty;
#[allow(dead_code, reason = "the tests of the command line use the rest of it")]
#[path = "../real/command_line/fleet.rs"]
mod fleet;
#[allow(dead_code, reason = "the tests of the command line use the rest of it")]
#[path = "../real/command_line/process.rs"]
mod process;
#[path = "../../../lab/tests/rows/mod.rs"]
mod rows;
#[allow(dead_code, reason = "the tests of the command line use the rest of it")]
#[path = "../real/command_line/running.rs"]
mod running;
#[path = "../real/command_line/stopped.rs"]
mod stopped;
#[path = "../../../lab/tests/real/loopback/target.rs"]
mod target;
