//! What the interface dropped meanwhile, and the other end of a veth pair.
//!
//! The rings of AF_XDP count what they had no room for; what never came so far does not show there.
//! A veth pair hands frames from end to end through rings of 256, which a host that is short of CPU
//! time reads too late: the end that sends then counts them as dropped. Of a frame that came and
//! was for a full ring of AF_XDP, the end that receives counts it. So both ends are asked.

use std::io;

use super::stats::InterfaceDrops;
use crate::netlink::{Dropped, Netlink};

/// Asks for the counters of an interface. They are of all its frames, so that one worker of a
/// process does it.
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

    /// What has been dropped so far; zero for an end that is gone, or that may not be asked.
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
