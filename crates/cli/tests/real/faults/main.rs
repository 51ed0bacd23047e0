//! Faults, each made on purpose, and what the binary makes of them (`crates/cli/tests/faulty`).
//!
//! `cargo test --test faults -- --show-output | grep '^| '` prints the table; it is in `target/tmp`
//! too. `THRONG_FAULTS` in the environment is a part of the name of the only rows to be tried.
//! Faults of the path, and some of the host and of files, need root.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

#[allow(dead_code, reason = "timed tests use the rest of it")]
#[path = "../../faulty/mod.rs"]
mod faulty;
#[allow(dead_code, reason = "the tests of the command line use the rest of it")]
#[path = "../command_line/process.rs"]
mod process;

#[allow(dead_code, reason = "situations of verdicts use the rest of it")]
#[path = "../../../../lab/tests/rows/mod.rs"]
mod rows;

fn check(kind: &str) {
    let (_, faults) = faulty::ALL.into_iter().find(|(it, _)| *it == kind).unwrap();
    faulty::table::check(kind, faults);
}

#[test]
fn faults_of_the_peer_are_told_and_lose_nothing() {
    check("peer");
}

#[test]
fn faults_of_the_path_are_told_and_lose_nothing() {
    if testing::host::is_root_for("network namespaces") {
        check("path");
    }
}

#[test]
fn faults_of_the_host_are_told_and_lose_nothing() {
    if testing::host::is_root_for("namespaces and limits of others") {
        check("host");
    }
}

#[test]
fn faults_of_files_are_told_and_lose_nothing() {
    if testing::host::is_root_for("mounts") {
        check("files");
    }
}

#[test]
fn signals_end_runs_as_they_should_and_lose_nothing() {
    check("signals");
}

#[test]
fn what_a_busy_host_may_have_done_is_left_open() {
    use faulty::table::{Differences, Found};

    let wrong = || vec!["exit code 2".to_owned()];
    let doubtful = |is_late, busy| {
        let differences = Differences {
            doubtful: wrong(),
            verdict: Some(String::new()),
            ..Differences::default()
        };
        differences.found(is_late, busy)
    };
    let verdict = |is_late, busy| {
        let differences = Differences {
            verdict: Some("wrong".to_owned()),
            ..Differences::default()
        };
        differences.found(is_late, busy)
    };
    let busy = || Some("busy".to_owned());

    let late = doubtful(true, busy());
    assert!(late.is_open() && late.wrong().is_empty(), "{late:?}");
    let late = doubtful(true, None);
    assert!(!late.is_open() && late.wrong() == wrong(), "{late:?}");
    let repeated = doubtful(false, busy());
    assert!(matches!(repeated, Found::Doubtful { .. }), "{repeated:?}");
    assert!(repeated.is_open() && repeated.wrong().is_empty());
    assert_eq!(doubtful(false, None).wrong(), ["exit code 2", ""]);
    let open = verdict(false, busy());
    assert_eq!(open, Found::Open("busy".to_owned()));
    assert!(open.is_open() && open.wrong().is_empty());
    assert!(verdict(true, None).is_open());
    assert_eq!(verdict(false, None).wrong(), ["wrong"]);
    let everything = Differences {
        wrong: wrong(),
        ..Differences::default()
    };
    assert_eq!(everything.found(true, busy()).wrong(), wrong());
    assert_eq!(Differences::default().found(true, busy()), Found::Right);
}
