//! One simulated client: its open queries, its socket or connection, its timer.

use std::net::SocketAddr;

use driver::SocketId;
use load::ConnectionPolicy;
use proto::Instant;
use proto::pending::Pending;
use proto::tls::ClientSession;

use super::connection::Connection;

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
    /// Its last TLS session, kept between connections.
    pub(crate) session: ClientSession,
    /// When its entry in the timer heap is due; [`Instant::FAR_FUTURE`] if it has none.
    pub(crate) timer_at: Instant,
    pub(crate) listed: Listed,
    /// Connections in a row that failed or carried no response; sets the delay of the next.
    pub(crate) failures: u8,
    /// It has left and sends no more queries.
    pub(crate) has_left: bool,
    /// Its first connection has become usable or has failed.
    pub(crate) settled: bool,
    /// Waiting queries that were counted as kept waiting because the connection was full.
    pub(crate) kept_waiting: u32,
}

/// The lists that a client is in.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Listed {
    /// Those whose waiting queries are to be sent.
    pub(crate) to_send: bool,
    /// Those that can take a query (closed loop).
    pub(crate) ready: bool,
    /// Those that may connect when the connect rate allows.
    pub(crate) to_connect: bool,
}

/// How a client reaches the target at present.
pub(crate) enum Link {
    /// A datagram socket; `blocked` while its send buffer is full.
    Datagram { socket: SocketId, blocked: bool },
    /// A connection, in whatever state.
    Connected(Box<Connection>),
    /// No connection; the next may be opened at this instant, if needed. With `on_demand` only a
    /// query needs one.
    Down { retry_at: Instant, on_demand: bool },
}

impl Client {
    pub(crate) fn new(role: Role, local: Option<SocketAddr>) -> Self {
        Client {
            role,
            pending: Pending::default(),
            local,
            link: Link::Down {
                retry_at: Instant::ZERO,
                on_demand: false,
            },
            session: ClientSession::default(),
            timer_at: Instant::FAR_FUTURE,
            listed: Listed::default(),
            failures: 0,
            has_left: false,
            settled: false,
            kept_waiting: 0,
        }
    }

    /// Queries waiting or in flight.
    #[inline]
    pub(crate) fn open_queries(&self) -> u32 {
        self.pending.waiting() + self.pending.in_flight()
    }

    /// Adds this client, number `index`, to the list of those whose waiting queries are to be sent.
    #[inline]
    pub(crate) fn list_to_send(&mut self, index: u32, to_send: &mut Vec<u32>) {
        if !self.listed.to_send {
            self.listed.to_send = true;
            to_send.push(index);
        }
    }

    /// True if the drain of a run waits for it: for a query, or, with `connects`, for a connection.
    pub(crate) fn is_awaited(&self, connects: bool) -> bool {
        let is_connecting = match &self.link {
            Link::Connected(connection) => connects && !connection.is_open(),
            _ => false,
        };
        is_connecting || self.open_queries() > 0
    }

    /// How many queries submitted now would be sent at once, or would make the client connect.
    #[inline]
    pub(crate) fn room(&self, policy: &ConnectionPolicy) -> u32 {
        let room = match &self.link {
            _ if self.has_left => return 0,
            Link::Datagram { blocked: true, .. } => return 0,
            Link::Datagram { .. } => return u32::MAX,
            Link::Connected(connection) if !connection.takes_queries() => return 0,
            Link::Connected(connection) => connection.room(self.pending.in_flight(), policy),
            Link::Down { on_demand, .. } if !on_demand => return 0,
            Link::Down { .. } => policy.in_flight_max.unwrap_or(u32::MAX),
        };
        room.saturating_sub(self.pending.waiting())
    }

    /// True if a query submitted now would be sent at once, or would make the client connect.
    #[inline]
    pub(crate) fn can_send(&self, policy: &ConnectionPolicy) -> bool {
        self.room(policy) > 0
    }

    /// The connection, if there is one.
    #[inline]
    pub(crate) fn connection(&mut self) -> Option<&mut Connection> {
        match &mut self.link {
            Link::Connected(connection) => Some(connection),
            _ => None,
        }
    }
}
