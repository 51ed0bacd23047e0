//! ARCHITECTURE.md and the decisions: the paths they name exist; and ARCHITECTURE.md names every
//! crate and every dependency.

use crate::layers::ALLOWED;
use crate::repository::{File, Offence, Repository};

const DOCUMENT: &str = "ARCHITECTURE.md";
const DECISIONS: &str = "docs/decisions/";
/// Endings by which a word without a slash is known as the name of a file.
const ENDINGS: [&str; 4] = [".rs", ".md", ".toml", ".json"];

/// Every path in backticks is that of a file or folder of the repository.
pub(crate) fn paths(repository: &Repository) -> Vec<Offence> {
    if repository.file(DOCUMENT).is_none() {
        return vec![missing()];
    }
    let is_ours = |file: &&File| file.path == DOCUMENT || file.path.starts_with(DECISIONS);
    let mut offences = Vec::new();
    for document in repository.files.iter().filter(is_ours) {
        for (index, line) in document.text.lines().enumerate() {
            for path in quoted(line).filter(|word| is_path(word)) {
                if !repository.has(path.trim_start_matches("./")) {
                    let what = format!("`{path}` does not exist");
                    let cure = "describe the code as it is; paths are relative to the repository";
                    offences.push(document.offence(index + 1, what, cure));
                }
            }
        }
    }
    offences
}

/// Every crate is named by its folder.
pub(crate) fn crates(repository: &Repository) -> Vec<Offence> {
    let Some(document) = repository.file(DOCUMENT) else {
        return vec![missing()];
    };
    let mut offences = Vec::new();
    for file in &repository.files {
        let Some(folder) = file.path.strip_suffix("/Cargo.toml") else {
            continue;
        };
        let is_named = document.text.contains(&format!("`{folder}`"));
        if folder.starts_with("crates/") && !is_named {
            let what = format!("`{folder}` is not described");
            let cure = "add a paragraph: what it is, its main files, what it never does";
            offences.push(document.offence(1, what, cure));
        }
    }
    offences
}

/// The lines `crate -> crate, crate` are the table of allowed dependencies.
pub(crate) fn dependency_lines(repository: &Repository) -> Vec<Offence> {
    let Some(document) = repository.file(DOCUMENT) else {
        return vec![missing()];
    };
    let mut offences = Vec::new();
    for (name, allowed) in ALLOWED.iter().filter(|(_, allowed)| !allowed.is_empty()) {
        let expected = format!("{name} -> {}", allowed.join(", "));
        if !document.text.lines().any(|line| line.trim() == expected) {
            let what = format!("no line `{expected}`");
            let cure = "let the document and layers.rs of the tidy test say the same";
            offences.push(document.offence(1, what, cure));
        }
    }
    offences
}

fn missing() -> Offence {
    File::new(DOCUMENT, "").offence(1, "there is no such file", "restore it, or `git add` it")
}

/// What stands in backticks on one line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Absolute paths are the system's, words with other signs are code.
fn is_path(word: &str) -> bool {
    let is_sign = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let names_a_file = ENDINGS.iter().any(|ending| word.ends_with(ending));
    word.chars().all(is_sign) && !word.starts_with('/') && (word.contains('/') || names_a_file)
}

#[cfg(test)]
fn sample(document: &str) -> Repository {
    Repository {
        files: vec![
            File::new(DOCUMENT, document),
            File::new("crates/proto/Cargo.toml", ""),
            File::new("crates/proto/src/lib.rs", ""),
            File::new("test", ""),
        ],
    }
}

#[test]
fn a_path_that_does_not_exist_is_an_offence() {
    let check = |text: &str| paths(&sample(text)).len();
    for true_text in [
        "`crates/proto`, `crates/proto/` and `crates/proto/src/lib.rs`",
        "`./test` starts `cargo test`",
        "reads `/proc/net/snmp` by `Driver::receive`; crates/gone is not quoted",
    ] {
        assert_eq!(check(true_text), 0, "{true_text}");
    }
    for false_text in ["`crates/pro`", "`crates/proto/src/gone.rs`", "`gone.md`"] {
        assert_eq!(check(false_text), 1, "{false_text}");
    }
    assert_eq!(paths(&sample("one\ntwo `src/gone`"))[0].line, 2);
}

#[test]
fn a_crate_that_is_not_described_is_an_offence() {
    assert_eq!(crates(&sample("`crates/proto`: messages")), []);
    assert_eq!(crates(&sample("`crates/proto/src/lib.rs`")).len(), 1);
}

#[test]
fn dependencies_other_than_the_table_says_are_an_offence() {
    let lines: Vec<String> = ALLOWED
        .iter()
        .map(|(name, allowed)| format!("    {name} -> {}\n", allowed.join(", ")))
        .collect();
    assert_eq!(dependency_lines(&sample(&lines.concat())), []);
    let wrong = lines
        .concat()
        .replace("report -> measure", "report -> proto");
    assert_eq!(dependency_lines(&sample(&wrong)).len(), 1);
}

#[test]
fn a_missing_document_is_an_offence() {
    let repository = Repository { files: Vec::new() };
    for rule in [paths, crates, dependency_lines] {
        assert_eq!(rule(&repository).len(), 1);
    }
}
