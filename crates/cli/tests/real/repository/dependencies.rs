//! Crates of others are few, from the registry, under licences that suit ours, each in one version,
//! and each direct one has its reason: what `deny.toml` and `docs/dependencies.md` say is so.
//!
//! `deny.toml` is in the form that cargo-deny reads, which says the same.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use toml::{Table, Value};

/// Most crates in `Cargo.lock`, ours and those for other systems among them: `--web` needs 15 for
/// axum.
const LOCKED_MAX: usize = 330;

fn read(name: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::fs::read_to_string(format!("{root}/{name}")).unwrap()
}

fn read_table(name: &str) -> Table {
    read(name).parse().unwrap()
}

/// A list in a section of `deny.toml`.
fn list(section: &str, key: &str) -> Vec<Value> {
    let list = read_table("deny.toml")[section][key].clone();
    list.as_array().unwrap().clone()
}

fn texts(list: &[Value]) -> Vec<&str> {
    list.iter().filter_map(Value::as_str).collect()
}

/// Name and version of each crate of others that this host builds, for tests too, and its licence.
fn built() -> BTreeMap<(String, String), String> {
    let mut tree = Command::new(env!("CARGO"));
    tree.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .args(["tree", "--offline", "--locked", "--workspace"])
        .args(["--edges", "normal,build,dev", "--prefix", "none"])
        .args(["--format", "{p}|{l}"]);
    let output = tree.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut built = BTreeMap::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (package, licence) = line.trim_end_matches(" (*)").split_once('|').unwrap();
        let package = package.trim_end_matches(" (proc-macro)");
        // Our own have their folder behind the version.
        if let Some((name, version)) = package.split_once(" v")
            && !version.contains(' ')
        {
            built.insert((name.to_owned(), version.to_owned()), licence.to_owned());
        }
    }
    assert!(built.len() > 100, "{built:?}");
    built
}

/// An expression of SPDX, or the older form with a stroke for OR, read from left to right.
struct Licence<'a> {
    words: Vec<&'a str>,
    allowed: &'a [&'a str],
}

impl<'a> Licence<'a> {
    fn is_allowed(expression: &'a str, allowed: &'a [&'a str]) -> bool {
        let mut words = Vec::new();
        for word in expression.split_inclusive(['(', ')', '/', ' ']) {
            let (word, mark) = match word.strip_suffix(['(', ')', '/', ' ']) {
                Some(before) => (before, &word[before.len()..]),
                None => (word, ""),
            };
            let mark = if mark == "/" { "OR" } else { mark.trim() };
            words.extend([word, mark].into_iter().filter(|it| !it.is_empty()));
        }
        words.reverse();
        let mut licence = Licence { words, allowed };
        let is_allowed = licence.any();
        is_allowed && licence.words.is_empty()
    }

    fn follows(&mut self, word: &str) -> bool {
        let does = self.words.last() == Some(&word);
        if does {
            self.words.pop();
        }
        does
    }

    fn any(&mut self) -> bool {
        let mut is_allowed = self.all();
        while self.follows("OR") {
            is_allowed |= self.all();
        }
        is_allowed
    }

    fn all(&mut self) -> bool {
        let mut is_allowed = self.one();
        while self.follows("AND") {
            is_allowed &= self.one();
        }
        is_allowed
    }

    fn one(&mut self) -> bool {
        if self.follows("(") {
            let is_allowed = self.any();
            return self.follows(")") && is_allowed;
        }
        let Some(name) = self.words.pop() else {
            return false;
        };
        if self.follows("WITH") {
            let exception = self.words.pop().unwrap_or_default();
            return self.allowed.contains(&&*format!("{name} WITH {exception}"));
        }
        self.allowed.contains(&name)
    }
}

#[test]
fn expressions_of_licences_are_read_as_they_are_meant() {
    let allowed = ["MIT", "ISC", "Apache-2.0"];
    for (expression, is_allowed) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("GPL-3.0/MIT", true),
        ("GPL-3.0 AND MIT", false),
        ("(GPL-3.0 OR MIT) AND ISC", true),
        ("ISC AND (Apache-2.0 OR ISC) AND GPL-3.0", false),
        ("Apache-2.0 WITH LLVM-exception OR MIT", true),
        ("Apache-2.0 WITH LLVM-exception", false),
        ("MIT GPL-3.0", false),
        ("", false),
    ] {
        assert_eq!(
            Licence::is_allowed(expression, &allowed),
            is_allowed,
            "{expression}"
        );
    }
}

#[test]
fn every_crate_has_a_licence_that_is_allowed() {
    let allowed = list("licenses", "allow");
    let allowed = texts(&allowed);
    let built = built();
    let is_wrong = |it: &(&(String, String), &String)| !Licence::is_allowed(it.1, &allowed);
    let wrong: Vec<_> = built.iter().filter(is_wrong).collect();
    assert!(wrong.is_empty(), "not allowed by deny.toml: {wrong:?}");
    for licence in allowed {
        let is_named = built.values().any(|it| it.contains(licence));
        assert!(is_named, "no crate has the licence {licence} of deny.toml");
    }
}

