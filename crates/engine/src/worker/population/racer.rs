//! Connection attempts of one client that race each other.

use driver::SocketId;
use proto::Instant;

/// A connection attempt beside that of the client's link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Racer {
    pub(crate) socket: SocketId,
    pub(crate) server: u8,
    pub(crate) started_at: Instant,
}
