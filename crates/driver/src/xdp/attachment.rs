//! State shared by the workers of a process on one interface: the program and its maps, the mode,
//! and mailboxes for datagrams that arrive in another worker's queue.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use settings::InterfaceName;

use super::bpf::{self, Map};
use super::interface::Interface;
use super::program;
use super::read_pace::ReadPace;
use super::rss::Rss;
use super::socket::{Mode, XdpSocket};
use crate::netlink::Netlink;
use crate::socket::check;

/// Ports there are.
const PORTS: usize = 65_536;
/// How long to wait for the program of a finished run: the kernel detaches it asynchronously, and
/// only after child processes have closed its descriptor.
const PREDECESSOR_WAIT: Duration = Duration::from_millis(300);
/// Datagrams that may wait in one mailbox; more are dropped, and counted.
const LETTERS_MAX: usize = 4_096;
/// Their octets.
const LETTERS_OCTETS_MAX: usize = 4 << 20;

/// A program on an interface, and what it needs. The program leaves with the last reference.
pub(super) struct Attachment {
    pub(super) interface: Interface,
    /// Set by the first socket.
    mode: OnceLock<Mode>,
    /// Why there is no better mode.
    pub(super) obstacles: Mutex<Vec<String>>,
    marks: Map,
    sockets: Map,
    is_native: bool,
    _link: OwnedFd,
    /// Sockets of each port.
    uses: Mutex<Vec<u32>>,
    /// Worker whose socket has the port, plus one.
    owners: Box<[AtomicU32]>,
    boxes: Vec<LetterBox>,
    /// How the card finds the queue of a datagram, if that matters and is known.
    pub(super) rss: OnceLock<Rss>,
}

/// Attachments of this process that are in use.
static OPEN: Mutex<Vec<(InterfaceName, Weak<Attachment>)>> = Mutex::new(Vec::new());

