//! The list of running servers: a file in the folder of each. Users find servers there that were
//! left running, and later commands find those orphaned by a killed command.

use std::fs::{self, Metadata};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use measure::line::Line;
use proto::Transport;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::folder::{PREFIX, TempFolder};
use super::pods::Held;
pub use super::process_id::ProcessId;
use super::process_id::{end_politely, has_processes, kill_group, wait_for_group};
use super::resources::{ControlGroup, GroupMemory, memory_of};
use super::topology::Topology;
use crate::files::{self, Access};
use crate::line;

/// Name of the file.
const FILE: &str = "server.json";
/// File with the statistics of a line with its own process.
pub(super) const LINE: &str = "line.json";

/// A running or orphaned server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    /// The name with which users stop it.
    pub name: String,
    /// The name of the proxy in front of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub front: Option<String>,
    /// Name of its program.
    pub program: String,
    /// The process that it belongs to, with which it has to end. None if it was left running.
    pub owner: Option<ProcessId>,
    /// Its process; none before it was started.
    pub process: Option<ProcessId>,
    /// Its addresses by transport.
    #[schemars(with = "Vec<(Transport, String)>")]
    pub addresses: Vec<(Transport, SocketAddr)>,
    /// Of a network, the network namespaces of generator and server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Its objects in Kubernetes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "serde_json::Value")]
    pub(super) kubernetes: Option<Held>,
    /// Of a server of a closed Internet, its name there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internet: Option<String>,
    /// Folders of its control groups.
    pub groups: Vec<PathBuf>,
    /// Its configuration, zone, keys and log.
    pub folder: PathBuf,
}

impl Listed {
    /// A server of this program, with its name if it lasts, and the name of the proxy in front of
    /// it.
    pub(super) fn new(
        program: &str,
        [lasting, front]: [&Option<String>; 2],
        folder: &TempFolder,
    ) -> Listed {
        Listed {
            name: lasting.clone().unwrap_or_else(|| folder.name()),
            front: front.clone(),
            program: program.to_owned(),
            owner: ProcessId::own(),
            process: None,
            addresses: Vec::new(),
            namespaces: Vec::new(),
            kubernetes: None,
            internet: None,
            groups: Vec::new(),
            folder: folder.path().to_owned(),
        }
    }

    /// A network, of a server that lasts or of one without a name.
    pub(super) fn of_network(
        folder: &TempFolder,
        topology: &Topology,
        lasting: Option<&str>,
        namespaces: &[String; 2],
    ) -> Listed {
        let name = lasting.map_or_else(|| folder.name(), |front| format!("{front}-network"));
        Listed {
            name,
            front: lasting.map(str::to_owned),
            program: topology.to_string(),
            owner: ProcessId::own(),
            process: None,
            addresses: Vec::new(),
            namespaces: namespaces.to_vec(),
            kubernetes: None,
            internet: None,
            groups: Vec::new(),
            folder: folder.path().to_owned(),
        }
    }

    pub(super) fn write(&self) -> anyhow::Result<()> {
        let path = self.folder.join(FILE);
        let text = serde_json::to_string_pretty(self)?;
        // Atomic: a concurrent reader sees the old file or the new one.
        let written = files::write(&path, Access::Umask, text);
        written.with_context(|| format!("cannot write `{}`", path.display()))
    }

    fn read(folder: &Path) -> Option<Listed> {
        let text = fs::read_to_string(folder.join(FILE)).ok()?;
        let listed: Listed = serde_json::from_str(&text).ok()?;
        // The folder to remove is the one found, not the one named in the file.
        Some(Listed {
            folder: folder.to_owned(),
            ..listed
        })
    }

    /// True while its process has not ended.
    pub fn is_running(&self) -> bool {
        self.process.is_some_and(ProcessId::is_alive)
    }

    /// True if it is not needed any more: its owner has ended, or it has ended itself.
    pub fn is_left_over(&self) -> bool {
        match self.owner {
            Some(owner) => !owner.is_alive(),
            // A network without a line has no process.
            None if self.process.is_none() && !self.namespaces.is_empty() => {
                !self.namespaces.iter().all(|name| line::exists(name))
            }
            None => !self.is_running(),
        }
    }

    /// Why the kernel killed a process of a server that has ended, if lack of memory was the cause.
    pub fn kill_cause(&self) -> Option<String> {
        if self.process.is_none_or(ProcessId::is_alive) {
            return None;
        }
        // The groups were made for this server.
        memory_of(&self.groups)?.kill_cause(GroupMemory::default())
    }

