//! Results of requests, and the end of sockets.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use io_uring::cqueue;

use super::buffers::BUFFER_OCTETS;
use super::request::{Request, registration};
use super::sends::{NONE, State};
use super::{
    ACCEPT_PAUSE, CONNECTING_MAX, Happened, Held, Kind, REGISTERING_MAX, SENDS_UNREGISTERED,
    UringDriver,
};
use crate::socket::{self, SockAddr};
use crate::{Close, Event, Received, SocketError, SocketId};

impl UringDriver {
    /// Starts to connect.
    pub(super) fn connect(&mut self, id: SocketId, fd: RawFd, to: SockAddr) {
        if self.connecting.len() == CONNECTING_MAX {
            self.stats.stream_calls += 1;
            self.flush();
        }
        self.connecting.push(to);
        let address = &self.connecting[self.connecting.len() - 1];
        let entry = Request::Connect(id).connect(fd, address);
        // SAFETY: the kernel copies the address when it takes the request; until then it stays in
        // `connecting`, which has room for CONNECTING_MAX and never moves.
        unsafe { self.ring.push(&entry) };
    }

    /// Makes a stream a registered file, so that what it sends from now on is sent without looking
    /// up its descriptor and counting a reference. It is received from through its descriptor: that
    /// is looked up once for the standing request.
    pub(super) fn register(&mut self, id: SocketId) {
        if id.index >= self.ring.files {
            return;
        }
        if self.registering.len() == REGISTERING_MAX {
            self.stats.stream_calls += 1;
            self.flush();
        }
        let Some(open) = self.sockets.get_mut(id) else {
            return;
        };
        open.is_registered = true;
        self.registering.push(open.fd.as_raw_fd());
        let entry = registration(id.index, &self.registering[self.registering.len() - 1]);
        // SAFETY: the kernel reads the descriptor when it takes the request; until then it stays in
        // `registering`, which has room for REGISTERING_MAX and never moves.
        unsafe { self.ring.push(&entry) };
    }

    /// Takes a stream out of the registered files. Remaining data is sent through its descriptor,
    /// because its slot may be reused by then.
    fn unregister(&mut self, id: SocketId, slots: [u32; 2]) {
        static NOTHING: RawFd = -1;
        for slot in slots.into_iter().filter(|slot| *slot != NONE) {
            self.sends.get_mut(slot).place = None;
        }
        // SAFETY: what the request points to lives as long as the program.
        unsafe { self.ring.push(&registration(id.index, &NOTHING)) };
    }

    /// Fills `received` with an event; false if it need not be reported.
    pub(super) fn deliver(&mut self, happened: Happened, received: &mut Received) -> bool {
        received.datagrams.clear();
        received.stream_octets = 0;
        match happened {
            Happened::Completed {
                request,
                result,
                flags,
            } => self.complete(request, (result, flags), received),
            Happened::Readable(id) => self.read_datagrams(id, received),
            Happened::Writable(id) => self.tell(id, Event::Writable, received),
            Happened::Broken(id, error) => self.tell(id, Event::Failed(error), received),
            Happened::Resumed(id) => self.deliver_held(id, received),
        }
    }

    /// Delivers an event of a socket that is still open.
    fn tell(&mut self, id: SocketId, event: Event, received: &mut Received) -> bool {
        received.socket = id;
        received.event = event;
        self.sockets.get(id).is_some()
    }

    fn complete(
        &mut self,
        request: Request,
        (result, flags): (i32, u32),
        received: &mut Received,
    ) -> bool {
        match request {
            Request::Receive(id) => self.handle_received(id, (result, flags), received),
            Request::Accept(id) => self.handle_accepted(id, (result, flags), received),
            Request::Connect(id) => self.handle_connected(id, result, received),
            Request::Poll(id) => {
                if !cqueue::more(flags) {
                    self.is_no_longer_watched(id);
                    self.watch(id);
                }
                self.read_datagrams(id, received)
            }
            Request::Writable(id) => {
                if let Some(open) = self.sockets.get_mut(id) {
                    open.blocked = false;
                }
                self.tell(id, Event::Writable, received)
            }
            Request::Send(_) | Request::Sendable(_) => unreachable!("never left to be delivered"),
        }
    }

