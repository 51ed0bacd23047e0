//! The responder against a network in memory with a clock that the tests move.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::field_reassign_with_default)]

mod arbitrary;
mod behaviours;
mod certificates;
mod doh2;
mod loopback;
mod memory;
mod network;
mod quic;
mod streams;
mod texts;
mod zones;
