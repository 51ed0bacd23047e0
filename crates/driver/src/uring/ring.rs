//! The two queues shared with the kernel, and why they may be unavailable.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use io_uring::types::Timespec;
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};

/// Most requests submitted by one call.
const SUBMISSIONS_MAX: u32 = 512;
/// Capacity for results between two reads. The kernel keeps and counts the overflow.
const COMPLETIONS_MAX: u32 = 8_192;

/// Sizes of the table of registered files, of which the largest is taken that the limit on open
/// files allows. Streams beyond it are sent on through their descriptors.
const FILES_MAX: [u32; 3] = [32_768, 4_096, 1_024];

/// Attempts to submit requests before giving up.
const SUBMIT_TRIES_MAX: u32 = 10_000;

/// Why io_uring cannot be used here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable(String);

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

impl Unavailable {
    /// As the system's error text, if there is one.
    pub(super) fn of(error: &io::Error) -> Self {
        let switch = "/proc/sys/kernel/io_uring_disabled";
        let disabled = std::fs::read_to_string(switch).unwrap_or_default();
        Unavailable::by(error, disabled.trim())
    }

    /// As [`Unavailable::of`], where kernel.io_uring_disabled is `disabled`.
    fn by(error: &io::Error, disabled: &str) -> Self {
        Unavailable(match (error.raw_os_error(), disabled) {
            (Some(libc::EPERM), "1" | "2") => {
                format!("io_uring is not permitted here (kernel.io_uring_disabled = {disabled})")
            }
            (Some(libc::EPERM | libc::EACCES), _) => {
                "io_uring is not permitted here (by seccomp, as in many containers)".into()
            }
            (Some(libc::ENOSYS), _) => "this kernel has no io_uring".into(),
            (Some(libc::EINVAL), _) => {
                "this kernel's io_uring lacks what is needed (Linux 6.1 has it)".into()
            }
            (Some(libc::ENOMEM), _) => {
                "io_uring may lock too little memory (ulimit -l), or there is none".into()
            }
            _ => format!("io_uring cannot be used: {error}"),
        })
    }
}

/// Submission queue and completion queue.
pub(super) struct Ring {
    ring: IoUring,
    /// Results taken out of the queue to make room in it.
    backlog: VecDeque<cqueue::Entry>,
    /// The ring among the registered ones of this thread, so that no call looks it up by its
    /// descriptor.
    registered: Option<u32>,
    /// Places for registered files.
    pub(super) files: u32,
    /// Calls of io_uring_enter so far.
    pub(super) calls: u64,
}

impl Ring {
    /// For the calling thread alone: results are prepared when it asks for them, not in between.
    pub(super) fn new() -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_cqsize(COMPLETIONS_MAX)
            .build(SUBMISSIONS_MAX)?;
        let params = ring.params();
        let has_features = params.is_feature_nodrop()
            && params.is_feature_ext_arg()
            && params.is_feature_fast_poll()
            && params.is_feature_submit_stable()
            && params.is_feature_skip_cqe_on_success();
        if !has_features {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let mut ring = Ring {
            ring,
            backlog: VecDeque::new(),
            registered: None,
            files: 0,
            calls: 0,
        };
        ring.try_out()?;
        ring.registered = registered_ring(ring.ring.as_raw_fd());
        ring.files = ring.make_room_for_files();
        Ok(ring)
    }

    /// Makes an empty table of registered files; returns its size, 0 if there is to be none.
    ///
    /// Before Linux 6.13 a file that is taken out stays open until all requests on other registered
    /// files are over that were made before it: its stream would not end in time. The kernel
    /// reports no such feature; the closest one that it reports came with 6.15.
    fn make_room_for_files(&self) -> u32 {
        if !self.ring.params().is_feature_no_iowait() {
            return 0;
        }
        let submitter = self.ring.submitter();
        let made = |files: &u32| submitter.register_files_sparse(*files).is_ok();
        FILES_MAX.into_iter().find(made).unwrap_or(0)
    }

    /// Sandboxes may allow creating a ring but not using it.
    fn try_out(&mut self) -> io::Result<()> {
        // SAFETY: a request that does nothing refers to no memory.
        unsafe { self.push(&opcode::Nop::new().build()) };
        self.enter(1, Some(Duration::from_secs(1)))?;
        match self.pop() {
            Some(_) => Ok(()),
            None => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        }
    }

    pub(super) fn inner(&self) -> &IoUring {
        &self.ring
    }

    /// Queues a request; the queue is handed over first if it is full.
    ///
    /// # Safety
    /// What the request points to stays valid until its last completion, or until it is submitted
    /// where the kernel copies it then.
    pub(super) unsafe fn push(&mut self, request: &squeue::Entry) {
        loop {
            // SAFETY: passed on to the caller.
            if unsafe { self.ring.submission().push(request) }.is_ok() {
                return;
            }
            self.submit();
        }
    }

    /// Requests that are queued and not handed over.
    pub(super) fn queued(&mut self) -> usize {
        self.ring.submission().len()
    }

