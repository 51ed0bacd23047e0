//! Requests to the kernel, and the user data that identifies their results.

use std::os::fd::RawFd;

use io_uring::{opcode, squeue, types};

use super::buffers::GROUP;
use crate::SocketId;
use crate::socket::SockAddr;
use crate::table::GENERATION_MAX;

/// The kind of a request, and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// To receive on a stream, until cancelled.
    Receive(SocketId),
    /// To accept connections, until cancelled.
    Accept(SocketId),
    /// To say when a datagram socket can be read, until cancelled.
    Poll(SocketId),
    /// To connect.
    Connect(SocketId),
    /// To say once when a datagram socket can be written.
    Writable(SocketId),
    /// To send the octets of a slot.
    Send(u32),
    /// To say once when the stream of a slot can be written.
    Sendable(u32),
}

impl Request {
    /// Decodes a request from its result; none if the result does not matter.
    pub(super) fn from_user_data(data: u64) -> Option<Request> {
        let index = data as u32;
        let generation = (data >> 32) as u32 & GENERATION_MAX;
        let id = SocketId { index, generation };
        match data >> 56 {
            1 => Some(Request::Receive(id)),
            2 => Some(Request::Accept(id)),
            3 => Some(Request::Poll(id)),
            4 => Some(Request::Connect(id)),
            5 => Some(Request::Writable(id)),
            6 => Some(Request::Send(index)),
            7 => Some(Request::Sendable(index)),
            _ => None,
        }
    }

    fn user_data(self) -> u64 {
        let of = |kind: u64, id: SocketId| {
            let generation = u64::from(id.generation & GENERATION_MAX);
            kind << 56 | generation << 32 | u64::from(id.index)
        };
        match self {
            Request::Receive(id) => of(1, id),
            Request::Accept(id) => of(2, id),
            Request::Poll(id) => of(3, id),
            Request::Connect(id) => of(4, id),
            Request::Writable(id) => of(5, id),
            Request::Send(slot) => 6 << 56 | u64::from(slot),
            Request::Sendable(slot) => 7 << 56 | u64::from(slot),
        }
    }

    /// A multishot request: active until it is cancelled, with any number of results.
    pub(super) fn standing(self, fd: RawFd) -> squeue::Entry {
        let fd = types::Fd(fd);
        let entry = match self {
            Request::Receive(_) => opcode::RecvMulti::new(fd, GROUP).build(),
            Request::Accept(_) => {
                let accept = opcode::AcceptMulti::new(fd);
                accept.flags(libc::SOCK_CLOEXEC).build()
            }
            _ => {
                let events = (libc::POLLIN | libc::POLLERR) as u32;
                opcode::PollAdd::new(fd, events).multi(true).build()
            }
        };
        entry.user_data(self.user_data())
    }

    pub(super) fn when_writable(self, fd: RawFd) -> squeue::Entry {
        let poll = opcode::PollAdd::new(types::Fd(fd), libc::POLLOUT as u32);
        poll.build().user_data(self.user_data())
    }

    /// The address is copied when the request is submitted.
    pub(super) fn connect(self, fd: RawFd, address: &SockAddr) -> squeue::Entry {
        let connect = opcode::Connect::new(types::Fd(fd), address.as_ptr(), address.length);
        connect.build().user_data(self.user_data())
    }

    /// All of `octets`, however long it takes; through the registered file `place` if there is one.
    pub(super) fn send(self, fd: RawFd, place: Option<u32>, octets: &[u8]) -> squeue::Entry {
        let (start, length) = (octets.as_ptr(), octets.len() as u32);
        let send = match place {
            Some(place) => opcode::Send::new(types::Fixed(place), start, length),
            None => opcode::Send::new(types::Fd(fd), start, length),
        };
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        send.flags(flags).build().user_data(self.user_data())
    }

    /// Cancels this request, which reports it in its own result.
    pub(super) fn cancel(self) -> squeue::Entry {
        let cancel = opcode::AsyncCancel::new(self.user_data()).build();
        cancel.flags(squeue::Flags::SKIP_SUCCESS)
    }
}

/// Puts a descriptor into the table of registered files, or -1 to take out what is there. Sends
/// fail if that fails, and are repeated without the table.
pub(super) fn registration(place: u32, fd: &RawFd) -> squeue::Entry {
    let update = opcode::FilesUpdate::new(fd, 1).offset(place as i32);
    update.build().flags(squeue::Flags::SKIP_SUCCESS)
}
