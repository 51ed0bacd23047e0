//! `--web`: the live snapshots of a command as a page in browsers; `throng serve`: stored records.
//!
//! A reader of [`lab::live::Live`] like any other: no worker knows of it. One thread reads the
//! snapshots and renders each once, another one sends the result to all browsers; both run at a low
//! priority and end with the [`Server`].
//!
//! # Where to look
//!
//! * `bins`: the intervals of a run in a bounded number of points. `watched`: what the snapshots of
//!   a command add up to. `earlier`: the charts of runs that are over.
//! * `fragments`: that as parts of a page, without I/O; `page`: the page around them, its script
//!   and what browsers may do with it.
//! * `events`: the newest events in a ring, and the position of each browser in it.
//! * `archive`: the records of a folder as pages, for `throng serve`.
//! * `request`: which requests are answered, without I/O. `answering`: what both servers do with
//!   one. `server`: the live page.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")
)]

mod answering;
mod archive;
mod bins;
mod earlier;
mod events;
mod fragments;
mod page;
mod request;
mod server;
mod watched;

pub use answering::CONNECTIONS_MAX;
pub use archive::{Archive, ArchiveServer};
pub use bins::POINTS_MAX;
pub use events::EVENTS_MAX;
pub use fragments::{Fragment, fragments};
pub use server::Server;
pub use watched::Watched;
