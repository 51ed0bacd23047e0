//! Sizes, first lines, names of files, and paths that belong to one machine.

use crate::repository::{File, Offence};
use crate::source::{Source, functions, line_of, without_tests, words};

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 1_000;
const COLUMNS_MAX: usize = 100;

/// Names for what nobody found a place for.
const WORDS_FORBIDDEN: [&str; 8] = [
    "util", "utils", "common", "helper", "helpers", "misc", "manager", "managers",
];

/// Written in halves, because this file is looked through too.
const MACHINE_PATHS: [&str; 4] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/tmp/bash", "_jobs"),
];

/// Functions, files and lines within their limits.
pub(crate) fn sizes(file: &File) -> Vec<Offence> {
    let extension = file.path.rsplit_once('.').map(|(_, extension)| extension);
    let is_script = file.text.starts_with("#!/");
    if !is_script && !matches!(extension, Some("rs" | "py" | "toml")) {
        return Vec::new();
    }
    let mut offences = long_lines(file);
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX {
        offences.push(file.offence(
            lines,
            format!("{lines} lines, at most {FILE_LINES_MAX}"),
            "move one of its subjects, or its tests, into a file of their own",
        ));
    }
    if file.is_rust() {
        offences.extend(long_functions(file));
    }
    offences
}

fn long_lines(file: &File) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let columns = line.chars().count();
        let text = line.trim_start();
        let is_comment = text.starts_with("//") || text.starts_with('#');
        if columns > COLUMNS_MAX && !(is_comment && line.contains("://")) {
            offences.push(file.offence(
                index + 1,
                format!("{columns} columns, at most {COLUMNS_MAX}"),
                "run `cargo fmt`; break comments and strings by hand",
            ));
        }
    }
    offences
}

fn long_functions(file: &File) -> Vec<Offence> {
    let source = Source::of(&file.text);
    let mut offences = Vec::new();
    for function in functions(&source.code) {
        if function.lines > FUNCTION_LINES_MAX {
            let (name, lines) = (&function.name, function.lines);
            offences.push(file.offence(
                function.line,
                format!("function `{name}` has {lines} lines, at most {FUNCTION_LINES_MAX}"),
                "let one function decide and small ones compute",
            ));
        }
    }
    offences
}

/// Every file opens with a `//!` that says what it is.
pub(crate) fn module_doc(file: &File) -> Vec<Offence> {
    if file.text.trim_start().starts_with("//! ") {
        return Vec::new();
    }
    vec![file.offence(
        1,
        "the file does not open with `//!`",
        "say in one line what the module is, then what it does not do",
    )]
}

/// Names say what a thing is.
pub(crate) fn path_words(file: &File) -> Vec<Offence> {
    let path = file.path.to_lowercase();
    let is_forbidden = |word: &&str| WORDS_FORBIDDEN.contains(word);
    let mut words = path.split(|c: char| !c.is_alphanumeric());
    let Some(word) = words.find(is_forbidden) else {
        return Vec::new();
    };
    let what = format!("`{word}` in the name of a file or folder");
    let cure = "name it for what it holds, or move the parts to where they are used";
    vec![file.offence(1, what, cure)]
}

/// No absolute paths that exist on one machine only.
pub(crate) fn machine_paths(file: &File) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let named = MACHINE_PATHS
            .into_iter()
            .find(|path| starts_a_path(line, path));
        if let Some(path) = named {
            offences.push(file.offence(
                index + 1,
                format!("names `{path}`, which is one machine's"),
                "use a path relative to the repository, or a neutral one in examples",
            ));
        }
    }
    offences
}

/// Nothing of the machine that builds is compiled in, where users run it: a folder of that path may
/// be anybody's there.
pub(crate) fn compiled_paths(file: &File) -> Vec<Offence> {
    if file.path.starts_with("crates/testing/") {
        return Vec::new();
    }
    let code = without_tests(&Source::of(&file.text).code);
    let calls = ["env!", "option_env!"];
    let lines = calls.iter().flat_map(|call| words(&code, call));
    let is_path = |offset: &usize| {
        let given = file.text[*offset..].lines().next().unwrap_or_default();
        !given.contains("\"CARGO_PKG_")
    };
    let lines = lines.filter(is_path).map(|offset| line_of(&code, offset));
    let what = "compiles in what is the building machine's";
    let cure = "look it up when the program runs: a setting, the user's cache, the system";
    lines.map(|line| file.offence(line, what, cure)).collect()
}

