//! Which crate may know which, and what every member's manifest says.

use crate::manifest::Manifest;
use crate::repository::{File, Offence, Repository};

/// Each crate with those of this workspace that it may depend on, tests included. From the top
/// down: a crate may only name crates below it.
pub(crate) const ALLOWED: [(&str, &[&str]); 19] = [
    (
        "cli",
        &[
            "exporter",
            "tui",
            "web",
            "lab",
            "history",
            "observe",
            "engine",
            "responder",
            "report",
            "capture",
            "script",
            "load",
            "driver",
            "measure",
            "proto",
            "settings",
            "testing",
        ],
    ),
    ("tui", &["lab", "report", "measure", "testing"]),
    (
        "web",
        &["exporter", "lab", "report", "history", "measure", "testing"],
    ),
    (
        "exporter",
        &["lab", "observe", "measure", "settings", "testing"],
    ),
    (
        "lab",
        &[
            "agents",
            "observe",
            "engine",
            "responder",
            "report",
            "load",
            "driver",
            "measure",
            "proto",
            "settings",
            "testing",
        ],
    ),
    (
        "agents",
        &["engine", "load", "measure", "proto", "settings"],
    ),
    ("engine", &["script", "load", "driver", "measure", "proto"]),
    ("responder", &["driver", "measure", "proto", "settings"]),
    ("report", &["measure", "testing"]),
    ("history", &["measure", "testing"]),
    ("observe", &["measure", "proto", "testing"]),
    ("testing", &["measure"]),
    ("capture", &["load", "proto"]),
    ("script", &["load", "measure", "proto"]),
    ("load", &["proto", "settings"]),
    ("driver", &["proto", "settings"]),
    ("measure", &["settings"]),
    ("proto", &["settings"]),
    ("settings", &[]),
];

/// Dependencies within the workspace are those of [`ALLOWED`].
pub(crate) fn dependencies(file: &File, manifest: &Manifest) -> Vec<Offence> {
    let name = file.crate_name().unwrap_or_default();
    let Some((_, allowed)) = ALLOWED.iter().find(|(each, _)| *each == name) else {
        let what = format!("crate `{name}` is not in the table of allowed dependencies");
        let cure = "add it to layers.rs of the tidy test and to ARCHITECTURE.md";
        return vec![file.offence(1, what, cure)];
    };
    let is_member = |dependency: &str| ALLOWED.iter().any(|(each, _)| *each == dependency);
    let mut offences = Vec::new();
    for (dependency, line) in manifest.dependencies() {
        if is_member(dependency) && !allowed.contains(&dependency) {
            offences.push(file.offence(
                line,
                format!("`{name}` may not depend on `{dependency}`"),
                "move the code to the crate whose subject it is; dependencies point down only",
            ));
        }
    }
    offences
}

/// Every member describes itself and obeys the lints of the workspace.
pub(crate) fn member_settings(file: &File, manifest: &Manifest) -> Vec<Offence> {
    let mut offences = Vec::new();
    if manifest
        .value("package.description")
        .is_none_or(str::is_empty)
    {
        let cure = "say in one line what the crate is";
        offences.push(file.offence(1, "no description", cure));
    }
    for (key, cure) in [
        ("lints.workspace", "add `[lints]` with `workspace = true`"),
        (
            "package.edition.workspace",
            "add `edition.workspace = true`",
        ),
        (
            "package.license.workspace",
            "add `license.workspace = true`",
        ),
        (
            "package.publish.workspace",
            "add `publish.workspace = true`",
        ),
    ] {
        if manifest.value(key) != Some("true") {
            offences.push(file.offence(1, format!("`{key}` is not true"), cure));
        }
    }
    offences
}

/// Folders under `crates/`, members of the workspace and [`ALLOWED`] are the same crates.
pub(crate) fn members(repository: &Repository) -> Vec<Offence> {
    let Some(root) = repository.file("Cargo.toml") else {
        let nowhere = File::new("Cargo.toml", "");
        return vec![nowhere.offence(1, "there is no such file", "restore it")];
    };
    let manifest = Manifest::parse(&root.text);
    let listed = manifest.value("workspace.members").unwrap_or_default();
    let mut offences = Vec::new();
    for file in &repository.files {
        let Some(folder) = file.path.strip_suffix("/Cargo.toml") else {
            continue;
        };
        if folder.starts_with("crates/") && !listed.lines().any(|member| member == folder) {
            let what = "is not a member of the workspace";
            offences.push(file.offence(1, what, "add it to `members` in Cargo.toml"));
        }
    }
    for (name, _) in ALLOWED {
        if !repository.has(&format!("crates/{name}/Cargo.toml")) {
            let what = format!("there is no crate `{name}`");
            offences.push(root.offence(1, what, "take it out of layers.rs of the tidy test"));
        }
    }
    offences
}

#[cfg(test)]
fn sample(name: &str, text: &str) -> (File, Manifest) {
    let file = File::new(format!("crates/{name}/Cargo.toml"), text);
    (file, Manifest::parse(text))
}

#[test]
fn the_table_itself_points_down_only() {
    for (place, (name, allowed)) in ALLOWED.iter().enumerate() {
        for dependency in *allowed {
            let below = &ALLOWED[place + 1..];
            let is_below = below.iter().any(|(each, _)| each == dependency);
            assert!(is_below, "{name} -> {dependency}");
        }
    }
}

#[test]
fn a_dependency_that_points_up_is_an_offence() {
    let (file, manifest) = sample("report", "[dependencies]\nmeasure.workspace = true\n");
    assert_eq!(dependencies(&file, &manifest), []);
    let text = "[dev-dependencies]\nserde.workspace = true\nproto.workspace = true\n";
    let (file, manifest) = sample("report", text);
    let offences = dependencies(&file, &manifest);
    assert_eq!(offences.len(), 1);
    assert_eq!(offences[0].line, 3);
    assert_eq!(offences[0].what, "`report` may not depend on `proto`");
}

#[test]
fn a_crate_that_nobody_placed_is_an_offence() {
    let (file, manifest) = sample("fleet", "");
    assert_eq!(dependencies(&file, &manifest).len(), 1);
}

#[test]
fn a_manifest_without_the_settings_of_the_workspace_is_an_offence() {
    let whole = "[package]\ndescription = \"What it is\"\nedition.workspace = true\n\
        license.workspace = true\npublish.workspace = true\n[lints]\nworkspace = true\n";
    let check = |text: &str| {
        let (file, manifest) = sample("load", text);
        member_settings(&file, &manifest).len()
    };
    assert_eq!(check(whole), 0);
    for line in whole.lines().filter(|line| line.contains('=')) {
        assert_eq!(check(&whole.replacen(line, "", 1)), 1, "{line}");
    }
}

#[test]
fn a_folder_that_is_no_member_is_an_offence() {
    let mut files: Vec<File> = ALLOWED
        .iter()
        .map(|(name, _)| File::new(format!("crates/{name}/Cargo.toml"), ""))
        .collect();
    let listed: Vec<String> = ALLOWED
        .iter()
        .map(|(name, _)| format!("    \"crates/{name}\","))
        .collect();
    let text = format!("[workspace]\nmembers = [\n{}\n]\n", listed.join("\n"));
    files.push(File::new("Cargo.toml", text));
    let mut repository = Repository { files };
    assert_eq!(members(&repository), []);
    repository
        .files
        .push(File::new("crates/fleet/Cargo.toml", ""));
    assert_eq!(members(&repository).len(), 1);
    repository
        .files
        .retain(|file| file.path != "crates/lab/Cargo.toml");
    assert_eq!(members(&repository).len(), 2);
}
