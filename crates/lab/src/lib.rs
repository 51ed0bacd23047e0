//! Servers under test and facts about the host they run on.
//!
//! [`target`] starts real DNS servers on free loopback ports and always cleans up after them;
//! [`host`] reads what a run record has to say about the machine. Linux only. Sends no load.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a test that panics has failed")
)]

pub mod host;
pub mod target;
