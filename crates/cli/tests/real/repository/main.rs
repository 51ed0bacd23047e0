//! The repository's files that are made, and its scripts: `./test`, `servers/prepare` and
//! `packaging/release` run here on copies, with stand-ins for what they would install and build.
//! Packages, the site of the guides, documents against their schemas, and reports as a browser has
//! them.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod boards;
mod chart;
mod citation;
mod copy;
mod dependencies;
mod image;
mod installed;
mod notices;
mod package;
mod prepare;
mod published;
mod readable;
mod release;
mod site;
mod steps;
mod validated;