    /// Submits all queued requests.
    ///
    /// # Panics
    /// If the kernel accepts nothing any more because it is out of memory.
    pub(super) fn submit(&mut self) {
        for _ in 0..SUBMIT_TRIES_MAX {
            if self.queued() == 0 {
                return;
            }
            if self.enter(0, None).is_err() {
                // Refused for lack of room for results, or of memory, which results hold.
                self.backlog.extend(self.ring.completion());
            }
        }
        panic!("the kernel takes no more requests from io_uring");
    }

    /// Submits queued requests and waits for a result, at most for `timeout`; without one, only
    /// collects results that are due.
    ///
    /// # Errors
    /// The kernel's refusal; to be retried.
    pub(super) fn enter(&mut self, want: u32, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.unwrap_or_default();
        let time = Timespec::new()
            .sec(timeout.as_secs().min(3_600))
            .nsec(timeout.subsec_nanos());
        let arguments = WaitArguments {
            time: &raw const time as u64,
            ..WaitArguments::default()
        };
        let queued = self.queued() as u32;
        self.calls += 1;
        let (ring, flags) = match self.registered {
            Some(index) => (index as RawFd, EnterFlags::REGISTERED_RING),
            None => (self.ring.as_raw_fd(), EnterFlags::empty()),
        };
        let flags = flags | EnterFlags::EXT_ARG | EnterFlags::GETEVENTS;
        // SAFETY: `arguments` and `time` live until the call returns.
        let result = unsafe {
            let (start, octets) = (&raw const arguments, size_of::<WaitArguments>());
            let number = libc::SYS_io_uring_enter;
            libc::syscall(number, ring, queued, want, flags.bits(), start, octets)
        };
        let result = match result {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        };
        match result {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Ok(()),
            other => other,
        }
    }

    /// The next result.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<cqueue::Entry> {
        match self.backlog.pop_front() {
            None => self.ring.completion().next(),
            first => first,
        }
    }

    /// True if results wait that did not fit into the queue.
    pub(super) fn has_overflowed(&mut self) -> bool {
        self.ring.submission().cq_overflow()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let Some(index) = self.registered else { return };
        // What a thread has registered is its own; the place is free for its next ring. Fails only
        // if the ring is not registered.
        let _ = register(self.ring.as_raw_fd(), UNREGISTER_RINGS, index, 0);
    }
}

/// Registers a ring for the calling thread; returns its place there, unless all 16 are taken.
fn registered_ring(ring: RawFd) -> Option<u32> {
    register(ring, REGISTER_RINGS, u32::MAX, ring as u64).ok()
}

/// Numbers of operations (linux/io_uring.h).
const REGISTER_RINGS: libc::c_int = 20;
const UNREGISTER_RINGS: libc::c_int = 21;

/// `struct io_uring_rsrc_update` (linux/io_uring.h).
#[repr(C)]
struct ResourceUpdate {
    offset: u32,
    reserved: u32,
    data: u64,
}

/// `struct io_uring_getevents_arg` (linux/io_uring.h).
#[repr(C)]
#[derive(Default)]
struct WaitArguments {
    signals: u64,
    signals_octets: u32,
    wait_min_us: u32,
    time: u64,
}

/// Registers or unregisters a ring with the calling thread; returns the place it has or had.
fn register(ring: RawFd, operation: libc::c_int, offset: u32, data: u64) -> io::Result<u32> {
    let mut update = ResourceUpdate {
        offset,
        reserved: 0,
        data,
    };
    // SAFETY: `update` is one entry of the array that the operation takes.
    let result = unsafe {
        let (number, entry) = (libc::SYS_io_uring_register, &raw mut update);
        libc::syscall(number, ring, operation, entry, 1)
    };
    match result {
        1 => Ok(update.offset),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_administrator_has_switched_off_is_told_from_what_a_filter_forbids() {
        let refused = io::Error::from_raw_os_error(libc::EPERM);
        let words = |disabled| Unavailable::by(&refused, disabled).to_string();
        assert!(words("2").contains("kernel.io_uring_disabled = 2"));
        assert!(words("1").contains("kernel.io_uring_disabled = 1"));
        assert!(words("0").contains("seccomp") && words("").contains("seccomp"));
    }

    #[test]
    fn a_thread_has_more_rings_than_it_may_register_and_gets_their_places_back() {
        if let Err(why) = Ring::new() {
            eprintln!("not tried: {why}");
            return;
        }
        let rings: Vec<Ring> = (0..20).map(|_| Ring::new().unwrap()).collect();
        let registered = |rings: &[Ring]| rings.iter().filter(|it| it.registered.is_some()).count();
        // The kernel allows a thread 16.
        assert_eq!(registered(&rings), 16);
        drop(rings);
        let mut rings: Vec<Ring> = (0..16).map(|_| Ring::new().unwrap()).collect();
        assert_eq!(registered(&rings), 16);
        for ring in &mut rings {
            ring.try_out().unwrap();
        }
    }
}
