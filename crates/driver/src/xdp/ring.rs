//! Memory shared with the kernel: frames, and the four rings through which they change hands.
//!
//! A frame belongs to one side at a time. The kernel gets empty ones through the fill ring and
//! gives them back with a datagram through the receive ring; it gets datagrams to send through the
//! transmit ring and gives their frames back through the completion ring. Each ring has one
//! producer and one consumer, which publish their progress with one store each.

use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};

use crate::Received;

/// A mapping that is undone with its owner.
struct Mapping {
    start: NonNull<u8>,
    octets: usize,
}

impl Mapping {
    fn new(octets: usize, flags: libc::c_int, (fd, offset): (RawFd, i64)) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at a place that the kernel chooses.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), octets, access, flags, fd, offset) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => {
                Ok(Mapping { start, octets })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The place `offset` octets from the start.
    fn at<T>(&self, offset: u64) -> NonNull<T> {
        let offset = offset as usize;
        assert!(offset + size_of::<T>() <= self.octets, "within the mapping");
        // SAFETY: within the mapping, as was just asserted.
        unsafe { self.start.add(offset).cast() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: there are no references into the mapping any more; they all borrow its owner.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.octets) };
    }
}

/// Frames of equal size, one after the other, that the kernel reads from and writes to.
///
/// Octets are read through a [`Received`] that holds an [`Arc`] of the frames. The kernel gets
/// frames back only while there is no other reference ([`Frames::are_let_go`]), so no slice
/// outlives our ownership of its frame.
pub(crate) struct Frames {
    mapping: Mapping,
    frame_octets: u32,
    /// Which of them hold what the kernel has received, and are ours to read.
    readable: Box<[AtomicBool]>,
}

// SAFETY: the memory is anonymous and lives as long as its owner. Whose turn it is with a frame is
// what the rings say; `slice` reads only frames that are noted as ours, and `slice_mut` is called
// for others of our own.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

impl std::fmt::Debug for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes of frames", self.mapping.octets)
    }
}

impl Frames {
    pub(super) fn new(count: u32, frame_octets: u32) -> io::Result<Self> {
        let octets = count as usize * frame_octets as usize;
        // Present from the start: no datagram waits for a page.
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        let mapping = Mapping::new(octets, flags, (-1, 0))?;
        Ok(Frames {
            mapping,
            frame_octets,
            readable: (0..count).map(|_| AtomicBool::new(false)).collect(),
        })
    }

    /// The frame has come out of the receive ring, or is about to go into the fill ring.
    #[inline]
    pub(super) fn set_readable(&self, frame: u64, is_readable: bool) {
        let number = self.number_of(frame as usize);
        self.readable[number].store(is_readable, Ordering::Relaxed);
    }

    /// True if only the socket and `received`, which is about to be refilled, can have a slice of
    /// these frames.
    #[inline]
    pub(super) fn are_let_go(self: &Arc<Self>, received: &Received) -> bool {
        let known = 1 + usize::from(received.holds(self));
        let are_let_go = Arc::strong_count(self) == known;
        // What another thread has read was read before it let go.
        fence(Ordering::Acquire);
        are_let_go
    }

    pub(super) fn address(&self) -> u64 {
        self.mapping.start.as_ptr() as u64
    }

    pub(super) fn octets(&self) -> u64 {
        self.mapping.octets as u64
    }

    /// Number of the frame that an address is in; all are as long as a power of two.
    #[inline]
    fn number_of(&self, address: usize) -> usize {
        address >> self.frame_octets.trailing_zeros()
    }

    /// Where the frame begins that an address is in.
    pub(super) fn frame_of(&self, address: u64) -> u64 {
        address & !u64::from(self.frame_octets - 1)
    }

