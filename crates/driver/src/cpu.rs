//! Which CPU a worker runs on.

use std::io;
use std::time::Duration;

/// The CPUs that this process may use, in ascending order.
pub fn allowed() -> Vec<usize> {
    // SAFETY: an all-zero cpu_set_t is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let size = std::mem::size_of_val(&set);
    // SAFETY: `set` is as large as `size` says.
    if unsafe { libc::sched_getaffinity(0, size, &mut set) } != 0 {
        return vec![0];
    }
    // SAFETY: every index is below CPU_SETSIZE.
    (0..libc::CPU_SETSIZE as usize)
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .collect()
}

/// Pins the calling thread to one CPU.
///
/// # Errors
/// The kernel's, if the CPU does not exist or may not be used.
pub fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: an all-zero cpu_set_t is the empty set, and `cpu` is below CPU_SETSIZE.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        set
    };
    // SAFETY: `set` is as large as its size says; 0 means the calling thread.
    match unsafe { libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Run-queue wait of the calling thread: how long it was ready to run but waited for its CPU; zero
/// if the kernel does not report it (second figure of schedstat).
pub fn run_queue_wait() -> Duration {
    waited_in("/proc/thread-self/schedstat")
}

/// As [`run_queue_wait`], of a thread of this process by its number.
pub fn run_queue_wait_of(thread: i32) -> Duration {
    waited_in(&format!("/proc/self/task/{thread}/schedstat"))
}

fn waited_in(path: &str) -> Duration {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let waited_ns = text
        .split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok());
    Duration::from_nanos(waited_ns.unwrap_or(0))
}

/// The kernel's number of the calling thread.
pub fn thread_id() -> i32 {
    // glibc has a function for it from 2.30 only.
    // SAFETY: gettid takes nothing and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

/// Asks for timers as exact as the kernel can make them for the calling thread (by default a
/// waiting thread may be woken 50 us late to save power).
pub fn sharpen_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes one integer; 1 ns is the smallest slack.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1u64, 0u64, 0u64, 0u64) };
}

/// The soft limit of open files of this process, raised to the hard limit if it is lower.
pub fn open_files_max() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a valid place for the result.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 {
        return 1024;
    }
    if limit.rlim_cur < limit.rlim_max {
        let raised = libc::rlimit {
            rlim_cur: limit.rlim_max,
            rlim_max: limit.rlim_max,
        };
        // SAFETY: `raised` is a valid limit; raising the soft limit needs no privilege.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raised) } == 0 {
            return raised.rlim_cur;
        }
    }
    limit.rlim_cur
}
