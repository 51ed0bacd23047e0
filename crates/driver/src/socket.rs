//! Sockets: creation, options, addresses, errors. The only place that fills `sockaddr`s.

use std::io;
use std::mem::{size_of, size_of_val};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

use crate::{SocketError, SocketOptions, SocketSpec, timestamps};

/// UDP socket option: deliver coalesced datagrams (linux/udp.h).
const UDP_GRO: libc::c_int = 104;

/// Default size of a datagram socket's buffers. The kernel's own default of 208 KiB holds about 277
/// small datagrams, fewer than a usual number of outstanding queries.
const DATAGRAM_BUFFER_OCTETS: u32 = 4 << 20;

/// A datagram socket, bound and, if it has a peer, connected.
pub(super) fn open_udp(spec: &SocketSpec, options: &SocketOptions) -> io::Result<OwnedFd> {
    let fd = create(is_ipv6(spec), libc::SOCK_DGRAM | libc::SOCK_NONBLOCK, 0)?;
    let octets = options.buffer_octets.unwrap_or(DATAGRAM_BUFFER_OCTETS);
    set_buffers(&fd, octets);
    // Linux has had it since 2.6.33; qemu-user has not, and reports no drops.
    let _ = set(&fd, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
    if options.offload {
        // A kernel without GRO delivers datagrams one by one, which works as well.
        let _ = set(&fd, libc::SOL_UDP, UDP_GRO, 1);
    }
    bind(&fd, spec)?;
    if let Some(peer) = spec.peer {
        if let Some(source) = options.timestamps {
            timestamps::enable(&fd, source)?;
        }
        connect(&fd, peer)?;
    }
    Ok(fd)
}

/// A socket of ICMP echo with one host, from `local` if given. Where the host does not allow this
/// group a datagram socket, it takes the privilege of a raw one.
pub(super) fn open_echo(target: IpAddr, local: Option<IpAddr>) -> io::Result<OwnedFd> {
    let protocol = match target {
        IpAddr::V4(_) => libc::IPPROTO_ICMP,
        IpAddr::V6(_) => libc::IPPROTO_ICMPV6,
    };
    let open = |kind| create(target.is_ipv6(), kind | libc::SOCK_NONBLOCK, protocol);
    let fd = open(libc::SOCK_DGRAM).or_else(|_| open(libc::SOCK_RAW))?;
    let spec = SocketSpec {
        local: local.map(|ip| SocketAddr::new(ip, 0)),
        ..SocketSpec::default()
    };
    bind(&fd, &spec)?;
    connect(&fd, SocketAddr::new(target, 0))?;
    Ok(fd)
}

/// Has the kernel keep the ICMP errors of a socket with their senders (`ip(7)`, IP_RECVERR), or
/// report them, if nothing reads them.
pub(super) fn keep_icmp_errors(fd: &OwnedFd, is_ipv6: bool) -> io::Result<()> {
    let (level, option) = match is_ipv6 {
        true => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
        false => (libc::IPPROTO_IP, libc::IP_RECVERR),
    };
    set(fd, level, option, 1)
}

/// Numbers in SO_MEMINFO (linux/sock_diag.h), and the place of the drops among them.
const MEMINFO_NUMBERS: usize = 9;
const MEMINFO_DROPS: usize = 8;

/// Datagrams that a socket's full receive buffer dropped: SO_RXQ_OVFL only counts those before the
/// last datagram that was read.
pub(super) fn receive_drops(fd: &OwnedFd) -> Option<u32> {
    let mut numbers = [0_u32; MEMINFO_NUMBERS];
    let mut length = size_of_val(&numbers) as libc::socklen_t;
    // SAFETY: the buffer is valid for the length given with it.
    let result = unsafe {
        let place = numbers.as_mut_ptr().cast();
        let (level, option) = (libc::SOL_SOCKET, libc::SO_MEMINFO);
        libc::getsockopt(fd.as_raw_fd(), level, option, place, &mut length)
    };
    let is_whole = result == 0 && length as usize == size_of_val(&numbers);
    is_whole.then_some(numbers[MEMINFO_DROPS])
}

/// Octets of a datagram socket that are on their way out of the host.
pub(super) fn unsent_octets(fd: &OwnedFd) -> io::Result<libc::c_int> {
    let mut octets = 0;
    // SAFETY: SIOCOUTQ, which is TIOCOUTQ, writes one int.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &mut octets) })?;
    Ok(octets)
}

/// A stream socket that has begun to connect.
pub(super) fn connect_tcp(spec: &SocketSpec, options: &SocketOptions) -> io::Result<OwnedFd> {
    let fd = open_tcp(spec, options, libc::SOCK_NONBLOCK)?;
    let peer = peer_of(spec)?;
    match connect(&fd, peer) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(fd),
    }
}

