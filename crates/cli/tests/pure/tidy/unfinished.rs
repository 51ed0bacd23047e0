//! What may not stay: open ends, ignored tests, tests that sleep, tests that are not sentences,
//! rules of the verdict without tests.

use crate::repository::{File, Offence};
use crate::source::{Source, line_of, words};

/// Words in comments that mark an open end. Comments of other languages are not told from the
/// rest, so the words are written in halves here.
const MARKS: [&str; 3] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];

/// Files that may sleep: none. Wait for the event, or run in the simulator's time.
const SLEEP_ALLOWED_IN: [&str; 0] = [];

const FINISH: &str = "finish it, or open an issue and leave nothing behind";

/// No open ends, in code or in comments.
pub(crate) fn marks(file: &File) -> Vec<Offence> {
    if file.path.ends_with(".md") {
        return Vec::new();
    }
    let source = Source::of(&file.text);
    let searched = if file.is_rust() {
        &source.comments
    } else {
        &file.text
    };
    let left = (|mark: &str| format!("`{mark}` left behind"), FINISH);
    let mut offences = file.offences_of_words(searched, &MARKS, left);
    if file.is_rust() {
        let calls = ["todo!", "unimplemented!", "dbg!"];
        offences.extend(file.offences_of_words(&source.code, &calls, left));
    }
    offences
}

/// No test is ignored or sleeps, and none is named `test_`.
pub(crate) fn names_and_sleeps(file: &File) -> Vec<Offence> {
    if !file.is_rust() {
        return Vec::new();
    }
    let code = Source::of(&file.text).code;
    let mut offences = Vec::new();
    for (offset, _) in code.match_indices("#[ignore") {
        let cure = "make it fast and reliable enough to run always, or delete it";
        offences.push(file.offence(line_of(&code, offset), "an ignored test", cure));
    }
    for (offset, _) in code.match_indices("fn test_") {
        let cure = "name a test as a sentence about what it shows, without `test_`";
        offences.push(file.offence(line_of(&code, offset), "a function named `test_`", cure));
    }
    if !SLEEP_ALLOWED_IN.contains(&file.path.as_str()) {
        for offset in words(&code, "sleep") {
            let cure = "wait for the event itself with a deadline, or run in virtual time";
            offences.push(file.offence(line_of(&code, offset), "sleeps", cure));
        }
    }
    offences
}

#[test]
fn open_ends_are_offences() {
    for mark in MARKS {
        let check = |path: &str, text: String| marks(&File::new(path, text)).len();
        assert_eq!(check("a.rs", format!("x; // {mark}: later\n")), 1, "{mark}");
        assert_eq!(check("a.rs", format!("x(\"{mark}\");\n")), 0, "{mark}");
        assert_eq!(check("run.py", format!("# {mark}\n")), 1, "{mark}");
        assert_eq!(
            check("run.py", format!("mktemp {mark}{mark}\n")),
            0,
            "{mark}"
        );
    }
    for call in ["todo!()", "unimplemented!()", "dbg!(x)"] {
        let text = format!("// {call}\nlet s = \"{call}\";\n{call};\n");
        let offences = marks(&File::new("a.rs", text));
        assert_eq!(offences.len(), 1, "{call}");
        assert_eq!(offences[0].line, 3, "{call}");
    }
}

#[test]
fn ignored_sleeping_and_badly_named_tests_are_offences() {
    let check = |text: &str| names_and_sleeps(&File::new("a.rs", text)).len();
    assert_eq!(check("#[test]\n#[ignore = \"slow\"]\nfn a() {}\n"), 1);
    assert_eq!(check("#[test]\nfn test_it() {}\n"), 1);
    assert_eq!(check("std::thread::sleep(second);\n"), 1);
    assert_eq!(check("use std::thread::{self, sleep};\n"), 1);
    assert_eq!(check("#[test]\nfn a_test_of_sleeping() {} // sleep\n"), 0);
}
