//! One AF_XDP socket: the frames and rings of one queue of an interface.

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ring::{Frames, Giving, Taking};
use crate::Received;
use crate::socket::check;

/// Frames that the kernel may fill with what arrives, and entries of the two rings for them. As
/// many datagrams may wait for us; more are dropped, and counted.
const RECEIVE_FRAMES: u32 = 4_096;
/// Frames that may be on their way out, and entries of the completion ring.
const SEND_FRAMES: u32 = 4_096;
/// Entries of the transmit ring: a frame may come back before the kernel shows that its entry is
/// free.
const TRANSMIT_PLACES: u32 = 2 * SEND_FRAMES;
/// Octets of a frame, if the interface's longest fits beside the room that the kernel keeps.
const FRAME_OCTETS: u32 = 2_048;
/// What it keeps at the start of a frame that it fills (XDP_PACKET_HEADROOM).
const HEADROOM_OCTETS: u32 = 256;
/// Octets of a frame otherwise: a page, the kernel's maximum.
const FRAME_OCTETS_MAX: u32 = 4_096;
/// Send buffer size: the kernel copies sent frames and charges them to the socket.
const SEND_BUFFER_OCTETS: i32 = 16 << 20;
/// Socket option: frames sent by one call in copy mode, 32 unless set (linux/if_xdp.h, from 6.17).
const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;
/// How many it is set to.
const SEND_BUDGET: i32 = 256;
/// How long to wait for a queue: the kernel frees that of a closed socket asynchronously.
const QUEUE_WAIT: Duration = Duration::from_secs(10);

/// Modes of moving frames between the interface and our memory, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The interface reads and writes our frames itself.
    ZeroCopy,
    /// The interface's driver runs the filter, the kernel copies.
    Native,
    /// The kernel's stack runs the filter, and copies.
    Generic,
}

impl Mode {
    /// As text for the record.
    pub(super) fn name(self) -> &'static str {
        match self {
            Mode::ZeroCopy => "zero-copy",
            Mode::Native => "native copy",
            Mode::Generic => "generic copy",
        }
    }

    fn bind_flags(self) -> u16 {
        let way = match self {
            Mode::ZeroCopy => libc::XDP_ZEROCOPY,
            Mode::Native | Mode::Generic => libc::XDP_COPY,
        };
        way | libc::XDP_USE_NEED_WAKEUP
    }
}

/// An AF_XDP socket.
pub(super) struct XdpSocket {
    fd: OwnedFd,
    frames: Arc<Frames>,
    fill: Giving<u64>,
    completion: Taking<u64>,
    receive: Taking<libc::xdp_desc>,
    transmit: Giving<libc::xdp_desc>,
    /// Frames to send with.
    free: Vec<u64>,
    /// Frames given to the transmit ring since the kernel was last called.
    unsent: u32,
    /// Frames of the last deliveries, which go back with the next ones.
    used: Vec<u64>,
    /// The longest datagram with its headers that may be sent.
    frame_octets: u32,
}

impl XdpSocket {
    /// A socket on one queue of an interface, by the interface's index.
    pub(super) fn open(
        (interface, queue): (u32, u32),
        mode: Mode,
        mtu: u32,
    ) -> io::Result<XdpSocket> {
        // SAFETY: a plain system call.
        let raw = check(unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            libc::socket(libc::AF_XDP, kind, 0)
        })?;
        // SAFETY: socket returned a new descriptor, which nothing else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        /// Ethernet header and a VLAN tag.
        const LINK_OCTETS: u32 = 18;
        let fits = mtu.saturating_add(LINK_OCTETS + HEADROOM_OCTETS) <= FRAME_OCTETS;
        let frame_octets = if fits { FRAME_OCTETS } else { FRAME_OCTETS_MAX };
        let frames = Arc::new(Frames::new(RECEIVE_FRAMES + SEND_FRAMES, frame_octets)?);
        register(&fd, &frames, frame_octets)?;
        for (ring, size) in [
            (libc::XDP_UMEM_FILL_RING, RECEIVE_FRAMES),
            (libc::XDP_UMEM_COMPLETION_RING, SEND_FRAMES),
            (libc::XDP_RX_RING, RECEIVE_FRAMES),
            (libc::XDP_TX_RING, TRANSMIT_PLACES),
        ] {
            set(&fd, ring, size as i32)?;
        }
        let offsets = offsets(&fd)?;
        let at = |page: i64| (fd.as_raw_fd(), page);
        let mut socket = XdpSocket {
            fill: Giving::new(
                at(libc::XDP_UMEM_PGOFF_FILL_RING as i64),
                &offsets.fr,
                RECEIVE_FRAMES,
            )?,
            completion: Taking::new(
                at(libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64),
                &offsets.cr,
                SEND_FRAMES,
            )?,
            receive: Taking::new(at(libc::XDP_PGOFF_RX_RING), &offsets.rx, RECEIVE_FRAMES)?,
            transmit: Giving::new(at(libc::XDP_PGOFF_TX_RING), &offsets.tx, TRANSMIT_PLACES)?,
            free: (RECEIVE_FRAMES..RECEIVE_FRAMES + SEND_FRAMES)
                .rev()
                .map(|number| u64::from(number) * u64::from(frame_octets))
                .collect(),
            used: (0..RECEIVE_FRAMES)
                .map(|number| u64::from(number) * u64::from(frame_octets))
                .collect(),
            unsent: 0,
            frame_octets: frame_octets.min(mtu.saturating_add(LINK_OCTETS)),
            frames,
            fd,
        };
        socket.give_back();
        set_send_buffer(&socket.fd);
        // Kernels without it send 32 at a time.
        let _ = set(&socket.fd, XDP_MAX_TX_SKB_BUDGET, SEND_BUDGET);
        bind(&socket.fd, (interface, queue), mode)?;
        Ok(socket)
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    pub(super) fn frames(&self) -> &Arc<Frames> {
        &self.frames
    }

