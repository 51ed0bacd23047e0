//! Scripts from outside of the crate: what they can do, what they draw, and those that ship.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod behaviour;
mod draws;
mod examples;
mod patterns;
