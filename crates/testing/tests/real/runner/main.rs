//! `run-tests` on a script that answers as a test binary does.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use serde_json::Value;
use testing::folder::Folder;

/// A test for each thing that may happen. `flaky` and `doubtful` fail the first time that they run;
/// the host is too busy the first time for `later` and `worse`.
const BINARY: &str = r#"#!/bin/bash
if [[ $1 == --list ]]; then
    printf '%s: test\n' right wrong flaky doubtful unquiet later worse leaves silent hangs
    exit
fi
echo "running 1 test"
printf 'test %s ... ' "$2"
case $2 in
    wrong) echo "the reason"; echo FAILED; exit 101 ;;
    flaky) [[ -e seen ]] || { touch seen; echo FAILED; exit 101; }
        echo "what it does when it passes" ;;
    doubtful) [[ -e doubted ]] || { touch doubted; echo "the doubt"; echo FAILED; exit 101; }
        echo "the second try"; echo "too busy" >"$THRONG_TEST_INCONCLUSIVE" ;;
    unquiet) echo "too busy" >"$THRONG_TEST_INCONCLUSIVE" ;;
    later) [[ -e quiet ]] || { touch quiet; echo "too busy" >"$THRONG_TEST_INCONCLUSIVE"; } ;;
    worse) [[ -e worse ]] && { echo "it is wrong"; echo FAILED; exit 101; }
        touch worse; echo "too busy" >"$THRONG_TEST_INCONCLUSIVE" ;;
    leaves) setsid tail -f /dev/null >/dev/null 2>&1 & touch "$TMPDIR/throng-file" ;;
    silent) exit 0 ;;
    hangs) exec tail -f /dev/null ;;
esac
echo ok
echo
echo "test result: ok. 1 passed; 0 failed; 0 ignored"
"#;

/// A folder in which `run-tests` runs.
struct Place(Folder);

impl Place {
    fn new(test: &str) -> Place {
        let folder = Folder::new(test);
        fs::create_dir_all(folder.folder().join("target")).unwrap();
        Place(folder)
    }

    /// Writes the binary of a target in the folder of a kind, and what cargo would print of it.
    fn built(self, kind: &str) -> Place {
        let executable = self.0.write("crates/some/binary", BINARY);
        fs::set_permissions(&executable, fs::Permissions::from_mode(0o755)).unwrap();
        let package = self.0.folder().join("crates/some");
        let line = serde_json::json!({
            "reason": "compiler-artifact",
            "executable": executable,
            "manifest_path": package.join("Cargo.toml"),
            "profile": { "test": true },
            "target": {
                "name": "target",
                "src_path": package.join("tests").join(kind).join("main.rs"),
            },
        });
        self.0.write("binaries.json", format!("{line}\n"));
        self
    }

    fn run_tests(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_run-tests"));
        command.args(line.split(' ')).current_dir(self.0.folder());
        command.env("TMPDIR", self.0.folder());
        command.env("THRONG_TEST_SECONDS", "5");
        command.env("THRONG_TEST_LEFTOVER_SECONDS", "1");
        command.output().unwrap()
    }

    fn report(&self) -> Value {
        let json = fs::read_to_string(self.0.path("target/test-report.json")).unwrap();
        serde_json::from_str(&json).unwrap()
    }
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn each_test_is_concluded_after_a_second_try_of_those_that_did_not_pass() {
    let place = Place::new("all").built("real/target");
    let first = place.run_tests("run pure,real,timed binaries.json");
    assert!(first.status.success(), "{}", printed(&first));
    assert!(
        printed(&first).contains("the reason"),
        "{}",
        printed(&first)
    );
    assert_eq!(place.run_tests("again").status.code(), Some(1));
    let last = place.run_tests("report");
    let text = printed(&last);
    assert_eq!(last.status.code(), Some(1), "{text}");
    let sum = "tests: 2 passed, 6 failed, 1 flaky, 1 inconclusive\n";
    assert!(text.ends_with(sum), "{text}");
    let report = place.report();
    let tests = report["tests"].as_array().unwrap();
    for (name, conclusion, why, outputs) in [
        ("right", "passed", "", 0),
        ("wrong", "failed", "exit code 101", 2),
        ("flaky", "flaky", "exit code 101", 2),
        ("doubtful", "failed", "exit code 101", 2),
        ("unquiet", "inconclusive", "too busy", 2),
        ("later", "passed", "too busy", 2),
        ("worse", "failed", "exit code 101", 3),
        ("leaves", "failed", "still runs", 2),
        ("silent", "failed", "no result", 2),
        ("hangs", "failed", "ended after 5 s", 2),
    ] {
        let name = format!("some::target::{name}");
        let test = tests.iter().find(|it| it["name"] == name.as_str()).unwrap();
        assert_eq!(test["conclusion"], conclusion, "{test}");
        let first = test["why"]
            .get(0)
            .and_then(Value::as_str)
            .unwrap_or_default();
        assert!(first.contains(why), "{test}");
        let kept = test["outputs"].as_array().map_or(0, Vec::len);
        assert_eq!(kept, outputs, "{test}");
    }
    let left = tests.iter().find(|it| it["name"] == "some::target::leaves");
    let why = left.unwrap()["why"][0].as_str().unwrap();
    assert!(
        why.contains("in the folder for temporary files: throng-file"),
        "{why}"
    );
    let xml = fs::read_to_string(place.0.path("target/test-report.xml")).unwrap();
    for part in [
        "<testsuite name=\"some::target\" tests=\"10\" failures=\"6\" skipped=\"1\">",
        "<flakyFailure message=\"exit code 101\">",
        "the reason",
        "the doubt",
        "the second try",
        "it is wrong",
        "what it does when it passes",
    ] {
        assert!(xml.contains(part), "{part}: {xml}");
    }
}

#[test]
fn folder_of_a_test_says_its_kind() {
    for (folder, kind, others) in [
        ("pure/target", "pure", "real,timed"),
        ("real/target", "real", "pure,timed"),
        ("timed", "timed", "pure,real"),
    ] {
        let place = Place::new(kind).built(folder);
        for (kinds, count) in [(others, 0), (kind, 1)] {
            let run = place.run_tests(&format!("run {kinds} binaries.json target::right"));
            assert_eq!(printed(&run).lines().count(), count, "{}", printed(&run));
        }
        let report = place.run_tests("report");
        assert!(report.status.success());
        let sum = "tests: 1 passed, 0 failed, 0 flaky, 0 inconclusive\n";
        assert!(printed(&report).ends_with(sum), "{}", printed(&report));
    }
}

#[test]
fn kind_that_does_not_exist_is_refused() {
    let place = Place::new("chosen").built("timed");
    let wrong = place.run_tests("run fast binaries.json");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(printed(&wrong).contains("not `fast`"));
}
