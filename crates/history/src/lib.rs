//! An index of the run records in a folder: what was run, and its figures, for questions over many
//! runs.
//!
//! The records are what counts. The index is made of them, is brought up to date whenever it is
//! opened ([`History::update`]), and may be deleted at any time. It is a file of SQLite beside the
//! records, [`INDEX_FILE`], or in memory where the folder cannot be written.
//!
//! A run has *facts*, which are texts by name (`transport`, `clients`, `limit`, and the labels that
//! the run was given), and *figures*, which are the numbers of [`measure::Metric`].
//!
//! `query` has the questions of a command, `search` those of pages: bounded, the newest run first.

#![forbid(unsafe_code)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")
)]

mod error;
mod facts;
mod folder;
mod index;
mod query;
mod search;

pub use error::HistoryError;
pub use facts::FIXED_FACTS;
pub use folder::{MANIFESTS, record_files};
pub use index::{History, INDEX_FILE, Unreadable, Update};
pub use query::{Condition, Entry, TrendGroup};
pub use search::{Filter, PAGE_ROWS, Page, Sample, Unreachable, read_record};
