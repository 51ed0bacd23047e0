//! The control group of a process: CPU time, throttling by a quota, memory; of version 2 and 1.

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::{Root, row};
use crate::reading::RawSample;

/// Folders above a control group that are looked into; deeper ones do not occur.
const GROUPS_MAX: usize = 32;

/// Version 1 says that there is no limit by a number that no host has.
const NO_LIMIT_OCTETS: f64 = 1e18;

/// Folders of a control group and of those above it, the innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Those that account for CPU time.
    cpu: Vec<String>,
    /// Those that account for memory.
    memory: Vec<String>,
}

impl Group {
    /// That of a process.
    pub fn of(root: &Root, pid: u32) -> Option<Group> {
        let text = root.text(&format!("proc/{pid}/cgroup"))?;
        Some(Group::parse(&text))
    }

    /// That of this process.
    pub fn own(root: &Root) -> Option<Group> {
        Some(Group::parse(&root.text("proc/self/cgroup")?))
    }

    /// That of a path below the mounted hierarchy.
    pub(crate) fn at(path: &str) -> Group {
        let path = path
            .trim_start_matches("/sys/fs/cgroup")
            .trim_end_matches('/');
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        Group::parse(&format!(
            "0::{path}\n1:cpu,cpuacct:{path}\n2:memory:{path}\n"
        ))
    }

    pub(super) fn parse(text: &str) -> Group {
        let mut group = Group::default();
        for line in text.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
                continue;
            };
            let has = |wanted: &str| controllers.split(',').any(|name| name == wanted);
            if controllers.is_empty() {
                group.cpu.extend(upwards("sys/fs/cgroup", path));
                group.memory.extend(upwards("sys/fs/cgroup", path));
            }
            if has("cpu") {
                group.cpu.extend(upwards("sys/fs/cgroup/cpu", path));
            }
            if has("cpuacct") && !has("cpu") {
                group.cpu.extend(upwards("sys/fs/cgroup/cpuacct", path));
            }
            if has("memory") {
                group.memory.extend(upwards("sys/fs/cgroup/memory", path));
            }
        }
        group
    }

    /// CPUs' worth of time that it may use, or one above it; none without a quota.
    pub fn quota_cpus(&self, root: &Root) -> Option<f64> {
        let quotas = self.cpu.iter().filter_map(|it| quota_of_folder(root, it));
        quotas.reduce(f64::min)
    }

    /// Inode of the innermost group that has a quota, which all groups below share; none without a
    /// quota, and if the hierarchy is not mounted. It is unique on this machine.
    pub fn quota_inode(&self, root: &Root) -> Option<u64> {
        let has_quota = |folder: &&String| quota_of_folder(root, folder).is_some();
        let folder = self.cpu.iter().find(has_quota)?;
        Some(fs::metadata(root.path(folder)).ok()?.ino())
    }

    /// Octets of memory that it may have, or one above it; none without a limit.
    fn memory_limit(&self, root: &Root) -> Option<f64> {
        let of_folder = |folder: &String| {
            let files = ["memory.max", "memory.limit_in_bytes"].into_iter();
            let mut limits = files.filter_map(|file| root.number(&format!("{folder}/{file}")));
            limits.next().filter(|octets| *octets < NO_LIMIT_OCTETS)
        };
        self.memory.iter().filter_map(of_folder).reduce(f64::min)
    }

    /// What it counted, of the innermost group that tells; throttling of the group above it that
    /// was throttled most, for that is the one that stops the process.
    pub(crate) fn samples(&self, root: &Root) -> Vec<RawSample> {
        let mut samples = Vec::new();
        let mut say = |name: &str, value: Option<f64>| {
            samples.extend(value.map(|value| RawSample::plain(name, value)));
        };
        let innermost = |folders: &[String], files: &[(&str, Option<&str>, f64)]| {
            folders.iter().find_map(|folder| {
                files.iter().find_map(|(file, wanted, scale)| {
                    let text = root.text(&format!("{folder}/{file}"))?;
                    let value = match wanted {
                        Some(wanted) => row(&text, wanted)?,
                        None => text.trim().parse().ok()?,
                    };
                    Some(value * scale)
                })
            })
        };
        let usage = [
            ("cpu.stat", Some("usage_usec"), 1e-6),
            ("cpuacct.usage", None, 1e-9),
        ];
        say("group.cpu", innermost(&self.cpu, &usage));
        let user = [
            ("cpu.stat", Some("user_usec"), 1e-6),
            ("cpuacct.usage_user", None, 1e-9),
        ];
        say("group.cpu_user", innermost(&self.cpu, &user));
        let system = [
            ("cpu.stat", Some("system_usec"), 1e-6),
            ("cpuacct.usage_sys", None, 1e-9),
        ];
        say("group.cpu_system", innermost(&self.cpu, &system));
        let memory = [
            ("memory.current", None, 1.0),
            ("memory.usage_in_bytes", None, 1.0),
        ];
        say("group.memory", innermost(&self.memory, &memory));
        say("group.memory_limit", self.memory_limit(root));
        let killed = [
            ("memory.events", Some("oom_kill"), 1.0),
            ("memory.oom_control", Some("oom_kill"), 1.0),
        ];
        let not_the_host = |it: &&String| !is_whole_host(root, it);
        let memory: Vec<String> = self.memory.iter().filter(not_the_host).cloned().collect();
        say("group.killed", innermost(&memory, &killed));
        let throttled = self.throttled(root);
        say("group.periods", throttled.and_then(|it| it.periods));
        say("group.throttled_periods", throttled.map(|it| it.throttled));
        say("group.throttled_time", throttled.map(|it| it.seconds));
        samples
    }

    /// How often and how long the group was not allowed to run, or the one above it that was so
    /// most often: that one stops the process.
    pub fn throttled(&self, root: &Root) -> Option<Throttled> {
        let of_folder = |folder: &String| {
            let text = root.text(&format!("{folder}/cpu.stat"))?;
            Throttled::parse(&text)
        };
        let all = self.cpu.iter().filter_map(of_folder);
        // Of equals the innermost.
        all.reduce(|most, above| {
            if above.throttled > most.throttled {
                above
            } else {
                most
            }
        })
    }
}

