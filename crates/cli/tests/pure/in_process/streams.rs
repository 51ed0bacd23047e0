//! What a command reads and prints goes through the streams and variables of its call.

use cli::Call;

use crate::call::{call, throng, throng_with};
use testing::folder::Folder;

#[test]
fn output_errors_and_exit_code_are_those_of_a_process() {
    let version = throng("--version");
    assert_eq!((version.code, version.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        version.stdout,
        concat!("throng ", env!("CARGO_PKG_VERSION"), "\n")
    );
    throng("run --no-such-flag").refused_with("--no-such-flag", "--no-offload");
    let nothing = throng("");
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(2), ""));
    assert!(
        nothing.stderr.contains("Usage: throng"),
        "{}",
        nothing.stderr
    );
}

#[test]
fn standard_input_is_that_of_each_call() {
    let line = "run --driver sim --quiet --format json --names - --loops 1";
    for count in [1, 2] {
        let names = "a.example A\n".repeat(count);
        let json = throng_with(line, names.as_bytes()).succeeded();
        let record = measure::RunRecord::from_json(&json).unwrap();
        assert_eq!(record.total.counts.sent, count as u64);
    }
}

#[test]
fn variables_are_those_of_each_call() {
    let folder = Folder::new("variables");
    let log = folder.path("keys.log");
    let words = "run --driver sim --quiet --transport dot --queries 2";
    for variable in [None, Some(("SSLKEYLOGFILE".into(), log.clone().into()))] {
        let is_given = variable.is_some();
        let finished = call(Call {
            arguments: words.split(' ').map(Into::into).collect(),
            variables: variable.into_iter().collect(),
            ..Call::default()
        });
        finished.succeeded();
        assert_eq!(std::fs::exists(&log).unwrap(), is_given);
    }
}
