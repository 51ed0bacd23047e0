//! Interfaces, routes and neighbours of the kernel, read over netlink (RFC 3549).
//!
//! One request at a time on a separate socket; nothing here is on the data path.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use crate::socket::check;

// Numbers of linux/rtnetlink.h, linux/if_link.h and linux/neighbour.h.
const RTM_GETLINK: u16 = 18;
const RTM_GETROUTE: u16 = 26;
const RTM_GETNEIGH: u16 = 30;
const IFLA_ADDRESS: u16 = 1;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_LINKINFO: u16 = 18;
const IFLA_IFALIAS: u16 = 20;
const IFLA_STATS64: u16 = 23;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_TARGET_NETNSID: u16 = 46;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VLAN_ID: u16 = 1;
const RTA_DST: u16 = 1;
const RTA_SRC: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_VIA: u16 = 18;
const NDA_DST: u16 = 1;
const NDA_LLADDR: u16 = 2;
// Numbers of linux/genetlink.h and linux/netdev.h.
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const NETDEV_CMD_NAPI_GET: u8 = 11;
const NETDEV_CMD_NAPI_SET: u8 = 14;
const NETDEV_A_NAPI_IFINDEX: u16 = 1;
const NETDEV_A_NAPI_ID: u16 = 2;
const NETDEV_A_NAPI_DEFER_HARD_IRQS: u16 = 5;
const NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT: u16 = 6;
/// The upper bits of an attribute's type are flags.
const ATTRIBUTE_TYPE: u16 = 0x3fff;
/// Reachable, stale, delay, probe, no ARP, permanent: states in which the address holds.
const NEIGHBOUR_IS_KNOWN: u16 = 0x02 | 0x04 | 0x08 | 0x10 | 0x40 | 0x80;

// Of linux/netlink.h.
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const HEADER_OCTETS: usize = 16;
/// One answer; that of an interface is the longest, with a few KiB of statistics.
const ANSWER_OCTETS_MAX: usize = 64 << 10;

/// A link-layer address of Ethernet.
pub(crate) type Mac = [u8; 6];

/// Properties of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) mac: Mac,
    pub(crate) mtu: u32,
    /// `veth`, `vlan`, `bridge` and so on; empty for a network card.
    pub(crate) kind: String,
    /// Its alias; empty without one.
    pub(crate) alias: String,
    /// The interface below, of a VLAN; the other end, of a veth pair.
    pub(crate) below: Option<u32>,
    /// The network namespace of `below`, as this one numbers it; none if it is this one.
    pub(crate) namespace: Option<u32>,
    pub(crate) vlan: Option<u16>,
    pub(crate) is_loopback: bool,
    /// It is up, and has a carrier if it is of a kind that has.
    pub(crate) is_running: bool,
    pub(crate) dropped: Dropped,
}

/// Frames that an interface dropped since it was created, of all senders and receivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// On receiving: `rx_dropped` and `rx_missed_errors`, which do not overlap.
    pub received: u64,
    /// On sending: `tx_dropped`.
    pub sent: u64,
}

/// The route of datagrams to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// By index.
    pub(crate) interface: u32,
    /// The gateway; none if the receiver is on the link.
    pub(crate) gateway: Option<IpAddr>,
}

/// A conversation with the kernel.
#[derive(Debug)]
pub(crate) struct Netlink(OwnedFd);

impl Netlink {
    pub(crate) fn open() -> io::Result<Netlink> {
        Netlink::with(libc::NETLINK_ROUTE)
    }

