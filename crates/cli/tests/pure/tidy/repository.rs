//! The files of the repository, and how an offence is shown.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::manifest::Manifest;
use crate::source::{self, Source};

/// One file that git knows, as text.
pub(crate) struct File {
    /// Relative to the root of the repository, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Something that breaks a rule: where, what, and the cure.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Offence {
    pub(crate) path: String,
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) what: String,
    pub(crate) cure: &'static str,
}

/// All files of the repository.
pub(crate) struct Repository {
    pub(crate) files: Vec<File>,
}

impl File {
    /// A sample, or a file that was read.
    pub(crate) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        File {
            path: path.into(),
            text: text.into(),
        }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Part of this file's path: `crates/proto/src/name.rs` belongs to `proto`.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split('/').next()
    }

    pub(crate) fn offence(
        &self,
        line: usize,
        what: impl Into<String>,
        cure: &'static str,
    ) -> Offence {
        Offence {
            path: self.path.clone(),
            line,
            what: what.into(),
            cure,
        }
    }

    /// An offence wherever one of these words stands in a part of this file, whose lines it keeps.
    pub(crate) fn offences_of_words(
        &self,
        part: &str,
        words: &[&str],
        (what, cure): (impl Fn(&str) -> String, &'static str),
    ) -> Vec<Offence> {
        let each = words.iter().flat_map(|word| {
            let found = source::words(part, word);
            found.map(|offset| (source::line_of(part, offset), what(word)))
        });
        each.map(|(line, what)| self.offence(line, what, cure))
            .collect()
    }
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Offence {
            path,
            line,
            what,
            cure,
        } = self;
        write!(f, "{path}:{line}: {what}\n    cure: {cure}")
    }
}

/// Fails the test with all offences, if there are any.
pub(crate) fn passes(offences: Vec<Offence>) {
    let shown: Vec<String> = offences.iter().map(Offence::to_string).collect();
    assert!(
        offences.is_empty(),
        "{} offence(s)\n{}",
        shown.len(),
        shown.join("\n")
    );
}

impl Repository {
    /// Reads all files that are text.
    pub(crate) fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let paths = known_to_git(&root).unwrap_or_else(|| not_ignored(&root));
        let read = |path: String| {
            // Missing: deleted but not yet committed. Not UTF-8: nothing that has lines.
            let text = fs::read_to_string(root.join(&path)).ok()?;
            Some(File { path, text })
        };
        let files: Vec<File> = paths.into_iter().filter_map(read).collect();
        assert!(
            files.len() > 20,
            "only {} files in {}",
            files.len(),
            root.display()
        );
        Repository { files }
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether a file or a folder of that path exists.
    pub(crate) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let below = |file: &File| {
            let rest = file.path.strip_prefix(path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.files.iter().any(below)
    }

    pub(crate) fn each_file(&self, rule: impl Fn(&File) -> Vec<Offence>) -> Vec<Offence> {
        self.files.iter().flat_map(rule).collect()
    }

    /// Product code only: no integration tests, no test modules.
    pub(crate) fn each_rust_file_outside_tests(
        &self,
        rule: impl Fn(&File) -> Vec<Offence>,
    ) -> Vec<Offence> {
        let modules_of_tests = self.modules_of_tests();
        let is_product = |file: &&File| {
            file.is_rust() && !is_test_path(&file.path) && !modules_of_tests.contains(&file.path)
        };
        self.files
            .iter()
            .filter(is_product)
            .flat_map(rule)
            .collect()
    }

    pub(crate) fn each_manifest(
        &self,
        rule: impl Fn(&File, &Manifest) -> Vec<Offence>,
    ) -> Vec<Offence> {
        let of_member =
            |file: &&File| file.path.starts_with("crates/") && file.path.ends_with("/Cargo.toml");
        self.files
            .iter()
            .filter(of_member)
            .flat_map(|file| rule(file, &Manifest::parse(&file.text)))
            .collect()
    }

    /// Files that only tests compile, because of `#[cfg(test)] mod name;`.
    fn modules_of_tests(&self) -> BTreeSet<String> {
        let mut paths = BTreeSet::new();
        for file in self.files.iter().filter(|file| file.is_rust()) {
            let folder = module_folder(&file.path);
            for name in source::modules_of_tests(&Source::of(&file.text).code) {
                paths.insert(format!("{folder}/{name}.rs"));
                paths.insert(format!("{folder}/{name}/mod.rs"));
            }
        }
        paths
    }
}

/// The folder in which the modules that a file declares are.
fn module_folder(path: &str) -> &str {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
    match name {
        "lib" | "main" | "mod" => folder,
        _ => stem,
    }
}

/// Integration tests, and test modules in files of their own.
fn is_test_path(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.any(|part| matches!(part, "tests" | "tests.rs" | "benches"))
}

/// None without git or without its folder.
fn known_to_git(root: &Path) -> Option<Vec<String>> {
    if !root.join(".git").exists() {
        return None;
    }
    let mut command = Command::new("git");
    let output = command.current_dir(root).args(["ls-files", "-z"]).output();
    let output = output.ok().filter(|output| output.status.success())?;
    let names = String::from_utf8(output.stdout).ok()?;
    let paths = names.split('\0').filter(|name| !name.is_empty());
    Some(paths.map(str::to_owned).collect())
}

/// All files but those that `.gitignore` names.
fn not_ignored(root: &Path) -> Vec<String> {
    let ignore = fs::read_to_string(root.join(".gitignore")).unwrap_or_default();
    let patterns: Vec<&str> = ignore.lines().chain(["/.git"]).collect();
    let mut paths = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(root.join(&folder)).expect("a folder of the repository");
        for entry in entries.flatten() {
            let path = folder.join(entry.file_name());
            let name = path.to_string_lossy().into_owned();
            if patterns.iter().any(|pattern| ignores(pattern, &name)) {
                continue;
            }
            match entry.path().is_dir() {
                true => folders.push(path),
                false => paths.push(name),
            }
        }
    }
    paths.sort();
    paths
}

