//! Commands called in this process, and what they measured on the simulator.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Output};

use cli::Call;
use measure::RunRecord;

use testing::program::Finished;

/// Calls `throng` with arguments that are separated by blanks.
pub(crate) fn throng(arguments: &str) -> Finished {
    throng_with(arguments, b"")
}

/// As [`throng`], with standard input.
pub(crate) fn throng_with(arguments: &str, input: &[u8]) -> Finished {
    call(Call {
        arguments: arguments.split_whitespace().map(Into::into).collect(),
        input: input.to_vec(),
        ..Call::default()
    })
}

/// Calls `throng`.
pub(crate) fn call(call: Call) -> Finished {
    let words: Vec<_> = call
        .arguments
        .iter()
        .map(|it| it.to_string_lossy())
        .collect();
    let line = format!("throng {}", words.join(" "));
    let outcome = call.run();
    let output = Output {
        status: ExitStatus::from_raw(i32::from(outcome.code) << 8),
        stdout: outcome.output,
        stderr: outcome.errors,
    };
    Finished::new(&line, output)
}

/// The record of a `throng run` on the simulator that ends with exit code 0. Reading it checks its
/// identity.
pub(crate) fn simulated(flags: &str) -> RunRecord {
    recorded(&format!("run --driver sim --quiet --format json {flags}"))
}

/// The record that a command with `--format json` prints, of a simulation.
pub(crate) fn recorded(arguments: &str) -> RunRecord {
    let stdout = throng(arguments).succeeded();
    let record = RunRecord::from_json(&stdout);
    let record = record.unwrap_or_else(|reason| panic!("{arguments}: {reason}"));
    assert!(record.simulation.is_some(), "{arguments} is no simulation");
    record
}
