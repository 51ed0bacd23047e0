//! `unsafe`: in the driver only, and never without its reason.

use crate::repository::{File, Offence};
use crate::source::{Source, line_of, words};

/// The one folder in which `unsafe` may stand.
const ALLOWED_IN: &str = "crates/driver/src/";
/// How many lines may stand between the reason and the `unsafe` it is for.
const LINES_BETWEEN_MAX: usize = 2;

/// Every `unsafe` is in the driver and has its `// SAFETY:` above it.
pub(crate) fn unsafe_code(file: &File) -> Vec<Offence> {
    if !file.is_rust() {
        return Vec::new();
    }
    let source = Source::of(&file.text);
    let comments: Vec<&str> = source.comments.lines().collect();
    let mut offences = Vec::new();
    for offset in words(&source.code, "unsafe") {
        let line = line_of(&source.code, offset);
        if !file.path.starts_with(ALLOWED_IN) {
            offences.push(file.offence(
                line,
                "`unsafe` outside the crate driver",
                "do it in safe Rust, or let the driver do it behind a safe function",
            ));
        } else if !has_reason(&comments, line) {
            offences.push(file.offence(
                line,
                "`unsafe` without `// SAFETY:` in the 3 lines above",
                "say right above it why every precondition holds",
            ));
        }
    }
    offences
}

/// Lines of the comment that gives the reason do not count as lines between.
fn has_reason(comments: &[&str], line: usize) -> bool {
    let mut lines_between = 0;
    for comment in comments[..line - 1].iter().rev() {
        let comment = comment.trim();
        if comment.starts_with("// SAFETY:") || comment.starts_with("/// # Safety") {
            return true;
        }
        lines_between += usize::from(!comment.starts_with("//"));
        if lines_between > LINES_BETWEEN_MAX {
            return false;
        }
    }
    false
}

/// Every other crate lets the compiler refuse it.
pub(crate) fn forbidden_elsewhere(file: &File) -> Vec<Offence> {
    let is_root = ["/src/lib.rs", "/src/main.rs"]
        .iter()
        .any(|end| file.path.ends_with(end));
    if !is_root || !file.path.starts_with("crates/") || file.path.starts_with(ALLOWED_IN) {
        return Vec::new();
    }
    if Source::of(&file.text)
        .code
        .contains("#![forbid(unsafe_code)]")
    {
        return Vec::new();
    }
    let what = "the crate does not forbid unsafe code";
    vec![file.offence(
        1,
        what,
        "add `#![forbid(unsafe_code)]` below the module's doc",
    )]
}

#[test]
fn unsafe_outside_the_driver_is_an_offence() {
    let text = "// unsafe\nlet a = \"unsafe\";\n#![forbid(unsafe_code)]\nunsafe { f() }\n";
    let offences = unsafe_code(&File::new("crates/engine/src/lib.rs", text));
    assert_eq!(offences.len(), 1);
    assert_eq!(offences[0].line, 4);
    let text = "// SAFETY: no\nunsafe { f() }\n";
    assert_eq!(
        unsafe_code(&File::new("crates/driver/tests/a.rs", text)).len(),
        1
    );
}

#[test]
fn unsafe_without_a_reason_is_an_offence() {
    let check = |text: &str| unsafe_code(&File::new("crates/driver/src/a.rs", text)).len();
    assert_eq!(check("unsafe { f() }\n"), 1);
    assert_eq!(check("// SAFETY: f asks nothing.\nunsafe { f() }\n"), 0);
    assert_eq!(
        check("// SAFETY: long\n// reason.\nlet a =\n    g(\n    unsafe { f() }"),
        0
    );
    assert_eq!(
        check("// SAFETY: far away.\na;\nb;\nc;\nunsafe { f() }\n"),
        1
    );
    assert_eq!(
        check("let a = \"// SAFETY:\";\nunsafe impl Send for A {}\n"),
        1
    );
}

#[test]
fn a_crate_that_does_not_forbid_unsafe_code_is_an_offence() {
    let check = |path: &str, text: &str| forbidden_elsewhere(&File::new(path, text)).len();
    assert_eq!(
        check("crates/load/src/lib.rs", "#![forbid(unsafe_code)]\n"),
        0
    );
    assert_eq!(check("crates/load/src/lib.rs", "//! Load.\n"), 1);
    assert_eq!(
        check("crates/cli/src/main.rs", "// #![forbid(unsafe_code)]\n"),
        1
    );
    assert_eq!(check("crates/driver/src/lib.rs", "//! Driver.\n"), 0);
    assert_eq!(check("crates/load/src/plan.rs", "//! Plan.\n"), 0);
}
