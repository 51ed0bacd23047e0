//! Runs the tests of all crates, each in a process with a folder for temporary files.
//!
//! ```text
//! run-tests run KINDS BINARIES [FILTER]...   KINDS: pure,real,timed
//! run-tests again                            runs each test that did not pass once more, alone
//! run-tests report [STEPS]                   prints the summary; exit code 1 if tests failed
//! ```
//!
//! BINARIES is what `cargo test --no-run --message-format=json` printed. A FILTER is a part of
//! `package::target::test`. STEPS is a file with the seconds and the name of each step of `./test`.
//! Results are appended to those in `target/tests` of the working directory, which also has the
//! output of tests that did not pass each time; `report` writes `target/test-report.json` and
//! `target/test-report.xml` (JUnit). docs/decisions says why this is no runner from a registry.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    reason = "a test run that cannot be made has failed"
)]

mod binaries;
mod execution;
mod junit;
mod leftovers;
mod limits;
mod pool;
mod report;
mod results;

use std::process::ExitCode;

use binaries::{Kind, Selection};

const USAGE: &str = "run-tests run KINDS BINARIES [FILTER]... | again | report [STEPS]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["run", kinds, file, filters @ ..] => run(kinds, file, filters),
        ["again"] => pool::run_again(),
        ["report"] => report::report(None),
        ["report", steps] => report::report(Some(steps)),
        _ => Err(format!("usage: {USAGE}")),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Runs all tests of some kinds. Failures are not an error yet: these tests are run once more.
fn run(kinds: &str, file: &str, filters: &[&str]) -> Result<bool, String> {
    let parsed: Option<Vec<Kind>> = kinds.split(',').map(Kind::parse).collect();
    let selection = Selection {
        kinds: parsed.ok_or(format!("KINDS are pure, real and timed, not `{kinds}`"))?,
        filters: filters.iter().map(|it| (*it).to_owned()).collect(),
    };
    let jobs = binaries::read(file, &selection)?;
    pool::run_all(jobs)?;
    Ok(true)
}
