//! One simulated client: its open queries, its socket or connection, its timer.

use std::net::SocketAddr;

use driver::SocketId;
use proto::Instant;
use proto::framing::Deframer;
use proto::pending::Pending;
use proto::tls::ClientTls;

/// What a client is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Asks the questions of the run.
    Primary,
    /// Repeats truncated questions of a UDP client over TCP; counted apart.
    Fallback,
}

/// One simulated client.
pub(crate) struct Client {
    pub(crate) role: Role,
    pub(crate) pending: Pending,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) link: Link,
    /// When its entry in the timer heap is due; [`Instant::FAR_FUTURE`] if it has none.
    pub(crate) timer_at: Instant,
    /// Is in the list of clients whose waiting queries are to be sent.
    pub(crate) dirty: bool,
    /// Is in the list of clients that can take a query (closed loop).
    pub(crate) listed: bool,
    /// Connections in a row that failed or carried no response; sets the delay of the next.
    pub(crate) failures: u8,
    /// Its first connection has become usable or has failed.
    pub(crate) settled: bool,
}

/// How a client reaches the target at present.
pub(crate) enum Link {
    /// A datagram socket; `blocked` while its send buffer is full.
    Datagram { socket: SocketId, blocked: bool },
    /// A stream, in whatever state.
    Stream(Box<Connection>),
    /// No connection; the next may be opened at this instant, if there is need.
    Down { retry_at: Instant },
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// SYN sent.
    Connecting,
    /// TCP is established, the TLS handshake is not.
    Handshaking,
    /// Queries can be sent.
    Usable,
}

/// One connection of a stream transport.
pub(crate) struct Connection {
    pub(crate) socket: SocketId,
    pub(crate) progress: Progress,
    /// Apart, because a session is a kilobyte that a TCP connection does not need.
    pub(crate) tls: Option<Box<ClientTls>>,
    pub(crate) deframer: Deframer,
    /// Octets that the socket did not take yet; empty unless the stream blocks.
    pub(crate) unsent: Vec<u8>,
    /// When the socket last took octets, while it blocks.
    pub(crate) blocked_at: Instant,
    /// Queries sent on this connection.
    pub(crate) queries_sent: u32,
    /// A response came on this connection.
    pub(crate) served: bool,
    pub(crate) attempted_at: Instant,
    pub(crate) established_at: Instant,
}

impl Client {
    pub(crate) fn new(role: Role, id_offset: u16, local: Option<SocketAddr>) -> Self {
        Client {
            role,
            pending: Pending::new(id_offset),
            local,
            link: Link::Down {
                retry_at: Instant::ZERO,
            },
            timer_at: Instant::FAR_FUTURE,
            dirty: false,
            listed: false,
            failures: 0,
            settled: false,
        }
    }

    /// Queries waiting or in flight.
    #[inline]
    pub(crate) fn open_queries(&self) -> u32 {
        self.pending.waiting() + self.pending.in_flight()
    }

    /// True if a query submitted now would be sent at once.
    #[inline]
    pub(crate) fn can_send(&self, queries_per_connection: Option<u32>) -> bool {
        match &self.link {
            Link::Datagram { blocked, .. } => !blocked,
            Link::Stream(connection) => {
                let planned = connection.queries_sent + self.pending.waiting();
                connection.progress == Progress::Usable
                    && connection.unsent.is_empty()
                    && queries_per_connection.is_none_or(|most| planned < most)
            }
            Link::Down { .. } => false,
        }
    }
}

impl Connection {
    pub(crate) fn new(socket: SocketId, attempted_at: Instant) -> Self {
        Connection {
            socket,
            progress: Progress::Connecting,
            tls: None,
            deframer: Deframer::default(),
            unsent: Vec::new(),
            blocked_at: attempted_at,
            queries_sent: 0,
            served: false,
            attempted_at,
            established_at: attempted_at,
        }
    }

    /// True if queries were sent and nothing has come back yet. A server may leave a connection in
    /// its listen queue, where the kernel establishes it and nobody reads it.
    #[inline]
    pub(crate) fn is_silent(&self) -> bool {
        self.queries_sent > 0 && !self.served
    }

    /// Keeps octets that the socket did not take at `now`, behind those it did not take before.
    pub(crate) fn keep_unsent(&mut self, octets: &[u8], now: Instant) {
        if self.unsent.is_empty() {
            self.blocked_at = now;
        }
        self.unsent.extend_from_slice(octets);
    }
}
