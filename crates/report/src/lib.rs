//! Renderings of a run record: text for people, JSON, CSV.
//!
//! Sees the record only: whatever a rendering shows can be shown again from the file. Does no I/O;
//! every rendering is a `String` that the caller prints or writes.

#![forbid(unsafe_code)]

pub mod csv;
pub mod json;
mod table;
pub mod text;

#[cfg(test)]
mod example;