    /// The kernel has ended a multishot request.
    fn is_no_longer_watched(&mut self, id: SocketId) {
        if let Some(open) = self.sockets.get_mut(id) {
            open.is_watched = false;
        }
    }

    fn handle_connected(&mut self, id: SocketId, result: i32, received: &mut Received) -> bool {
        let Some(open) = self.sockets.get_mut(id) else {
            return false;
        };
        if result < 0 {
            let error = SocketError::of_errno(-result);
            return self.tell(id, Event::Failed(error), received);
        }
        open.kind = Kind::Stream;
        if !open.fast_open {
            self.watch(id);
        }
        self.tell(id, Event::Connected, received)
    }

    fn handle_accepted(
        &mut self,
        listener: SocketId,
        (result, flags): (i32, u32),
        received: &mut Received,
    ) -> bool {
        if !cqueue::more(flags) {
            self.is_no_longer_watched(listener);
        }
        if result < 0 {
            // Without descriptors the connection stays in the backlog until some are free.
            self.stats.accepts_failed += u64::from(result != -libc::ECANCELED);
            if self.sockets.get(listener).is_some() {
                self.starved.push(listener);
                self.feed_at = self.clock.now() + ACCEPT_PAUSE;
            }
            return false;
        }
        // SAFETY: the kernel has made this descriptor for us, and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(result) };
        if self.sockets.get(listener).is_none() {
            return false;
        }
        self.watch(listener);
        let known = socket::set_no_delay(&fd).and_then(|()| socket::peer_addr(&fd));
        let Ok(peer) = known else {
            // It has been reset already.
            return false;
        };
        let id = self.add(fd, Kind::Stream, None);
        self.watch(id);
        self.tell(id, Event::Accepted { listener, peer }, received)
    }

    fn handle_received(
        &mut self,
        id: SocketId,
        (result, flags): (i32, u32),
        received: &mut Received,
    ) -> bool {
        let has_ended = !cqueue::more(flags);
        if has_ended {
            self.is_no_longer_watched(id);
        }
        let buffer = cqueue::buffer_select(flags);
        let Some(open) = self.sockets.get_mut(id) else {
            buffer.into_iter().for_each(|it| self.buffers.give_back(it));
            return false;
        };
        let (Ok(octets @ 1..), Some(buffer)) = (usize::try_from(result), buffer) else {
            return self.handle_end(id, result, received);
        };
        let octets = self.buffers.octets(buffer, octets);
        if self.options.tcp_quickack {
            socket::acknowledge_now(&open.fd);
        }
        if open.reading_paused {
            let held = open.held.get_or_insert_default();
            held.octets.extend_from_slice(octets);
            self.buffers.give_back(buffer);
            return false;
        }
        if received.buffer.len() < BUFFER_OCTETS {
            received.buffer = vec![0; BUFFER_OCTETS];
        }
        received.buffer[..octets.len()].copy_from_slice(octets);
        received.stream_octets = octets.len();
        self.buffers.give_back(buffer);
        if has_ended {
            self.watch(id);
        }
        self.tell(id, Event::Bytes, received)
    }

    /// A request to receive that brought no octets, and is over.
    fn handle_end(&mut self, id: SocketId, result: i32, received: &mut Received) -> bool {
        let Some(open) = self.sockets.get_mut(id) else {
            return false;
        };
        let end = match -result {
            0 => None,
            libc::ENOBUFS => {
                // The buffers are all full; they are free again when this turn is over.
                self.stats.buffer_shortages += 1;
                if !open.reading_paused {
                    self.watch(id);
                }
                return false;
            }
            libc::ECANCELED | libc::EINTR | libc::EAGAIN => {
                if !open.reading_paused {
                    self.watch(id);
                }
                return false;
            }
            errno => Some(SocketError::of_errno(errno)),
        };
        if open.reading_paused {
            open.held.get_or_insert_default().end = Some(end);
            return false;
        }
        self.tell(id, end.map_or(Event::EndOfStream, Event::Failed), received)
    }

