//! Limits of a server on this host: CPUs, a quota of CPU time, memory.
//!
//! CPUs are set by affinity, which needs no rights. A quota and a limit of memory need a control
//! group, of version 1 or 2; both may be there at once.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::files;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};

/// Where control groups are mounted.
const MOUNTED: &str = "/sys/fs/cgroup";

/// Period of quotas.
const PERIOD_US: u32 = 100_000;

/// Smallest quota, in CPUs: the kernel accepts no less than 1 ms a period.
const QUOTA_MIN: f64 = 0.01;
const QUOTA_MAX: f64 = 4_096.0;

/// How long a group may take to lose its last process, and how often it is checked.
const END_MAX: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Limits of a server; none means no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    /// CPUs to run on, as the kernel lists them: `0-1,3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// CPU time that it may use in every 100 ms, in CPUs (CFS quota). Unlike a set of CPUs, it
    /// stops all threads at once when it is used up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_cpus: Option<f64>,
    /// Memory, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl Resources {
    /// One CPU alone.
    pub fn cpu(number: usize) -> Resources {
        Resources {
            cpus: Some(number.to_string()),
            ..Resources::default()
        }
    }

    /// Their names: `cpus`, `quota` and `memory`.
    pub const NAMES: [&str; 3] = ["cpus", "quota", "memory"];

    /// Sets one of them: CPUs as in `0-1,3`, a quota as in `0.5`, memory as in `256M`.
    ///
    /// # Errors
    /// There is none of that name, or the value is invalid.
    pub fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        match name {
            "cpus" => self.cpus = Some(cpus(value)?),
            "quota" => self.quota_cpus = Some(quota(value)?),
            "memory" => self.memory_bytes = Some(bytes(value)?),
            _ => {
                let known = Resources::NAMES.join(", ");
                anyhow::bail!("`{name}` is not a resource\nhint: resources are {known}")
            }
        }
        Ok(())
    }

    /// As requests and limits of a container.
    pub(super) fn limits_in_kubernetes(&self) -> serde_json::Map<String, serde_json::Value> {
        let cpu = self
            .quota_cpus
            .map(|it| ("cpu", format!("{}m", (it * 1e3).round())));
        let memory = self.memory_bytes.map(|it| ("memory", it.to_string()));
        let all = cpu.into_iter().chain(memory);
        all.map(|(name, value)| (name.to_owned(), value.into()))
            .collect()
    }

    /// The command-line prefix that limits a program to these resources.
    pub(super) fn words(&self, group: Option<&ControlGroup>) -> Vec<String> {
        let mut words = Vec::new();
        if let Some(group) = group {
            // The shell joins before it executes the program, so that the program never runs
            // without limits.
            let join = "while [ \"$1\" != -- ]; do echo $$ >\"$1\" || exit 1; shift; done; \
                        shift; exec \"$@\"";
            words.extend(["sh", "-c", join, "sh"].map(str::to_owned));
            let folders = group.folders.iter();
            let files = folders.map(|it| it.join("cgroup.procs").display().to_string());
            words.extend(files.chain(["--".to_owned()]));
        }
        if let Some(cpus) = &self.cpus {
            words.extend(["taskset", "--cpu-list", cpus].map(str::to_owned));
        }
        words
    }
}

/// The kernel's form, without its strides.
fn cpus(text: &str) -> anyhow::Result<String> {
    let number = |it: &str| it.parse::<u16>().ok();
    let is_part = |part: &str| match part.split_once('-') {
        None => number(part).is_some(),
        Some((from, to)) => number(from).zip(number(to)).is_some_and(|(a, b)| a <= b),
    };
    anyhow::ensure!(
        text.split(',').all(is_part),
        "cpus: `{text}` is not a list of CPUs\nhint: write numbers and ranges, as in 0-1,3"
    );
    Ok(text.to_owned())
}

fn quota(text: &str) -> anyhow::Result<f64> {
    let cpus = text.parse().ok();
    let cpus = cpus.filter(|cpus| (QUOTA_MIN..=QUOTA_MAX).contains(cpus));
    cpus.with_context(|| {
        format!("quota: `{text}` CPUs\nhint: give {QUOTA_MIN} to {QUOTA_MAX}, as in 0.5")
    })
}

fn bytes(text: &str) -> anyhow::Result<u64> {
    let units = [("K", 10), ("M", 20), ("G", 30), ("", 0)];
    let read = |(unit, bits): (&str, u32)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(1 << bits).filter(|bytes| *bytes > 0)
    };
    let bytes = units.into_iter().find_map(read);
    bytes.with_context(|| format!("memory: `{text}`\nhint: write bytes, as in 256M or 2G"))
}

