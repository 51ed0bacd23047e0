//! The repository's files that are made, and its scripts: `servers/prepare` runs here on copies,
//! with stand-ins for what it would install and build.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod copy;
mod prepare;
mod published;
