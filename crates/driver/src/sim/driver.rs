//! The driver of one worker in a simulated world.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use proto::Instant;

use super::EndpointId;
use super::socket::{Kind, Owner};
use super::state::State;
use crate::random::SEED_OCTETS;
use crate::{
    Accepted, Close, Driver, DriverStats, Outgoing, Received, SendStamp, SocketError, SocketId,
    SocketSpec,
};

/// [`Instant::ZERO`] of every world in seconds since 1970: 2026-01-01T00:00:00Z.
const UNIX_TIME_AT_ZERO: Duration = Duration::from_secs(1_767_225_600);

/// One worker's driver; made by [`World::endpoint`](super::World::endpoint).
#[derive(Debug)]
pub struct SimDriver {
    state: Rc<RefCell<State>>,
    endpoint: EndpointId,
}

impl SimDriver {
    pub(super) fn new(state: Rc<RefCell<State>>, endpoint: EndpointId) -> Self {
        SimDriver { state, endpoint }
    }

    /// The ID of its endpoint, for [`Stepper`](super::Stepper).
    pub fn endpoint(&self) -> EndpointId {
        self.endpoint
    }

    /// Sets how many more connections may arrive at the listeners of this endpoint; a SYN beyond
    /// them is lost, and repeated by its sender. Without a call, all arrive.
    pub fn set_backlog_room(&mut self, connections: u32) {
        let mut state = self.state.borrow_mut();
        state.endpoints[self.endpoint.0].backlog_room = Some(connections);
    }

    fn owner(&self, socket: SocketId) -> Owner {
        Owner {
            endpoint: self.endpoint.0,
            socket,
        }
    }
}

impl Drop for SimDriver {
    fn drop(&mut self) {
        // A panic elsewhere may have left the world borrowed; its state then no longer matters.
        if let Ok(mut state) = self.state.try_borrow_mut() {
            state.close_endpoint(self.endpoint.0);
        }
    }
}

fn os_error(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}

impl Driver for SimDriver {
    fn now(&mut self) -> Instant {
        self.state.borrow().now
    }

    fn unix_time(&self) -> Duration {
        UNIX_TIME_AT_ZERO + self.state.borrow().now.duration_since(Instant::ZERO)
    }

    fn seed(&self) -> [u8; SEED_OCTETS] {
        let state = self.state.borrow();
        let mut seed = [0; SEED_OCTETS];
        seed[..8].copy_from_slice(&state.network.config.seed.to_le_bytes());
        seed[8..16].copy_from_slice(&(self.endpoint.0 as u64).to_le_bytes());
        seed
    }

    fn open_udp(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        let mut state = self.state.borrow_mut();
        let local = state.local_for(self.endpoint.0, spec);
        let local = local.ok_or_else(|| os_error(libc::EADDRNOTAVAIL))?;
        let bound = state.bind_datagram(self.endpoint.0, local, spec);
        bound.ok_or_else(|| os_error(libc::EADDRINUSE))
    }

    fn connect_tcp(&mut self, spec: &SocketSpec) -> Result<SocketId, SocketError> {
        self.state.borrow_mut().connect(self.endpoint.0, spec)
    }

    fn listen_tcp(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        let mut state = self.state.borrow_mut();
        let local = state.local_for(self.endpoint.0, spec);
        let local = local.ok_or_else(|| os_error(libc::EADDRNOTAVAIL))?;
        let bound = state.bind_listener(self.endpoint.0, local, spec);
        bound.ok_or_else(|| os_error(libc::EADDRINUSE))
    }

    fn local_addr(&self, socket: SocketId) -> io::Result<SocketAddr> {
        let state = self.state.borrow();
        let local = state.socket(self.owner(socket)).map(|socket| socket.local);
        local.ok_or_else(|| os_error(libc::EBADF))
    }

    fn send_datagrams(&mut self, socket: SocketId, outgoing: &Outgoing) -> Accepted {
        self.state
            .borrow_mut()
            .send_datagrams(self.owner(socket), outgoing)
    }

    /// Of those that were sent last.
    fn read_send_stamps(&mut self, socket: SocketId, stamps: &mut Vec<SendStamp>) {
        let mut state = self.state.borrow_mut();
        let socket = state.socket_mut(self.owner(socket));
        if let Some(Kind::Datagram(inbox)) = socket.map(|socket| &mut socket.kind) {
            inbox.take_send_stamps(stamps);
        }
    }

    fn send_bytes(&mut self, socket: SocketId, bytes: &[u8]) -> Result<usize, SocketError> {
        self.state
            .borrow_mut()
            .send_bytes(self.owner(socket), bytes)
    }

    /// Like a stuck process: data stays unread, FIN goes unnoticed, and the sender's window fills.
    /// A reset is still delivered.
    fn pause_reading(&mut self, socket: SocketId, paused: bool) {
        let owner = self.owner(socket);
        self.state.borrow_mut().pause_stream(owner, paused);
    }

    fn finish_sending(&mut self, socket: SocketId) {
        let owner = self.owner(socket);
        self.state.borrow_mut().finish_sending(owner);
    }

    fn close(&mut self, socket: SocketId, how: Close) {
        self.state.borrow_mut().close(self.owner(socket), how);
    }

    fn receive(&mut self, received: &mut Received) -> bool {
        self.state.borrow_mut().receive(self.endpoint.0, received)
    }

    /// Records when the worker's next turn is due, and returns at once.
    fn wait(&mut self, until: Instant) {
        let endpoint = &mut self.state.borrow_mut().endpoints[self.endpoint.0];
        endpoint.wake_up = until;
        endpoint.stats.waits += 1;
    }

    fn stats(&self) -> DriverStats {
        self.state.borrow().endpoints[self.endpoint.0].stats
    }
}
