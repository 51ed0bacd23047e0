//! The list of running servers: a file in the folder of each, so that a person finds those that
//! were left running, and whatever was killed before it could clean up is found by whoever comes
//! next.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use proto::Transport;
use serde::{Deserialize, Serialize};

use super::folder::{PREFIX, TempFolder};
pub use super::process_id::ProcessId;
use super::process_id::{has_processes, kill_group, wait_for_group};
use super::resources::ControlGroup;
use super::start::Start;

/// Name of the file.
const FILE: &str = "server.json";

/// A server that runs, or that is left over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Listed {
    /// The name by which it is ended.
    pub name: String,
    /// The name of the proxy that it stands behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front: Option<String>,
    /// Name of its program.
    pub program: String,
    /// What it was started for: it has to end with that process. None if it was left running.
    pub owner: Option<ProcessId>,
    /// Its process; none before it was started.
    pub process: Option<ProcessId>,
    /// Where it answers.
    pub addresses: Vec<(Transport, SocketAddr)>,
    /// Folders of its control groups.
    pub groups: Vec<PathBuf>,
    /// Its configuration, zone, keys and log.
    pub folder: PathBuf,
}

impl Listed {
    pub(super) fn new(start: &Start<'_>, folder: &TempFolder) -> Listed {
        Listed {
            name: start.lasting.clone().unwrap_or_else(|| folder.name()),
            front: start.front.clone(),
            program: start.server.program.name().to_owned(),
            owner: ProcessId::own(),
            process: None,
            addresses: Vec::new(),
            groups: Vec::new(),
            folder: folder.path().to_owned(),
        }
    }

    pub(super) fn write(&self) -> anyhow::Result<()> {
        let (path, new) = (self.folder.join(FILE), self.folder.join("server.json.new"));
        let text = serde_json::to_string_pretty(self)?;
        // Whoever reads at the same time finds the old one or the new one.
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, &path))
            .with_context(|| format!("cannot write `{}`", path.display()))
    }

    fn read(folder: &Path) -> Option<Listed> {
        let text = fs::read_to_string(folder.join(FILE)).ok()?;
        let listed: Listed = serde_json::from_str(&text).ok()?;
        // What is removed is where it was found, whatever the file says.
        Some(Listed {
            folder: folder.to_owned(),
            ..listed
        })
    }

    /// True while its process has not ended.
    pub fn is_running(&self) -> bool {
        self.process.is_some_and(ProcessId::is_alive)
    }

    /// True if nobody needs it any more: what it was started for has ended, or it has itself.
    pub fn is_left_over(&self) -> bool {
        match self.owner {
            Some(owner) => !owner.is_alive(),
            None => !self.is_running(),
        }
    }

    /// Its log.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn log(&self) -> anyhow::Result<String> {
        let path = self.folder.join(super::process::LOG);
        let octets = fs::read(&path);
        let octets = octets.with_context(|| format!("cannot read `{}`", path.display()))?;
        Ok(String::from_utf8_lossy(&octets).into_owned())
    }

    /// Ends it, and removes all that it had.
    ///
    /// # Errors
    /// Something of it is still there.
    pub fn end(self) -> anyhow::Result<()> {
        // A number that another process has got is no group of ours.
        if let Some(process) = self.process.filter(|process| !process.is_taken()) {
            kill_group(process.id);
            wait_for_group(process.id);
            anyhow::ensure!(
                !has_processes(process.id),
                "process {} of `{}` does not end",
                process.id,
                self.name
            );
        }
        drop(ControlGroup::at(self.groups.clone()));
        if let Some(left) = self.groups.iter().find(|folder| folder.exists()) {
            anyhow::bail!("`{}` cannot be removed", left.display());
        }
        fs::remove_dir_all(&self.folder)
            .with_context(|| format!("cannot remove `{}`", self.folder.display()))
    }
}

/// All servers of this user that run or were left, by name.
pub fn list() -> Vec<Listed> {
    list_in(&TempFolder::parent())
}

/// Ends and removes what nobody needs any more, and says what that was.
///
/// # Errors
/// Something of it is still there.
pub fn clear_leftovers() -> anyhow::Result<Vec<Listed>> {
    let left: Vec<Listed> = list().into_iter().filter(Listed::is_left_over).collect();
    for each in &left {
        each.clone().end()?;
    }
    Ok(left)
}

fn list_in(parent: &Path) -> Vec<Listed> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let own = rustix::process::geteuid().as_raw();
    let is_ours = |path: &PathBuf| {
        // A folder of somebody else may say anything.
        let data = fs::symlink_metadata(path);
        data.is_ok_and(|data| {
            data.is_dir() && data.uid() == own && data.mode().trailing_zeros() >= 6
        })
    };
    let named = entries.filter(|it| it.file_name().to_string_lossy().starts_with(PREFIX));
    let folders = named.map(|entry| entry.path()).filter(is_ours);
    let mut all: Vec<Listed> = folders.filter_map(|it| Listed::read(&it)).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}
