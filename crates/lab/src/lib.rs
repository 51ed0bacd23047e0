//! Runs and what they need: the host, the servers under test, the way from request to record.
//!
//! [`run`] takes a decided run and returns its record, on the kernel's sockets or in the
//! simulator, [`capacity`] many in turn; [`ceiling`] measures the generator alone. [`target`]
//! starts real DNS servers on free loopback ports and always cleans up after them; [`parts`]
//! spreads a run over several processes; [`key_log`] writes TLS secrets to a file; [`trace`] finds
//! the way to a server; [`host`] reads what a run record has to say about the machine. Linux only.
#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a test that panics has failed")
)]

pub mod capacity;
pub mod ceiling;
pub mod host;
pub mod key_log;
pub mod parts;
pub mod run;
pub mod target;
pub mod trace;