    fn with(protocol: libc::c_int) -> io::Result<Netlink> {
        // SAFETY: a plain system call.
        let raw = check(unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
            libc::socket(libc::AF_NETLINK, kind, protocol)
        })?;
        // SAFETY: socket returned a new descriptor, which nothing else owns.
        Ok(Netlink(unsafe { OwnedFd::from_raw_fd(raw) }))
    }

    /// An interface, by index.
    pub(crate) fn link(&self, index: u32) -> io::Result<Link> {
        self.link_in(None, index)
    }

    /// As [`Netlink::link`], in the network namespace with that number in this one.
    pub(crate) fn link_in(&self, namespace: Option<u32>, index: u32) -> io::Result<Link> {
        // struct ifinfomsg: family, padding, type, index, flags, change.
        let mut body = [0_u8; 16];
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        let of = namespace.map(|id| (IFLA_TARGET_NETNSID, id.to_ne_bytes().to_vec()));
        let answer = self.ask(RTM_GETLINK, &body, of.as_slice())?;
        let flags = answer.get(8..12).and_then(number).unwrap_or_default();
        let has = |flag: libc::c_int| flags & flag as u32 != 0;
        let mut link = Link {
            is_loopback: has(libc::IFF_LOOPBACK),
            is_running: has(libc::IFF_UP) && has(libc::IFF_LOWER_UP),
            ..Link::default()
        };
        for (name, value) in attributes(answer.get(16..).unwrap_or_default()) {
            match name {
                IFLA_ADDRESS => link.mac = value.try_into().unwrap_or_default(),
                IFLA_MTU => link.mtu = number(value).unwrap_or_default(),
                IFLA_LINK => link.below = number(value),
                IFLA_LINK_NETNSID => link.namespace = number(value),
                IFLA_IFALIAS => link.alias = text(value),
                IFLA_STATS64 => link.dropped = dropped(value),
                IFLA_LINKINFO => read_kind(value, &mut link),
                _ => {}
            }
        }
        Ok(link)
    }

    /// The route to `to`, for datagrams from `from`; to link-local addresses over `interface`.
    pub(crate) fn route(&self, to: IpAddr, from: IpAddr, interface: u32) -> io::Result<Route> {
        // struct rtmsg: family, lengths of destination and source, TOS, table and so on.
        let mut body = [0_u8; 12];
        body[0] = family(to);
        (body[1], body[2]) = (
            octets_of(to).len() as u8 * 8,
            octets_of(from).len() as u8 * 8,
        );
        let mut of = vec![(RTA_DST, octets_of(to)), (RTA_SRC, octets_of(from))];
        if matches!(to, IpAddr::V6(v6) if v6.is_unicast_link_local()) {
            of.push((RTA_OIF, interface.to_ne_bytes().to_vec()));
        }
        let answer = self.ask(RTM_GETROUTE, &body, &of)?;
        let mut route = Route {
            interface: 0,
            gateway: None,
        };
        for (name, value) in attributes(answer.get(12..).unwrap_or_default()) {
            match name {
                RTA_OIF => route.interface = number(value).unwrap_or_default(),
                RTA_GATEWAY => route.gateway = address(value),
                // A gateway of the other family, with its family before it.
                RTA_VIA => route.gateway = address(value.get(2..).unwrap_or_default()),
                _ => {}
            }
        }
        Ok(route)
    }

    /// The link-layer address of a neighbour; none if the kernel does not know it now.
    pub(crate) fn neighbour(&self, interface: u32, of: IpAddr) -> io::Result<Option<Mac>> {
        // struct ndmsg: family, padding, interface, state, flags, type.
        let mut body = [0_u8; 12];
        body[0] = family(of);
        body[4..8].copy_from_slice(&interface.to_ne_bytes());
        let answer = match self.ask(RTM_GETNEIGH, &body, &[(NDA_DST, octets_of(of))]) {
            Ok(answer) => answer,
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(None),
            Err(error) => return Err(error),
        };
        let state = answer.get(8..10).and_then(|it| it.try_into().ok());
        let state = state.map_or(0, u16::from_ne_bytes);
        if state & NEIGHBOUR_IS_KNOWN == 0 {
            return Ok(None);
        }
        let mut attributes = attributes(answer.get(12..).unwrap_or_default());
        let found = attributes.find(|(name, _)| *name == NDA_LLADDR);
        Ok(found.and_then(|(_, value)| value.try_into().ok()))
    }

    /// Sends a request, and returns the content of the only response after its header.
    fn ask(&self, what: u16, body: &[u8], of: &[(u16, Vec<u8>)]) -> io::Result<Vec<u8>> {
        self.send((what, NLM_F_REQUEST), body, of)?;
        let answer = self.receive()?;
        let (kind, body, _) = message(&answer)?;
        match kind {
            NLMSG_ERROR => refusal(body).and(Ok(Vec::new())),
            _ => Ok(body.to_vec()),
        }
    }

    /// Sends a command to the kernel.
    fn tell(&self, what: u16, body: &[u8], of: &[(u16, Vec<u8>)]) -> io::Result<()> {
        self.send((what, NLM_F_REQUEST | NLM_F_ACK), body, of)?;
        refusal(message(&self.receive()?)?.1)
    }

    /// Requests a dump; returns the content of each message after its header.
    fn ask_for_all(
        &self,
        what: u16,
        body: &[u8],
        of: &[(u16, Vec<u8>)],
    ) -> io::Result<Vec<Vec<u8>>> {
        self.send((what, NLM_F_REQUEST | NLM_F_DUMP), body, of)?;
        let mut all = Vec::new();
        loop {
            let answer = self.receive()?;
            let mut rest = &answer[..];
            while !rest.is_empty() {
                let (kind, body, following) = message(rest)?;
                rest = following;
                match kind {
                    NLMSG_DONE => return Ok(all),
                    NLMSG_ERROR => refusal(body)?,
                    _ => all.push(body.to_vec()),
                }
            }
        }
    }

    fn send(
        &self,
        (what, flags): (u16, u16),
        body: &[u8],
        of: &[(u16, Vec<u8>)],
    ) -> io::Result<()> {
        let mut message = vec![0; HEADER_OCTETS];
        message.extend_from_slice(body);
        for (name, value) in of {
            message.extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
            message.extend_from_slice(&name.to_ne_bytes());
            message.extend_from_slice(value);
            message.resize(message.len().next_multiple_of(4), 0);
        }
        let length = message.len() as u32;
        message[0..4].copy_from_slice(&length.to_ne_bytes());
        message[4..6].copy_from_slice(&what.to_ne_bytes());
        message[6..8].copy_from_slice(&flags.to_ne_bytes());
        // SAFETY: the buffer is valid for its length. A socket that is not bound or connected talks
        // to the kernel.
        let sent = unsafe {
            let fd = self.0.as_raw_fd();
            libc::send(fd, message.as_ptr().cast(), message.len(), 0)
        };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
        Ok(())
    }

    /// Reads the next datagram of the kernel, which may hold several messages.
    fn receive(&self) -> io::Result<Vec<u8>> {
        let mut answer = vec![0; ANSWER_OCTETS_MAX];
        // SAFETY: the buffer is valid for its length.
        let octets = unsafe {
            let fd = self.0.as_raw_fd();
            libc::recv(fd, answer.as_mut_ptr().cast(), answer.len(), 0)
        };
        let octets = usize::try_from(octets).map_err(|_| io::Error::last_os_error())?;
        answer.truncate(octets);
        Ok(answer)
    }
}

