//! `throng experiment`: a matrix in simulation, resumed, with hooks, and its folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use measure::{Limit, RunRecord};
use testing::folder::Folder;
use testing::program::Finished;

use crate::matrix::MATRIX;
use crate::process::throng;

fn names_in(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

/// Runs the experiment in `text` into the folder `out`.
fn run(folder: &Folder, text: &str, more: &str) -> Finished {
    let file = folder.write("small.toml", text);
    let out = folder.path("out");
    throng(&format!("experiment run {file} --output {out} {more}"))
}

#[test]
fn every_cell_is_run_as_often_as_asked_and_asked_for_afterwards() {
    let folder = Folder::new("experiment-matrix");
    run(&folder, MATRIX, "").succeeded();
    let records = names_in(&folder.path("out/records"));
    assert_eq!(records.len(), 8, "{records:?}");
    for cell in [
        "1,transport=udp",
        "1,transport=tcp",
        "5,transport=udp",
        "5,transport=tcp",
    ] {
        for repetition in [1, 2] {
            let name = format!("clients={cell},r{repetition}.json");
            assert!(records.contains(&name), "{name} of {records:?}");
        }
    }
    let out = folder.path("out");
    let csv = throng(&format!(
        "history list --records {out} --where transport=tcp --format csv"
    ));
    let csv = csv.succeeded();
    assert_eq!(csv.lines().count(), 5, "{csv}");
    let head = csv.lines().next().unwrap();
    assert!(head.starts_with("run,record,arrival,clients,"), "{head}");
    let shown = throng(&format!("history show 1 --records {out}")).succeeded();
    assert!(shown.contains("SIMULATION"), "{shown}");
    let trend = throng(&format!(
        "history trend p99 --by clients --records {out} --format json"
    ));
    let trend: serde_json::Value = serde_json::from_str(&trend.succeeded()).unwrap();
    let groups = trend["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    assert!(
        groups
            .iter()
            .all(|group| group["runs"].as_array().unwrap().len() == 4)
    );
}

#[test]
fn interrupted_experiment_makes_the_runs_that_are_missing() {
    let folder = Folder::new("experiment-resumed");
    run(&folder, MATRIX, "").succeeded();
    let records = folder.path("out/records");
    let names = names_in(&records);
    let kept = format!("{records}/{}", names[0]);
    let before = fs::metadata(&kept).unwrap().modified().unwrap();
    for gone in &names[5..] {
        fs::remove_file(format!("{records}/{gone}")).unwrap();
    }
    // As a process that was killed leaves it.
    fs::write(
        format!("{records}/{}.unfinished", &names[5][..names[5].len() - 5]),
        "{",
    )
    .unwrap();
    let again = run(&folder, MATRIX, "");
    assert!(
        again.stderr.contains("5 runs of them are already made"),
        "{}",
        again.stderr
    );
    again.succeeded();
    assert_eq!(names_in(&records), names);
    assert_eq!(fs::metadata(&kept).unwrap().modified().unwrap(), before);
}

#[test]
fn starts_that_say_nothing_about_their_server_are_made_once_more() {
    let folder = Folder::new("experiment-repeated");
    run(&folder, MATRIX, "").succeeded();
    let record = |name: &str| folder.path(&format!("out/records/clients={name}.json"));
    let limit = |name: &str| {
        let text = fs::read_to_string(record(name)).unwrap();
        RunRecord::from_json(&text).unwrap().verdict.limit
    };
    let measures_generator = |name: &str| {
        let text = fs::read_to_string(record(name)).unwrap();
        let mut changed = RunRecord::from_json(&text).unwrap();
        changed.verdict.limit = Limit::Generator;
        fs::write(record(name), changed.to_json_pretty()).unwrap();
    };
    // One of two, and both.
    let (one, both) = ("1,transport=udp,r2", "5,transport=tcp,r");
    for name in [one, &format!("{both}1"), &format!("{both}2")] {
        measures_generator(name);
    }
    let again = run(&folder, MATRIX, "");
    let text = "1 repetition measured the generator or its host: repeated";
    assert!(again.stderr.contains(text), "{}", again.stderr);
    again.succeeded();
    assert_ne!(limit(one), Limit::Generator);
    assert_eq!(limit(&format!("{both}1")), Limit::Generator);
    let aside = folder.path(&format!("out/repeated/clients={one}"));
    assert_eq!(names_in(&aside), [format!("clients={one}.repeated")]);
    // Not a second time.
    measures_generator(one);
    let again = run(&folder, MATRIX, "");
    assert!(
        !again.stderr.contains("its host: repeated"),
        "{}",
        again.stderr
    );
    again.succeeded();
    assert_eq!(limit(one), Limit::Generator);
}

#[test]
fn hooks_run_around_every_run_and_know_what_is_varied() {
    let folder = Folder::new("experiment-hooks");
    let seen = folder.path("seen");
    let text = format!(
        r#"
repeat = 1
order = "listed"
[run]
driver = "sim"
duration = "50ms"
rate = 100
[hooks]
before = "echo before $THRONG_SERVER $THRONG_REPETITION >> {seen}"
ready = "test -e {seen}"
after = "echo after $THRONG_SERVER >> {seen}"
[[servers]]
label = "old"
before = "echo old >> {seen}"
[[servers]]
label = "new"
after = "echo new >> {seen}"
"#
    );
    run(&folder, &text, "").succeeded();
    let seen = fs::read_to_string(seen).unwrap();
    let lines: Vec<&str> = seen.lines().collect();
    let expected = [
        "before old 1",
        "old",
        "after old",
        "before new 1",
        "new",
        "after new",
    ];
    assert_eq!(lines, expected);
    let out = folder.path("out");
    // Hooks may print secrets.
    let log = fs::metadata(format!("{out}/hooks.log")).unwrap();
    assert_eq!(log.permissions().mode() & 0o777, 0o600);
    let list = throng(&format!(
        "history list --records {out} --where server=new --format json"
    ));
    let list: serde_json::Value = serde_json::from_str(&list.succeeded()).unwrap();
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(list[0]["facts"]["server"], "new");
}

#[test]
fn failing_hook_is_told_with_its_command_and_ends_in_failure() {
    let folder = Folder::new("experiment-failing");
    let text = MATRIX.replace("[matrix]", "[hooks]\nbefore = \"exit 7\"\n[matrix]");
    let ended = run(&folder, &text, "");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    for words in [
        "before `exit 7`",
        "exit status: 7",
        "3 runs failed one after the other",
    ] {
        assert!(ended.stderr.contains(words), "{words} in {}", ended.stderr);
    }
    assert!(names_in(&folder.path("out/records")).is_empty());
}

#[test]
fn interrupt_within_the_first_hook_runs_the_hooks_that_clean_up() {
    let folder = Folder::new("experiment-interrupted-hook");
    let seen = folder.path("seen");
    // The hook is the first that anything is done for, and ends by a signal alone.
    let hooks = format!(
        "[hooks]\nbefore = \"kill -INT $PPID; exec tail -f /dev/null\"\n\
         after = \"echo after >> {seen}\"\n[matrix]"
    );
    let ended = run(&folder, &MATRIX.replace("[matrix]", &hooks), "");
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(seen).unwrap(), "after\n");
    let words = "interrupted with 0 of 8 runs made";
    assert!(ended.stderr.contains(words), "{}", ended.stderr);
    assert!(names_in(&folder.path("out/records")).is_empty());
}

