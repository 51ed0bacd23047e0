//! The table of a driver's sockets: dense slots, each with a generation.

use crate::SocketId;

/// Generations wrap around after this: a request of io_uring carries this number of bits.
pub(crate) const GENERATION_MAX: u32 = 0x00ff_ffff;

/// Sockets by [`SocketId`]; a slot is reused after a close, under a new generation.
pub(crate) struct Table<S> {
    entries: Vec<Entry<S>>,
    free: Vec<u32>,
}

struct Entry<S> {
    generation: u32,
    socket: Option<S>,
}

impl<S> Table<S> {
    pub(crate) fn new() -> Self {
        Table {
            entries: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The identity that the next [`Table::insert`] gives.
    pub(crate) fn next_id(&self) -> SocketId {
        let next = self.entries.len() as u32;
        let index = self.free.last().copied().unwrap_or(next);
        let entry = self.entries.get(index as usize);
        let generation = entry.map_or(0, |entry| entry.generation);
        SocketId { index, generation }
    }

    pub(crate) fn insert(&mut self, socket: S) -> SocketId {
        let id = self.next_id();
        match self.free.pop() {
            Some(_) => self.entries[id.index as usize].socket = Some(socket),
            None => self.entries.push(Entry {
                generation: id.generation,
                socket: Some(socket),
            }),
        }
        id
    }

    #[inline]
    pub(crate) fn get(&self, id: SocketId) -> Option<&S> {
        let entry = self.entries.get(id.index as usize)?;
        let socket = entry.socket.as_ref();
        socket.filter(|_| entry.generation == id.generation)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: SocketId) -> Option<&mut S> {
        let entry = self.entries.get_mut(id.index as usize)?;
        let socket = entry.socket.as_mut();
        socket.filter(|_| entry.generation == id.generation)
    }

    /// Removes a socket; its identity is invalid from now on.
    pub(crate) fn remove(&mut self, id: SocketId) -> Option<S> {
        self.get(id)?;
        let entry = &mut self.entries[id.index as usize];
        entry.generation = (entry.generation + 1) & GENERATION_MAX;
        self.free.push(id.index);
        entry.socket.take()
    }

    /// Identities of all sockets.
    pub(crate) fn ids(&self) -> impl Iterator<Item = SocketId> + '_ {
        let entries = self.entries.iter().zip(0..);
        let open = entries.filter(|(entry, _)| entry.socket.is_some());
        open.map(|(entry, index)| SocketId {
            index,
            generation: entry.generation,
        })
    }
}
