//! Network cards that timestamp datagrams in hardware: detection, set-up, and their clocks.
//!
//! The timestamps come from a clock on the card (a PTP hardware clock, `/dev/ptpN`), which need not
//! be synchronised: both clocks are read together. Timestamping is left on, because other programs
//! such as ptp4l may use it by then; `hwstamp_ctl -i INTERFACE -t 0 -r 0` ends it.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use crate::clock::try_read_ns;
use crate::ethtool::{ask, ethtool, interface_name};
use crate::netlink::Netlink;

/// Command of ethtool: what an interface can stamp (linux/ethtool.h).
const ETHTOOL_GET_TS_INFO: u32 = 0x41;
/// For all datagrams: bits of `send_types` and `receive_filters`, and the settings that enable it
/// (HWTSTAMP_TX_ON and HWTSTAMP_FILTER_ALL of linux/net_tstamp.h).
const ALL: libc::c_int = 1;

/// struct ethtool_ts_info.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Abilities {
    command: u32,
    /// Flags of SO_TIMESTAMPING.
    flags: u32,
    /// Number of the clock; negative without one.
    clock: i32,
    send_types: u32,
    send_reserved: [u32; 3],
    receive_filters: u32,
    receive_reserved: [u32; 3],
}

impl Abilities {
    /// What prevents timestamps in both directions.
    fn lack(&self) -> Option<&'static str> {
        let has = |flag: libc::c_uint| self.flags & flag != 0;
        if self.clock < 0 {
            Some("has no clock (PTP hardware clock)")
        } else if !has(libc::SOF_TIMESTAMPING_TX_HARDWARE) || self.send_types & (1 << ALL) == 0 {
            Some("stamps no datagrams that leave")
        } else if !has(libc::SOF_TIMESTAMPING_RX_HARDWARE) || self.receive_filters & (1 << ALL) == 0
        {
            Some("stamps none of the datagrams that arrive, or those of PTP only")
        } else if !has(libc::SOF_TIMESTAMPING_RAW_HARDWARE) {
            Some("does not hand over the times of its clock")
        } else {
            None
        }
    }
}

/// The clock of a card that stamps datagrams.
#[derive(Debug)]
pub struct CardClock(File);

impl CardClock {
    /// Its time in nanoseconds, since whenever; none if the card is gone.
    pub(crate) fn now_ns(&self) -> Option<u64> {
        try_read_ns(clock_of_descriptor(self.0.as_raw_fd()))
    }
}

/// The clock that an open descriptor stands for (FD_TO_CLOCKID of the kernel).
fn clock_of_descriptor(descriptor: libc::c_int) -> libc::clockid_t {
    const CLOCKFD: libc::c_int = 3;
    (!descriptor << 3) | CLOCKFD
}

/// Makes the card between `local` and `peer` timestamp all datagrams, and opens its clock. Sends
/// nothing.
///
/// # Errors
/// The interface has no such card, its settings may not be changed (CAP_NET_ADMIN), or its clock
/// may not be opened; the error names interface and reason.
pub fn prepare(peer: SocketAddr, local: Option<IpAddr>) -> io::Result<CardClock> {
    let interface = interface_to(peer, local)?;
    let mut abilities = Abilities {
        command: ETHTOOL_GET_TS_INFO,
        ..Abilities::default()
    };
    // SAFETY: the structure is the one that the command fills.
    unsafe { ethtool(interface, &mut abilities) }?;
    let name = interface_name(interface)?;
    if let Some(lack) = abilities.lack() {
        return Err(io::Error::other(format!("{name} {lack}")));
    }
    let failed = |what: &str, error: io::Error| {
        io::Error::new(error.kind(), format!("{name}: cannot {what}: {error}"))
    };
    stamp_all(interface).map_err(|error| failed("have it stamp all datagrams", error))?;
    let path = format!("/dev/ptp{}", abilities.clock);
    let clock = File::open(&path).map_err(|error| failed(&format!("open {path}"), error))?;
    Ok(CardClock(clock))
}

/// The interface, by index, over which datagrams to `peer` leave.
fn interface_to(peer: SocketAddr, local: Option<IpAddr>) -> io::Result<u32> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((local.unwrap_or(any), 0))?;
    socket.connect(peer)?;
    let scope = match peer {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(peer) => peer.scope_id(),
    };
    let from = socket.local_addr()?.ip();
    let route = Netlink::open()?.route(peer.ip(), from, scope)?;
    Ok(route.interface)
}

/// Makes a card timestamp all datagrams, if it does not already.
fn stamp_all(interface: u32) -> io::Result<()> {
    let mut config = libc::hwtstamp_config {
        flags: 0,
        tx_type: 0,
        rx_filter: 0,
    };
    // SAFETY: the structure is the one that the request fills.
    let told = unsafe { ask(interface, libc::SIOCGHWTSTAMP, &mut config) };
    if told.is_ok() && config.tx_type == ALL && config.rx_filter == ALL {
        return Ok(());
    }
    (config.flags, config.tx_type, config.rx_filter) = (0, ALL, ALL);
    // SAFETY: the structure is the one that the request reads and writes.
    unsafe { ask(interface, libc::SIOCSHWTSTAMP, &mut config) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_card_lacks_is_said() {
        let mut abilities = Abilities {
            clock: -1,
            ..Abilities::default()
        };
        let mut check = |change: fn(&mut Abilities), lack: Option<&str>| {
            change(&mut abilities);
            assert_eq!(abilities.lack(), lack);
        };
        check(|_| (), Some("has no clock (PTP hardware clock)"));
        check(|it| it.clock = 0, Some("stamps no datagrams that leave"));
        check(
            |it| {
                it.flags = libc::SOF_TIMESTAMPING_TX_HARDWARE | libc::SOF_TIMESTAMPING_RX_HARDWARE;
                it.send_types = 0b11;
                // PTP version 2 over UDP, and nothing else.
                it.receive_filters = 1 << 6 | 1;
            },
            Some("stamps none of the datagrams that arrive, or those of PTP only"),
        );
        check(
            |it| it.receive_filters |= 0b10,
            Some("does not hand over the times of its clock"),
        );
        check(|it| it.flags |= libc::SOF_TIMESTAMPING_RAW_HARDWARE, None);
    }

    #[test]
    fn loopback_has_no_clock() {
        for peer in ["127.0.0.1:53", "[::1]:53"] {
            let refused = prepare(peer.parse().unwrap(), None)
                .unwrap_err()
                .to_string();
            assert_eq!(refused, "lo has no clock (PTP hardware clock)");
        }
    }

    #[test]
    fn a_descriptor_that_is_no_clock_has_no_time() {
        let file = File::open("/dev/null").unwrap();
        assert_eq!(CardClock(file).now_ns(), None);
        // As in the example of the kernel's documentation.
        assert_eq!(clock_of_descriptor(3), -29);
    }
}
