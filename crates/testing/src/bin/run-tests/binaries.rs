//! Which tests there are: the binaries that cargo built, and the kind of each.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// What a test needs to be right (CONTRIBUTING.md, "Tests").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// In-process, in virtual time or without time.
    Pure,
    /// Sockets, processes, servers.
    Real,
    /// A quiet host: one at a time, with nothing beside.
    Timed,
}

impl Kind {
    pub(crate) fn parse(name: &str) -> Option<Kind> {
        match name {
            "pure" => Some(Kind::Pure),
            "real" => Some(Kind::Real),
            "timed" => Some(Kind::Timed),
            _ => None,
        }
    }

    /// The folder of a test says its kind; of tests beside the code, the crate does.
    fn of(package: &str, source: &Path) -> Kind {
        let is_in = |folder: &str| source.components().any(|it| it.as_os_str() == folder);
        match (is_in("tests"), is_in("real"), is_in("timed")) {
            (true, _, true) => Kind::Timed,
            (true, true, false) => Kind::Real,
            (false, ..) if REAL_BESIDE_CODE.contains(&package) => Kind::Real,
            _ => Kind::Pure,
        }
    }
}

/// Crates whose tests beside the code use the kernel.
const REAL_BESIDE_CODE: [&str; 3] = ["driver", "lab", "observe"];

/// Package and target of the tests that take longest, which begin first.
const LONGEST: [(&str, &str); 5] = [
    ("cli", "cluster"),
    ("cli", "faults"),
    ("cli", "command_line"),
    ("lab", "loopback"),
    ("lab", "targets"),
];

/// The folder below `target` of what is built with AddressSanitizer.
const SANITIZED: &str = "sanitized";

/// What to run of all that was built.
pub(crate) struct Selection {
    pub(crate) kinds: Vec<Kind>,
    /// Parts of names; all tests if there are none.
    pub(crate) filters: Vec<String>,
}

impl Selection {
    fn includes(&self, job: &Job) -> bool {
        let name = job.name();
        let is_named = self.filters.is_empty() || self.filters.iter().any(|it| name.contains(it));
        is_named && self.kinds.contains(&job.kind)
    }
}

/// A test and how to run it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    pub(crate) kind: Kind,
    /// `package::target`.
    pub(crate) binary: String,
    /// As the binary names it.
    pub(crate) test: String,
    pub(crate) executable: PathBuf,
    /// The package's folder, in which cargo runs tests.
    pub(crate) folder: PathBuf,
}

impl Job {
    /// `package::target::test`.
    pub(crate) fn name(&self) -> String {
        format!("{}::{}", self.binary, self.test)
    }
}

/// A line of `cargo test --no-run --message-format=json`.
#[derive(Deserialize)]
struct Artifact {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    profile: Option<Profile>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    src_path: PathBuf,
}

/// Reads what cargo built, and asks each binary for its tests.
pub(crate) fn read(file: &str, selection: &Selection) -> Result<Vec<Job>, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let mut by_rank = BTreeMap::<usize, Vec<Job>>::new();
    for line in text.lines().filter(|line| line.starts_with('{')) {
        let artifact = serde_json::from_str::<Artifact>(line);
        let artifact = artifact.map_err(|error| format!("{file}: {error}: {line}"))?;
        if let Some((rank, jobs)) = jobs_of(artifact, selection)? {
            by_rank.entry(rank).or_default().extend(jobs);
        }
    }
    Ok(by_rank.into_values().flatten().collect())
}

/// The jobs of one binary, and where they come in the order.
fn jobs_of(artifact: Artifact, selection: &Selection) -> Result<Option<(usize, Vec<Job>)>, String> {
    let (Some(executable), Some(manifest), Some(target)) =
        (artifact.executable, artifact.manifest_path, artifact.target)
    else {
        return Ok(None);
    };
    if !artifact.profile.is_some_and(|profile| profile.test) {
        return Ok(None);
    }
    let folder = manifest.parent().unwrap().to_owned();
    let package = folder.file_name().unwrap().to_string_lossy().into_owned();
    let of = (package.as_str(), target.name.as_str());
    let sanitized = executable
        .components()
        .any(|it| it.as_os_str() == SANITIZED);
    let label = if sanitized { "@sanitized" } else { "" };
    let binary = format!("{}::{}{label}", of.0, of.1);
    let rank = LONGEST.iter().position(|it| *it == of);
    let rank = rank.unwrap_or(LONGEST.len());
    let source = target
        .src_path
        .strip_prefix(&folder)
        .unwrap_or(&target.src_path);
    let kind = Kind::of(of.0, source);
    let tests = list(&executable, &folder)?.into_iter();
    let jobs = tests.map(|test| Job {
        kind,
        binary: binary.clone(),
        test,
        executable: executable.clone(),
        folder: folder.clone(),
    });
    let chosen = jobs.filter(|job| selection.includes(job));
    Ok(Some((rank, chosen.collect())))
}

fn list(executable: &Path, folder: &Path) -> Result<Vec<String>, String> {
    let mut command = Command::new(executable);
    command.args(["--list", "--format", "terse"]);
    command.current_dir(folder).stdin(Stdio::null());
    let output = command
        .output()
        .map_err(|error| format!("{}: {error}", executable.display()))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "{}: cannot list tests: {why}",
            executable.display()
        ));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(str::to_owned).collect())
}
