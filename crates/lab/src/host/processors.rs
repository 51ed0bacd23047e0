//! CPUs: which ones this process may use and how much of them, their governors and siblings.

use std::collections::BTreeMap;

use super::Host;

/// Folders above a control group that are looked into; deeper ones do not occur.
const GROUPS_MAX: usize = 32;

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
        let folders = self.groups();
        let of_v2 = folders.iter().filter_map(|folder| {
            let text = self.text(&format!("{folder}/cpu.max"))?;
            let (quota, period) = text.split_once(' ')?;
            Some((quota.parse().ok()?, period.parse().ok()?))
        });
        let of_v1 = folders.iter().filter_map(|folder| {
            let quota = self.text(&format!("{folder}/cpu.cfs_quota_us"))?;
            let period = self.text(&format!("{folder}/cpu.cfs_period_us"))?;
            Some((quota.parse().ok()?, period.parse().ok()?))
        });
        let quotas = of_v2.chain(of_v1);
        let quotas = quotas.filter(|(quota, period): &(f64, f64)| *quota > 0.0 && *period > 0.0);
        quotas
            .map(|(quota, period)| quota / period)
            .reduce(f64::min)
    }

    /// How often the control group, or one above it, was not allowed to run, and how long.
    pub(super) fn throttled(&self) -> Vec<(&'static str, u64)> {
        let mut most: Vec<(&'static str, u64)> = Vec::new();
        for folder in self.groups() {
            let text = self.text(&format!("{folder}/cpu.stat")).unwrap_or_default();
            let found = parse_throttled(&text);
            // The tightest of the groups is the one that stops the process.
            if most.first().map(|it| it.1) < found.first().map(|it| it.1) {
                most = found;
            }
        }
        most
    }

    /// Folders of the control group for CPU time and of those above it, of version 2 and 1.
    fn groups(&self) -> Vec<String> {
        let text = self.text("proc/self/cgroup").unwrap_or_default();
        let mut folders = Vec::new();
        for line in text.lines() {
            let mut fields = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let mount = match controllers {
                "" => "sys/fs/cgroup",
                names if names.split(',').any(|name| name == "cpu") => "sys/fs/cgroup/cpu",
                _ => continue,
            };
            let mut path = path.trim_end_matches('/');
            for _ in 0..GROUPS_MAX {
                folders.push(format!("{mount}{path}"));
                match path.rsplit_once('/') {
                    Some((above, _)) => path = above,
                    None => break,
                }
            }
        }
        folders
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

/// cpu.stat of a control group: periods throttled, and for how long (version 1 has nanoseconds).
pub(super) fn parse_throttled(text: &str) -> Vec<(&'static str, u64)> {
    let value = |name: &str| -> Option<u64> {
        let mut rows = text.lines().filter_map(|row| row.split_once(' '));
        rows.find(|(known, _)| *known == name)?
            .1
            .trim()
            .parse()
            .ok()
    };
    let time = value("throttled_usec").or_else(|| Some(value("throttled_time")? / 1_000));
    let both = [
        ("Cgroup.Throttled", value("nr_throttled")),
        ("Cgroup.ThrottledMicroseconds", time),
    ];
    both.into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}
