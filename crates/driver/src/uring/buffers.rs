//! Memory that the kernel receives into: one pool for all streams of a driver, so that a stream
//! that is idle has none.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::BufRingEntry;

use super::ring::Ring;

/// Buffers in the pool; if all are in use, data stays in its socket until some are free.
pub(super) const BUFFERS: u16 = 1_024;
/// Octets that one buffer holds: more than most messages, records and frames have.
pub(super) const BUFFER_OCTETS: usize = 2_048;
/// Distance of buffers. Not a power of two, so that their first lines are spread over the CPU's
/// cache.
const STRIDE: usize = BUFFER_OCTETS + 64;
/// The number under which the kernel knows the pool.
pub(super) const GROUP: u16 = 0;

/// The pool: a ring of entries, each naming a free buffer, and the buffers.
pub(super) struct Buffers {
    entries: Mapping,
    memory: Mapping,
    tail: u16,
}

impl Buffers {
    pub(super) fn register(ring: &Ring) -> io::Result<Self> {
        let entries = Mapping::new(usize::from(BUFFERS) * size_of::<BufRingEntry>())?;
        let memory = Mapping::new(usize::from(BUFFERS) * STRIDE)?;
        let address = entries.start.as_ptr() as u64;
        let submitter = ring.inner().submitter();
        // SAFETY: the memory is mapped, page-aligned, as long as BUFFERS entries need, and
        // unregistered before it is unmapped.
        unsafe { submitter.register_buf_ring_with_flags(address, BUFFERS, GROUP, 0)? };
        let mut buffers = Buffers {
            entries,
            memory,
            tail: 0,
        };
        (0..BUFFERS).for_each(|buffer| buffers.give_back(buffer));
        Ok(buffers)
    }

    /// Ends what the kernel may do with the memory.
    pub(super) fn unregister(&self, ring: &Ring) -> io::Result<()> {
        ring.inner().submitter().unregister_buf_ring(GROUP)
    }

    /// What the kernel has put into a buffer.
    #[inline]
    pub(super) fn octets(&self, buffer: u16, count: usize) -> &[u8] {
        assert!(buffer < BUFFERS && count <= BUFFER_OCTETS);
        // SAFETY: within the mapping, by the assertion; the kernel does not write to a buffer
        // between its completion and `give_back`, which needs `&mut self`.
        unsafe {
            let start = self.memory.start.as_ptr().add(usize::from(buffer) * STRIDE);
            std::slice::from_raw_parts(start, count)
        }
    }

    /// Lets the kernel use a buffer again.
    #[inline]
    pub(super) fn give_back(&mut self, buffer: u16) {
        assert!(buffer < BUFFERS);
        let ring = self.entries.start.as_ptr().cast::<BufRingEntry>();
        let place = usize::from(self.tail % BUFFERS);
        // SAFETY: `place` is one of the BUFFERS entries; the kernel does not look at it before the
        // tail says so. The tail lies in the first entry, where no field of ours is.
        unsafe {
            let address = self.memory.start.as_ptr().add(usize::from(buffer) * STRIDE);
            let entry = &mut *ring.add(place);
            entry.set_addr(address as u64);
            entry.set_len(BUFFER_OCTETS as u32);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(ring).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}

/// Anonymous memory of its own pages.
struct Mapping {
    start: NonNull<u8>,
    octets: usize,
}

impl Mapping {
    fn new(octets: usize) -> io::Result<Self> {
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), octets, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("a mapping is not at address zero");
        Ok(Mapping { start, octets })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no reference to it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.octets) };
    }
}
