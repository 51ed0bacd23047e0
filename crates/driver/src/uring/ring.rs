//! The two queues shared with the kernel, and whether it lets us have them.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::time::Duration;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};

/// Requests handed over by one call at most.
const SUBMISSIONS_MAX: u32 = 512;
/// Results that the kernel may leave for us between two looks. What does not fit it keeps apart,
/// and counts.
const COMPLETIONS_MAX: u32 = 8_192;

/// How often requests are offered before the kernel is given up.
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
    /// In the words of the system where it has any.
    pub(super) fn of(error: &io::Error) -> Self {
        let switch = "/proc/sys/kernel/io_uring_disabled";
        let disabled = std::fs::read_to_string(switch).unwrap_or_default();
        let disabled = disabled.trim();
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
            calls: 0,
        };
        ring.try_out()?;
        Ok(ring)
    }

    /// Sandboxes may allow a ring to be made and not to be used.
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

    /// Hands over what is queued, all of it.
    ///
    /// # Panics
    /// If the kernel takes nothing any more: there is no memory left at all.
    pub(super) fn submit(&mut self) {
        for _ in 0..SUBMIT_TRIES_MAX {
            if self.queued() == 0 {
                return;
            }
            if self.enter(0, None).is_err() {
                // Refused for want of room for results, or of memory, which results hold.
                self.backlog.extend(self.ring.completion());
            }
        }
        panic!("the kernel takes no more requests from io_uring");
    }

    /// Hands over what is queued and waits for a result, at most for `timeout`; with none, only
    /// has results prepared that are due.
    ///
    /// # Errors
    /// What the kernel refused to do; to be tried again.
    pub(super) fn enter(&mut self, want: u32, timeout: Option<Duration>) -> io::Result<()> {
        let timeout = timeout.unwrap_or_default();
        let time = Timespec::new()
            .sec(timeout.as_secs().min(3_600))
            .nsec(timeout.subsec_nanos());
        let arguments = SubmitArgs::new().timespec(&time);
        let flags = EnterFlags::EXT_ARG | EnterFlags::GETEVENTS;
        let queued = self.queued() as u32;
        self.calls += 1;
        // SAFETY: `arguments` and `time` live until the call returns.
        let result = unsafe {
            let submitter = self.ring.submitter();
            submitter.enter(queued, want, flags.bits(), Some(&arguments))
        };
        match result {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR)) => Ok(()),
            other => other.map(drop),
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