/// A control group with the limits of one server, removed on drop with what is in it.
#[derive(Debug)]
pub(super) struct ControlGroup {
    folders: Vec<PathBuf>,
}

/// The kernel's memory counters of a control group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupMemory {
    /// Processes of the group that the kernel killed for lack of memory, in the group or on the
    /// host.
    killed: u64,
    /// Allocations that failed (version 2) or waited (version 1) because of the group's limit.
    at_limit: u64,
    limit_bytes: u64,
}

impl GroupMemory {
    /// Reads `memory.events` and `memory.max` of version 2.
    fn parse_v2(events: &str, limit: &str) -> Option<GroupMemory> {
        GroupMemory::parse(events, field(events, "oom")?, limit)
    }

    /// Reads `memory.oom_control`, `memory.failcnt` and `memory.limit_in_bytes` of version 1.
    /// None before Linux 4.13, which does not count kills.
    fn parse_v1(control: &str, failures: &str, limit: &str) -> Option<GroupMemory> {
        GroupMemory::parse(control, failures.trim().parse().ok()?, limit)
    }

    fn parse(counts: &str, at_limit: u64, limit: &str) -> Option<GroupMemory> {
        Some(GroupMemory {
            killed: field(counts, "oom_kill")?,
            at_limit,
            // `max` is no limit.
            limit_bytes: limit.trim().parse().ok()?,
        })
    }

    /// Why the kernel killed a process of the group since `earlier`; none if it killed none.
    pub(super) fn kill_cause(self, earlier: GroupMemory) -> Option<String> {
        if self.killed <= earlier.killed {
            return None;
        }
        if self.at_limit <= earlier.at_limit {
            let cause = "killed by the kernel: out of memory on this host, below its own limit";
            return Some(cause.to_owned());
        }
        let limit = match self.limit_bytes {
            bytes if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
            bytes => format!("{bytes} bytes"),
        };
        Some(format!(
            "killed by the kernel: out of memory (limit {limit})"
        ))
    }
}

/// The number after a name in a file of a control group.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut fields = text.lines().filter_map(|line| line.split_once(' '));
    let (_, number) = fields.find(|(field, _)| *field == name)?;
    number.trim().parse().ok()
}

/// The cure if none can be created.
const HINT: &str = "hint: start as root where control groups can be written, or set CPUs, which \
                    needs no rights";

