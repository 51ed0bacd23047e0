//! The interface that frames leave by: its name, kind and queues.

use std::ffi::CString;
use std::io;

use settings::InterfaceName;

use crate::ethtool::ethtool;
use crate::netlink::{Link, Mac, Netlink};

/// Number of receive queues of the interface, which limits the number of workers.
///
/// # Errors
/// There is no such interface, or it is one that sends through others.
pub fn receive_queues(interface: InterfaceName) -> io::Result<u32> {
    Interface::find(interface, &Netlink::open()?).map(|found| found.queues)
}

/// Properties of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: InterfaceName,
    /// As routes and neighbours name it.
    pub(super) index: u32,
    /// The one that has queues: itself, or what is below a VLAN.
    pub(super) device: u32,
    pub(super) mac: Mac,
    pub(super) mtu: u32,
    /// Frames bear this tag.
    pub(super) vlan: Option<u16>,
    /// Queues that receive.
    pub(super) queues: u32,
    /// Frames may come from this host, with incomplete checksums: without a network card, nothing
    /// completes them.
    pub(super) is_virtual: bool,
    /// Its NAPI instances exist only for our program, and are removed with it.
    pub(super) is_read_for_us: bool,
}

impl Interface {
    /// Looks an interface up.
    ///
    /// # Errors
    /// There is none of that name, or it is one that sends through others.
    pub(super) fn find(name: InterfaceName, netlink: &Netlink) -> io::Result<Interface> {
        // No name has a zero within.
        let text = CString::new(name.to_string()).unwrap_or_default();
        // SAFETY: `text` ends with a zero and lives until the call is over.
        let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
        if index == 0 {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("there is no interface `{name}` here; `ip link` lists them"),
            ));
        }
        let link = netlink.link(index)?;
        if link.is_loopback {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "`{name}` is the loopback interface, which takes no frames from outside the \
                     kernel; without AF_XDP it will do"
                ),
            ));
        }
        if matches!(
            link.kind.as_str(),
            "bridge" | "bond" | "team" | "openvswitch"
        ) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "`{name}` is a {}, and AF_XDP needs a network card, a veth or a VLAN of one; \
                     without AF_XDP any interface will do",
                    link.kind
                ),
            ));
        }
        let (device, below) = match (link.vlan, link.below) {
            (Some(_), Some(below)) => (below, netlink.link(below)?),
            _ => (index, link.clone()),
        };
        #[cfg(test)]
        let link = Link {
            vlan: super::tests::VLAN_IN_TESTS.get().or(link.vlan),
            ..link
        };
        Ok(Interface {
            name,
            index,
            device,
            mac: link.mac,
            mtu: link.mtu,
            vlan: link.vlan,
            queues: queues(device)?,
            is_virtual: is_virtual(&below),
            is_read_for_us: below.kind == "veth" && !has_receive_offload(device),
        })
    }
}

fn is_virtual(link: &Link) -> bool {
    matches!(link.kind.as_str(), "veth" | "tun" | "macvlan" | "dummy")
}

/// The interface puts segments together (GRO), for which a veth interface is read all the time.
fn has_receive_offload(index: u32) -> bool {
    const ETHTOOL_GGRO: u32 = 0x2b;
    let mut value = [ETHTOOL_GGRO, 0];
    // SAFETY: struct ethtool_value: the command and a number that it fills.
    let told = unsafe { ethtool(index, &mut value) };
    told.is_err() || value[1] != 0
}

/// Number of receive queues of an interface; one if its driver does not report it.
fn queues(index: u32) -> io::Result<u32> {
    const ETHTOOL_GCHANNELS: u32 = 0x3c;
    /// struct ethtool_channels (linux/ethtool.h): the maxima of receive, transmit, other and
    /// combined channels, then how many of each there are.
    #[repr(C)]
    #[derive(Default)]
    struct Channels {
        command: u32,
        maxima: [u32; 4],
        receive: u32,
        transmit: u32,
        other: u32,
        combined: u32,
    }
    let mut channels = Channels {
        command: ETHTOOL_GCHANNELS,
        ..Channels::default()
    };
    // SAFETY: the structure is the one that the command fills.
    let told = unsafe { ethtool(index, &mut channels) };
    match told {
        Ok(()) => Ok((channels.receive + channels.combined).max(1)),
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_linux_allows() {
        for name in ["eth0", "enp3s0f1np1", "eth0.100", "a"] {
            assert_eq!(name.parse::<InterfaceName>().unwrap().to_string(), name);
        }
        for text in ["", "sixteen-octets-x", "a b", "a/b", "\u{e9}th0"] {
            assert!(text.parse::<InterfaceName>().is_err(), "{text}");
        }
    }

    #[test]
    fn interfaces_that_will_not_do_are_refused_with_the_reason() {
        let netlink = Netlink::open().unwrap();
        for (name, reason) in [("lo", "loopback"), ("no-such-if", "there is no interface")] {
            let error = Interface::find(name.parse().unwrap(), &netlink).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(name) && text.contains(reason), "{text}");
        }
    }
}
