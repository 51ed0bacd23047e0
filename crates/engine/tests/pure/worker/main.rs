//! Workers by themselves: what they allocate, what they hold, how they open connections, and what
//! is said of one that is late.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod allocation;
mod echo;
mod groups;
mod idle_memory;
mod late_generator;
mod opening;
mod overshoot;