/// A file of a controller, and its content.
struct Limit {
    controller: &'static str,
    /// With version 1: name and value of each file.
    v1: Vec<(&'static str, String)>,
    /// With version 2.
    v2: Vec<(&'static str, String)>,
}

impl ControlGroup {
    /// Creates one, if a limit needs it.
    ///
    /// # Errors
    /// This user may not create control groups, or the host does not allow it; the message names
    /// the missing controller.
    pub(super) fn new(name: &str, resources: &Resources) -> anyhow::Result<Option<ControlGroup>> {
        ControlGroup::below(Path::new(MOUNTED), name, resources)
    }

    fn below(
        mounted: &Path,
        name: &str,
        resources: &Resources,
    ) -> anyhow::Result<Option<ControlGroup>> {
        let limits = limits(resources);
        let mut group = ControlGroup {
            folders: Vec::new(),
        };
        for limit in &limits {
            group.add(mounted, name, limit).with_context(|| {
                format!("this host gives a server no limit of {}", limit.controller)
            })?;
        }
        Ok((!limits.is_empty()).then_some(group))
    }

    fn add(&mut self, mounted: &Path, name: &str, limit: &Limit) -> anyhow::Result<()> {
        let controller = limit.controller;
        let (parent, files) = match parent_v1(mounted, controller) {
            Some(parent) => (parent, &limit.v1),
            None => (parent_v2(mounted, controller)?, &limit.v2),
        };
        let folder = parent.join(name);
        if !self.folders.contains(&folder) {
            fs::create_dir(&folder)
                .with_context(|| format!("cannot make `{}`\n{HINT}", folder.display()))?;
            self.folders.push(folder.clone());
        }
        for (file, value) in files {
            let path = folder.join(file);
            files::write_setting(&path, value).with_context(|| {
                format!(
                    "cannot write {value} to `{}`\nhint: give less: the groups above it may be \
                     allowed no more",
                    path.display()
                )
            })?;
        }
        Ok(())
    }

    /// The group of a server that was left running.
    pub(super) fn at(folders: Vec<PathBuf>) -> ControlGroup {
        ControlGroup { folders }
    }

    /// Its folders, one for each hierarchy.
    pub(super) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// The kernel's memory counters; none without a limit of memory.
    pub(super) fn memory(&self) -> Option<GroupMemory> {
        memory_of(&self.folders)
    }

    /// Does not remove it on drop.
    pub(super) fn keep(mut self) {
        self.folders.clear();
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for folder in &self.folders {
            let until = Instant::now() + END_MAX;
            // A group becomes empty a moment after its last process has ended.
            while folder.exists() && fs::remove_dir(folder).is_err() && Instant::now() < until {
                for process in processes(folder) {
                    // The process may have ended by itself.
                    let _ = kill_process(process, Signal::KILL);
                }
                thread::park_timeout(LOOK_EVERY);
            }
        }
    }
}

/// The kernel's memory counters of the control group with these folders.
pub(super) fn memory_of(folders: &[PathBuf]) -> Option<GroupMemory> {
    folders.iter().find_map(|folder| {
        let read = |file: &str| fs::read_to_string(folder.join(file)).ok();
        match read("memory.events") {
            Some(events) => GroupMemory::parse_v2(&events, &read("memory.max")?),
            None => GroupMemory::parse_v1(
                &read("memory.oom_control")?,
                &read("memory.failcnt")?,
                &read("memory.limit_in_bytes")?,
            ),
        }
    })
}

fn processes(folder: &Path) -> Vec<Pid> {
    let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let numbers = text.lines().filter_map(|line| line.parse().ok());
    numbers.filter_map(Pid::from_raw).collect()
}

fn limits(resources: &Resources) -> Vec<Limit> {
    let mut limits = Vec::new();
    if let Some(cpus) = resources.quota_cpus {
        let quota_us = (cpus * f64::from(PERIOD_US)).round();
        limits.push(Limit {
            controller: "cpu",
            v1: vec![
                ("cpu.cfs_period_us", PERIOD_US.to_string()),
                ("cpu.cfs_quota_us", quota_us.to_string()),
            ],
            v2: vec![("cpu.max", format!("{quota_us} {PERIOD_US}"))],
        });
    }
    if let Some(bytes) = resources.memory_bytes {
        limits.push(Limit {
            controller: "memory",
            v1: vec![("memory.limit_in_bytes", bytes.to_string())],
            v2: vec![("memory.max", bytes.to_string())],
        });
    }
    limits
}

/// Our own group of version 1, whose limits apply to the server too.
fn parent_v1(mounted: &Path, controller: &str) -> Option<PathBuf> {
    let hierarchy = mounted.join(controller);
    let is_group = |folder: &PathBuf| folder.join("cgroup.procs").exists();
    if !is_group(&hierarchy) {
        return None;
    }
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let is_wanted = fields.next()?.split(',').any(|it| it == controller);
        is_wanted.then(|| fields.next()).flatten()
    });
    // In a container this may be the path on the host.
    let own = own.map(|path| hierarchy.join(path.trim_start_matches('/')));
    Some(own.filter(is_group).unwrap_or(hierarchy))
}