    /// The statistics of a line that was left running, known once it has ended.
    fn line(&self) -> Option<Line> {
        let text = fs::read_to_string(self.folder.join(LINE)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Its log.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self) -> anyhow::Result<String> {
        let path = self.folder.join(super::process::LOG);
        let octets = fs::read(&path);
        let octets = octets.with_context(|| format!("cannot read `{}`", path.display()))?;
        Ok(String::from_utf8_lossy(&octets).into_owned())
    }

    /// Stops it, and removes all its resources; returns the statistics of a line.
    ///
    /// # Errors
    /// Something of it is still there.
    pub fn end(self) -> anyhow::Result<Option<Line>> {
        // If another process has the number by now, the group is not ours.
        if let Some(process) = self.process.filter(|process| !process.is_taken()) {
            match self.namespaces.is_empty() {
                true => {
                    kill_group(process.id);
                    wait_for_group(process.id);
                }
                // A line has to write its statistics before it ends.
                false => end_politely(process.id),
            }
            anyhow::ensure!(
                !has_processes(process.id),
                "process {} of `{}` does not end",
                process.id,
                self.name
            );
        }
        self.namespaces
            .iter()
            .for_each(|name| line::remove_made(name));
        if let Some(left) = self.namespaces.iter().find(|name| line::exists(name)) {
            anyhow::bail!("the network namespace `{left}` cannot be removed");
        }
        if let Some(held) = &self.kubernetes {
            held.remove().with_context(|| {
                format!(
                    "what is left of `{}` in Kubernetes cannot be removed\nhint: is the cluster of \
                     `{}` to be reached? If there is none any more, remove {}",
                    self.name,
                    held.context(),
                    self.folder.display()
                )
            })?;
        }
        let line = self.line();
        drop(ControlGroup::at(self.groups.clone()));
        if let Some(left) = self.groups.iter().find(|folder| folder.exists()) {
            anyhow::bail!("`{}` cannot be removed", left.display());
        }
        fs::remove_dir_all(&self.folder)
            .with_context(|| format!("cannot remove `{}`", self.folder.display()))?;
        Ok(line)
    }
}

/// All servers of this user that run or were left, by name.
pub fn list() -> Vec<Listed> {
    list_in(&TempFolder::parent())
}

/// Stops and removes all servers that are not needed any more, and returns them.
///
/// # Errors
/// Something of it is still there.
pub fn clear_leftovers() -> anyhow::Result<Vec<Listed>> {
    let all = list();
    let left: Vec<Listed> = (all.iter())
        .filter(|each| each.is_left_over() || is_alone(each, &all))
        .cloned()
        .collect();
    for each in &left {
        each.clone().end()?;
    }
    Ok(left)
}

/// True for a part of a lasting server that is gone.
fn is_alone(each: &Listed, all: &[Listed]) -> bool {
    let front = each.front.as_ref().filter(|_| each.owner.is_none());
    let is_there = |name: &&String| {
        let mut named = all.iter().filter(|it| it.name == **name);
        named.any(|it| !it.is_left_over())
    };
    front.is_some_and(|name| !is_there(&name))
}

fn list_in(parent: &Path) -> Vec<Listed> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let own = rustix::process::geteuid().as_raw();
    let is_own = |path: &Path, is_safe: fn(&Metadata) -> bool| {
        let data = fs::symlink_metadata(path);
        data.is_ok_and(|data| data.uid() == own && is_safe(&data))
    };
    // Ignore files that another user could have written. A server that runs as another user has the
    // folder's group; the sticky bit prevents it from replacing the file.
    let is_ours = |path: &PathBuf| {
        let is_closed = |data: &Metadata| {
            let is_sticky = data.mode() & 0o1007 == 0o1000;
            data.is_dir() && (data.mode() & 0o077 == 0 || is_sticky)
        };
        is_own(path, is_closed) && is_own(&path.join(FILE), Metadata::is_file)
    };
    let named = entries.filter(|it| it.file_name().to_string_lossy().starts_with(PREFIX));
    let folders = named.map(|entry| entry.path()).filter(is_ours);
    let mut all: Vec<Listed> = folders.filter_map(|it| Listed::read(&it)).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_that_ended_is_listed_with_the_kill_of_its_group() {
        let group = TempFolder::new("list-test").unwrap();
        group.write("memory.max", "67108864\n").unwrap();
        let mut listed = Listed::new("nsd", [&None, &None], &group);
        listed.groups = vec![group.path().to_owned()];
        listed.process = ProcessId::own().map(|own| ProcessId {
            started: own.started + 1,
            ..own
        });
        group.write("memory.events", "oom 0\noom_kill 0\n").unwrap();
        assert_eq!(listed.kill_cause(), None);
        group.write("memory.events", "oom 1\noom_kill 1\n").unwrap();
        let cause = listed.kill_cause().unwrap();
        assert!(cause.contains("(limit 64 MiB)"), "{cause}");
        // It is still running: the kernel killed another process of the group.
        listed.process = ProcessId::own();
        assert_eq!(listed.kill_cause(), None);
    }
}
