//! What servers, hosts and exporters tell of themselves while a run goes on.
//!
//! Each source has a thread of its own, which sleeps between scrapes; no worker knows of any. What
//! comes of it is a [`measure::Observation`] for each source: in bounded memory, with the instant,
//! the bound and the cost of every scrape, and with gaps where a source was closed, slow, huge or
//! not understood. Nothing here fails a run, and no credential and no configuration's text is kept.
//!
//! Order of calls: [`Asked::parse`] for each source, or [`auto::find`]; [`Observer::start`] before
//! the load; [`Observer::finish`] after it.
//!
//! # Where to look
//!
//! * `profiles`: a file for each product: its series, their units and meaning.
//! * `profile`: what such a file is made of, and how rows pick samples.
//! * `exposition`, `bind`, `control`, `knot`, `query_api`: what sources speak, each with a parser
//!   from octets to a [`Reading`]; `proc` is this host's /proc and /sys.
//! * `members`: sums of counters whose members come and go.
//! * `http`, `stream`, `command`: asking, with a limit of time and of octets; `network`: from which
//!   network namespace.
//! * `newest`: the newest scrape of each source, for readers that watch the run.
//! * `sampler`: the threads. `auto`: the process behind a port and what can be asked of it.
//!   `dns`: facts over DNS.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")
)]

mod asked;
pub mod auto;
pub mod bind;
mod command;
pub mod control;
pub mod dns;
pub mod exposition;
mod files;
mod gap;
mod http;
pub mod knot;
mod members;
mod network;
mod newest;
mod open;
pub mod proc;
mod profile;
pub mod profiles;
mod query_api;
mod reading;
mod sampler;
mod source;
mod stream;

pub use asked::{Asked, AskedError, PERIOD_MIN};
pub use gap::Gap;
pub use http::{Credentials, JsonPost};
pub use newest::{LastValue, Newest, NewestSample, NewestScrape, SeriesName};
pub use profile::{Access, Origin, Profile, Row};
pub use reading::{RawSample, Reading};
pub use sampler::{OBSERVATIONS_MAX, Observer, Settings};
pub use stream::{Limits, connect_unix};
