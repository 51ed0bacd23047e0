//! Defaults as processes find them: the working directory's file, and what they do not reach.

use std::process::{Command, Stdio};

use measure::RunRecord;
use testing::folder::Folder;
use testing::program::{Finished, execute};

use crate::process::THRONG;

/// Runs `throng` in a folder whose file has these lines, for a user without one.
fn throng_in(folder: &Folder, text: &str, line: &str) -> Finished {
    folder.write("throng.toml", text);
    let mut command = Command::new(THRONG);
    command.args(line.split_whitespace());
    command.current_dir(folder.folder()).stdin(Stdio::null());
    command
        .env_remove("THRONG_CONFIG")
        .env_remove("XDG_CONFIG_HOME");
    command.env("HOME", folder.path("no-home"));
    Finished::new(line, command.output().unwrap())
}

#[test]
fn file_in_the_working_directory_describes_the_load_and_grants_nothing() {
    let folder = Folder::new("defaults-folder");
    let text = "[all]\nquiet = true\nallow-public = true\n\
                [run]\nqueries = 25\nformat = \"json\"\nrecord = \"record.json\"\n";
    let finished = throng_in(&folder, text, "run --driver sim");
    assert!(
        finished.stderr.contains("throng.toml") && finished.stderr.contains("--record"),
        "{}",
        finished.stderr
    );
    assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    let record = RunRecord::from_json(&finished.succeeded()).unwrap();
    assert_eq!(record.total.counts.responses, 25);
    assert!(!folder.folder().join("record.json").exists());
    let public = "run --server 8.8.8.8 --random-labels example.org --rate 10k";
    let refused = throng_in(&folder, text, public);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("8.8.8.8"), "{}", refused.stderr);
    let shown = throng_in(&folder, text, "config").succeeded();
    assert!(shown.contains("may not set it"), "{shown}");
    let help = throng_in(&folder, "[run]\nrate = \n", "run --help");
    assert!(help.succeeded().contains("--rate"));
}

#[test]
fn agents_have_no_defaults() {
    let folder = Folder::new("defaults-agents");
    let text = "[run]\nqueries = 90\nclients = 6\nformat = \"json\"\nquiet = true\n";
    let line = "run --agents 2 --rate 300 --timeout 20s";
    let output = throng_in(&folder, text, line).succeeded();
    let record = RunRecord::from_json(&output).unwrap();
    let counts = &record.total.counts;
    assert_eq!((counts.offered, counts.responses), (90, 90));
    assert_eq!((record.scenario.clients, record.agent_count), (6, 2));
}

#[test]
fn servers_under_test_have_no_defaults() {
    let folder = Folder::new("defaults-servers");
    let run = format!(
        "{THRONG} run --quiet --format json --server $THRONG_UDP --names $THRONG_NAMES --queries \
         20 --timeout 20s"
    );
    let script = folder.write("run", run);
    let temporary = folder.path("");
    let finished = execute(&format!(
        "env TMPDIR={temporary} THRONG_RCODES=SERVFAIL=1 THRONG_LOSS=1 THRONG_CLIENTS=3 {THRONG} \
         lab up responder -- sh {script}"
    ));
    let record = RunRecord::from_json(&finished.succeeded()).unwrap();
    assert_eq!(record.total.counts.responses, 20);
    assert_eq!(record.total.counts.rcodes.by_rcode[2], 0);
    assert_eq!(record.scenario.clients, 3);
}
