//! What this process may do on this host.

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
