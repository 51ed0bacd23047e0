//! One simulated client: its open queries, its socket or connection, its timer.

use std::net::SocketAddr;

use driver::SocketId;
use load::ConnectionPolicy;
use proto::Instant;
use proto::framing::Deframer;
use proto::http2::Http2Client;
use proto::pending::Pending;
use proto::quic::ConnectionKey;
use proto::tls::{ClientSession, ClientTls};

use crate::standings::Standing;

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
    /// What it remembers of its last TLS session between its connections.
    pub(crate) session: ClientSession,
    /// When its entry in the timer heap is due; [`Instant::FAR_FUTURE`] if it has none.
    pub(crate) timer_at: Instant,
    /// Is in the list of clients whose waiting queries are to be sent.
    pub(crate) dirty: bool,
    /// Is in the list of clients that can take a query (closed loop).
    pub(crate) listed: bool,
    /// Is in the queue of clients that may connect when the connect rate lets them.
    pub(crate) queued: bool,
    /// Connections in a row that failed or carried no response; sets the delay of the next.
    pub(crate) failures: u8,
    /// It is gone and asks nothing more.
    pub(crate) has_left: bool,
    /// Its first connection has become usable or has failed.
    pub(crate) settled: bool,
    /// Waiting queries that were counted as kept waiting for a place on the connection.
    pub(crate) kept_waiting: u32,
}

/// How a client reaches the target at present.
pub(crate) enum Link {
    /// A datagram socket; `blocked` while its send buffer is full.
    Datagram { socket: SocketId, blocked: bool },
    /// A connection, in whatever state.
    Connected(Box<Connection>),
    /// No connection; the next may be opened at this instant, if there is need. `on_demand` means
    /// that only a query makes the need.
    Down { retry_at: Instant, on_demand: bool },
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// SYN or first QUIC packet sent.
    Connecting,
    /// TCP is established, the TLS handshake is not.
    Handshaking,
    /// Queries can be sent.
    Usable,
}

/// Why we close a usable connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It has carried the queries it may, the run is over, or it takes no octets any more.
    Done,
    /// It has had nothing to do for too long.
    Idle,
    /// It has lived as long as it may.
    Duration,
    /// It was opened to be closed.
    WithoutQuery,
    /// The target allows no further stream on it, though none is open.
    NoStreams,
    /// The target has said that it takes no further requests on it, with this error code.
    GoingAway(u64),
}

/// How messages travel in a connection.
pub(crate) enum Channel {
    /// One after the other, each behind its length (RFC 7766, RFC 7858).
    Framed(Deframer),
    /// As HTTP/2 requests (RFC 8484).
    Http2(Box<Http2Client>),
    /// Each on a stream of a QUIC connection (RFC 9250, or RFC 8484 over RFC 9114).
    Quic {
        key: ConnectionKey,
        /// The socket's send buffer was full.
        blocked: bool,
        /// Streams that the target lets us open now.
        streams_free: u32,
        /// Since when nothing is open and the target allows no stream all the same.
        starved_since: Option<Instant>,
    },
}

/// One connection of a transport that has them.
pub(crate) struct Connection {
    pub(crate) socket: SocketId,
    pub(crate) progress: Progress,
    pub(crate) channel: Channel,
    /// Apart, because a session is a kilobyte that a TCP connection does not need.
    pub(crate) tls: Option<Box<ClientTls>>,
    /// Queries can be sent although the handshake is not over (RFC 8446, section 2.3).
    pub(crate) early: bool,
    /// Queries were sent then.
    pub(crate) sent_early: bool,
    /// Octets that the socket did not take yet; empty unless the stream blocks.
    pub(crate) unsent: Vec<u8>,
    /// When the socket last took octets, while it blocks.
    pub(crate) blocked_at: Instant,
    /// It carries no further query, and is closed for this reason when its responses are in.
    pub(crate) retired_for: Option<Reason>,
    /// Queries sent on this connection.
    pub(crate) queries_sent: u32,
    /// A response came on this connection.
    pub(crate) served: bool,
    pub(crate) attempted_at: Instant,
    pub(crate) established_at: Instant,
    pub(crate) usable_at: Instant,
    /// When it last had a query in flight, or else when it became usable.
    pub(crate) active_at: Instant,
    /// The last interval in which it was counted as active.
    pub(crate) active_in: u32,
    /// Whether the target took octets from the SYN (RFC 7413) has not been asked yet.
    pub(crate) fast_open_unknown: bool,
    /// What it is counted as among those that are open.
    pub(crate) counted_as: Standing,
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
            dirty: false,
            listed: false,
            queued: false,
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

