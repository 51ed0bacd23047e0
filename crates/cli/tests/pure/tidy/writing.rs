//! Files are written by `crates/lab/src/files.rs`: what another user may have placed under a name
//! is neither followed nor waited for.

use crate::repository::{File, Offence};
use crate::source::{Source, without_tests, words};

/// Calls that make a file or a folder, or write through whatever has its name.
const WAYS: [&str; 8] = [
    "File::create",
    "File::create_new",
    "File::options",
    "OpenOptions",
    "fs::write",
    "fs::copy",
    "fs::create_dir_all",
    "DirBuilder",
];

/// The files that may, and why.
const ALLOWED: [(&str, &str); 3] = [
    ("crates/lab/src/files.rs", "it is the one way"),
    (
        "crates/lab/src/target/folder.rs",
        "makes a new folder, which fails where there is anything",
    ),
    ("crates/driver/src/tun.rs", "opens a device, and makes none"),
];

/// No such call elsewhere in what users run.
pub(crate) fn other_ways(file: &File) -> Vec<Offence> {
    let is_ours = |(path, _): &(&str, &str)| file.path == *path;
    if file.path.starts_with("crates/testing/") || ALLOWED.iter().any(is_ours) {
        return Vec::new();
    }
    let code = without_tests(&Source::of(&file.text).code);
    let what = |way: &str| format!("`{way}` follows what another user may have placed there");
    file.offences_of_words(&code, &WAYS, (what, "use crates/lab/src/files.rs"))
}

/// Every exception is still needed.
pub(crate) fn stale_exceptions(files: &[File]) -> Vec<Offence> {
    let is_stale = |path: &str| {
        let file = files.iter().find(|file| file.path == path);
        file.is_none_or(|file| {
            let code = without_tests(&Source::of(&file.text).code);
            !WAYS.iter().any(|way| words(&code, way).next().is_some())
        })
    };
    let stale = ALLOWED.iter().filter(|(path, _)| is_stale(path));
    let offence = |(path, _): &(&str, &str)| {
        let what = "makes no file: it needs no exception";
        File::new(*path, "").offence(1, what, "take it out of the list in writing.rs")
    };
    stale.map(offence).collect()
}

#[test]
fn other_ways_to_write_a_file_are_offences() {
    let check = |path: &str, text: &str| other_ways(&File::new(path, text)).len();
    for way in WAYS {
        let text = format!("fn f() {{ std::{way}(path) }}\n");
        assert_eq!(check("crates/cli/src/a.rs", &text), 1, "{way}");
        assert_eq!(check("crates/lab/src/files.rs", &text), 0, "{way}");
        assert_eq!(check("crates/testing/src/a.rs", &text), 0, "{way}");
    }
    for other in [
        "fs::read(path)",
        "files::write(path)",
        "fs::create_dir(path)",
    ] {
        assert_eq!(check("crates/cli/src/a.rs", other), 0, "{other}");
    }
    let test = "#[cfg(test)]\nmod tests {\n    fn f() { fs::write(path) }\n}\n";
    assert_eq!(check("crates/cli/src/a.rs", test), 0);
}

#[test]
fn an_exception_that_nothing_needs_is_an_offence() {
    let files = [File::new(
        "crates/lab/src/files.rs",
        "fn f() { DirBuilder }",
    )];
    assert_eq!(stale_exceptions(&files).len(), ALLOWED.len() - 1);
}
