//! `--tui`: the live snapshots of a command as a screen of a terminal.
//!
//! Without I/O: snapshots and bytes of keys go in, escape sequences for the terminal come out. The
//! caller owns the terminal and the thread.
//!
//! # Where to look
//!
//! * `watched`: what the snapshots add up to, and the newest intervals for charts.
//! * `keys`: bytes that the terminal sends, as keys. `screen`: what a key changes, and the frame
//!   around a view.
//! * `views`: one module for each view, each a function that draws into a buffer; `shown`: what
//!   they have in common.
//! * `canvas`: lines and charts in a buffer. `encoder`: a buffer as escape sequences.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")
)]

mod canvas;
mod encoder;
mod keys;
mod screen;
mod shown;
mod views;
mod watched;

pub use encoder::{ENTER, Encoder, LEAVE};
pub use screen::{Action, Screen};
