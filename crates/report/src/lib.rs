//! Renderings of run records, one or several: text for people, HTML with charts, Markdown, JSON,
//! CSV, and the metrics schema of DNS-OARC; conditions as JUnit XML.
//!
//! Sees the records only: whatever a rendering shows can be shown again from their files. Does no
//! I/O; every rendering is a `String` that the caller prints or writes.

#![forbid(unsafe_code)]

pub mod ab;
pub mod answers;
pub mod capacity;
mod chart;
pub mod collection;
pub mod comparison;
pub mod csv;
mod distributions;
pub mod dns_metrics;
pub mod doctor;
mod document;
pub mod evaluation;
pub mod html;
pub mod json;
pub mod junit;
mod markup;
mod over_time;
pub mod plain;
pub mod probe;
pub mod ramp;
mod remarks;
mod run;
pub mod several;
mod sweep;
pub mod table;
mod targets;
pub mod text;
pub mod trace;

#[cfg(test)]
mod example;

pub use answers::Answer;
pub use collection::{Collection, Source};
pub use document::Document;
