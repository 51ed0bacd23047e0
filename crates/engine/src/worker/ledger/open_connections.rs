//! How many connections are open, and how many at most.
//!
//! A connection remembers what it is counted as, so that it leaves the count as what it entered it,
//! whatever happened to it in between and in whatever order.

use crate::worker::population::connection::Connection;

/// What a connection is counted as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Its handshakes are not over, early data or not; or it is gone.
    #[default]
    Unusable,
    /// It is usable and was asked, and nothing has come back.
    Silent,
    /// It is usable, and not silent.
    Open,
}

/// The usable connections of a worker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenConnections {
    silent: u64,
    open: u64,
    open_max: u64,
}

impl OpenConnections {
    /// Usable connections, silent or not.
    pub(crate) fn usable(&self) -> u64 {
        self.silent + self.open
    }

    /// Those that are open.
    pub(crate) fn open(&self) -> u64 {
        self.open
    }

    /// The most that were open at one time since this was last asked.
    pub(crate) fn take_open_max(&mut self) -> u64 {
        std::mem::replace(&mut self.open_max, self.open)
    }

    /// Counts a connection as what it is now.
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
        match std::mem::replace(&mut connection.counted.standing, to) {
            Standing::Unusable => {}
            Standing::Silent => self.silent -= 1,
            Standing::Open => self.open -= 1,
        }
        match to {
            Standing::Unusable => {}
            Standing::Silent => self.silent += 1,
            Standing::Open => self.open += 1,
        }
        self.open_max = self.open_max.max(self.open);
    }
}
