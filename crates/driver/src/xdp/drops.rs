//! Frames dropped by the interface, and by the other end of a veth pair.
//!
//! The rings of AF_XDP count overflow, but not frames dropped earlier. A veth pair passes frames
//! through rings of 256, which a host short of CPU time reads too late: the sending end then counts
//! drops. The receiving end counts frames for a full AF_XDP ring. So the counters of both ends are
//! read.

use std::io;

use super::stats::InterfaceDrops;
use crate::netlink::{Dropped, Netlink};

/// Reads the counters of an interface. They cover all its frames, so only one worker of a process
/// reads them.
pub(super) struct Drops {
    netlink: Netlink,
    interface: u32,
    /// The other end of a veth pair: the namespace, if it is another one, and the interface there.
    peer: Option<(Option<u32>, u32)>,
    before: InterfaceDrops,
}

impl Drops {
    /// Counts from now on what `interface` of the thread's network namespace drops.
    pub(super) fn of(interface: u32) -> io::Result<Drops> {
        let netlink = Netlink::open()?;
        let link = netlink.link(interface)?;
        let peer = link.below.filter(|_| link.kind == "veth");
        let mut drops = Drops {
            netlink,
            interface,
            peer: peer.map(|peer| (link.namespace, peer)),
            before: InterfaceDrops::default(),
        };
        drops.before = drops.read();
        Ok(drops)
    }

    /// Frames dropped so far; zero for an end that is gone or not accessible.
    pub(super) fn so_far(&self) -> InterfaceDrops {
        let (now, before) = (self.read(), self.before);
        InterfaceDrops {
            received: now.received.saturating_sub(before.received),
            sent: now.sent.saturating_sub(before.sent),
            peer_received: now.peer_received.saturating_sub(before.peer_received),
            peer_sent: now.peer_sent.saturating_sub(before.peer_sent),
        }
    }

    fn read(&self) -> InterfaceDrops {
        let of = |(namespace, interface)| {
            let link = self.netlink.link_in(namespace, interface);
            link.map_or_else(|_| Dropped::default(), |link| link.dropped)
        };
        let own = of((None, self.interface));
        let peer = self.peer.map(of).unwrap_or_default();
        InterfaceDrops {
            received: own.received,
            sent: own.sent,
            peer_received: peer.received,
            peer_sent: peer.sent,
        }
    }
}
