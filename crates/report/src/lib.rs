//! Renderings of run records, one or several compared: text for people, JSON, CSV; of
//! two sides compared Markdown too, and conditions as JUnit XML.
//!
//! Sees the records only: whatever a rendering shows can be shown again from their files. Does no
//! I/O; every rendering is a `String` that the caller prints or writes.

#![forbid(unsafe_code)]

pub mod ab;
pub mod capacity;
pub mod comparison;
pub mod csv;
pub mod json;
pub mod junit;
pub mod ramp;
mod table;
pub mod text;

#[cfg(test)]
mod example;
