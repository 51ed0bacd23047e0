//! What each socket of a worker is for.

use driver::SocketId;
use proto::Transport;

use crate::quic::Quic;
use crate::stream::Connection;

/// The use of one socket.
#[derive(Debug)]
pub(crate) enum Role {
    Datagrams,
    /// Connections that are accepted here begin with a TLS handshake, or not.
    Listener {
        transport: Transport,
        has_tls: bool,
    },
    Connection(Box<Connection>),
    /// All QUIC connections of a socket.
    Quic(Box<Quic>),
}

/// Roles by [`SocketId::index`], guarded by the generation.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    entries: Vec<Option<(u32, Role)>>,
}

impl Sockets {
    pub(crate) fn insert(&mut self, socket: SocketId, role: Role) {
        let index = socket.index as usize;
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || None);
        }
        self.entries[index] = Some((socket.generation, role));
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, socket: SocketId) -> Option<&mut Role> {
        match self.entries.get_mut(socket.index as usize) {
            Some(Some((generation, role))) if *generation == socket.generation => Some(role),
            _ => None,
        }
    }

    pub(crate) fn quic(&mut self, socket: SocketId) -> Option<&mut Quic> {
        match self.get_mut(socket) {
            Some(Role::Quic(quic)) => Some(quic),
            _ => None,
        }
    }

    pub(crate) fn quic_ref(&self, socket: SocketId) -> Option<&Quic> {
        match self.entries.get(socket.index as usize) {
            Some(Some((generation, Role::Quic(quic)))) if *generation == socket.generation => {
                Some(quic)
            }
            _ => None,
        }
    }

    pub(crate) fn connection(&mut self, socket: SocketId) -> Option<&mut Connection> {
        match self.get_mut(socket) {
            Some(Role::Connection(connection)) => Some(connection),
            _ => None,
        }
    }

    pub(crate) fn remove_connection(&mut self, socket: SocketId) -> Option<Box<Connection>> {
        self.connection(socket)?;
        match self.entries[socket.index as usize].take() {
            Some((_, Role::Connection(connection))) => Some(connection),
            _ => None,
        }
    }

    /// Every connection over TCP.
    pub(crate) fn connections(&self) -> impl Iterator<Item = (SocketId, &Connection)> {
        let entries = self.entries.iter().zip(0..);
        entries.filter_map(|(entry, index)| match entry {
            Some((generation, Role::Connection(connection))) => {
                let generation = *generation;
                Some((SocketId { index, generation }, &**connection))
            }
            _ => None,
        })
    }

    /// Every socket of the worker.
    pub(crate) fn all(&self) -> Vec<SocketId> {
        let entries = self.entries.iter().enumerate();
        entries
            .filter_map(|(index, entry)| {
                let (generation, _) = entry.as_ref()?;
                Some(SocketId {
                    index: index as u32,
                    generation: *generation,
                })
            })
            .collect()
    }

    /// True if the socket at `index` is still that connection.
    pub(crate) fn is_connection(&mut self, index: u32, generation: u32) -> bool {
        self.connection(SocketId { index, generation }).is_some()
    }
}