/// A client's stream socket, bound if need be and not connected yet. `blocking` is SOCK_NONBLOCK
/// or zero.
pub(super) fn open_tcp(
    spec: &SocketSpec,
    options: &SocketOptions,
    blocking: libc::c_int,
) -> io::Result<OwnedFd> {
    let fd = create(is_ipv6(spec), libc::SOCK_STREAM | blocking, 0)?;
    if let Some(octets) = options.buffer_octets {
        set_buffers(&fd, octets);
    }
    set_no_delay(&fd)?;
    do_not_pace(&fd);
    if spec.fast_open {
        // If the host has disabled it, this is an ordinary connection.
        let _ = set(&fd, libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT, 1);
    }
    bind(&fd, spec)?;
    Ok(fd)
}

/// The one peer of a client's socket.
pub(super) fn peer_of(spec: &SocketSpec) -> io::Result<SocketAddr> {
    let missing = || io::Error::from_raw_os_error(libc::EDESTADDRREQ);
    spec.peer.ok_or_else(missing)
}

/// Connections that a listener may hold whose SYN carried octets and whose handshake is not over.
const FAST_OPEN_QUEUE: libc::c_int = 1024;

/// A listening stream socket; `blocking` is SOCK_NONBLOCK or zero.
pub(super) fn listen_tcp(spec: &SocketSpec, blocking: libc::c_int) -> io::Result<OwnedFd> {
    let fd = create(is_ipv6(spec), libc::SOCK_STREAM | blocking, 0)?;
    set(&fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    // What it accepts has the same.
    do_not_pace(&fd);
    bind(&fd, spec)?;
    if spec.fast_open {
        let _ = set(&fd, libc::IPPROTO_TCP, libc::TCP_FASTOPEN, FAST_OPEN_QUEUE);
    }
    // SAFETY: a plain system call on an open descriptor.
    check(unsafe { libc::listen(fd.as_raw_fd(), 4096) })?;
    Ok(fd)
}

/// Takes one connection from a listener; `None` if there is none.
pub(super) fn accept(listener: &OwnedFd) -> io::Result<Option<(OwnedFd, SocketAddr)>> {
    let mut storage = SockAddr::empty();
    // SAFETY: the address storage is valid and its length is stated.
    let raw = unsafe {
        libc::accept4(
            listener.as_raw_fd(),
            storage.as_mut_ptr(),
            &mut storage.length,
            libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
        )
    };
    if raw < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ECONNABORTED | libc::EINTR) => Ok(None),
            _ => Err(error),
        };
    }
    // SAFETY: accept4 returned a new descriptor, which nothing else owns.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    set_no_delay(&fd)?;
    let peer = storage
        .std_address()
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT))?;
    Ok(Some((fd, peer)))
}

/// Makes a stream send written data at once (TCP_NODELAY).
pub(super) fn set_no_delay(fd: &OwnedFd) -> io::Result<()> {
    set(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)
}

