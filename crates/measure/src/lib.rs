//! What was measured: counters, histograms, intervals, the run record and its verdict.
//!
//! Does no I/O and reads no clock. [`Recorder`] is the hot path (one per worker); the rest is the
//! run record, which reports, comparisons and every other rendering start from.

#![forbid(unsafe_code)]

pub mod counts;
pub mod histogram;
pub mod interval;
pub mod record;
pub mod verdict;

pub use counts::Counts;
pub use histogram::Histogram;
pub use interval::{Distributions, Interval};
pub use record::RunRecord;
pub use verdict::Verdict;