#[test]
fn hook_that_does_not_end_is_ended() {
    let folder = Folder::new("experiment-endless");
    let hooks = "[hooks]\nbefore = \"while :; do :; done\"\nhook-timeout = \"100ms\"\n[matrix]";
    let ended = run(&folder, &MATRIX.replace("[matrix]", hooks), "");
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("not done within 100ms"),
        "{}",
        ended.stderr
    );
}

#[test]
fn runs_with_labels_that_look_alike_keep_their_own_records() {
    let folder = Folder::new("experiment-alike");
    let labels = ["a/b", "a_b", "a b", "a,b=c", "\u{e9}"];
    let mut text = MATRIX.replace("repeat = 2", "repeat = 1");
    text.truncate(text.find("[matrix]").unwrap());
    for label in labels {
        text += &format!("[[variants]]\nlabel = \"{label}\"\n");
    }
    run(&folder, &text, "").succeeded();
    let records = names_in(&folder.path("out/records"));
    let named = ["%C3%A9", "a%20b", "a%2Cb%3Dc", "a%2Fb", "a_b"];
    let mut expected = named.map(|label| format!("variant={label},r1.json"));
    expected.sort();
    assert_eq!(records, expected);
}

#[test]
fn an_experiment_with_a_key_in_it_is_copied_for_its_owner_alone() {
    for (flag, mode) in [
        ("tsig = \"k:MTIzNDU2Nzg5MDEyMzQ1Ng==\"", 0o600),
        ("", 0o644),
    ] {
        let folder = Folder::new("experiment-key");
        let text = MATRIX.replace("[run]", &format!("[run]\n{flag}"));
        run(&folder, &text, "--repeat 1").succeeded();
        let copy = fs::metadata(folder.path("out/experiment.toml")).unwrap();
        assert_eq!(copy.permissions().mode() & 0o777 & !0o022, mode, "{flag}");
    }
}
