//! The pure crates: no socket, no file, no thread, no clock.
//!
//! Their own `clippy.toml` lets clippy refuse the calls; here even the names are refused, outside
//! of tests.

use crate::repository::{File, Offence, Repository};
use crate::source::{Source, line_of, without_tests, words};

const PURE_CRATES: [&str; 9] = [
    "settings", "proto", "measure", "load", "script", "report", "capture", "agents", "tui",
];

/// Names that stand for the outside.
const IMPURE: [&str; 10] = [
    "UdpSocket",
    "TcpStream",
    "TcpListener",
    "std::fs",
    "std::env",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime",
    "UnixStream",
];

/// Modules of std that may not be imported in a group either.
const IMPURE_MODULES: [&str; 4] = ["fs", "env", "process", "thread"];

const CURE: &str = "let the caller do it and hand in what came of it";

/// No name of [`IMPURE`] in a pure crate.
pub(crate) fn impure_names(file: &File) -> Vec<Offence> {
    let name = file.crate_name().unwrap_or_default();
    if !PURE_CRATES.contains(&name) {
        return Vec::new();
    }
    let code = without_tests(&Source::of(&file.text).code);
    let what = |impure: &str| format!("`{impure}` in `{name}`, which is pure");
    let mut offences = file.offences_of_words(&code, &IMPURE, (what, CURE));
    offences.extend(grouped_imports(file, &code));
    offences
}

/// `use std::{fs, ..}` names `std::fs`, too.
fn grouped_imports(file: &File, code: &str) -> Vec<Offence> {
    let mut offences = Vec::new();
    for (offset, _) in code.match_indices("use std::{") {
        let group = code[offset..].split(';').next().unwrap_or_default();
        for module in IMPURE_MODULES {
            if words(group, module).next().is_some() {
                let what = format!("`std::{module}` in a crate that is pure");
                offences.push(file.offence(line_of(code, offset), what, CURE));
            }
        }
    }
    offences
}

/// What belongs to the process and not to a command that is called in it.
const OF_THE_PROCESS: [&str; 4] = ["stdin", "stdout", "stderr", "env::var_os"];

/// Files of the binary's crate that may use what belongs to the process, and why.
const OF_THE_PROCESS_ALLOWED: [(&str, &str); 2] = [
    (
        "crates/cli/src/streams.rs",
        "it is where all others get them",
    ),
    (
        "crates/cli/src/child.rs",
        "its processes share those of this one",
    ),
];

/// What writes beside the owner of the terminal.
const BESIDE_THE_TERMINAL: [&str; 2] = ["streams::write_error", "streams::write_output"];
const TERMINAL: &str = "crates/cli/src/terminal.rs";

/// Commands read through `streams` and write through `terminal`, so that they can be called as
/// functions, and a progress line is erased before other output.
pub(crate) fn streams_of_the_process(file: &File) -> Vec<Offence> {
    let mut allowed = OF_THE_PROCESS_ALLOWED.iter();
    if !file.path.starts_with("crates/cli/src/") || allowed.any(|(path, _)| *path == file.path) {
        return Vec::new();
    }
    let code = without_tests(&Source::of(&file.text).code);
    let mut offences = Vec::new();
    for name in OF_THE_PROCESS {
        for offset in words(&code, name) {
            // A method of that name is of another process.
            let is_method = code[..offset].ends_with('.');
            if code[offset + name.len()..].starts_with('(') && !is_method {
                let what = format!("`{name}()` in a command");
                let cure = "use crates/cli/src/streams.rs";
                offences.push(file.offence(line_of(&code, offset), what, cure));
            }
        }
    }
    if file.path != TERMINAL {
        let what = |name: &str| format!("`{name}` beside the owner of the terminal");
        let cure = "use crates/cli/src/terminal.rs";
        offences.extend(file.offences_of_words(&code, &BESIDE_THE_TERMINAL, (what, cure)));
    }
    offences
}

/// Each pure crate has a `clippy.toml` with disallowed methods and all that the root's says; the
/// root's own counts for nothing there.
pub(crate) fn lint_settings(repository: &Repository) -> Vec<Offence> {
    let root = repository.file("clippy.toml");
    let inherited: Vec<&str> = root.map_or(Vec::new(), |file| file.text.lines().collect());
    let mut offences = Vec::new();
    for name in PURE_CRATES {
        let path = format!("crates/{name}/clippy.toml");
        let nothing = File::new(path.as_str(), "");
        let file = repository.file(&path).unwrap_or(&nothing);
        if !file.text.contains("disallowed-methods = [") {
            let what = "no disallowed methods for a pure crate";
            offences.push(file.offence(1, what, "copy those of crates/proto/clippy.toml"));
        }
        for setting in &inherited {
            if !file.text.lines().any(|line| line == *setting) {
                let what = format!("`{setting}` of the root's clippy.toml is missing");
                offences.push(file.offence(1, what, "repeat it: the root's is not read here"));
            }
        }
    }
    offences
}

#[test]
fn impure_names_in_a_pure_crate_are_offences() {
    let check = |path: &str, text: &str| impure_names(&File::new(path, text)).len();
    for name in IMPURE {
        assert_eq!(
            check("crates/load/src/a.rs", &format!("{name};\n")),
            1,
            "{name}"
        );
        assert_eq!(
            check("crates/engine/src/a.rs", &format!("{name};\n")),
            0,
            "{name}"
        );
        assert_eq!(
            check("crates/load/src/a.rs", &format!("// {name}\n\"{name}\"")),
            0,
            "{name}"
        );
    }
    assert_eq!(check("crates/load/src/a.rs", "use std::{fmt, fs};\n"), 1);
    assert_eq!(check("crates/load/src/a.rs", "use std::{fmt, io};\n"), 0);
    let test = "#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
    assert_eq!(check("crates/load/src/a.rs", test), 0);
}

#[test]
fn streams_and_variables_of_the_process_are_offences_in_commands() {
    let check = |path: &str, text: &str| streams_of_the_process(&File::new(path, text)).len();
    for text in [
        "io::stdin().read()",
        "stdout()",
        "std::io::stderr()",
        "env::var_os(NAME)",
    ] {
        assert_eq!(check("crates/cli/src/a.rs", text), 1, "{text}");
        assert_eq!(check("crates/cli/src/streams.rs", text), 0, "{text}");
        assert_eq!(check("crates/lab/src/a.rs", text), 0, "{text}");
    }
    assert_eq!(check("crates/cli/src/a.rs", "command.stdout(file)"), 0);
    for name in BESIDE_THE_TERMINAL {
        assert_eq!(check("crates/cli/src/a.rs", name), 1);
        assert_eq!(check(TERMINAL, name), 0);
    }
}

#[test]
fn a_pure_crate_without_its_own_lint_settings_is_an_offence() {
    let mut repository = Repository {
        files: vec![File::new("clippy.toml", "allow-unwrap-in-tests = true\n")],
    };
    for name in PURE_CRATES {
        let text = "allow-unwrap-in-tests = true\ndisallowed-methods = [\n]\n";
        let path = format!("crates/{name}/clippy.toml");
        repository.files.push(File::new(path, text));
    }
    assert_eq!(lint_settings(&repository), []);
    repository.files[1].text = "disallowed-methods = [\n]\n".to_owned();
    repository.files[2].text = "allow-unwrap-in-tests = true\n".to_owned();
    // One without the rules of the root, one without any, and the last crates without a file.
    repository.files.truncate(PURE_CRATES.len());
    assert_eq!(lint_settings(&repository).len(), 4);
}