    /// Deliveries held while reading was paused: data, then the end.
    fn deliver_held(&mut self, id: SocketId, received: &mut Received) -> bool {
        let Some(open) = self.sockets.get_mut(id) else {
            return false;
        };
        if open.reading_paused {
            return false;
        }
        let Some(held) = open.held.take() else {
            return false;
        };
        let Held { octets, end } = *held;
        if octets.is_empty() {
            let Some(end) = end else { return false };
            return self.tell(id, end.map_or(Event::EndOfStream, Event::Failed), received);
        }
        if end.is_some() {
            let octets = Vec::new();
            open.held = Some(Box::new(Held { octets, end }));
            self.happened.push_front(Happened::Resumed(id));
        }
        received.stream_octets = octets.len();
        received.buffer = octets;
        self.tell(id, Event::Bytes, received)
    }

    fn read_datagrams(&mut self, id: SocketId, received: &mut Received) -> bool {
        let Some(open) = self.sockets.get_mut(id) else {
            return false;
        };
        let drops_before = open.drops;
        let (peer, drops) = (open.peer, &mut open.drops);
        let result = self.batch.receive(&open.fd, peer, received, drops);
        self.stats.receive_calls += 1;
        self.stats.receive_drops += u64::from(open.drops.wrapping_sub(drops_before));
        let event = match result {
            Ok(has_more) => {
                self.stats.datagrams_received += received.datagrams.len() as u64;
                if has_more {
                    // Others come first, so that a stream that always has data does not starve
                    // them.
                    self.happened.push_back(Happened::Readable(id));
                }
                Event::Datagrams
            }
            Err(libc::EAGAIN) => return false,
            Err(errno) => {
                self.happened.push_back(Happened::Readable(id));
                Event::DatagramError(SocketError::of_errno(errno))
            }
        };
        self.tell(id, event, received)
    }

    /// A request to send is over.
    pub(super) fn handle_sent(&mut self, number: u32, result: i32) {
        let slot = self.sends.get_mut(number);
        slot.state = State::Idle;
        let (owner, fd) = (slot.owner, slot.fd);
        let is_open = self.sockets.get(owner).is_some() || slot.last_words.is_some();
        slot.sent += usize::try_from(result).unwrap_or(0);
        let is_sent = slot.sent == slot.octets.len();
        match -result {
            _ if is_sent || !is_open => {}
            libc::EAGAIN | libc::EINPROGRESS => {
                // The latter: a stream that was to send with its SYN has to be connected first.
                slot.state = State::Awaiting;
                let entry = Request::Sendable(number).when_writable(fd);
                // SAFETY: the request points to no memory.
                unsafe { self.ring.push(&entry) };
                return self.begin_receiving(owner);
            }
            libc::EBADF if slot.place.take().is_some() => {
                // It could not be registered: there was no memory for it.
                self.stop_registering(owner);
                return self.sends.due.push(number);
            }
            ..=0 | libc::EINTR => {
                self.stats.short_sends += 1;
                return self.sends.due.push(number);
            }
            _ => {}
        }
        self.free_slot(number, is_sent);
        self.after_sending(owner, (!is_sent).then_some(-result));
    }

    /// A stream is no registered file after all.
    fn stop_registering(&mut self, id: SocketId) {
        if let Some(open) = self.sockets.get_mut(id) {
            open.is_registered = false;
            open.sends = SENDS_UNREGISTERED;
        }
    }

    /// The stream of a slot can be written, or has failed, which the write will report.
    pub(super) fn handle_sendable(&mut self, number: u32) {
        self.sends.get_mut(number).state = State::Idle;
        self.sends.due.push(number);
    }

    /// Frees a slot that is done with. If its stream has been closed meanwhile, what it was given
    /// last follows, then its descriptor is closed.
    fn free_slot(&mut self, number: u32, is_sent: bool) {
        let last_words = self.sends.get_mut(number).last_words.take();
        self.sends.release(number);
        match last_words {
            Some((next, _)) if next == NONE => {}
            Some((next, fd)) if is_sent => {
                self.sends.get_mut(next).last_words = Some((NONE, fd));
                self.sends.due.push(next);
            }
            Some((next, _)) => self.sends.release(next),
            None => {}
        }
    }