/// The first of some messages: its type, what follows its header, and the others.
fn message(octets: &[u8]) -> io::Result<(u16, &[u8], &[u8])> {
    let header = octets.get(..HEADER_OCTETS).ok_or_else(cut_off)?;
    let length = number(&header[..4]).ok_or_else(cut_off)? as usize;
    let body = octets.get(HEADER_OCTETS..length).ok_or_else(cut_off)?;
    let kind = u16::from_ne_bytes([header[4], header[5]]);
    let rest = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
    Ok((kind, body, rest))
}

/// Dropped frames in a struct rtnl_link_stats64 (linux/if_link.h).
fn dropped(statistics: &[u8]) -> Dropped {
    let counter = |place: usize| {
        let octets = statistics.get(place * 8..place * 8 + 8)?;
        octets.try_into().ok().map(u64::from_ne_bytes)
    };
    let [received, sent, missed] = [6, 7, 15].map(|place| counter(place).unwrap_or(0));
    Dropped {
        received: received + missed,
        sent,
    }
}

/// The error in a message of type NLMSG_ERROR, which may be success.
fn refusal(body: &[u8]) -> io::Result<()> {
    let errno = body.get(..4).and_then(number);
    match errno.map(|errno| (errno as i32).wrapping_neg()) {
        Some(0) => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        None => Err(cut_off()),
    }
}

