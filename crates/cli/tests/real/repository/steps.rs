//! `./test` records how long each step took however it ends, vouches only for what it tested, and
//! leaves nothing behind.

use std::fs;

use crate::copy::{Copy, Place, printed};

/// Where every package is installed, and a `cargo` that does what `script` says with its arguments.
fn place(test: &str, script: &str) -> Place {
    let place = Place::new(test);
    place.stand_in("dpkg-query", "echo -n installed");
    place.stand_in("rustc", "echo host: some-machine");
    place.stand_in("git", "[ \"$1\" = status ] || echo some-commit");
    place.stand_in(
        "cargo",
        &format!("echo \"$*\" >>\"$PLACE/cargo\"\n{script}"),
    );
    place
}

/// A copy whose `run-tests` does what `script` says with its arguments.
fn copy<'a>(place: &'a Place, script: &str) -> Copy<'a> {
    let copy = place.copy("clone", &["test"]);
    copy.program("servers/prepare", "");
    copy.program("bench/run", "");
    copy.program("cluster/throng-image", "");
    let script = format!("echo \"$*\" >>\"$PLACE/run-tests\"\n{script}");
    copy.program("target/debug/run-tests", &script);
    copy
}

/// The names of the steps that were recorded with their seconds.
fn steps(copy: &Copy<'_>) -> Vec<String> {
    let text = fs::read_to_string(copy.path("target/tests/steps")).unwrap();
    let names = text.lines().map(|line| {
        let (seconds, name) = line.split_once(' ').unwrap();
        assert!(seconds.parse::<u32>().is_ok(), "{line}");
        name.to_owned()
    });
    names.collect()
}

#[test]
fn whole_run_records_each_step_and_what_it_passed_on() {
    let place = place("steps-passed", "");
    let copy = copy(&place, "");
    let output = copy.script("test").output().unwrap();
    assert!(output.status.success(), "{}", printed(&output));
    let steps = steps(&copy);
    for step in ["cargo test --no-run", "servers/prepare", "nothing is left"] {
        assert!(steps.iter().any(|it| it == step), "{step}: {steps:?}");
    }
    assert_eq!(steps.last().unwrap(), "in all");
    assert!(printed(&output).ends_with("test: everything passed\n"));
    let [real, sanitized, timed, again, report] = &place.lines("run-tests")[..] else {
        panic!("{:?}", place.lines("run-tests"));
    };
    // Which of the first two begins first is chance.
    let mut beside = [real, sanitized];
    beside.sort();
    assert!(beside[0].starts_with("run pure,real ") && beside[1].ends_with("/sanitized.json"));
    assert!(timed.starts_with("run timed ") && again == "again");
    assert!(report.starts_with("report "), "{report}");
    let passed = fs::read_to_string(copy.path("target/passed")).unwrap();
    assert_eq!(passed, "some-commit\n");
}

#[test]
fn run_that_is_not_whole_or_not_of_one_tree_vouches_for_nothing() {
    let place = place("steps-partly", "");
    let copy = copy(&place, "");
    for arguments in [&["--quick"][..], &["losses"]] {
        let output = copy.script("test").args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", printed(&output));
        assert!(!copy.path("target/passed").exists(), "{arguments:?}");
    }
    let runs = place.lines("run-tests");
    assert!(runs[0].starts_with("run pure "), "{runs:?}");
    let filtered = "run pure,real,timed target/tests/binaries.json losses";
    assert!(runs.iter().any(|it| it == filtered), "{runs:?}");
    // A file that is edited meanwhile.
    place.stand_in("git", "date +%N");
    let output = copy.script("test").output().unwrap();
    assert!(output.status.success(), "{}", printed(&output));
    assert!(!copy.path("target/passed").exists());
}

#[test]
fn a_step_that_fails_is_named_below_the_times_of_those_before_it() {
    let place = place("steps-failed", r#"[ "$1" != fmt ] || exit 7"#);
    let copy = copy(&place, "");
    let output = copy.script("test").output().unwrap();
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(7), "{text}");
    assert_eq!(steps(&copy), ["cargo fmt --all --check"], "{text}");
    // Minutes and seconds, then the name.
    let mut lines = text.lines();
    let is_of_step = |line: &str| line.ends_with("  cargo fmt --all --check");
    assert!(lines.any(is_of_step), "{text}");
    assert!(text.contains("FAILED in step: cargo fmt --all --check (exit status 7)"));
}

#[test]
fn failed_tests_fail_the_run_after_all_steps() {
    let place = place("steps-tests", "");
    let copy = copy(&place, r#"[ "$1" != again ] && [ "$1" != report ]"#);
    let output = copy.script("test").output().unwrap();
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("FAILED in step: report"), "{text}");
    assert!(!copy.path("target/passed").exists());
}

#[test]
fn a_step_that_hangs_is_ended_and_what_it_left_with_it() {
    // Of another process group, as servers in tests may be.
    let script = r#"[ "$2" = pure,real ] || exit 0
        touch "$TMPDIR/left"
        export TMPDIR=$TMPDIR/of-a-test
        setsid bash -c 'echo $$ >"$PLACE/pid"; exec tail -f /dev/null' >/dev/null 2>&1 &
        until [ -s "$PLACE/pid" ]; do :; done
        exec tail -f /dev/null"#;
    let place = place("steps-hung", "");
    let copy = copy(&place, script);
    let mut command = copy.script("test");
    let output = command
        .env("THRONG_TEST_STEP_SECONDS", "5")
        .output()
        .unwrap();
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(124), "{text}");
    assert!(text.contains("it was ended after 5 s"), "{text}");
    assert!(
        text.contains("ended what was left: ") && text.contains("tail -f"),
        "{text}"
    );
    let pid = &place.lines("pid")[0];
    // One that its parent has not reaped yet has no command line.
    let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    assert!(!line.contains("tail"), "{line}");
    let entries = fs::read_dir(place.path("")).unwrap();
    let mut names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(
        names.all(|name| !name.starts_with("throng-test.")),
        "{text}"
    );
}