    /// How many queries submitted now would be sent at once, or would have the client connect.
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

    /// True if a query submitted now would be sent at once, or would have the client connect.
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

impl Connection {
    pub(crate) fn new(socket: SocketId, channel: Channel, attempted_at: Instant) -> Self {
        Connection {
            socket,
            progress: Progress::Connecting,
            channel,
            tls: None,
            early: false,
            sent_early: false,
            unsent: Vec::new(),
            blocked_at: attempted_at,
            retired_for: None,
            queries_sent: 0,
            served: false,
            attempted_at,
            established_at: attempted_at,
            usable_at: Instant::FAR_FUTURE,
            active_at: attempted_at,
            active_in: 0,
            fast_open_unknown: true,
            counted_as: Standing::Unusable,
        }
    }

    /// True once the handshakes are over.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.progress == Progress::Usable
    }

    /// True if queries may be written now.
    #[inline]
    pub(crate) fn takes_queries(&self) -> bool {
        let is_ready = self.progress == Progress::Usable || self.early;
        is_ready && self.retired_for.is_none() && !self.is_blocked()
    }

    /// True while the socket takes no octets.
    #[inline]
    pub(crate) fn is_blocked(&self) -> bool {
        match &self.channel {
            Channel::Quic { blocked, .. } => *blocked,
            _ => !self.unsent.is_empty(),
        }
    }

    /// How many more queries it may carry now, beside those in flight.
    #[inline]
    pub(crate) fn room(&self, in_flight: u32, policy: &ConnectionPolicy) -> u32 {
        let of_life = policy.queries_max.unwrap_or(u32::MAX);
        let of_life = of_life.saturating_sub(self.queries_sent);
        let of_depth = policy.in_flight_max.unwrap_or(u32::MAX);
        let of_depth = of_depth.saturating_sub(in_flight);
        let of_protocol = match &self.channel {
            Channel::Http2(session) => session.streams_free(),
            Channel::Quic { streams_free, .. } => *streams_free,
            Channel::Framed(_) => u32::MAX,
        };
        of_life.min(of_depth).min(of_protocol)
    }

    /// When the policy next has something to say about this connection, after `now`.
    pub(crate) fn next_deadline(&self, policy: &ConnectionPolicy, now: Instant) -> Option<Instant> {
        let of_duration = policy.duration.map(|duration| self.usable_at + duration);
        let of_idleness = policy.idle_timeout.map(|timeout| self.active_at + timeout);
        let due = |at: &Instant| *at > now;
        let deadlines = [of_duration, of_idleness].into_iter().flatten();
        deadlines.filter(due).min()
    }

    /// Lets it carry no further query if its time is over.
    pub(crate) fn retire_if_due(
        &mut self,
        policy: &ConnectionPolicy,
        has_open_queries: bool,
        now: Instant,
    ) {
        let is_over = |since: Instant, limit: Option<std::time::Duration>| {
            limit.is_some_and(|limit| since + limit <= now)
        };
        if self.retired_for.is_some() {
            return;
        }
        if is_over(self.usable_at, policy.duration) {
            self.retired_for = Some(Reason::Duration);
        } else if !has_open_queries && is_over(self.active_at, policy.idle_timeout) {
            self.retired_for = Some(Reason::Idle);
        }
    }

    /// True if queries were sent and nothing has come back yet. A server may leave a connection in
    /// its listen queue, where the kernel establishes it and nobody reads it.
    #[inline]
    fn is_silent(&self) -> bool {
        self.queries_sent > 0 && !self.served
    }

    /// What it is to be counted as.
    #[inline]
    pub(crate) fn standing(&self) -> Standing {
        match (self.is_open(), self.is_silent()) {
            (false, _) => Standing::Unusable,
            (true, true) => Standing::Silent,
            (true, false) => Standing::Open,
        }
    }

    /// Keeps octets that the socket did not take at `now`, behind those it did not take before.
    pub(crate) fn keep_unsent(&mut self, octets: &[u8], now: Instant) {
        if self.unsent.is_empty() {
            self.blocked_at = now;
        }
        self.unsent.extend_from_slice(octets);
    }
}