/// Replaces BBR if it is the host's default: its pacing delays queries after they were counted as
/// sent, and its timers cost CPU time at both ends.
fn do_not_pace(fd: &OwnedFd) {
    /// Without pacing, and in every kernel.
    const PLAIN: &[u8] = b"reno";
    static IS_PACED: OnceLock<bool> = OnceLock::new();
    let is_paced = IS_PACED.get_or_init(|| {
        let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
        default.is_ok_and(|name| name.starts_with("bbr"))
    });
    if *is_paced {
        // SAFETY: the option's value is as long as is said. Where the host forbids it, the stream
        // stays as it is.
        unsafe {
            libc::setsockopt(
                fd.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_CONGESTION,
                PLAIN.as_ptr().cast(),
                PLAIN.len() as libc::socklen_t,
            )
        };
    }
}

/// Enables quick acknowledgements (tcp(7)); called after each read, because the kernel returns to
/// delayed ones whenever something is sent.
pub(super) fn acknowledge_now(fd: &OwnedFd) {
    // A failed stream reports it with its next event.
    let _ = set(fd, libc::IPPROTO_TCP, libc::TCP_QUICKACK, 1);
}

/// The other end of a connected stream.
pub(super) fn peer_addr(fd: &OwnedFd) -> io::Result<SocketAddr> {
    let mut storage = SockAddr::empty();
    // SAFETY: the address storage is valid and its length is stated.
    check(unsafe { libc::getpeername(fd.as_raw_fd(), storage.as_mut_ptr(), &mut storage.length) })?;
    storage
        .std_address()
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT))
}

/// Ends both directions, or only sending; fails only for a broken socket, whose next event reports
/// it.
pub(super) fn shut_down(fd: &OwnedFd, how: libc::c_int) {
    // SAFETY: a plain system call on an open descriptor.
    unsafe { libc::shutdown(fd.as_raw_fd(), how) };
}

/// Makes the coming close send a reset.
pub(super) fn set_reset_on_close(fd: &OwnedFd) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: the option's value is a `linger` of the stated size.
    unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of_val(&linger) as libc::socklen_t,
        )
    };
}

/// The pending error of a socket (SO_ERROR), which reading clears.
pub(super) fn take_error(fd: &OwnedFd) -> Option<SocketError> {
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `value` is as large as `length` says.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ERROR,
            (&raw mut value).cast(),
            &mut length,
        )
    };
    (result == 0 && value != 0).then(|| SocketError::of_errno(value))
}

/// The local address of a socket.
pub(super) fn local_addr(fd: &OwnedFd) -> io::Result<SocketAddr> {
    let mut storage = SockAddr::empty();
    // SAFETY: the address storage is valid and its length is stated.
    check(unsafe { libc::getsockname(fd.as_raw_fd(), storage.as_mut_ptr(), &mut storage.length) })?;
    storage
        .std_address()
        .ok_or_else(|| io::Error::from_raw_os_error(libc::EAFNOSUPPORT))
}

fn is_ipv6(spec: &SocketSpec) -> bool {
    let address = spec.peer.or(spec.local);
    address.is_some_and(|address| address.is_ipv6())
}

fn create(is_ipv6: bool, kind: libc::c_int, protocol: libc::c_int) -> io::Result<OwnedFd> {
    let family = if is_ipv6 {
        libc::AF_INET6
    } else {
        libc::AF_INET
    };
    // SAFETY: a plain system call.
    let raw = check(unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) })?;
    // SAFETY: socket returned a new descriptor, which nothing else owns.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    // A socket of ICMP is of one family anyway, and a raw one refuses the option.
    if is_ipv6 && protocol == 0 {
        set(&fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
    }
    Ok(fd)
}

