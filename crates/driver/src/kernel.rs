//! Chooses the driver for the kernel's sockets, or for the interface below them: the requested one
//! or the best.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use proto::Instant;
pub use settings::{DriverChoice, DriverKind};

use crate::clock::Clock;
use crate::epoll::EpollDriver;
use crate::uring::{Unavailable, UringDriver};
use crate::xdp::{XdpDriver, XdpPlace};
use crate::{
    Accepted, Close, CpuTime, Driver, DriverStats, Outgoing, Received, SendStamp, SocketError,
    SocketId, SocketOptions, SocketSpec,
};

/// The expected load of a driver, as far as it decides the choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Approximate number of stream sockets of one thread; 0 for none or few.
    pub streams: u32,
    /// The thread's number, from 0.
    pub thread: u32,
    /// How many threads of this process have drivers like it; 0 for one.
    pub threads: u32,
}

/// The chosen driver, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The driver.
    pub kind: DriverKind,
    /// In a few words.
    pub reason: String,
}

/// Streams of one thread from which on io_uring was measured to be faster.
const STREAMS_MIN: u32 = 16;

/// A driver for the kernel's sockets.
pub enum KernelDriver {
    /// By readiness.
    Epoll(Box<EpollDriver>),
    /// By completion.
    Uring(Box<UringDriver>),
    /// Datagrams below the sockets, the rest by readiness.
    Xdp(Box<XdpDriver>),
}

impl KernelDriver {
    /// A driver for the calling thread, and why it is the one.
    ///
    /// # Errors
    /// The kernel's; for [`DriverChoice::Uring`] and [`DriverChoice::Xdp`] also that io_uring or
    /// AF_XDP cannot be used, and why.
    pub fn open(
        choice: DriverChoice,
        load: Load,
        clock: Clock,
        options: SocketOptions,
    ) -> io::Result<(Self, Chosen)> {
        let epoll = |reason: String| {
            let driver = EpollDriver::new(clock, options)?;
            let kind = DriverKind::Epoll;
            Ok((
                KernelDriver::Epoll(Box::new(driver)),
                Chosen { kind, reason },
            ))
        };
        let uring = |reason: String| -> Result<_, Unavailable> {
            let driver = UringDriver::new(clock, options)?;
            let kind = DriverKind::Uring;
            Ok((
                KernelDriver::Uring(Box::new(driver)),
                Chosen { kind, reason },
            ))
        };
        match choice {
            DriverChoice::Uring | DriverChoice::Xdp(_) if options.timestamps.is_some() => Err(
                io::Error::other("datagrams are stamped with epoll, not with io_uring or AF_XDP"),
            ),
            DriverChoice::Auto if options.timestamps.is_some() => {
                epoll("it reads timestamps of datagrams".into())
            }
            DriverChoice::Epoll => epoll("asked for".into()),
            DriverChoice::Uring => uring("asked for".into()).map_err(io::Error::other),
            DriverChoice::Xdp(interface) => {
                let place = XdpPlace {
                    interface,
                    worker: load.thread,
                    workers: load.threads.max(1),
                };
                let driver = XdpDriver::new(clock, options, place)?;
                let (kind, reason) = (DriverKind::Xdp, driver.words());
                Ok((KernelDriver::Xdp(Box::new(driver)), Chosen { kind, reason }))
            }
            DriverChoice::Auto if load.streams < STREAMS_MIN => {
                epoll("few streams, with which io_uring gains nothing".into())
            }
            DriverChoice::Auto => {
                let faster = format!("faster with {} streams a thread", load.streams);
                uring(faster).or_else(|error| epoll(error.to_string()))
            }
        }
    }
}

/// Calls the same method of the chosen driver.
macro_rules! either {
    ($self:ident, $driver:ident => $call:expr) => {
        match $self {
            KernelDriver::Epoll($driver) => $call,
            KernelDriver::Uring($driver) => $call,
            KernelDriver::Xdp($driver) => $call,
        }
    };
}

impl Driver for KernelDriver {
    #[inline]
    fn now(&mut self) -> Instant {
        either!(self, driver => driver.now())
    }

    fn unix_time(&self) -> Duration {
        either!(self, driver => driver.unix_time())
    }

    fn cpu_time(&self) -> CpuTime {
        either!(self, driver => driver.cpu_time())
    }

    fn open_udp(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        either!(self, driver => driver.open_udp(spec))
    }

    fn connect_tcp(&mut self, spec: &SocketSpec) -> Result<SocketId, SocketError> {
        either!(self, driver => driver.connect_tcp(spec))
    }

    fn listen_tcp(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        either!(self, driver => driver.listen_tcp(spec))
    }

    fn was_fast_opened(&self, socket: SocketId) -> bool {
        either!(self, driver => driver.was_fast_opened(socket))
    }

