//! Where a query has been sent, for clients that ask again and have several servers.

/// The attempts of one query so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trail {
    /// How many there were.
    pub attempts: u8,
    /// Number of the server that was asked last.
    pub server: u8,
    /// The servers that were asked, a bit each.
    pub asked: u8,
    /// The last attempt has failed, and the query waits for the next one.
    pub has_failed: bool,
}

impl Trail {
    /// The trail after another attempt, at `server`.
    #[must_use]
    pub fn then(self, server: u8) -> Trail {
        Trail {
            attempts: self.attempts.saturating_add(1),
            server,
            asked: self.asked | bit(server),
            has_failed: false,
        }
    }

    /// True if `server` was asked.
    pub fn has_asked(self, server: u8) -> bool {
        self.asked & bit(server) != 0
    }
}

/// Servers beyond the eighth share its bit; there are never that many.
fn bit(server: u8) -> u8 {
    1 << server.min(7)
}