    /// Octets of a frame that the kernel has handed to us.
    ///
    /// # Panics
    /// If they are not within one such frame.
    #[inline]
    pub(crate) fn slice(&self, start: usize, octets: usize) -> &[u8] {
        let size = self.frame_octets as usize;
        let frame = self.readable.get(self.number_of(start));
        let is_ours = frame.is_some_and(|it| it.load(Ordering::Relaxed));
        assert!(is_ours, "a frame that the kernel has filled");
        assert!(octets <= size - (start & (size - 1)), "within the frame");
        // SAFETY: within the mapping and initialised. The kernel does not write to a frame that has
        // left the receive ring and has not yet entered the fill ring, such as this one. The socket
        // returns it to the fill ring only when nothing else holds these frames or slices of them.
        unsafe { std::slice::from_raw_parts(self.mapping.start.as_ptr().add(start), octets) }
    }

    #[inline]
    #[allow(
        clippy::mut_from_ref,
        reason = "frames are lent one by one, see # Safety"
    )]
    /// A frame to be filled.
    ///
    /// # Safety
    /// The frame must be free: neither the kernel's nor handed out to anyone.
    pub(super) unsafe fn slice_mut(&self, frame: u64) -> &mut [u8] {
        let (start, octets) = (frame as usize, self.frame_octets as usize);
        assert!(start + octets <= self.mapping.octets, "within the frames");
        // SAFETY: within the mapping; the caller promises that nothing else has the frame.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.start.as_ptr().add(start), octets) }
    }
}

/// One ring, seen from our end.
struct Ring<T> {
    producer: NonNull<AtomicU32>,
    consumer: NonNull<AtomicU32>,
    flags: NonNull<AtomicU32>,
    entries: NonNull<T>,
    size: u32,
    /// Our position, unpublished entries included.
    ours: u32,
    /// The kernel's position when last read.
    theirs: u32,
    _mapping: Mapping,
}

impl<T: Copy> Ring<T> {
    fn new(
        (socket, page): (RawFd, i64),
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        assert!(size.is_power_of_two(), "the kernel takes no other");
        let octets = offsets.desc as usize + size as usize * size_of::<T>();
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        let mapping = Mapping::new(octets, flags, (socket, page))?;
        Ok(Ring {
            producer: mapping.at(offsets.producer),
            consumer: mapping.at(offsets.consumer),
            flags: mapping.at(offsets.flags),
            entries: mapping.at(offsets.desc),
            size,
            ours: 0,
            theirs: 0,
            _mapping: mapping,
        })
    }

    #[inline]
    fn word(&self, place: NonNull<AtomicU32>) -> &AtomicU32 {
        // SAFETY: all three words are within the mapping, which lives as long as `self`.
        unsafe { place.as_ref() }
    }

    #[inline]
    fn entry(&self, index: u32) -> NonNull<T> {
        // SAFETY: the index is masked to the ring's size, and all entries of the ring are mapped.
        unsafe { self.entries.add((index & (self.size - 1)) as usize) }
    }

