//! Whole runs on the kernel's sockets that need a quiet host: a latency read back with an upper
//! bound, and verdicts, which depend on what reaches the target in which time.
//!
//! Each is repeated until the host was quiet, see [`testing::timed`]. One test runs at a time, and
//! nothing beside it. Needs the servers that `./test` installs.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[path = "../real/loopback/bench.rs"]
mod bench;
mod latency;
mod overload;
mod quic;
#[path = "../rows/mod.rs"]
mod rows;
mod situations;
#[path = "../real/loopback/target.rs"]
mod target;
