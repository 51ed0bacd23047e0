//! Whole runs on the kernel's sockets, over loopback: against the responder and against BIND,
//! Unbound and Knot DNS. What the generator counts is what the other end counts. And the same runs
//! on every driver there is.
//!
//! They assert what no scheduling can change; what needs a quiet host is in `timed`.
//!
//! Needs the three servers installed; `./test` sees to it.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod bench;
mod both_ends;
mod drivers;
mod endings;
mod failover;
mod faults;
mod lifecycle;
mod live;
mod products;
mod questions;
mod reconnects;
mod responder_counts;
mod servers;
mod target;