/// Whether `path` occurs in `line` other than as the middle of a longer path.
fn starts_a_path(line: &str, path: &str) -> bool {
    let continues = |before: char| before.is_alphanumeric() || "._-}".contains(before);
    let mut found = line.match_indices(path);
    found.any(|(offset, _)| !line[..offset].ends_with(continues))
}

#[cfg(test)]
fn body(lines: usize) -> String {
    format!("fn f() {{\n{}}}\n", "    g();\n".repeat(lines - 2))
}

#[test]
fn a_function_of_71_lines_is_too_long() {
    let check = |lines| sizes(&File::new("src/a.rs", body(lines)));
    assert_eq!(check(70), []);
    let offences = check(71);
    assert_eq!(offences.len(), 1);
    assert_eq!(offences[0].line, 1);
    assert!(offences[0].what.contains("`f` has 71 lines"));
}

#[test]
fn a_file_of_1001_lines_is_too_long() {
    assert_eq!(sizes(&File::new("a.py", "x\n".repeat(1_000))), []);
    assert_eq!(sizes(&File::new("a.py", "x\n".repeat(1_001))).len(), 1);
    assert_eq!(sizes(&File::new("notes.txt", "x\n".repeat(1_001))), []);
}

#[test]
fn a_line_of_101_columns_is_too_long_unless_it_is_a_comment_with_a_url() {
    let check = |line: String| sizes(&File::new("src/a.rs", format!("\n{line}\n")));
    assert_eq!(check("é".repeat(100)), []);
    assert_eq!(check("é".repeat(101))[0].line, 2);
    let url = format!("https://example.com/{}", "x".repeat(90));
    assert_eq!(check(format!("// {url}")), []);
    assert_eq!(check(format!("let a = \"{url}\";")).len(), 1);
    let script = File::new("run", format!("#!/bin/sh\n{}\n", "x".repeat(101)));
    assert_eq!(sizes(&script)[0].line, 2);
}

#[test]
fn a_file_without_a_first_line_about_itself_is_an_offence() {
    assert_eq!(module_doc(&File::new("a.rs", "//! What it is.\n")), []);
    assert_eq!(module_doc(&File::new("a.rs", "use b;\n")).len(), 1);
    assert_eq!(module_doc(&File::new("a.rs", "")).len(), 1);
}

#[test]
fn names_for_left_overs_are_offences() {
    let check = |path: &str| path_words(&File::new(path, "")).len();
    let left_over = [
        "src/utils.rs",
        "crates/common/a.rs",
        "src/HelperManager/misc.rs",
    ];
    assert_eq!(left_over.map(check), [1, 1, 1]);
    assert_eq!(
        ["src/utility_poles.rs", "src/commons.rs"].map(check),
        [0, 0]
    );
}

#[test]
fn absolute_paths_of_one_machine_are_offences() {
    let check = |line: String| machine_paths(&File::new("a.md", format!("x\n{line}"))).len();
    for path in MACHINE_PATHS {
        assert_eq!(check(format!("see {path}x")), 1, "{path}");
        assert_eq!(check(format!("see docs{path}x")), 0, "{path}");
    }
}

#[test]
fn paths_of_the_building_machine_in_code_are_offences() {
    let check = |path: &str, text: &str| compiled_paths(&File::new(path, text)).len();
    let compiled = "const A: &str = env!(\"CARGO_MANIFEST_DIR\");\n";
    assert_eq!(check("crates/lab/src/a.rs", compiled), 1);
    assert_eq!(check("crates/testing/src/a.rs", compiled), 0);
    assert_eq!(
        check(
            "crates/lab/src/a.rs",
            "const A: &str = env!(\"CARGO_PKG_VERSION\");\n"
        ),
        0
    );
}