/// What cpu.stat says of a quota.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throttled {
    /// Periods of the quota; none where they are not told.
    pub periods: Option<f64>,
    /// Periods in which it had used up the quota.
    pub throttled: f64,
    /// Time for which it was not allowed to run, in seconds.
    pub seconds: f64,
}

impl Throttled {
    pub(super) fn parse(text: &str) -> Option<Throttled> {
        // Version 2 has microseconds, version 1 nanoseconds under another name.
        let seconds = row(text, "throttled_usec").map(|it| it * 1e-6);
        let seconds = seconds.or_else(|| row(text, "throttled_time").map(|it| it * 1e-9));
        Some(Throttled {
            periods: row(text, "nr_periods"),
            throttled: row(text, "nr_throttled")?,
            seconds: seconds?,
        })
    }
}

/// True for the root of version 1, whose kills are those of any process without a group of its own.
/// That of version 2 counts none.
fn is_whole_host(root: &Root, folder: &str) -> bool {
    root.path(&format!("{folder}/release_agent")).exists()
}

/// CPUs' worth of time that the quota of a group's folder allows; none without one.
fn quota_of_folder(root: &Root, folder: &str) -> Option<f64> {
    let (quota, period): (f64, f64) = match root.text(&format!("{folder}/cpu.max")) {
        Some(text) => {
            let (quota, period) = text.trim().split_once(' ')?;
            (quota.parse().ok()?, period.parse().ok()?)
        }
        None => (
            root.number(&format!("{folder}/cpu.cfs_quota_us"))?,
            root.number(&format!("{folder}/cpu.cfs_period_us"))?,
        ),
    };
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

/// The folder of a group and those above it.
fn upwards(mount: &str, path: &str) -> Vec<String> {
    let mut folders = Vec::new();
    let mut path = path.trim_end_matches('/');
    for _ in 0..GROUPS_MAX {
        folders.push(format!("{mount}{path}"));
        match path.rsplit_once('/') {
            Some((above, _)) => path = above,
            None => break,
        }
    }
    folders
}
