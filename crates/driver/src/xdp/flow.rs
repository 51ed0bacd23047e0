//! The datagram sockets of a worker as this driver knows them, found by local address and port.

use std::net::SocketAddr;

use super::frame::Template;
use crate::{Datagram, SocketId};

/// No place in a table.
const NONE: u32 = u32::MAX;

/// One socket.
pub(super) struct Flow {
    pub(super) id: SocketId,
    pub(super) local: SocketAddr,
    /// The one peer, of a client's socket.
    pub(super) peer: Option<SocketAddr>,
    /// What its datagrams begin with; none for a server's socket.
    pub(super) template: Option<Template>,
    /// The queue that it sends by.
    pub(super) queue: usize,
    /// It waits for a frame to send with.
    pub(super) blocked: bool,
    /// The next socket with this port, on another address.
    next: u32,
    /// What has arrived for it: places of the first and the last.
    first: u32,
    last: u32,
}

impl Flow {
    pub(super) fn new(
        id: SocketId,
        (local, peer): (SocketAddr, Option<SocketAddr>),
        template: Option<Template>,
        queue: usize,
    ) -> Flow {
        Flow {
            id,
            local,
            peer,
            template,
            queue,
            blocked: false,
            next: NONE,
            first: NONE,
            last: NONE,
        }
    }
}

/// A datagram that waits to be delivered, and the next one of the same socket.
pub(super) struct Arrived {
    datagram: Datagram,
    next: u32,
}

/// All sockets of a worker.
pub(super) struct Flows {
    /// By index of their identity.
    flows: Vec<Option<Flow>>,
    /// The first socket of each port.
    by_port: Box<[u32]>,
}

impl Flows {
    pub(super) fn new() -> Flows {
        Flows {
            flows: Vec::new(),
            by_port: vec![NONE; 65_536].into_boxed_slice(),
        }
    }

    pub(super) fn insert(&mut self, mut flow: Flow) {
        let place = flow.id.index;
        let first = &mut self.by_port[usize::from(flow.local.port())];
        flow.next = std::mem::replace(first, place);
        let index = place as usize;
        if self.flows.len() <= index {
            self.flows.resize_with(index + 1, || None);
        }
        self.flows[index] = Some(flow);
    }

    pub(super) fn remove(&mut self, id: SocketId) -> Option<Flow> {
        self.get(id)?;
        let flow = self.flows[id.index as usize].take()?;
        let port = usize::from(flow.local.port());
        let mut place = self.by_port[port];
        if place == id.index {
            self.by_port[port] = flow.next;
            return Some(flow);
        }
        while let Some(other) = self.flows.get_mut(place as usize).and_then(Option::as_mut) {
            if other.next == id.index {
                other.next = flow.next;
                break;
            }
            place = other.next;
        }
        Some(flow)
    }

    #[inline]
    pub(super) fn get(&self, id: SocketId) -> Option<&Flow> {
        let flow = self.flows.get(id.index as usize)?.as_ref();
        flow.filter(|flow| flow.id == id)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: SocketId) -> Option<&mut Flow> {
        let flow = self.flows.get_mut(id.index as usize)?.as_mut();
        flow.filter(|flow| flow.id == id)
    }

    /// The place of the socket with a local address.
    #[inline]
    pub(super) fn find(&self, local: SocketAddr) -> Option<u32> {
        let mut place = self.by_port[usize::from(local.port())];
        loop {
            let flow = self.flows.get(place as usize)?.as_ref()?;
            if flow.local.ip() == local.ip() {
                return Some(place);
            }
            place = flow.next;
        }
    }

    /// The socket at a place that [`Flows::find`] gave.
    ///
    /// # Panics
    /// If it has been closed since.
    #[inline]
    pub(super) fn at(&self, place: u32) -> &Flow {
        self.flows[place as usize]
            .as_ref()
            .expect("just found there")
    }

