//! A network that costs nothing: two drivers in memory, each the only peer of the other.
//!
//! The other end receives immediately: no system call, no delay, no loss, no limit. So only the
//! worker's own cost is left in its turn, which this driver serves to measure. The ends are stepped
//! in turn on one thread, so that the turns of one can be timed, or their instructions counted,
//! separately.
//!
//! Order of calls: [`pair`]; the server's end listens before the client's end opens its sockets;
//! then a turn of either and [`Driver::wait`], in a loop. Waiting never sleeps.
//!
//! Not modelled: delays and faults; for these there is [`crate::sim`]. A datagram to an address
//! without a socket is dropped, as on a network. Queues are unbounded; in a closed loop they hold
//! at most the outstanding queries.

#![forbid(unsafe_code)]

mod end;
mod socket;
#[cfg(test)]
mod tests;

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use proto::Instant;

use crate::clock::Clock;
use crate::{
    Accepted, Close, Driver, DriverStats, Outgoing, Received, SocketError, SocketId, SocketSpec,
};

use end::End;
use socket::{Stream, StreamEnd};

/// Step of virtual time at each wait: a round trip of a fast network, so that the protocols' timers
/// fire about as often as there.
const STEP: Duration = Duration::from_micros(10);

/// The clock of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullTime {
    /// The machine's clock, read whenever a worker asks: part of what a query costs.
    Real,
    /// Advances by 10 us with each wait, or to the instant waited for if nothing else is ready: the
    /// same in every run, however slowly it is executed.
    Virtual,
}

/// One end of a [`pair`].
#[derive(Debug)]
pub struct NullDriver {
    time: Rc<Time>,
    shared: Rc<RefCell<Shared>>,
    /// Which of the two ends.
    side: usize,
}

#[derive(Debug)]
struct Shared {
    ends: [End; 2],
}

#[derive(Debug)]
enum Time {
    Real(Clock),
    Virtual(Cell<Instant>),
}

impl Time {
    #[inline]
    fn now(&self) -> Instant {
        match self {
            Time::Real(clock) => clock.now(),
            Time::Virtual(now) => now.get(),
        }
    }
}

/// Two ends of one network.
pub fn pair(time: NullTime) -> (NullDriver, NullDriver) {
    let time = match time {
        NullTime::Real => Time::Real(Clock::start()),
        NullTime::Virtual => Time::Virtual(Cell::new(Instant::ZERO)),
    };
    let time = Rc::new(time);
    let ends = [End::new(), End::new()];
    let shared = Rc::new(RefCell::new(Shared { ends }));
    let end = |side| NullDriver {
        time: Rc::clone(&time),
        shared: Rc::clone(&shared),
        side,
    };
    (end(0), end(1))
}

impl Shared {
    /// The end of `side`, and the other one.
    #[inline]
    fn ends(&mut self, side: usize) -> (&mut End, &mut End) {
        let [first, second] = &mut self.ends;
        match side {
            0 => (first, second),
            _ => (second, first),
        }
    }
}

impl Driver for NullDriver {
    #[inline]
    fn now(&mut self) -> Instant {
        self.time.now()
    }

    fn unix_time(&self) -> Duration {
        Clock::unix_time()
    }

    fn open_udp(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        let mut shared = self.shared.borrow_mut();
        let (own, other) = shared.ends(self.side);
        let peer = spec.peer.and_then(|peer| other.datagrams_at(peer));
        own.open_datagrams(spec, peer)
    }

    fn connect_tcp(&mut self, spec: &SocketSpec) -> Result<SocketId, SocketError> {
        let mut shared = self.shared.borrow_mut();
        let (own, other) = shared.ends(self.side);
        let peer = spec.peer.ok_or(SocketError::Unreachable)?;
        let listener = other.listener_at(peer).ok_or(SocketError::Refused)?;
        let local = own.local_of_stream(spec);
        let client = own.open_stream(local, Stream::connecting());
        let server = other.open_stream(peer, Stream::accepted(client));
        own.set_other(client, server);
        other.accept(listener, server, local);
        Ok(client)
    }

    fn listen_tcp(&mut self, spec: &SocketSpec) -> io::Result<SocketId> {
        self.shared.borrow_mut().ends[self.side].listen(spec)
    }

    fn local_addr(&self, socket: SocketId) -> io::Result<SocketAddr> {
        self.shared.borrow().ends[self.side].local_addr(socket)
    }

    fn send_datagrams(&mut self, socket: SocketId, outgoing: &Outgoing) -> Accepted {
        let mut shared = self.shared.borrow_mut();
        let (own, other) = shared.ends(self.side);
        let Some((local, peer)) = own.sends_from(socket, outgoing) else {
            let error = Some(SocketError::Other(libc::EBADF));
            return Accepted { accepted: 0, error };
        };
        other.deliver(outgoing, (local, peer));
        Accepted {
            accepted: outgoing.datagrams.len(),
            error: None,
        }
    }

    fn send_bytes(&mut self, socket: SocketId, bytes: &[u8]) -> Result<usize, SocketError> {
        let mut shared = self.shared.borrow_mut();
        let (own, other) = shared.ends(self.side);
        own.stats.stream_calls += 1;
        let to = own.other(socket).ok_or(SocketError::Reset)?;
        match other.deliver_bytes(to, bytes) {
            true => Ok(bytes.len()),
            false => Err(SocketError::Reset),
        }
    }

    fn pause_reading(&mut self, socket: SocketId, paused: bool) {
        self.shared.borrow_mut().ends[self.side].pause(socket, paused);
    }

    fn finish_sending(&mut self, socket: SocketId) {
        let mut shared = self.shared.borrow_mut();
        let (own, other) = shared.ends(self.side);
        if let Some(to) = own.other(socket) {
            other.end_stream(to, StreamEnd::Finished);
        }
    }

    fn close(&mut self, socket: SocketId, how: Close) {
        let mut shared = self.shared.borrow_mut();
        let (own, other) = shared.ends(self.side);
        let to = own.other(socket);
        own.close(socket);
        if let Some(to) = to {
            let how = match how {
                Close::Graceful => StreamEnd::Finished,
                Close::Reset => StreamEnd::Reset,
            };
            other.end_stream(to, how);
        }
    }

    fn receive(&mut self, received: &mut Received) -> bool {
        let mut shared = self.shared.borrow_mut();
        if !shared.ends[self.side].receive(received) {
            return false;
        }
        received.at = self.time.now();
        true
    }

    /// Returns at once. Virtual time advances, to `until` if neither end has anything to receive.
    fn wait(&mut self, until: Instant) {
        let mut shared = self.shared.borrow_mut();
        shared.ends[self.side].stats.waits += 1;
        let is_idle = shared.ends.iter().all(End::is_idle);
        if let Time::Virtual(now) = &*self.time {
            let next = now.get() + STEP;
            now.set(if is_idle { next.max(until) } else { next });
        }
    }

    fn stats(&self) -> DriverStats {
        self.shared.borrow().ends[self.side].stats
    }
}