#[test]
fn crates_come_from_the_registry_alone() {
    let allowed = list("sources", "allow-registry");
    let lock = read_table("Cargo.lock");
    for package in lock["package"].as_array().unwrap() {
        let Some(source) = package.get("source").and_then(Value::as_str) else {
            continue;
        };
        let url = source.strip_prefix("registry+").unwrap_or(source);
        assert!(texts(&allowed).contains(&url), "{package}");
        assert!(package.get("checksum").is_some(), "{package}");
    }
}

#[test]
fn no_crate_is_there_in_two_versions_but_for_a_reason() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version) in built().into_keys() {
        versions.entry(name).or_default().insert(version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    let skipped: BTreeMap<String, String> = list("bans", "skip")
        .iter()
        .map(|skip| {
            let reason = skip["reason"].as_str().unwrap();
            assert!(reason.split_whitespace().count() >= 4, "{skip}");
            let (name, version) = skip["crate"].as_str().unwrap().split_once('@').unwrap();
            (name.to_owned(), version.to_owned())
        })
        .collect();
    for (name, versions) in &versions {
        let skip = skipped.get(name).unwrap_or_else(|| {
            panic!("{name} is there as {versions:?}, and deny.toml gives no reason")
        });
        // One is left that needs no reason.
        let left = versions.iter().filter(|it| !it.starts_with(skip.as_str()));
        assert_eq!(left.count(), 1, "{name} {versions:?}, skipped {skip}");
    }
    for name in skipped.keys() {
        assert!(
            versions.contains_key(name),
            "deny.toml: {name} is there once"
        );
    }
}

#[test]
fn locked_crates_are_few() {
    let lock = read_table("Cargo.lock");
    let locked = lock["package"].as_array().unwrap().len();
    assert!(locked <= LOCKED_MAX, "{locked} crates in Cargo.lock");
}

#[test]
fn every_direct_dependency_has_its_reason() {
    let manifest = read_table("Cargo.toml");
    let direct = manifest["workspace"]["dependencies"].as_table().unwrap();
    let is_foreign = |it: &(&String, &Value)| it.1.get("path").is_none();
    let direct: BTreeSet<String> = { direct.iter().filter(is_foreign) }
        .map(|(name, _)| name.clone())
        .collect();
    let text = read("docs/dependencies.md");
    let rows = text.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        let (names, reason) = (cells.next()?, cells.next()?);
        Some((names.replace('`', ""), reason.to_owned()))
    });
    let mut named = BTreeSet::new();
    for (names, reason) in rows {
        assert!(reason.split_whitespace().count() >= 3, "{names}: {reason}");
        named.extend(names.split(", ").map(str::to_owned));
    }
    assert_eq!(named, direct, "docs/dependencies.md and Cargo.toml differ");
}

/// A version is yanked when it must not be used, for a flaw mostly. RustSec's advisories are not in
/// the registry: where cargo-deny is installed and can fetch them, it checks them, too.
#[test]
fn no_crate_was_yanked() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(root).args(words).output().unwrap()
    };
    // Fetches what the registry says of each crate by now; changes nothing.
    let fetched = run(&["update", "--dry-run"]);
    if !fetched.status.success() {
        testing::timed::inconclusive("the registry cannot be reached");
        return;
    }
    let lock = read_table("Cargo.lock");
    let packages = lock["package"].as_array().unwrap().iter();
    let foreign = packages.filter(|it| it.get("source").is_some());
    let text = |package: &Value, key: &str| package[key].as_str().unwrap().to_owned();
    let known = foreign
        .map(|it| (text(it, "name"), text(it, "version")))
        .map(|it| (is_yanked(&it), it));
    let known: Vec<_> = known.collect();
    let yanked: Vec<_> = known.iter().filter(|it| it.0 == Some(true)).collect();
    assert!(yanked.is_empty(), "choose other versions: {yanked:?}");
    let unknown = known.iter().filter(|it| it.0.is_none()).count();
    assert!(
        unknown <= known.len() / 10,
        "nothing is known of {unknown} of {}",
        known.len()
    );
    if run(&["deny", "--version"]).status.success() {
        let denied = run(&["deny", "check", "advisories"]);
        let said = String::from_utf8_lossy(&denied.stderr);
        assert!(
            denied.status.success() || said.contains("failed to fetch"),
            "{said}"
        );
    }
}

/// What cargo keeps of the registry's index: versions as JSON, between zeros.
fn is_yanked((name, version): &(String, String)) -> Option<bool> {
    let home = std::env::var_os("CARGO_HOME").map(std::path::PathBuf::from);
    let home =
        home.or_else(|| Some(std::path::PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let below = match name.len() {
        1 => format!("1/{name}"),
        2 => format!("2/{name}"),
        3 => format!("3/{}/{name}", &name[..1]),
        _ => format!("{}/{}/{name}", &name[..2], &name[2..4]),
    };
    let indices = std::fs::read_dir(home.join("registry/index")).ok()?;
    let kept = indices
        .flatten()
        .map(|index| index.path().join(".cache").join(&below));
    // The registry that was asked last.
    let newest = kept.max_by_key(|path| path.metadata().and_then(|it| it.modified()).ok())?;
    let octets = std::fs::read(newest).ok()?;
    let versions = octets.split(|octet| *octet == 0);
    let mut versions =
        versions.filter_map(|it| serde_json::from_slice::<serde_json::Value>(it).ok());
    let found = versions.find(|it| it["vers"] == version.as_str())?;
    found["yanked"].as_bool()
}
