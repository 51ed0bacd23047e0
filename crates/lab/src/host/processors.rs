//! CPUs: which ones this process may use and how much of them, their governors and siblings.

use std::collections::BTreeMap;

use observe::proc::{Group, Root};

use super::Host;

impl Host {
    /// CPUs that this process may use.
    pub(super) fn cpus_allowed(&self) -> Vec<u32> {
        let status = self.text("proc/self/status").unwrap_or_default();
        parse_allowed(&status).unwrap_or_default()
    }

    /// CPUs that are on.
    pub(super) fn cores_online(&self) -> Option<u64> {
        let list = self.text("sys/devices/system/cpu/online")?;
        Some(parse_list(&list)?.len() as u64)
    }

    /// CPUs of `allowed` that share their core with an earlier one.
    pub(super) fn second_threads(&self, allowed: &[u32]) -> Vec<u32> {
        let is_second = |cpu: &&u32| {
            let path = format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
            let siblings = self.text(&path).and_then(|list| parse_list(&list));
            let mut siblings = siblings.unwrap_or_default().into_iter();
            siblings.any(|sibling| sibling < **cpu && allowed.contains(&sibling))
        };
        allowed.iter().filter(is_second).copied().collect()
    }

    /// Frequency governors, and how many of the CPUs have them.
    pub(super) fn governors(&self, allowed: &[u32]) -> BTreeMap<String, u64> {
        let mut governors = BTreeMap::new();
        for cpu in allowed {
            let path = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
            if let Some(governor) = self.text(&path) {
                *governors.entry(governor).or_default() += 1;
            }
        }
        governors
    }

    /// CPUs' worth of time that the control group may use, or one above it; none without a quota.
    pub(super) fn quota_cpus(&self) -> Option<f64> {
        let root = Root::at(&self.root);
        Group::own(&root)?.quota_cpus(&root)
    }

    /// Which control group's quota that is.
    pub(super) fn control_group(&self) -> Option<u64> {
        let root = Root::at(&self.root);
        Group::own(&root)?.quota_inode(&root)
    }

    /// How often the control group, or one above it, was not allowed to run, and how long.
    pub(super) fn throttled(&self) -> Vec<(&'static str, u64)> {
        let root = Root::at(&self.root);
        let throttled = Group::own(&root).and_then(|group| group.throttled(&root));
        let counters = throttled.map(|it| {
            let periods = it.periods.map(|periods| ("Cgroup.Periods", periods as u64));
            let stopped = [
                ("Cgroup.Throttled", it.throttled as u64),
                (
                    "Cgroup.ThrottledMicroseconds",
                    (it.seconds * 1e6).round() as u64,
                ),
            ];
            periods.into_iter().chain(stopped)
        });
        counters.into_iter().flatten().collect()
    }
}

/// CPUs that /proc/PID/status allows.
pub(super) fn parse_allowed(status: &str) -> Option<Vec<u32>> {
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    parse_list(list)
}

/// A list of CPUs such as `0-3,8`; none if it is not one.
pub(super) fn parse_list(list: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // As many CPUs as Linux can have, so that no text can take all memory.
        if last < first || last > 1 << 16 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}