fn cut_off() -> io::Error {
    io::Error::other("the kernel's answer over netlink is cut off")
}

/// A conversation about how the kernel reads interfaces (the family `netdev` of generic netlink).
pub(crate) struct Generic {
    netlink: Netlink,
    family: u16,
}

impl Generic {
    pub(crate) fn open() -> io::Result<Generic> {
        let netlink = Netlink::with(libc::NETLINK_GENERIC)?;
        // struct genlmsghdr: command, version, reserved.
        let body = [CTRL_CMD_GETFAMILY, 1, 0, 0];
        let name = b"netdev\0".to_vec();
        let answer = netlink.ask(GENL_ID_CTRL, &body, &[(CTRL_ATTR_FAMILY_NAME, name)])?;
        let mut attributes = attributes(answer.get(4..).unwrap_or_default());
        let found = attributes.find(|(name, _)| *name == CTRL_ATTR_FAMILY_ID);
        let family = found.and_then(|(_, value)| value.try_into().ok());
        let family = family.map(u16::from_ne_bytes);
        let family = family.ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        Ok(Generic { netlink, family })
    }

    /// The numbers of an interface's NAPI instances, in ascending order: that of its queues.
    pub(crate) fn napis(&self, interface: u32) -> io::Result<Vec<u32>> {
        let mut ids = self.of_napis(interface, NETDEV_A_NAPI_ID)?;
        ids.sort_unstable();
        Ok(ids)
    }

    /// How often the timer of a NAPI instance of an interface reads, in ns, whichever has it.
    #[cfg(test)]
    pub(crate) fn timers(&self, interface: u32) -> io::Result<Vec<u32>> {
        self.of_napis(interface, NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT)
    }

    /// One attribute, a number, of each of an interface's NAPI instances that has it.
    fn of_napis(&self, interface: u32, wanted: u16) -> io::Result<Vec<u32>> {
        let of = [(NETDEV_A_NAPI_IFINDEX, interface.to_ne_bytes().to_vec())];
        let body = [NETDEV_CMD_NAPI_GET, 1, 0, 0];
        let answers = self.netlink.ask_for_all(self.family, &body, &of)?;
        let value = |answer: &Vec<u8>| {
            let mut attributes = attributes(answer.get(4..).unwrap_or_default());
            let found = attributes.find(|(name, _)| *name == wanted);
            found.and_then(|(_, value)| number(value))
        };
        Ok(answers.iter().filter_map(value).collect())
    }

    /// Lets a timer poll a NAPI instance instead of interrupts, until it has found nothing this
    /// number of times; all zero for an interrupt each time.
    pub(crate) fn defer_interrupts(&self, napi: u32, rounds: u32, timer_ns: u32) -> io::Result<()> {
        let of = [
            (NETDEV_A_NAPI_ID, napi),
            (NETDEV_A_NAPI_DEFER_HARD_IRQS, rounds),
            (NETDEV_A_NAPI_GRO_FLUSH_TIMEOUT, timer_ns),
        ];
        let of = of.map(|(name, value)| (name, value.to_ne_bytes().to_vec()));
        let body = [NETDEV_CMD_NAPI_SET, 1, 0, 0];
        self.netlink.tell(self.family, &body, &of)
    }
}

/// Notifies of changes in the kernel's tables by any program.
pub(crate) struct Changes(OwnedFd);

impl Changes {
    /// Changes of neighbours.
    pub(crate) fn of_neighbours() -> io::Result<Changes> {
        Changes::of(libc::RTMGRP_NEIGH)
    }

