//! `throng compare`: two sides from commands that are run in turn.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use measure::AbComparison;
use testing::folder::Folder;
use testing::program::Finished;

use crate::process::{THRONG, throng};

fn compared(flags: &str) -> AbComparison {
    let stdout = throng(&format!("compare --format json {flags}")).succeeded();
    serde_json::from_str(&stdout).unwrap()
}

#[test]
fn commands_are_run_in_turn_and_their_records_kept() {
    let folder = Folder::new("compare-turns");
    let records = folder.path("records");
    let run = |command: &str, records: &str| {
        Command::new(THRONG)
            .args(["compare", "--a", command, "--b"])
            .arg("throng run --queries 200 --delay '2ms'")
            .args(["--repeat", "3", "--records", records, "--format", "json"])
            .output()
            .unwrap()
    };
    let output = run("run --queries 200 --delay 1ms --quiet", &records);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{stderr}");
    let lines: Vec<&str> = stderr
        .lines()
        .filter(|line| line.starts_with("run "))
        .collect();
    let order: Vec<&str> = lines
        .iter()
        .map(|line| line.split(' ').nth(4).unwrap())
        .collect();
    assert_eq!(order, ["A", "B", "B", "A", "A", "B"], "{stderr}");
    let found: AbComparison = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((found.a.runs.len(), found.b.runs.len()), (3, 3));
    assert!(found.a.label.contains("--delay 1ms"), "{}", found.a.label);
    assert_eq!(fs::read_dir(format!("{records}/a")).unwrap().count(), 3);
    let again = compared(&format!("{records}/a {records}/b"));
    assert_eq!(again.metrics.len(), found.metrics.len());
    // The records of another comparison are not taken for this one's.
    let output = run("run --queries 200", &records);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("is not empty"), "{stderr}");
}

#[test]
fn what_can_be_read_once_is_read_for_all_runs_in_turn() {
    let folder = Folder::new("compare-input");
    let scenario = folder.write(
        "scenario.toml",
        "driver = \"sim\"\nqueries = 30\nnames = \"-\"\n[[clients]]\ncount = 3\n",
    );
    let records = folder.path("records");
    let mut command = Command::new(THRONG);
    let a = "--driver sim --queries 30 --clients 3 --names -";
    command.args(["compare", "--a", a, "--b", &scenario, "--repeat", "2"]);
    command.args(["--records", &records, "--force", "--quiet"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"a.example A\nb.example A\n").unwrap();
    drop(input);
    let finished = Finished::new("compare", child.wait_with_output().unwrap());
    assert_eq!(finished.stderr, "");
    finished.succeeded();
    for name in ["a/1", "b/1", "a/2", "b/2"] {
        let text = fs::read_to_string(format!("{records}/{name}.json")).unwrap();
        let record = measure::RunRecord::from_json(&text).unwrap();
        assert_eq!(record.scenario.questions.count, 2, "{name}");
        assert_eq!(record.total.counts.responses, 30, "{name}");
    }
}
