//! Faults, each made on purpose: of the peer, the path, the host, files, and by signals. Each is a
//! row of a table (`fault.rs` says what a row has) and a run of the binary over each of its
//! transports, after which hold: what was counted adds up, the verdict has a limit that the fault
//! can have, the exit code and the words are the right ones, and nothing is left.
//! A limit counts if the host was quiet, by the record. One that is wrong on a busy host is tried
//! again with nothing beside it.
//!
//! `cargo test --test faults -- --show-output | grep '^| '` prints the table; it is in `target/tmp`
//! too. `THRONG_FAULTS` in the environment is a part of the name of the only rows to be tried.
//! Faults of the path, and some of the host and of files, need root.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod fault;
mod files;
mod host;
mod hostile;
mod left;
mod path;
mod peer;
mod signals;
mod stage;
mod table;

#[allow(dead_code, reason = "the tests of the command line use the rest of it")]
#[path = "../command_line/process.rs"]
mod process;

#[allow(dead_code, reason = "situations of verdicts use the rest of it")]
#[path = "../../../../lab/tests/rows/mod.rs"]
mod rows;

#[test]
fn faults_of_the_peer_are_told_and_lose_nothing() {
    table::check("peer", peer::FAULTS);
}

#[test]
fn faults_of_the_path_are_told_and_lose_nothing() {
    if testing::host::is_root_for("network namespaces") {
        table::check("path", path::FAULTS);
    }
}

#[test]
fn faults_of_the_host_are_told_and_lose_nothing() {
    if testing::host::is_root_for("namespaces and limits of others") {
        table::check("host", host::FAULTS);
    }
}

#[test]
fn faults_of_files_are_told_and_lose_nothing() {
    if testing::host::is_root_for("mounts") {
        table::check("files", files::FAULTS);
    }
}

#[test]
fn signals_end_runs_as_they_should_and_lose_nothing() {
    table::check("signals", signals::FAULTS);
}

/// Run last, with nothing beside.
mod timed {
    use crate::{host, table};

    #[test]
    fn runs_that_share_their_cpu_lose_nothing() {
        table::check("shared CPU", host::SHARED_CPU);
    }
}