    /// Appends a datagram for the socket at `place`; true if it is the first that waits.
    #[inline]
    pub(super) fn line_up(
        &mut self,
        place: u32,
        datagram: Datagram,
        arrived: &mut Vec<Arrived>,
    ) -> bool {
        let new = arrived.len() as u32;
        let Some(flow) = self.flows[place as usize].as_mut() else {
            return false;
        };
        arrived.push(Arrived {
            datagram,
            next: NONE,
        });
        let is_first = flow.first == NONE;
        match is_first {
            true => flow.first = new,
            false => arrived[flow.last as usize].next = new,
        }
        flow.last = new;
        is_first
    }

    /// Moves what waits for the socket at `place` to `datagrams`; its identity, if it is there.
    #[inline]
    pub(super) fn hand_over(
        &mut self,
        place: u32,
        arrived: &[Arrived],
        datagrams: &mut Vec<Datagram>,
    ) -> Option<SocketId> {
        let flow = self.flows[place as usize].as_mut()?;
        let mut next = std::mem::replace(&mut flow.first, NONE);
        if next == NONE {
            // Another socket than the one that it was for.
            return None;
        }
        while let Some(one) = arrived.get(next as usize) {
            datagrams.push(one.datagram);
            next = one.next;
        }
        Some(flow.id)
    }

    /// A server's socket sends by the queue that the latest queries came by: on a veth pair, and
    /// with cards that hash both ways alike, it is also the queue of the client's worker.
    #[inline]
    pub(super) fn send_back_by(&mut self, place: u32, queue: usize) {
        if let Some(flow) = self.flows[place as usize].as_mut()
            && flow.peer.is_none()
        {
            flow.queue = queue;
        }
    }

    /// The port of each socket.
    pub(super) fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.flows.iter().flatten().map(|flow| flow.local.port())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(index: u32, local: &str) -> Flow {
        let id = SocketId {
            index,
            generation: 7,
        };
        Flow::new(id, (local.parse().unwrap(), None), None, 0)
    }

    #[test]
    fn sockets_are_found_by_address_and_port_until_they_are_closed() {
        let mut flows = Flows::new();
        let locals = ["10.0.0.1:53", "10.0.0.2:53", "[fd00::1]:53", "10.0.0.1:54"];
        for (index, local) in (0..).zip(locals) {
            flows.insert(flow(index, local));
        }
        let find = |flows: &Flows, local: &str| flows.find(local.parse().unwrap());
        for (index, local) in (0..).zip(locals) {
            assert_eq!(find(&flows, local), Some(index), "{local}");
        }
        assert_eq!(find(&flows, "10.0.0.3:53"), None);
        for (index, local) in (0..).zip(locals) {
            let id = flows.at(index).id;
            assert!(flows.remove(id).is_some() && flows.remove(id).is_none());
            assert_eq!(find(&flows, local), None);
            for (other, local) in (0..).zip(locals).skip(index as usize + 1) {
                assert_eq!(find(&flows, local), Some(other), "{local}");
            }
        }
    }

    #[test]
    fn datagrams_line_up_by_socket_in_order_of_arrival() {
        let mut flows = Flows::new();
        flows.insert(flow(0, "10.0.0.1:53"));
        flows.insert(flow(1, "10.0.0.1:54"));
        let mut arrived = Vec::new();
        let mut firsts = Vec::new();
        for (start, place) in [(10, 0), (20, 1), (30, 0), (40, 0)] {
            let datagram = Datagram {
                start,
                length: 1,
                from: ([10, 0, 0, 9], 5).into(),
            };
            firsts.push(flows.line_up(place, datagram, &mut arrived));
        }
        assert_eq!(firsts, [true, true, false, false]);
        for (place, starts) in [(0, vec![10, 30, 40]), (1, vec![20])] {
            let mut datagrams = Vec::new();
            assert!(flows.hand_over(place, &arrived, &mut datagrams).is_some());
            let got: Vec<u32> = datagrams.iter().map(|it| it.start).collect();
            assert_eq!(got, starts);
            assert!(flows.hand_over(place, &arrived, &mut datagrams).is_none());
        }
    }
}