/// A lock whose state is consistent even after a panic.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Attachment {
    /// The attachment of an interface for `workers` of this process, made by the first that asks.
    ///
    /// # Errors
    /// The interface cannot be used, with the reason and, if there is one, the cure.
    pub(super) fn of(name: InterfaceName, workers: u32) -> io::Result<Arc<Attachment>> {
        let mut open = locked(&OPEN);
        open.retain(|(_, attachment)| attachment.strong_count() > 0);
        let known = open.iter().find(|(other, _)| *other == name);
        if let Some(attachment) = known.and_then(|(_, it)| it.upgrade()) {
            return match attachment.boxes.len() == workers as usize {
                true => Ok(attachment),
                false => Err(explain(io::Error::from_raw_os_error(libc::EBUSY), name)),
            };
        }
        let new = Arc::new(Attachment::new(name, workers)?);
        open.push((name, Arc::downgrade(&new)));
        Ok(new)
    }

    fn new(name: InterfaceName, workers: u32) -> io::Result<Attachment> {
        let interface = Interface::find(name, &Netlink::open()?)?;
        if workers > interface.queues {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "`{name}` has {} receive queue(s) for {workers} workers, and each needs one; \
                     take fewer workers (--workers, --cpus), or more queues (ethtool -L)",
                    interface.queues
                ),
            ));
        }
        let refused = |error: io::Error| explain(error, name);
        let marks = Map::array(PORTS as u32).map_err(refused)?;
        let sockets = Map::sockets(interface.queues).map_err(refused)?;
        let code = program::filter(marks.raw(), sockets.raw(), interface.vlan);
        let program = bpf::load(&code).map_err(refused)?;
        let mut obstacles = Vec::new();
        let (link, is_native) = match attach(&program, interface.device) {
            Ok(link) => (link, true),
            Err(error) if is_final(&error) => return Err(explain(error, name)),
            Err(error) => {
                obstacles.push(format!("native: {}", words(&error)));
                let link = bpf::attach(&program, interface.device, false);
                (link.map_err(refused)?, false)
            }
        };
        let boxes = (0..workers).map(|_| LetterBox::new());
        let rss = OnceLock::new();
        // One worker has all queues.
        if let Some(told) = Rss::of(interface.device).filter(|_| workers > 1) {
            rss.get_or_init(|| told);
        }
        Ok(Attachment {
            interface,
            rss,
            mode: OnceLock::new(),
            obstacles: Mutex::new(obstacles),
            marks,
            sockets,
            is_native,
            _link: link,
            uses: Mutex::new(vec![0; PORTS]),
            owners: (0..PORTS).map(|_| AtomicU32::new(0)).collect(),
            boxes: boxes.collect::<io::Result<_>>()?,
        })
    }

    /// The socket of one queue, in the best mode that the interface has.
    ///
    /// # Errors
    /// No mode works.
    pub(super) fn socket(&self, queue: u32) -> io::Result<XdpSocket> {
        let place = (self.interface.device, queue);
        let open = |mode| XdpSocket::open(place, mode, self.interface.mtu);
        let opened = match (self.mode.get(), self.is_native) {
            (Some(mode), _) => open(*mode),
            (None, false) => self.remember(Mode::Generic, open(Mode::Generic)),
            (None, true) => match open(Mode::ZeroCopy) {
                Err(error) if !is_final(&error) => {
                    locked(&self.obstacles).push(format!("zero-copy: {}", words(&error)));
                    self.remember(Mode::Native, open(Mode::Native))
                }
                other => self.remember(Mode::ZeroCopy, other),
            },
        };
        let socket = opened.map_err(|error| explain(error, self.interface.name))?;
        self.sockets.set(queue, socket.fd().as_raw_fd() as u32)?;
        Ok(socket)
    }

    /// The read pace of a worker's queues; none if it cannot be set.
    pub(super) fn read_pace(&self, queues: usize, worker: u32) -> Option<ReadPace> {
        if !self.is_native || !self.interface.is_read_for_us {
            return None;
        }
        let workers = self.boxes.len();
        let own = (0..queues).map(|place| place * workers + worker as usize);
        ReadPace::of(&self.interface, own)
    }

    fn remember(&self, mode: Mode, opened: io::Result<XdpSocket>) -> io::Result<XdpSocket> {
        if opened.is_ok() {
            // Another worker may have been quicker, and has found the same.
            let _ = self.mode.set(mode);
        }
        opened
    }

    /// The mode of the interface, as text for the record.
    pub(super) fn words(&self, queues: usize) -> String {
        let mode = self.mode.get().map_or("", |mode| mode.name());
        let Interface { name, vlan, .. } = self.interface;
        let tag = vlan.map_or_else(String::new, |vlan| format!(" with VLAN tag {vlan}"));
        let obstacles = locked(&self.obstacles);
        let why = match obstacles.is_empty() {
            true => String::new(),
            false => format!(" (not {})", obstacles.join(", not ")),
        };
        let queues = match queues {
            1 => "1 queue".to_owned(),
            several => format!("{several} queues"),
        };
        let ports = match self.rss.get() {
            Some(rss) if rss.hashes_ports() => ", source ports by queue",
            _ => "",
        };
        format!("on {name}{tag}, {mode} mode, {queues} a worker{ports}{why}")
    }

    /// Makes the filter pick datagrams for a port; `worker` has its socket.
    pub(super) fn open_port(&self, port: u16, worker: u32) -> io::Result<()> {
        let mut uses = locked(&self.uses);
        let count = &mut uses[usize::from(port)];
        if *count == 0 {
            self.owners[usize::from(port)].store(worker + 1, Ordering::Relaxed);
            self.marks.set(port.into(), 1)?;
        }
        *count += 1;
        Ok(())
    }

    /// The reverse of [`Attachment::open_port`].
    pub(super) fn close_port(&self, port: u16) {
        let mut uses = locked(&self.uses);
        let count = &mut uses[usize::from(port)];
        *count -= 1;
        if *count == 0 {
            // Cannot fail: the map has all ports. Datagrams still on their way are counted as
            // stray.
            let _ = self.marks.set(port.into(), 0);
        }
    }

    /// The worker that has the socket of a port, if it is another than `worker`.
    pub(super) fn other_owner(&self, port: u16, worker: u32) -> Option<u32> {
        let owner = self.owners[usize::from(port)].load(Ordering::Relaxed);
        (owner != 0 && owner != worker + 1).then(|| owner - 1)
    }

    /// The mailbox of a worker.
    ///
    /// # Panics
    /// If there is no such worker.
    pub(super) fn letter_box(&self, worker: u32) -> &LetterBox {
        &self.boxes[worker as usize]
    }
}

