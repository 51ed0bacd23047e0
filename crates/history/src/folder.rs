//! The files of a folder that may be run records.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::error::HistoryError;

/// Folders within folders that are looked at.
const DEPTH_MAX: usize = 8;
/// The folder in which an experiment keeps what Kubernetes had before: no records.
pub const MANIFESTS: &str = "manifests";

/// A file as it was found: an index knows by size and time whether it has seen it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    /// From the folder on, with `/`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) octets: u64,
    pub(crate) modified_ns: i64,
}

/// Paths of all files in a folder, and in folders within, that may be run records: those that end
/// in `.json`, in the order of their names, but for those in [`MANIFESTS`]. A link to a file stands
/// for it; links to folders are not followed.
///
/// # Errors
/// A folder cannot be read.
pub fn record_files(folder: &Path) -> Result<Vec<PathBuf>, HistoryError> {
    Ok(files(folder)?.into_iter().map(|file| file.path).collect())
}

/// As [`record_files`], with what tells whether a file has changed.
pub(crate) fn files(folder: &Path) -> Result<Vec<File>, HistoryError> {
    let mut files = Vec::new();
    let mut waiting = vec![(folder.to_owned(), 0)];
    while let Some((at, depth)) = waiting.pop() {
        let entries = fs::read_dir(&at).map_err(|error| HistoryError::of_folder(&at, &error))?;
        for entry in entries {
            let entry = entry.map_err(|error| HistoryError::of_folder(&at, &error))?;
            let path = entry.path();
            // One that has gone meanwhile, or that a link misses, is not there.
            let (Ok(kind), Ok(facts)) = (entry.file_type(), fs::metadata(&path)) else {
                continue;
            };
            if kind.is_dir() {
                if depth < DEPTH_MAX && entry.file_name() != MANIFESTS {
                    waiting.push((path, depth + 1));
                }
            } else if facts.is_file() && path.extension().is_some_and(|it| it == "json") {
                files.push(file(folder, path, &facts));
            }
        }
    }
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(files)
}

fn file(folder: &Path, path: PathBuf, facts: &fs::Metadata) -> File {
    let modified = facts.modified().ok();
    let modified = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let name = path.strip_prefix(folder).unwrap_or(&path);
    File {
        name: name.to_string_lossy().into_owned(),
        octets: facts.len(),
        modified_ns: modified.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(0)),
        path,
    }
}
