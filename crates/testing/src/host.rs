//! What this process may do on this host, and how busy the host is.

use std::fs;

/// True if this process runs as root, which network namespaces, AF_XDP and mounts need.
pub fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

/// Like [`is_root`]; reports what is not tested if it is false.
pub fn is_root_for(what: &str) -> bool {
    let is_root = is_root();
    if !is_root {
        eprintln!("not tested: {what} need root");
    }
    is_root
}

/// What the CPUs of this host did, in ticks since it started.
pub struct CpuTimes {
    all: f64,
    idle: f64,
    stolen: f64,
}

impl CpuTimes {
    /// Reads the first row of /proc/stat (proc_stat(5)).
    pub fn now() -> CpuTimes {
        let stat = fs::read_to_string("/proc/stat").unwrap();
        let row = stat.lines().next().unwrap().split_whitespace().skip(1);
        // The rest, time of guests, is in user time too.
        let ticks: Vec<f64> = row.take(8).map(|it| it.parse().unwrap()).collect();
        CpuTimes {
            all: ticks.iter().sum(),
            idle: ticks[3],
            stolen: ticks[7],
        }
    }

    /// Share of the time since `before` in which CPUs had nothing to do.
    pub fn idle_since(&self, before: &CpuTimes) -> f64 {
        (self.idle - before.idle) / self.ticks_since(before)
    }

    /// Share of the time since `before` that the hypervisor took.
    pub fn stolen_since(&self, before: &CpuTimes) -> f64 {
        (self.stolen - before.stolen) / self.ticks_since(before)
    }

    fn ticks_since(&self, before: &CpuTimes) -> f64 {
        (self.all - before.all).max(1.0)
    }
}