fn bind(fd: &OwnedFd, spec: &SocketSpec) -> io::Result<()> {
    if spec.shared_port {
        set(fd, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
    }
    let Some(local) = spec.local else {
        return Ok(());
    };
    if local.port() == 0 && spec.peer.is_some() {
        // The port is chosen by connect, for this peer: many connections may then share one port
        // (dnsperf, without this, runs out of ports while old ones are in TIME_WAIT).
        set(fd, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
    }
    let address = SockAddr::from_std(local);
    // SAFETY: the address is valid for its stated length.
    check(unsafe { libc::bind(fd.as_raw_fd(), address.as_ptr(), address.length) })?;
    Ok(())
}

fn connect(fd: &OwnedFd, peer: SocketAddr) -> io::Result<()> {
    let address = SockAddr::from_std(peer);
    // SAFETY: the address is valid for its stated length.
    check(unsafe { libc::connect(fd.as_raw_fd(), address.as_ptr(), address.length) })?;
    Ok(())
}

/// Sets both buffers, beyond the sysctl maxima if privileges allow.
fn set_buffers(fd: &OwnedFd, octets: u32) {
    let value = i32::try_from(octets).unwrap_or(i32::MAX);
    for (force, plain) in [
        (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
    ] {
        if set(fd, libc::SOL_SOCKET, force, value).is_err() {
            // Never fails: the kernel cuts the value to net.core.rmem_max.
            let _ = set(fd, libc::SOL_SOCKET, plain, value);
        }
    }
}

pub(super) fn set(
    fd: &OwnedFd,
    level: libc::c_int,
    name: libc::c_int,
    value: i32,
) -> io::Result<()> {
    // SAFETY: the option's value is an int of the stated size.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    })?;
    Ok(())
}

pub(super) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// A socket address as the kernel wants it.
#[derive(Clone, Copy)]
pub(super) struct SockAddr {
    storage: libc::sockaddr_storage,
    pub(super) length: libc::socklen_t,
}

impl SockAddr {
    pub(super) fn empty() -> Self {
        SockAddr {
            // SAFETY: all-zero is a valid sockaddr_storage (AF_UNSPEC).
            storage: unsafe { std::mem::zeroed() },
            length: size_of::<libc::sockaddr_storage>() as libc::socklen_t,
        }
    }

    /// A copy of the address at `octets`, as much of it as is there.
    pub(super) fn from_octets(octets: &[u8]) -> Self {
        let mut new = SockAddr::empty();
        let length = octets.len().min(size_of::<libc::sockaddr_storage>());
        // SAFETY: both the slice and the storage have at least `length` octets.
        unsafe {
            let place = (&raw mut new.storage).cast::<u8>();
            std::ptr::copy_nonoverlapping(octets.as_ptr(), place, length);
        }
        new.length = length as libc::socklen_t;
        new
    }

    pub(super) fn from_std(address: SocketAddr) -> Self {
        let mut new = SockAddr::empty();
        match address {
            SocketAddr::V4(v4) => {
                let raw = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr {
                        s_addr: u32::from(*v4.ip()).to_be(),
                    },
                    sin_zero: [0; 8],
                };
                // SAFETY: sockaddr_storage is large and aligned enough for any sockaddr.
                unsafe {
                    (&raw mut new.storage)
                        .cast::<libc::sockaddr_in>()
                        .write(raw)
                };
                new.length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
            }
            SocketAddr::V6(v6) => {
                let raw = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr: libc::in6_addr {
                        s6_addr: v6.ip().octets(),
                    },
                    sin6_scope_id: v6.scope_id(),
                };
                // SAFETY: as above.
                unsafe {
                    (&raw mut new.storage)
                        .cast::<libc::sockaddr_in6>()
                        .write(raw)
                };
                new.length = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
            }
        }
        new
    }

    pub(super) fn std_address(&self) -> Option<SocketAddr> {
        match libc::c_int::from(self.storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: the family says that it is a sockaddr_in.
                let raw = unsafe { (&raw const self.storage).cast::<libc::sockaddr_in>().read() };
                let ip = Ipv4Addr::from(u32::from_be(raw.sin_addr.s_addr));
                Some(SocketAddrV4::new(ip, u16::from_be(raw.sin_port)).into())
            }
            libc::AF_INET6 => {
                // SAFETY: the family says that it is a sockaddr_in6.
                let raw = unsafe {
                    (&raw const self.storage)
                        .cast::<libc::sockaddr_in6>()
                        .read()
                };
                let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
                let port = u16::from_be(raw.sin6_port);
                Some(SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id).into())
            }
            _ => None,
        }
    }

    pub(super) fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut libc::sockaddr {
        (&raw mut self.storage).cast()
    }
}