    fn local_addr(&self, socket: SocketId) -> io::Result<SocketAddr> {
        either!(self, driver => driver.local_addr(socket))
    }

    #[inline]
    fn send_datagrams(&mut self, socket: SocketId, outgoing: &Outgoing) -> Accepted {
        either!(self, driver => driver.send_datagrams(socket, outgoing))
    }

    fn read_send_stamps(&mut self, socket: SocketId, stamps: &mut Vec<SendStamp>) {
        either!(self, driver => driver.read_send_stamps(socket, stamps));
    }

    #[inline]
    fn send_bytes(&mut self, socket: SocketId, bytes: &[u8]) -> Result<usize, SocketError> {
        either!(self, driver => driver.send_bytes(socket, bytes))
    }

    fn pause_reading(&mut self, socket: SocketId, paused: bool) {
        either!(self, driver => driver.pause_reading(socket, paused));
    }

    fn finish_sending(&mut self, socket: SocketId) {
        either!(self, driver => driver.finish_sending(socket));
    }

    fn close(&mut self, socket: SocketId, how: Close) {
        either!(self, driver => driver.close(socket, how));
    }

    #[inline]
    fn receive(&mut self, received: &mut Received) -> bool {
        either!(self, driver => driver.receive(received))
    }

    fn wait(&mut self, until: Instant) {
        either!(self, driver => driver.wait(until));
    }

    fn stats(&self) -> DriverStats {
        either!(self, driver => driver.stats())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a system call fail for the calling thread, as a container's seccomp filter does.
    fn forbid(call: libc::c_long, errno: i32) {
        let load_number = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
        let jump_equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
        let give_back = (libc::BPF_RET | libc::BPF_K) as u16;
        let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
        let mut steps = [
            step(load_number, 0, 0, 0),
            step(jump_equal, 0, 1, call as u32),
            step(give_back, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
            step(give_back, 0, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog {
            len: steps.len() as u16,
            filter: steps.as_mut_ptr(),
        };
        // SAFETY: the filter is valid, is copied by the kernel, and binds this thread alone.
        let result = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program)
        };
        assert_eq!(result, 0, "{}", io::Error::last_os_error());
    }

    fn open(choice: DriverChoice, streams: u32) -> io::Result<Chosen> {
        let load = Load {
            streams,
            ..Load::default()
        };
        let options = SocketOptions::default();
        KernelDriver::open(choice, load, Clock::start(), options).map(|it| it.1)
    }

    #[test]
    fn where_io_uring_is_forbidden_auto_takes_epoll_and_says_why() {
        const SETUP: libc::c_long = libc::SYS_io_uring_setup;
        for (call, errno, words) in [
            (SETUP, libc::EPERM, "not permitted"),
            (SETUP, libc::EACCES, "not permitted"),
            (SETUP, libc::ENOSYS, "this kernel has no io_uring"),
            (SETUP, libc::EINVAL, "lacks what is needed"),
            (SETUP, libc::ENOMEM, "ulimit -l"),
            (SETUP, libc::EMFILE, "cannot be used: Too many open files"),
            // Creating a ring is allowed, using it is not, as in some sandboxes.
            (libc::SYS_io_uring_enter, libc::EPERM, "not permitted"),
            (libc::SYS_io_uring_register, libc::EPERM, "not permitted"),
        ] {
            let checked = std::thread::spawn(move || {
                forbid(call, errno);
                let chosen = open(DriverChoice::Auto, 200).unwrap();
                assert_eq!(chosen.kind, DriverKind::Epoll);
                assert!(chosen.reason.contains(words), "{}", chosen.reason);
                let error = open(DriverChoice::Uring, 200).unwrap_err().to_string();
                assert!(error.contains(words), "{error}");
            });
            checked.join().unwrap();
        }
    }

    #[test]
    fn where_epoll_pwait2_is_missing_waits_are_as_long() {
        let checked = std::thread::spawn(|| {
            forbid(libc::SYS_epoll_pwait2, libc::ENOSYS);
            let (load, options) = (Load::default(), SocketOptions::default());
            let opened = KernelDriver::open(DriverChoice::Epoll, load, Clock::start(), options);
            let mut driver = opened.unwrap().0;
            let until = driver.now() + Duration::from_micros(1_500);
            driver.wait(until);
            assert!(driver.now() >= until);
        });
        checked.join().unwrap();
    }

    #[test]
    fn auto_takes_epoll_for_few_streams_and_says_why() {
        let chosen = open(DriverChoice::Auto, 1).unwrap();
        assert_eq!(chosen.kind, DriverKind::Epoll);
        assert!(chosen.reason.contains("few streams"), "{}", chosen.reason);
    }
}
