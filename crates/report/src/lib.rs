//! Renderings of run records, one or several: text for people, HTML with charts, Markdown, JSON,
//! CSV, and the metrics schema of DNS-OARC; conditions as JUnit XML.
//!
//! Sees the records only: whatever a rendering shows can be shown again from their files. Does no
//! I/O; every rendering is a `String` that the caller prints or writes.
//!
//! # Where to look
//!
//! * Renderings of a run record: `summary` and, in full, `text` for people, `json`, `csv`,
//!   `dns_metrics`; and of several, compared: `comparison` (transports), `ab` (two sides), or as a
//!   search: `capacity`. `answers` reads these documents again and makes reports of them. `ramp`
//!   renders ramps, for gnuplot too, `junit` is for CI; `probe`, `evaluation` and `trace` are for a
//!   query now and then, `line` is a delay line's own result.
//! * `document`: a report before it has a form, so that all forms say the same. `run` makes that
//!   of one run, `several` of several; `remarks` and `several::words` are the sentences in it,
//!   each tied to a chart or table.
//! * `collection`: what varies between runs, and which repeat each other; `collection::dimension`
//!   lists what may vary.
//! * `over_time`, `distributions`, `sweep`: the charts. A long run is put into bins that keep the
//!   least and the greatest of their intervals.
//! * `live`: charts of a run that goes on. `trend`: a figure of many runs over time.
//! * `chart`: charts as data; `chart::svg` draws them.
//! * `doctor`: what `throng doctor` found, the worst first; the same cures are the advice of
//!   reports.
//! * `html` with `html/style.css`, `plain`: the forms. A page fetches nothing and runs nothing.

#![forbid(unsafe_code)]

pub mod ab;
pub mod agents;
pub mod answers;
pub mod capacity;
mod chart;
pub mod collection;
pub mod comparison;
#[cfg(test)]
#[path = "../../measure/tests/conforms/mod.rs"]
mod conforms;
pub mod csv;
mod distributions;
pub mod dns_metrics;
pub mod doctor;
mod document;
pub mod evaluation;
mod events;
pub mod html;
mod instances;
pub mod internet;
pub mod json;
pub mod junit;
pub mod line;
pub mod live;
mod markup;
mod over_time;
pub mod plain;
pub mod probe;
pub mod ramp;
mod remarks;
mod run;
mod servers;
pub mod several;
pub mod summary;
mod sweep;
pub mod table;
mod targets;
pub mod text;
pub mod trace;
pub mod trend;

#[cfg(test)]
mod example;

pub use answers::Answer;
pub use collection::{Collection, Source};
pub use document::Document;