/// The root of the mounted groups of version 2: groups below it that contain processes cannot have
/// children with limits.
fn parent_v2(mounted: &Path, controller: &str) -> anyhow::Result<PathBuf> {
    let names = |file: &str| fs::read_to_string(mounted.join(file)).unwrap_or_default();
    let has = |names: &str| names.split_ascii_whitespace().any(|it| it == controller);
    anyhow::ensure!(
        has(&names("cgroup.controllers")),
        "no control groups with a controller of {controller} are mounted at `{}`\n{HINT}",
        mounted.display()
    );
    let file = "cgroup.subtree_control";
    if !has(&names(file)) {
        let path = mounted.join(file);
        files::write_setting(&path, &format!("+{controller}")).with_context(|| {
            format!(
                "cannot write +{controller} to `{}`\nhint: start as root, or in a control group \
                 that is delegated (systemd: Delegate=yes)",
                path.display()
            )
        })?;
    }
    Ok(mounted.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::folder::TempFolder;
    use super::*;

    fn limited() -> Resources {
        Resources {
            cpus: Some("0-1".to_owned()),
            quota_cpus: Some(0.5),
            memory_bytes: Some(1 << 20),
        }
    }

    fn file(folder: &Path, name: &str) -> String {
        fs::read_to_string(folder.join(name)).unwrap()
    }

    #[test]
    fn version_2_has_one_folder_for_all_limits() {
        let root = TempFolder::new("cgroup-test").unwrap();
        root.write("cgroup.controllers", "cpuset cpu memory\n")
            .unwrap();
        root.write("cgroup.subtree_control", "cpu memory\n")
            .unwrap();
        let group = ControlGroup::below(root.path(), "one", &limited());
        let group = group.unwrap().unwrap();
        let folder = root.path().join("one");
        assert_eq!(group.folders(), std::slice::from_ref(&folder));
        assert_eq!(file(&folder, "cpu.max"), "50000 100000");
        assert_eq!(file(&folder, "memory.max"), "1048576");
        group.keep();
    }

    #[test]
    fn version_1_has_a_folder_for_each_controller() {
        let root = TempFolder::new("cgroup-test").unwrap();
        for controller in ["cpu", "memory"] {
            fs::create_dir(root.path().join(controller)).unwrap();
            root.write(&format!("{controller}/cgroup.procs"), "")
                .unwrap();
        }
        let group = ControlGroup::below(root.path(), "one", &limited());
        let group = group.unwrap().unwrap();
        let [cpu, memory] = group.folders() else {
            panic!("{group:?}");
        };
        assert_eq!(file(cpu, "cpu.cfs_period_us"), "100000");
        assert_eq!(file(cpu, "cpu.cfs_quota_us"), "50000");
        assert_eq!(file(memory, "memory.limit_in_bytes"), "1048576");
        let words = limited().words(Some(&group));
        assert!(words.contains(&cpu.join("cgroup.procs").display().to_string()));
        assert_eq!(words[words.len() - 3..], ["taskset", "--cpu-list", "0-1"]);
        group.keep();
    }

    #[test]
    fn kill_for_lack_of_memory_is_read_from_both_versions() {
        let limit = "67108864\n";
        let v2 = |oom: u64, killed: u64| {
            let events = format!("low 0\nhigh 0\nmax 31\noom {oom}\noom_kill {killed}\n");
            GroupMemory::parse_v2(&events, limit).unwrap()
        };
        let v1 = |failures: u64, killed: u64| {
            let control = format!("oom_kill_disable 0\nunder_oom 0\noom_kill {killed}\n");
            GroupMemory::parse_v1(&control, &format!("{failures}\n"), limit).unwrap()
        };
        let none = GroupMemory::default();
        let text = "killed by the kernel: out of memory (limit 64 MiB)";
        for memory in [v2(1, 1), v1(9, 1)] {
            assert_eq!(memory.kill_cause(none).as_deref(), Some(text));
            // The kill of an earlier process is not attributed to this one.
            assert_eq!(memory.kill_cause(memory), None);
        }
        assert_eq!(v2(2, 2).kill_cause(v2(1, 1)).as_deref(), Some(text));
        for (memory, earlier) in [(v2(1, 0), none), (v1(9, 0), none), (v1(9, 1), v1(5, 1))] {
            assert_eq!(memory.kill_cause(earlier), None);
        }
        // The host was out of memory, not the group.
        for (memory, earlier) in [(v2(0, 1), none), (v1(9, 2), v1(9, 1))] {
            let cause = memory.kill_cause(earlier).unwrap();
            assert!(cause.contains("on this host"), "{cause}");
        }
    }

    #[test]
    fn groups_without_limit_or_count_report_no_kill() {
        let events = "oom 1\noom_kill 1\n";
        assert_eq!(GroupMemory::parse_v2(events, "max\n"), None);
        let control = "oom_kill_disable 0\nunder_oom 0\n";
        assert_eq!(GroupMemory::parse_v1(control, "3\n", "4096\n"), None);
        let odd = GroupMemory::parse_v2(events, "4097\n").unwrap();
        let cause = odd.kill_cause(GroupMemory::default()).unwrap();
        assert!(cause.ends_with("(limit 4097 bytes)"), "{cause}");
    }

    #[test]
    fn a_host_without_control_groups_is_an_error_that_names_what_is_missing() {
        let root = TempFolder::new("cgroup-test").unwrap();
        let error = ControlGroup::below(root.path(), "one", &limited()).unwrap_err();
        assert!(
            format!("{error:#}").contains("controller of cpu"),
            "{error:#}"
        );
    }

    #[test]
    fn values_are_read_or_refused_with_the_cure() {
        let mut resources = Resources::default();
        for (name, value) in [("cpus", "0-1"), ("quota", "0.5"), ("memory", "1M")] {
            resources.set(name, value).unwrap();
        }
        assert_eq!(resources, limited());
        for (name, wrong) in [
            ("cpus", ""),
            ("cpus", "a"),
            ("cpus", "1-"),
            ("cpus", "3-1"),
            ("cpus", "0,,1"),
            ("quota", "0"),
            ("quota", "NaN"),
            ("memory", "M"),
            ("memory", "0"),
            ("memory", "1.5G"),
            ("memory", "99999999999G"),
            ("memory", "2T"),
            ("disk", "1"),
        ] {
            let error = resources.set(name, wrong).unwrap_err().to_string();
            assert!(error.contains("\nhint: "), "{name} {wrong}: {error}");
        }
    }

    #[test]
    fn cpus_alone_need_no_group() {
        let resources = Resources::cpu(1);
        let group = ControlGroup::new("no-group", &resources).unwrap();
        assert!(group.is_none());
        assert_eq!(resources.words(None), ["taskset", "--cpu-list", "1"]);
    }
}
