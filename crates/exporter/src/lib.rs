//! `--metrics`: the live snapshots of a command as metrics that Prometheus scrapes; `--grafana`: as
//! annotations.
//!
//! A reader of [`lab::live::Live`] like any other: no worker knows of it. One thread adds up the
//! snapshots as they come, another one answers scrapes; both run at a low priority and end with the
//! [`Exporter`].
//!
//! # Where to look
//!
//! * `accumulator`: the sums of all runs of a command, and what they are encoded as, without I/O.
//! * `table`: the metrics: names, help texts and where each value comes from.
//! * `family`: metric families, independent of any format.
//! * `buckets`: a histogram of a run as classic and as native histogram.
//! * `text`, `protobuf`: the formats. `format`: which one a scraper accepts.
//! * `grafana`: annotations.
//! * `scrapes`: requests and responses. `serving`: the HTTP server, also of the crate `web`.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")
)]

mod accumulator;
mod buckets;
mod family;
mod format;
mod grafana;
mod protobuf;
mod scrapes;
pub mod serving;
mod table;
mod text;

pub use accumulator::{About, Accumulator};
pub use family::ScrapeCounts;
pub use format::Format;
pub use grafana::{Annotator, Grafana};
pub use scrapes::{CONNECTIONS_MAX, Exporter, Limits, SCRAPES_MAX};
