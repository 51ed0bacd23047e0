//! Equipment that the tests of several crates share, and `run-tests`, which runs all tests.
//!
//! * [`quiet`]: how much a host disturbed a run, read from the run's record.
//! * [`same`]: records of the same load, compared whoever measured it.
//! * [`due`]: queries that are due by time, as they are counted on any host.
//! * [`timed`]: a test that needs a quiet host repeats until it had one, or is inconclusive.
//! * [`cases`]: cases of one test, of which only those that failed are run again.
//! * [`host`]: rights of this process, and how busy the host is.
//! * [`example`]: a run record, which tests change where they want another one.
//! * [`measured`]: intervals and a verdict, for tests of what shows them.
//! * [`folder`]: a temporary folder of one test, in which no process may be left.
//! * [`program`]: processes that a test starts, none of which outlives it.
//! * [`ports`]: ports that answer nothing, and ports that refuse.
//! * [`prepared`]: files that `servers/prepare` makes.
//! * [`browser`]: pages in Chromium.
//! * [`wait`]: waits for what another process does.
//! * [`yaml`]: documents in YAML, as values.
//!
//! Only tests depend on this crate.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

pub mod browser;
pub mod cases;
pub mod due;
#[path = "../../measure/src/example.rs"]
pub mod example;
pub mod folder;
pub mod host;
pub mod measured;
pub mod ports;
pub mod prepared;
pub mod program;
pub mod quiet;
pub mod same;
pub mod timed;
pub mod wait;
pub mod yaml;
