//! `docs/coming-from.md`: the letters of dnsperf, resperf and kxdpgun in its tables are in the help
//! of the installed programs, and none of theirs is missing.
//!
//! Needs dnsperf and kxdpgun installed; `./test` sees to it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The letters in the first column of the table below a heading.
fn listed(page: &str, heading: &str) -> BTreeSet<String> {
    let section = page.split("\n## ").find(|it| it.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("no section {heading}"));
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let column = rows.filter_map(|row| row.split(" | ").next());
    let words = column.flat_map(|column| column.split(['`', ',', ' ']));
    words
        .filter(|word| is_letter(word))
        .map(str::to_owned)
        .collect()
}

/// The letters that a program's help describes, each at the beginning of a line.
fn offered(program: &str, flag: &str) -> BTreeSet<String> {
    let output = Command::new(program).arg(flag).output().unwrap();
    let help = [output.stdout, output.stderr].concat();
    let help = String::from_utf8(help).unwrap();
    let words = help.lines().filter_map(|line| {
        let first = line.split_whitespace().next()?;
        Some(first.trim_end_matches(','))
    });
    words
        .filter(|word| is_letter(word))
        .map(str::to_owned)
        .collect()
}

fn is_letter(word: &str) -> bool {
    word.len() == 2 && word.starts_with('-') && word != "--"
}

/// `left_out`: what the page does not need to say, or says elsewhere.
fn check(program: &str, flag: &str, left_out: &[&str]) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coming-from.md");
    let page = fs::read_to_string(page).unwrap();
    let (listed, offered) = (listed(&page, program), offered(program, flag));
    let unknown: Vec<&String> = listed.difference(&offered).collect();
    assert!(unknown.is_empty(), "{program} has no {unknown:?}");
    let missing = offered.difference(&listed);
    let missing: Vec<&String> = missing
        .filter(|it| !left_out.contains(&it.as_str()))
        .collect();
    assert!(
        missing.is_empty(),
        "the page lacks {missing:?} of {program}"
    );
}

#[test]
fn letters_of_dnsperf_are_those_of_its_help() {
    check("dnsperf", "-h", &["-h", "-H"]);
}

#[test]
fn letters_of_resperf_are_those_of_its_help() {
    // The others are as dnsperf's.
    let as_dnsperf = [
        "-f", "-s", "-p", "-a", "-x", "-d", "-t", "-b", "-e", "-E", "-D", "-y", "-v", "-W", "-h",
        "-H", "-O",
    ];
    // -R is what Throng always does.
    check("resperf", "-h", &[&as_dnsperf[..], &["-R"]].concat());
}

#[test]
fn letters_of_kxdpgun_are_those_of_its_help() {
    check("kxdpgun", "--help", &["-h", "-V"]);
}