    fn needs_wakeup(&self) -> bool {
        let flags = self.word(self.flags).load(Ordering::Relaxed);
        flags & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// A ring that we write to.
pub(super) struct Giving<T>(Ring<T>);

impl<T: Copy> Giving<T> {
    pub(super) fn new(
        place: (RawFd, i64),
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        Ring::new(place, offsets, size).map(Giving)
    }

    /// Puts an entry in, to be seen after the next [`Giving::tell`]; false if there is no room.
    #[inline]
    pub(super) fn give(&mut self, entry: T) -> bool {
        let ring = &mut self.0;
        if ring.ours.wrapping_sub(ring.theirs) == ring.size {
            ring.theirs = ring.word(ring.consumer).load(Ordering::Acquire);
            if ring.ours.wrapping_sub(ring.theirs) == ring.size {
                return false;
            }
        }
        // SAFETY: the kernel reads this entry only after the next `tell`, and has read what was
        // there before.
        unsafe { ring.entry(ring.ours).write(entry) };
        ring.ours = ring.ours.wrapping_add(1);
        true
    }

    /// Publishes new entries to the kernel.
    #[inline]
    pub(super) fn tell(&mut self) {
        let ring = &self.0;
        ring.word(ring.producer).store(ring.ours, Ordering::Release);
    }

    /// The kernel looks at this ring only when it is called.
    pub(super) fn needs_wakeup(&self) -> bool {
        self.0.needs_wakeup()
    }

    /// The kernel has not taken everything yet.
    pub(super) fn is_pending(&self) -> bool {
        self.0.word(self.0.consumer).load(Ordering::Acquire) != self.0.ours
    }
}

/// A ring that we read from.
pub(super) struct Taking<T>(Ring<T>);

impl<T: Copy> Taking<T> {
    pub(super) fn new(
        place: (RawFd, i64),
        offsets: &libc::xdp_ring_offset,
        size: u32,
    ) -> io::Result<Self> {
        Ring::new(place, offsets, size).map(Taking)
    }

    /// Takes the next entry, if there is one. The kernel may use its place after the next
    /// [`Taking::tell`].
    #[inline]
    pub(super) fn take(&mut self) -> Option<T> {
        let ring = &mut self.0;
        if ring.ours == ring.theirs {
            ring.theirs = ring.word(ring.producer).load(Ordering::Acquire);
            if ring.ours == ring.theirs {
                return None;
            }
        }
        // SAFETY: the kernel has written this entry before it moved the producer past it.
        let entry = unsafe { ring.entry(ring.ours).read() };
        ring.ours = ring.ours.wrapping_add(1);
        Some(entry)
    }

    /// Lets the kernel use the places of what was taken.
    #[inline]
    pub(super) fn tell(&mut self) {
        let ring = &self.0;
        ring.word(ring.consumer).store(ring.ours, Ordering::Release);
    }

    /// Something is there to be taken.
    #[inline]
    pub(super) fn has_some(&self) -> bool {
        self.0.word(self.0.producer).load(Ordering::Acquire) != self.0.ours
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME_OCTETS: u32 = 2_048;

    fn frames() -> Arc<Frames> {
        let frames = Frames::new(4, FRAME_OCTETS).expect("memory can be mapped");
        frames.set_readable(u64::from(FRAME_OCTETS), true);
        Arc::new(frames)
    }

    #[test]
    fn frames_are_not_given_back_while_another_delivery_may_be_read_from_them() {
        let frames = frames();
        let (mut first, mut second) = (Received::new(), Received::new());
        assert!(frames.are_let_go(&first) && frames.are_let_go(&second));
        first.lend(&frames);
        assert!(frames.are_let_go(&first), "it is about to be filled anew");
        assert!(!frames.are_let_go(&second), "the first one can be read");
        second.lend(&frames);
        assert!(!frames.are_let_go(&first) && !frames.are_let_go(&second));
        first.keep(&[]);
        assert!(frames.are_let_go(&second));
        drop(second);
        assert!(frames.are_let_go(&first));
    }

    #[test]
    fn a_frame_that_the_kernel_has_filled_is_read_to_its_end() {
        let (start, size) = (FRAME_OCTETS as usize, FRAME_OCTETS as usize);
        assert_eq!(frames().slice(start, size), vec![0; size]);
        assert_eq!(frames().slice(start + 40, size - 40).len(), size - 40);
    }

    #[test]
    #[should_panic(expected = "within the frame")]
    fn nobody_reads_beyond_the_frame_of_a_datagram() {
        let start = FRAME_OCTETS as usize;
        frames().slice(start + 1, start);
    }

    #[test]
    #[should_panic(expected = "a frame that the kernel has filled")]
    fn nobody_reads_a_frame_that_is_the_kernels() {
        let frames = frames();
        frames.set_readable(u64::from(FRAME_OCTETS), false);
        frames.slice(FRAME_OCTETS as usize, 1);
    }
}