/// The forms of pattern that this repository's `.gitignore` uses: `/path`, `name/` and `*.suffix`.
fn ignores(pattern: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    if let Some(anchored) = pattern.strip_prefix('/') {
        return path == anchored.trim_end_matches('/');
    }
    match pattern.strip_prefix('*') {
        Some(suffix) => name.ends_with(suffix),
        None => !pattern.is_empty() && name == pattern.trim_end_matches('/'),
    }
}

#[test]
fn an_offence_shows_file_line_and_cure() {
    let offence = File::new("src/a.rs", "").offence(7, "it is wrong", "make it right");
    let shown = "src/a.rs:7: it is wrong\n    cure: make it right";
    assert_eq!(offence.to_string(), shown);
}

#[test]
#[should_panic(expected = "src/a.rs:7: it is wrong")]
fn one_offence_fails_the_test() {
    passes(vec![File::new("src/a.rs", "").offence(
        7,
        "it is wrong",
        "",
    )]);
}

#[test]
fn tests_are_told_from_product_code() {
    let repository = Repository {
        files: vec![
            File::new(
                "crates/a/src/lib.rs",
                "#[cfg(test)]\nmod example;\nmod real;\n",
            ),
            File::new("crates/a/src/example.rs", ""),
            File::new("crates/a/src/real.rs", "#[cfg(test)]\nmod oracle;\n"),
            File::new("crates/a/src/real/oracle.rs", ""),
            File::new("crates/a/src/real/tests.rs", ""),
            File::new("crates/a/tests/whole.rs", ""),
        ],
    };
    let offences = repository.each_rust_file_outside_tests(|file| vec![file.offence(1, "", "")]);
    let paths: Vec<&str> = offences.iter().map(|each| each.path.as_str()).collect();
    assert_eq!(paths, ["crates/a/src/lib.rs", "crates/a/src/real.rs"]);
}

#[test]
fn ignored_files_are_known_without_git() {
    for (pattern, path, ignored) in [
        ("/target", "target", true),
        ("/target", "crates/target", false),
        ("raw/", "bench/raw", true),
        ("raw/", "bench/rawer", false),
        ("*.profraw", "crates/a/default.profraw", true),
        ("", "README.md", false),
    ] {
        assert_eq!(ignores(pattern, path), ignored, "{pattern} {path}");
    }
}

#[test]
fn a_walk_finds_what_git_knows() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let walked = not_ignored(&root);
    for path in known_to_git(&root).unwrap_or_default() {
        let deleted = !root.join(&path).exists();
        let ignored_by_name = path.contains("proptest-regressions/");
        assert!(
            deleted || ignored_by_name || walked.contains(&path),
            "{path}"
        );
    }
}