    /// Interfaces, addresses and routes: whatever decides whether datagrams can leave.
    pub(crate) fn of_ways() -> io::Result<Changes> {
        let v4 = libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV4_ROUTE;
        let v6 = libc::RTMGRP_IPV6_IFADDR | libc::RTMGRP_IPV6_ROUTE;
        Changes::of(libc::RTMGRP_LINK | v4 | v6)
    }

    fn of(groups: libc::c_int) -> io::Result<Changes> {
        // SAFETY: a plain system call.
        let raw = check(unsafe {
            let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE)
        })?;
        // SAFETY: socket returned a new descriptor, which nothing else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        // SAFETY: all-zero is a valid sockaddr_nl.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as u16;
        address.nl_groups = groups as u32;
        // SAFETY: the address is valid for its stated length.
        check(unsafe {
            let length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
            libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length)
        })?;
        Ok(Changes(fd))
    }

    /// Waits until there is a change, or `until` has come.
    pub(crate) fn wait(&self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        wait_for([self.0.as_fd()], Some(left));
        self.forget();
    }

    /// Waits until there is a change, or `end` is readable or closed at its other end: false then.
    pub(crate) fn wait_unless(&self, end: BorrowedFd<'_>) -> bool {
        let [_, has_ended] = wait_for([self.0.as_fd(), end], None);
        self.forget();
        !has_ended
    }

    /// The content of a change is ignored: the caller reads the table.
    fn forget(&self) {
        let mut change = [0_u8; 512];
        let (fd, place) = (self.0.as_raw_fd(), change.as_mut_ptr().cast());
        // SAFETY: the buffer is as long as is said.
        while unsafe { libc::recv(fd, place, change.len(), libc::MSG_DONTWAIT) } > 0 {}
    }
}

/// Waits, at most for `time` if there is one, until something can be read from a descriptor, or it
/// is at its end; from which.
pub(crate) fn wait_for<const NUMBER: usize>(
    each: [BorrowedFd<'_>; NUMBER],
    time: Option<Duration>,
) -> [bool; NUMBER] {
    let mut watched = each.map(|fd| libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    let time = time.map(|time| libc::timespec {
        tv_sec: time.as_secs().min(3_600) as libc::time_t,
        tv_nsec: time.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let all_signals = std::ptr::null();
    // SAFETY: there are as many descriptors as is said, all of them open; the time outlives the
    // call.
    unsafe {
        let number = NUMBER as libc::nfds_t;
        libc::ppoll(watched.as_mut_ptr(), number, time, all_signals);
    }
    watched.map(|it| it.revents != 0)
}

fn read_kind(information: &[u8], link: &mut Link) {
    for (name, value) in attributes(information) {
        match name {
            IFLA_INFO_KIND => link.kind = text(value),
            IFLA_INFO_DATA if link.kind == "vlan" => {
                let mut data = attributes(value);
                let id = data.find(|(name, _)| *name == IFLA_VLAN_ID);
                let id = id.and_then(|(_, value)| value.try_into().ok());
                link.vlan = id.map(u16::from_ne_bytes);
            }
            _ => {}
        }
    }
}

/// Types and values, one after the other, each at a multiple of four.
fn attributes(mut octets: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let head = octets.get(..4)?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let name = u16::from_ne_bytes([head[2], head[3]]) & ATTRIBUTE_TYPE;
        let value = octets.get(4..length)?;
        octets = octets.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((name, value))
    })
}

/// Up to the zero at its end.
fn text(value: &[u8]) -> String {
    let end = value.iter().position(|octet| *octet == 0);
    let end = end.unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

fn number(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_ne_bytes)
}

fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

fn octets_of(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn address(value: &[u8]) -> Option<IpAddr> {
    match value.len() {
        4 => <[u8; 4]>::try_from(value)
            .ok()
            .map(|it| Ipv4Addr::from(it).into()),
        16 => <[u8; 16]>::try_from(value)
            .ok()
            .map(|it| Ipv6Addr::from(it).into()),
        _ => None,
    }
}