/// Puts the program on an interface, in its driver. One that has just gone is waited for.
fn attach(program: &OwnedFd, interface: u32) -> io::Result<OwnedFd> {
    let until = Instant::now() + PREDECESSOR_WAIT;
    loop {
        match bpf::attach(program, interface, true) {
            Err(error) if is_in_use(&error) && Instant::now() < until => {
                // Nothing tells when the interface is free.
                // SAFETY: no descriptor is watched; the timeout is in milliseconds.
                unsafe { libc::poll(std::ptr::null_mut(), 0, 5) };
            }
            other => return other,
        }
    }
}

fn is_in_use(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
}

/// The system's words for an error, without its number.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}

/// No other mode would help.
fn is_final(error: &io::Error) -> bool {
    let errno = error.raw_os_error();
    matches!(
        errno,
        Some(libc::EPERM | libc::EBUSY | libc::EEXIST | libc::ENOBUFS | libc::ENODEV)
    )
}

/// Says what an error means here, and the cure.
fn explain(error: io::Error, name: InterfaceName) -> io::Error {
    let words = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "AF_XDP is not permitted here; it needs root, or the capabilities CAP_NET_ADMIN, \
             CAP_NET_RAW and CAP_BPF"
                .to_owned()
        }
        Some(libc::EBUSY | libc::EEXIST) => format!(
            "`{name}` is in use for XDP already, by another run or another program: only one at a \
             time can have it; `ip -d link show {name}` names the program, and `ip link set {name} \
             xdp off` removes one that was left behind"
        ),
        Some(libc::ENOBUFS) => "AF_XDP may lock too little memory: 16 MiB a queue are needed; \
             raise it (`ulimit -l`) or add the capability CAP_IPC_LOCK"
            .to_owned(),
        Some(libc::EAFNOSUPPORT | libc::ENOSYS) => "this kernel has no AF_XDP".to_owned(),
        _ => format!("AF_XDP cannot be used on `{name}`: {error}"),
    };
    io::Error::new(error.kind(), words)
}

/// A datagram on its way to another worker, within [`Letters::octets`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Letter {
    pub(super) start: usize,
    pub(super) octets: usize,
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
}

/// Datagrams on their way to another worker.
#[derive(Debug, Default)]
pub(super) struct Letters {
    pub(super) octets: Vec<u8>,
    pub(super) letters: Vec<Letter>,
}

/// A worker's mailbox, for datagrams from other workers' queues.
pub(super) struct LetterBox {
    letters: Mutex<Letters>,
    has_some: AtomicBool,
    /// Becomes readable when something is left in an empty box.
    bell: OwnedFd,
}

impl LetterBox {
    fn new() -> io::Result<LetterBox> {
        // SAFETY: a plain system call.
        let raw = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        Ok(LetterBox {
            letters: Mutex::new(Letters::default()),
            has_some: AtomicBool::new(false),
            // SAFETY: eventfd returned a new descriptor, which nothing else owns.
            bell: unsafe { OwnedFd::from_raw_fd(raw) },
        })
    }

    pub(super) fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    #[inline]
    pub(super) fn has_some(&self) -> bool {
        self.has_some.load(Ordering::Acquire)
    }

    /// Leaves a datagram; false if the box is full.
    pub(super) fn leave(&self, datagram: &[u8], from: SocketAddr, to: SocketAddr) -> bool {
        let mut it = locked(&self.letters);
        if it.letters.len() >= LETTERS_MAX || it.octets.len() >= LETTERS_OCTETS_MAX {
            return false;
        }
        let (start, octets) = (it.octets.len(), datagram.len());
        it.octets.extend_from_slice(datagram);
        it.letters.push(Letter {
            start,
            octets,
            from,
            to,
        });
        if !self.has_some.swap(true, Ordering::Release) {
            let one: u64 = 1;
            // SAFETY: eight octets are there. It fails only if the bell has been rung already.
            unsafe { libc::write(self.bell.as_raw_fd(), (&raw const one).cast(), 8) };
        }
        true
    }

    /// Takes everything out, in exchange for an empty `letters`.
    pub(super) fn empty_into(&self, letters: &mut Letters) {
        letters.octets.clear();
        letters.letters.clear();
        let mut rung: u64 = 0;
        // SAFETY: there is room for the eight octets. It fails if the bell has not been rung.
        unsafe { libc::read(self.bell.as_raw_fd(), (&raw mut rung).cast(), 8) };
        let mut it = locked(&self.letters);
        self.has_some.store(false, Ordering::Release);
        std::mem::swap(&mut *it, letters);
    }
}
