//! Rebinds server threads that set their own CPU affinity.

use std::fs;
use std::process::Command;

use anyhow::Context;

/// Rounds of moving threads before it counts as failed.
const ROUNDS_MAX: usize = 10;

/// Moves all threads of a process to those CPUs until the kernel says that they are there.
///
/// Each `knotd` worker binds itself to core (thread number mod cores) when it starts, which
/// overrides `taskset`. Its UDP worker would run on the generator's core.
pub(super) fn keep_on_cpus(process: u32, cpus: &str) -> anyhow::Result<()> {
    for _ in 0..ROUNDS_MAX {
        let lists = allowed_cpus(process)?;
        // The kernel normalises the list, `0-1` for `0,1`, so compare with the first thread, which
        // does not bind itself and was started on these CPUs.
        if lists.iter().all(|list| *list == lists[0]) {
            return Ok(());
        }
        let process = process.to_string();
        let words = ["--all-tasks", "--cpu-list", "--pid", cpus, &process];
        let output = Command::new("taskset").args(words).output();
        let output = output.context("cannot run `taskset`")?;
        let message = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "taskset: {}", message.trim());
    }
    anyhow::bail!("threads are on other CPUs after {ROUNDS_MAX} rounds")
}

/// The `Cpus_allowed_list` of every thread of a process.
fn allowed_cpus(process: u32) -> anyhow::Result<Vec<String>> {
    let folder = format!("/proc/{process}/task");
    let mut lists = Vec::new();
    for thread in fs::read_dir(&folder).with_context(|| format!("cannot read `{folder}`"))? {
        // A thread may have ended since the listing.
        let status = fs::read_to_string(thread?.path().join("status")).unwrap_or_default();
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        lists.extend(list.map(|list| list.trim().to_owned()));
    }
    Ok(lists)
}
