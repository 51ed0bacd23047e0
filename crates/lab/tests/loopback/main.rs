//! Whole runs on the kernel's sockets, over loopback: against the responder and against BIND,
//! Unbound and Knot DNS. What the generator counts is what the other end counts. And the same runs
//! on every driver there is.
//!
//! Needs the three servers installed; `./test` sees to it.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod bench;
mod drivers;
mod endings;
mod failover;
mod faults;
mod latency;
mod lifecycle;
mod overload;
mod products;
mod questions;
mod reconnects;
mod responder_counts;
mod servers;
mod situations;

#[path = "../rows/mod.rs"]
mod rows;