    /// The longest frame that can be sent.
    pub(super) fn frame_octets(&self) -> usize {
        self.frame_octets as usize
    }

    /// The next frame received: where it is and its length. It stays ours until
    /// [`XdpSocket::recycle`].
    #[inline]
    pub(super) fn take(&mut self) -> Option<(usize, usize)> {
        let entry = self.receive.take()?;
        let frame = self.frames.frame_of(entry.addr);
        self.frames.set_readable(frame, true);
        self.used.push(frame);
        Some((entry.addr as usize, entry.len as usize))
    }

    /// Lets the kernel have what was taken, and the frames of earlier takings to fill again,
    /// before `received` is filled anew. They wait while another delivery may be read from them.
    #[inline]
    pub(super) fn recycle(&mut self, received: &Received) {
        if !self.used.is_empty() && self.frames.are_let_go(received) {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        // The kernel may show us a frame before it shows that it has taken it from a full fill
        // ring: what has no room yet goes back the next time.
        while let Some(&frame) = self.used.last()
            && self.fill.give(frame)
        {
            self.frames.set_readable(frame, false);
            self.used.pop();
        }
        self.fill.tell();
        self.receive.tell();
    }

    /// Something has been received.
    #[inline]
    pub(super) fn has_received(&self) -> bool {
        self.receive.has_some()
    }

    /// A frame to be filled and sent, if one is free.
    #[inline]
    pub(super) fn frame(&mut self) -> Option<(u64, &mut [u8])> {
        if self.free.is_empty() {
            self.reclaim();
        }
        let frame = self.free.pop()?;
        // SAFETY: what is in `free` is neither the kernel's nor handed out to anyone.
        Some((frame, unsafe { self.frames.slice_mut(frame) }))
    }

    /// Sends a frame that [`XdpSocket::frame`] gave; the kernel learns of it with
    /// [`XdpSocket::flush`].
    #[inline]
    pub(super) fn send(&mut self, frame: u64, octets: usize) {
        let has_room = self.transmit.give(libc::xdp_desc {
            addr: frame,
            len: octets as u32,
            options: 0,
        });
        debug_assert!(has_room, "the transmit ring holds every frame twice");
        self.unsent += 1;
    }

    /// Frames that the kernel has not been told of.
    #[inline]
    pub(super) fn unsent(&self) -> u32 {
        self.unsent
    }

    /// Takes back frames that have been sent; true if some are free then.
    pub(super) fn reclaim(&mut self) -> bool {
        let before = self.free.len();
        while let Some(frame) = self.completion.take() {
            self.free.push(frame);
        }
        if self.free.len() > before {
            self.completion.tell();
        }
        !self.free.is_empty()
    }

    /// Makes the kernel send everything that was given; returns how many calls it took.
    pub(super) fn flush(&mut self) -> u64 {
        if self.unsent == 0 {
            return 0;
        }
        self.unsent = 0;
        self.transmit.tell();
        self.push()
    }

    /// Calls the kernel until it has taken what is in the transmit ring, or cannot now.
    fn push(&mut self) -> u64 {
        let mut calls = 0;
        while calls < u64::from(SEND_FRAMES)
            && self.transmit.needs_wakeup()
            && self.transmit.is_pending()
        {
            calls += 1;
            // SAFETY: nothing is sent from memory here: the kernel looks at the ring.
            let result = unsafe {
                let nothing = std::ptr::null();
                let fd = self.fd.as_raw_fd();
                libc::sendto(fd, nothing, 0, libc::MSG_DONTWAIT, std::ptr::null(), 0)
            };
            if result < 0 {
                // EAGAIN: the kernel's limit of frames a call. ENOBUFS, EBUSY: no room further down
                // at present.
                let error = io::Error::last_os_error().raw_os_error();
                self.reclaim();
                if error != Some(libc::EAGAIN) {
                    break;
                }
            }
        }
        calls
    }

    /// Something that was given earlier has not left: the next wait must be short.
    pub(super) fn is_stuck(&self) -> bool {
        self.transmit.is_pending()
    }

    /// Before waiting: tries again what did not leave, and wakes the interface if it sleeps.
    pub(super) fn nudge(&mut self) -> u64 {
        let mut calls = self.flush();
        if self.is_stuck() {
            calls += self.push();
        }
        if self.fill.needs_wakeup() {
            // SAFETY: nothing is received into memory here: the kernel looks at the ring.
            unsafe {
                let (fd, nothing) = (self.fd.as_raw_fd(), std::ptr::null_mut());
                let sender = std::ptr::null_mut();
                libc::recvfrom(
                    fd,
                    nothing,
                    0,
                    libc::MSG_DONTWAIT,
                    sender,
                    std::ptr::null_mut(),
                );
            }
            calls += 1;
        }
        calls
    }

    /// The frames to send with, to be taken away.
    #[cfg(test)]
    pub(super) fn free_frames(&mut self) -> &mut Vec<u64> {
        &mut self.free
    }

    /// What the kernel has counted for this socket.
    pub(super) fn statistics(&self) -> libc::xdp_statistics {
        // SAFETY: all-zero counters are valid.
        let mut statistics: libc::xdp_statistics = unsafe { zeroed() };
        // Fails for no socket that is open; the counters would be zero.
        let _ = get(&self.fd, libc::XDP_STATISTICS, &mut statistics);
        statistics
    }
}

/// Gives the kernel the frames.
fn register(fd: &OwnedFd, frames: &Frames, frame_octets: u32) -> io::Result<()> {
    let registration = libc::xdp_umem_reg {
        addr: frames.address(),
        len: frames.octets(),
        chunk_size: frame_octets,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    set_any(fd, (libc::SOL_XDP, libc::XDP_UMEM_REG), &registration)
}

fn offsets(fd: &OwnedFd) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: all-zero offsets are valid.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { zeroed() };
    get(fd, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
    Ok(offsets)
}

fn bind(fd: &OwnedFd, (interface, queue): (u32, u32), mode: Mode) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        sxdp_flags: mode.bind_flags(),
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    let until = Instant::now() + QUEUE_WAIT;
    loop {
        // SAFETY: the address is valid for its stated length.
        let bound = check(unsafe {
            let length = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
            libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length)
        });
        match bound {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < until => {
                // Nothing tells when a queue is free.
                // SAFETY: no descriptor is watched; the timeout is in milliseconds.
                unsafe { libc::poll(std::ptr::null_mut(), 0, 5) };
            }
            other => return other.map(drop),
        }
    }
}

/// What is under way is bounded by the frames there are for it, and not by the socket's buffer.
fn set_send_buffer(fd: &OwnedFd) {
    for option in [libc::SO_SNDBUF, libc::SO_SNDBUFFORCE] {
        // Without the right to force it, less is under way at a time.
        let _ = set_any(fd, (libc::SOL_SOCKET, option), &SEND_BUFFER_OCTETS);
    }
}

fn set(fd: &OwnedFd, option: libc::c_int, value: i32) -> io::Result<()> {
    set_any(fd, (libc::SOL_XDP, option), &value)
}

fn set_any<T>(fd: &OwnedFd, (level, option): (i32, i32), value: &T) -> io::Result<()> {
    // SAFETY: the value is valid for the length given with it.
    check(unsafe {
        let length = size_of::<T>() as libc::socklen_t;
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            option,
            (&raw const *value).cast(),
            length,
        )
    })
    .map(drop)
}

fn get<T>(fd: &OwnedFd, option: libc::c_int, value: &mut T) -> io::Result<()> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value is valid for the length given with it, and any octets are a value of it.
    check(unsafe {
        let place = (&raw mut *value).cast();
        libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, option, place, &mut length)
    })
    .map(drop)
}
