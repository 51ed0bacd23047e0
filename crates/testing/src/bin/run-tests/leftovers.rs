//! What a test has left: processes with its folder for temporary files, and files in that folder.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::limits;

/// Looks at a process without an environment: some have none.
const LOOKS_MAX: u32 = 1_000;

/// Ends what is left and removes the folder; a line for each thing that should not be there.
pub(crate) fn remove(folder: &Path) -> Vec<String> {
    let deadline = Instant::now() + limits::of_leftovers();
    let mut left = processes_of(folder);
    while !left.is_empty() && Instant::now() < deadline {
        for (pid, _) in &left {
            wait_for_end(*pid, deadline);
        }
        left = processes_of(folder);
    }
    for (pid, _) in &left {
        let _ = kill_process(*pid, Signal::KILL);
        wait_for_end(*pid, Instant::now() + limits::of_leftovers());
    }
    let processes = left
        .into_iter()
        .map(|(pid, line)| format!("still runs: {} {line}", pid.as_raw_nonzero()));
    let mut found: Vec<String> = processes.collect();
    let entries = fs::read_dir(folder).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    // Browsers and the like have their own habits.
    let ours = names.filter(|name| name.starts_with("throng-"));
    found.extend(ours.map(|name| format!("in the folder for temporary files: {name}")));
    let _ = fs::remove_dir_all(folder);
    found
}

/// Waits until a process has ended or `deadline` has come.
pub(crate) fn wait_for_end(pid: Pid, deadline: Instant) -> bool {
    // One that cannot be opened is gone.
    let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
        return true;
    };
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap();
        let mut handles = [PollFd::new(&handle, PollFlags::IN)];
        match poll(&mut handles, Some(&timeout)) {
            Ok(0) => return false,
            Ok(_) => return true,
            Err(_) if left.is_zero() => return false,
            Err(_) => {}
        }
    }
}

/// Processes whose folder for temporary files is the one given or in it, with command lines.
fn processes_of(folder: &Path) -> Vec<(Pid, String)> {
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let found = pids.filter_map(|pid: i32| {
        let environment = environment(pid)?;
        let mut variables = environment.split(|octet| *octet == 0);
        let value = variables.find_map(|it| it.strip_prefix(b"TMPDIR="))?;
        let is_ours = Path::new(std::ffi::OsStr::from_bytes(value)).starts_with(folder);
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        // A process that has ended and waits for its parent has no command line.
        let runs = is_ours && !line.is_empty();
        runs.then(|| Some((Pid::from_raw(pid)?, line.chars().take(120).collect())))?
    });
    found.collect()
}

/// The environment of a process. While it executes another program, the kernel shows none.
fn environment(pid: i32) -> Option<Vec<u8>> {
    for _ in 0..LOOKS_MAX {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        // What has ended, and a thread of the kernel, has no program.
        let has_program = fs::read_link(format!("/proc/{pid}/exe")).is_ok();
        if !environment.is_empty() || !has_program {
            return Some(environment);
        }
        std::thread::yield_now();
    }
    None
}
