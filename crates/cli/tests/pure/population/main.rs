//! Captures replayed, and populations drawn from profiles that were fitted to a capture: what the
//! target of a run in virtual time sees is compared with what there was.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod profile;
mod recorder;
mod replay;
mod sample;
