//! The repository's files that are made, and its scripts: `./test` and `servers/prepare` run here
//! on copies, with stand-ins for what they would install and build. The site of the guides,
//! documents against their schemas, and reports as a browser has them.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod citation;
mod copy;
mod dependencies;
mod image;
mod notices;
mod package;
mod prepare;
mod published;
mod readable;
mod site;
mod steps;
mod validated;