    /// A stream's first slot is free: submits the next one, or reports the stream as writable.
    fn after_sending(&mut self, id: SocketId, errno: Option<i32>) {
        let Some(open) = self.sockets.get_mut(id) else {
            return;
        };
        let next = open.sending[1];
        open.sending = [next, NONE];
        if let Some(errno) = errno {
            open.sending[0] = NONE;
            if next != NONE {
                self.sends.release(next);
            }
            let broken = Happened::Broken(id, SocketError::of_errno(errno));
            return self.happened.push_back(broken);
        }
        match next {
            NONE if open.finishes => socket::shut_down(&open.fd, libc::SHUT_WR),
            NONE => {}
            next => self.sends.due.push(next),
        }
        if std::mem::take(&mut open.blocked) {
            self.happened.push_back(Happened::Writable(id));
        }
        self.begin_receiving(id);
    }

    /// A stream that sends with its SYN has sent, and can be received from.
    fn begin_receiving(&mut self, id: SocketId) {
        if let Some(open) = self.sockets.get_mut(id)
            && std::mem::take(&mut open.fast_open)
        {
            self.watch(id);
        }
    }

    /// Takes a socket out of the table and ends what the kernel does with it.
    pub(super) fn close_socket(&mut self, id: SocketId, how: Close) {
        let Some(mut closed) = self.sockets.remove(id) else {
            return;
        };
        if closed.kind == Kind::Stream && closed.peer.is_some() {
            self.stats.tcp.note_close(&closed.fd);
        }
        if closed.kind == Kind::Datagram {
            let drops = socket::receive_drops(&closed.fd).unwrap_or(closed.drops);
            self.stats.receive_drops += u64::from(drops.wrapping_sub(closed.drops));
        }
        if how == Close::Reset {
            socket::set_reset_on_close(&closed.fd);
        }
        if closed.is_watched {
            self.cancel(closed.kind.standing_request(id));
        }
        match closed.kind {
            Kind::Connecting => self.cancel(Request::Connect(id)),
            Kind::Datagram if closed.blocked => self.cancel(Request::Writable(id)),
            Kind::Listener => socket::shut_down(&closed.fd, libc::SHUT_RDWR),
            Kind::Datagram | Kind::Stream => {}
        }
        if closed.is_registered {
            self.unregister(id, closed.sending);
        }
        let [first, next] = closed.sending;
        let is_busy = first != NONE && self.sends.get_mut(first).state != State::Idle;
        if how == Close::Reset {
            self.drop_slots([first, next]);
        } else if is_busy || next != NONE {
            self.sends.get_mut(first).last_words = Some((next, closed.fd));
            return;
        }
        closed.sending = [NONE; 2];
        self.closing.push(closed.fd);
        if matches!(closed.kind, Kind::Datagram | Kind::Listener) {
            // Their ports are free at once.
            self.flush();
        }
    }

    /// Drops unsent data.
    fn drop_slots(&mut self, slots: [u32; 2]) {
        for slot in slots {
            if slot == NONE {
                continue;
            }
            match self.sends.get_mut(slot).state {
                State::Idle => self.sends.release(slot),
                State::InFlight => self.cancel(Request::Send(slot)),
                State::Awaiting => self.cancel(Request::Sendable(slot)),
            }
        }
    }

    pub(super) fn cancel(&mut self, request: Request) {
        // SAFETY: the request to cancel points to no memory.
        unsafe { self.ring.push(&request.cancel()) };
    }
}

impl Kind {
    /// The request that stands as long as a socket of this kind is open.
    pub(super) fn standing_request(self, id: SocketId) -> Request {
        match self {
            Kind::Datagram => Request::Poll(id),
            Kind::Listener => Request::Accept(id),
            Kind::Connecting | Kind::Stream => Request::Receive(id),
        }
    }
}
