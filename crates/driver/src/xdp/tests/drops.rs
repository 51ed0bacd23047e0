//! What is dropped on the way is counted, at both ends.

use super::*;
use crate::netlink::Generic;

/// Frames that one socket has for what arrives.
const RECEIVE_FRAMES: u64 = 4_096;
/// Frames that the kernel sends by itself at most: router solicitations, multicast listeners.
const FRAMES_OF_KERNEL_MAX: u64 = 20;

impl Pair {
    /// Sends datagrams to an end that does not read.
    fn send(&mut self, number: usize) {
        let payloads = vec![&[7; 44][..]; 64];
        let deadline = self.near.now() + PATIENCE;
        let mut sent = 0;
        while sent < number {
            let rest = payloads.len().min(number - sent);
            let outgoing = outgoing(&payloads[..rest], None);
            sent += self.near.send_datagrams(self.client, &outgoing).accepted;
            self.near.flush();
            assert!(self.near.now() < deadline, "nothing leaves");
        }
        while self.near.queues.iter().any(XdpSocket::is_stuck) {
            self.near.wait(Instant::ZERO);
            assert!(self.near.now() < deadline, "not all leave");
        }
    }

    /// What both ends count once `is_complete`. Both read the same four counters of the kernel:
    /// the near end reads them before and after the far end, until nothing was counted meanwhile.
    fn drops(&mut self, is_complete: impl Fn(InterfaceDrops) -> bool) -> [InterfaceDrops; 2] {
        let deadline = self.near.now() + PATIENCE;
        loop {
            let [before, far, after] =
                [&self.near, &self.far, &self.near].map(|end| end.stats().xdp.interface);
            if before == after && is_complete(after) {
                return [after, far];
            }
            assert!(self.near.now() < deadline, "{before:?} {far:?} {after:?}");
        }
    }
}

#[test]
fn what_finds_no_free_frame_is_seen_from_both_ends() {
    let Some(ends) = Wire::default().lay() else {
        return;
    };
    let mut pair = Pair::open(&ends, 0);
    let number = 6_000;
    pair.send(number as usize);
    // The ring of the veth pair may overflow too where the CPU is busy, and what the kernel itself
    // sends (RFC 4861 and RFC 3810) is dropped like the datagrams.
    let [near, far] = pair.drops(|near| near.peer_received + near.sent + RECEIVE_FRAMES >= number);
    let dropped = near.peer_received + near.sent;
    assert!(
        dropped <= number - RECEIVE_FRAMES + FRAMES_OF_KERNEL_MAX,
        "{near:?}"
    );
    assert_eq!((near.received, near.peer_sent), (0, 0));
    assert_eq!((far.received, far.sent), (near.peer_received, 0));
    assert_eq!((far.peer_received, far.peer_sent), (0, near.sent));
    let of_far = pair.far.stats();
    assert_eq!(of_far.xdp.receive_dropped, far.received);
    assert_eq!(of_far.receive_drops, far.received);
    assert_eq!(pair.near.stats().receive_drops, 0);
}

#[test]
fn what_a_veth_pair_has_no_room_for_is_seen_from_both_ends() {
    let Some(ends) = Wire::default().lay() else {
        return;
    };
    let mut pair = Pair::open(&ends, 0);
    ends[1].enter();
    let Some(netlink) = Generic::open()
        .ok()
        .filter(|_| pair.far.read_pace.is_some())
    else {
        eprintln!("not tried: this kernel has no settings of NAPI instances");
        return;
    };
    // The far end is read by a timer, and then no more for a second: as by a host without CPU time.
    for napi in netlink.napis(pair.far.interface.device).unwrap() {
        netlink.defer_interrupts(napi, 100, 1_000_000_000).unwrap();
    }
    // Repeated if this thread was not scheduled for that second. Few enough for the ring of AF_XDP.
    for _ in 0..10 {
        pair.send(1);
        pair.send(1_000);
        if pair.near.stats().xdp.interface.sent >= 700 {
            break;
        }
    }
    let [near, far] = pair.drops(|near| near.sent >= 700);
    assert_eq!(far.peer_sent, near.sent);
    let of_others = [
        near.received,
        near.peer_received,
        near.peer_sent,
        far.received,
    ];
    assert_eq!(of_others, [0; 4]);
    // No counter of AF_XDP tells.
    for end in [&pair.near, &pair.far] {
        let of_rings = XdpStats {
            interface: InterfaceDrops::default(),
            ..end.stats().xdp
        };
        assert_eq!(of_rings, XdpStats::default());
    }
}

#[test]
fn one_worker_of_several_tells_what_their_interface_dropped() {
    let wire = Wire {
        queues: 2,
        ..Wire::default()
    };
    let Some(ends) = wire.lay() else {
        return;
    };
    let workers = [0, 1].map(|worker| ends[0].worker(worker, 2).unwrap());
    assert_eq!(workers.map(|it| it.drops.is_some()), [true, false]);
}
