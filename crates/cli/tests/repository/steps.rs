//! `./test` says how long each step took however it ends, and leaves nothing behind.

use std::fs;
use std::process::Output;

use crate::copy::{Copy, Place, printed};

/// Where every package is installed, and a `cargo` that does what `script` says with its arguments.
fn place(test: &str, script: &str) -> Place {
    let place = Place::new(test);
    place.stand_in("dpkg-query", "echo -n installed");
    place.stand_in("rustc", "echo host: some-machine");
    place.stand_in(
        "cargo",
        &format!("echo \"$*\" >>\"$PLACE/cargo\"\n{script}"),
    );
    place
}

fn copy(place: &Place) -> Copy<'_> {
    let copy = place.copy("clone", &["test"]);
    copy.program("servers/prepare", "");
    copy.program("bench/run", "");
    copy
}

/// The names in the table of steps.
fn steps(output: &Output) -> Vec<String> {
    let text = printed(output);
    let (_, table) = text
        .split_once("test: minutes and seconds of each step\n")
        .unwrap();
    let rows = table.lines().map_while(|row| {
        let (time, name) = row.trim_start().split_once("  ")?;
        let (minutes, seconds) = time.split_once(':')?;
        assert!(
            minutes.parse::<u32>().is_ok() && seconds.len() == 2,
            "{row}"
        );
        Some(name.to_owned())
    });
    rows.collect()
}

#[test]
fn every_step_is_in_the_table_with_its_time() {
    let place = place("steps-passed", "");
    let output = copy(&place).script("test").output().unwrap();
    assert!(output.status.success(), "{}", printed(&output));
    let steps = steps(&output);
    assert_eq!(steps.first().unwrap(), "servers/prepare");
    assert!(
        steps.contains(&"cargo test --workspace --no-fail-fast".to_owned()),
        "{steps:?}"
    );
    assert_eq!(steps.last().unwrap(), "in all");
    assert!(printed(&output).ends_with("test: everything passed\n"));
}

#[test]
fn a_step_that_fails_is_named_below_the_times_of_those_before_it() {
    let place = place("steps-failed", r#"[ "$1" != clippy ] || exit 7"#);
    let output = copy(&place).script("test").output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", printed(&output));
    let steps = steps(&output);
    assert_eq!(steps.len(), 4, "{steps:?}");
    assert!(steps[2].starts_with("cargo clippy "), "{steps:?}");
    let text = printed(&output);
    assert!(text.contains("FAILED in step: cargo clippy ") && text.contains("(exit status 7)"));
}

#[test]
fn a_step_that_hangs_is_ended_and_what_it_left_with_it() {
    // Of another process group, as servers in tests may be.
    let script = r#"[ "$1" = test ] || exit 0
        touch "$TMPDIR/left"
        setsid bash -c 'echo $$ >"$PLACE/pid"; exec tail -f /dev/null' >/dev/null 2>&1 &
        until [ -s "$PLACE/pid" ]; do :; done
        exec tail -f /dev/null"#;
    let place = place("steps-hung", script);
    let mut command = copy(&place).script("test");
    let output = command
        .env("THRONG_TEST_STEP_SECONDS", "2")
        .output()
        .unwrap();
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(124), "{text}");
    assert!(text.contains("it was ended after 2 s"), "{text}");
    assert!(
        text.contains("ended what was left: ") && text.contains("tail -f"),
        "{text}"
    );
    let pid = &place.lines("pid")[0];
    // One that nobody waits for yet has no command line.
    let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    assert!(!line.contains("tail"), "{line}");
    let entries = fs::read_dir(place.path("")).unwrap();
    let mut names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(
        names.all(|name| !name.starts_with("throng-test.")),
        "{text}"
    );
}

#[test]
fn arguments_go_to_cargo_and_packages_among_them_take_the_place_of_all() {
    let place = place("steps-arguments", "");
    let copy = copy(&place);
    for (arguments, expected) in [
        (
            &["-p", "proto", "framing"][..],
            "test --no-fail-fast -p proto framing",
        ),
        (&["framing"], "test --workspace --no-fail-fast framing"),
    ] {
        let output = copy.script("test").args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", printed(&output));
        assert!(
            place.lines("cargo").iter().any(|line| line == expected),
            "{arguments:?}"
        );
    }
}
