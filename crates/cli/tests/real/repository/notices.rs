//! The licences that ship with the binary are those of what is in it.

use std::collections::BTreeSet;
use std::process::Command;

const CURE: &str = "write them anew: crates/cli/notices/collect";

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// What the binary prints.
fn notices() -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    output(command.arg("licenses"))
}

/// Name and version of the crates of others that are linked into the binary.
fn linked() -> BTreeSet<String> {
    let mut tree = Command::new(env!("CARGO"));
    tree.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .args(["tree", "--offline", "--locked", "--package", "cli"])
        .args(["--edges", "normal,no-proc-macro", "--prefix", "none"])
        .args(["--format", "{p}"]);
    let tree = output(&mut tree);
    let crates = tree.lines().filter_map(|line| {
        let mut words = line.trim_end_matches(" (*)").split(" v");
        match (words.next(), words.next(), words.next()) {
            // Our own have their folder behind the version.
            (Some(name), Some(version), None) if !version.contains(' ') => {
                Some(format!("{name} {version}"))
            }
            _ => None,
        }
    });
    crates.collect()
}

#[test]
fn every_crate_in_the_binary_and_no_other_has_its_notice() {
    let notices = notices();
    let is_crate = |line: &&str| match line.split_once(' ') {
        Some((_, version)) => {
            version.starts_with(|it: char| it.is_ascii_digit()) && !version.contains(' ')
        }
        None => false,
    };
    let lines = notices.lines().filter_map(|line| line.strip_prefix("  "));
    let listed: BTreeSet<String> = lines.filter(is_crate).map(str::to_owned).collect();
    let linked = linked();
    assert!(linked.len() > 100, "{linked:?}");
    let missing: Vec<_> = linked.difference(&listed).collect();
    let gone: Vec<_> = listed.difference(&linked).collect();
    assert!(missing.is_empty(), "{CURE}; no notice of {missing:?}");
    assert!(gone.is_empty(), "{CURE}; no longer part of it: {gone:?}");
}

#[test]
fn software_in_c_has_its_notices_too() {
    let notices = notices();
    for part in [
        "Copyright (C) 2005-2026 Mike Pall",
        "AWS Libcrypto (AWS-LC)",
        "SQLite, by way of libsqlite3-sys, is in the public domain",
    ] {
        assert!(notices.contains(part), "{part}: {CURE}");
    }
}
