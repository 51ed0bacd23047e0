//! How many connections are open, and how many at most.
//!
//! A connection stores what it is counted as, so that it is subtracted from the counter that it was
//! added to, whatever happened to it in between.

use crate::worker::population::connection::Connection;

/// What a connection counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Its handshakes are not over, with or without early data; or it is closed.
    #[default]
    Unusable,
    /// It is usable, and no query was sent on it.
    Unasked,
    /// It is usable, has carried queries, and nothing has come back.
    Silent,
    /// It is usable, and a response has come.
    Served,
}

/// The usable connections of a worker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenConnections {
    unasked: u64,
    silent: u64,
    served: u64,
    open_max: u64,
}

impl OpenConnections {
    /// Usable connections, silent or not.
    pub(crate) fn usable(&self) -> u64 {
        self.unasked + self.silent + self.served
    }

    /// Usable connections, without those that have carried queries and no response.
    pub(crate) fn open(&self) -> u64 {
        self.unasked + self.served
    }

    /// Usable connections that have carried a response.
    pub(crate) fn served(&self) -> u64 {
        self.served
    }

    /// The maximum open at one time since the last call.
    pub(crate) fn take_open_max(&mut self) -> u64 {
        let open = self.open();
        std::mem::replace(&mut self.open_max, open)
    }

    /// Counts a connection by its present state.
    #[inline]
    pub(crate) fn review(&mut self, connection: &mut Connection) {
        let standing = connection.standing();
        if standing != connection.counted.standing {
            self.change(connection, standing);
        }
    }

    /// A connection is gone.
    pub(crate) fn leave(&mut self, connection: &mut Connection) {
        self.change(connection, Standing::Unusable);
    }

    #[cold]
    fn change(&mut self, connection: &mut Connection, to: Standing) {
        let from = std::mem::replace(&mut connection.counted.standing, to);
        if let Some(number) = self.number_of(from) {
            *number -= 1;
        }
        if let Some(number) = self.number_of(to) {
            *number += 1;
        }
        self.open_max = self.open_max.max(self.open());
    }

    fn number_of(&mut self, standing: Standing) -> Option<&mut u64> {
        match standing {
            Standing::Unusable => None,
            Standing::Unasked => Some(&mut self.unasked),
            Standing::Silent => Some(&mut self.silent),
            Standing::Served => Some(&mut self.served),
        }
    }
}
