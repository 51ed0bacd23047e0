//! Throng on Kubernetes: a real cluster of three nodes in namespaces of this machine, which
//! `cluster/run` starts once for all tests here. Each has a Kubernetes namespace of its own. Needs
//! root, the Debian packages that `./test` installs and what `servers/prepare` builds.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod bed;
mod cells;
mod kubelet;

#[allow(dead_code, reason = "the tests of the command line use the rest of it")]
#[path = "../command_line/process.rs"]
mod process;
