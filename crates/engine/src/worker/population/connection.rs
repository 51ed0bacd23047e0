//! One connection of a client: its stage, its channel, and its deadlines.

use driver::SocketId;
use load::ConnectionPolicy;
use proto::Instant;
use proto::framing::Deframer;
use proto::http2::Http2Client;
use proto::quic::ConnectionKey;
use proto::tls::ClientTls;

use crate::worker::ledger::open_connections::Standing;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
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
    /// It has reached its limit of queries, the run is over, or its socket accepts no more bytes.
    Done,
    /// It has had nothing to do for too long.
    Idle,
    /// It has lived as long as it may.
    Duration,
    /// It was opened to be closed.
    WithoutQuery,
    /// The target allows no further stream on it, though none is open.
    NoStreams,
    /// The target sent GOAWAY with this error code.
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
        /// Since when the target has allowed no stream although none is open.
        starved_since: Option<Instant>,
    },
}

/// One connection of a transport that has them.
pub(crate) struct Connection {
    pub(crate) socket: SocketId,
    pub(crate) stage: Stage,
    pub(crate) channel: Channel,
    /// Apart, because a session is a kilobyte that a TCP connection does not need.
    pub(crate) tls: Option<Box<ClientTls>>,
    pub(crate) early: Early,
    pub(crate) unsent: Unsent,
    /// It carries no further query, and is closed for this reason once its responses have come.
    pub(crate) retired_for: Option<Reason>,
    /// Queries sent on this connection.
    pub(crate) queries_sent: u32,
    /// A response came on this connection.
    pub(crate) served: bool,
    pub(crate) times: Times,
    pub(crate) counted: Counted,
}

/// Early data (RFC 8446, section 2.3) on a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Early {
    /// Queries can be sent although the handshake is not over.
    pub(crate) is_open: bool,
    /// Queries were sent then.
    pub(crate) was_used: bool,
}

/// Bytes that a socket has not accepted yet.
pub(crate) struct Unsent {
    /// Empty unless the stream blocks.
    pub(crate) octets: Vec<u8>,
    /// When the socket last accepted bytes, while it blocks.
    pub(crate) blocked_at: Instant,
}

/// When a connection reached its stages.
pub(crate) struct Times {
    pub(crate) attempted_at: Instant,
    pub(crate) established_at: Instant,
    pub(crate) usable_at: Instant,
    /// When it last had a query in flight, or else when it became usable.
    pub(crate) active_at: Instant,
}

/// How a connection is counted.
pub(crate) struct Counted {
    /// What it counts as among open connections.
    pub(crate) standing: Standing,
    /// The last interval in which it was counted as active.
    pub(crate) active_in: u32,
    /// Not yet checked whether the target accepted data in the SYN (RFC 7413).
    pub(crate) fast_open_unknown: bool,
}

impl Channel {
    /// The connection is one of QUIC.
    #[inline]
    pub(crate) fn is_quic(&self) -> bool {
        matches!(self, Channel::Quic { .. })
    }
}

impl Connection {
    pub(crate) fn new(socket: SocketId, channel: Channel, attempted_at: Instant) -> Self {
        Connection {
            socket,
            stage: Stage::Connecting,
            channel,
            tls: None,
            early: Early::default(),
            unsent: Unsent {
                octets: Vec::new(),
                blocked_at: attempted_at,
            },
            retired_for: None,
            queries_sent: 0,
            served: false,
            times: Times {
                attempted_at,
                established_at: attempted_at,
                usable_at: Instant::FAR_FUTURE,
                active_at: attempted_at,
            },
            counted: Counted {
                standing: Standing::Unusable,
                active_in: 0,
                fast_open_unknown: true,
            },
        }
    }

    /// True once the handshakes are over.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.stage == Stage::Usable
    }

    /// True if queries may be written now.
    #[inline]
    pub(crate) fn takes_queries(&self) -> bool {
        let is_ready = self.stage == Stage::Usable || self.early.is_open;
        is_ready && self.retired_for.is_none() && !self.is_blocked()
    }

    /// True while the socket accepts no bytes.
    #[inline]
    pub(crate) fn is_blocked(&self) -> bool {
        match &self.channel {
            Channel::Quic { blocked, .. } => *blocked,
            _ => !self.unsent.octets.is_empty(),
        }
    }

    /// How many queries are in flight on it, if its client has `of_client` in flight. The two
    /// differ only over HTTP/2, where the client may also have retiring connections.
    #[inline]
    pub(crate) fn in_flight(&self, of_client: u32) -> u32 {
        match &self.channel {
            Channel::Http2(session) => session.open_streams() as u32,
            _ => of_client,
        }
    }

    /// How many more queries it may carry now, if its client has `in_flight` in flight.
    #[inline]
    pub(crate) fn room(&self, in_flight: u32, policy: &ConnectionPolicy) -> u32 {
        let of_life = policy.queries_max.unwrap_or(u32::MAX);
        let of_life = of_life.saturating_sub(self.queries_sent);
        let of_depth = policy.in_flight_max.unwrap_or(u32::MAX);
        let of_depth = of_depth.saturating_sub(self.in_flight(in_flight));
        let of_protocol = match &self.channel {
            Channel::Http2(session) => session.streams_free(),
            Channel::Quic { streams_free, .. } => *streams_free,
            Channel::Framed(_) => u32::MAX,
        };
        of_life.min(of_depth).min(of_protocol)
    }

    /// The next deadline of the policy for this connection, after `now`.
    pub(crate) fn next_deadline(&self, policy: &ConnectionPolicy, now: Instant) -> Option<Instant> {
        let of_duration = policy
            .duration
            .map(|duration| self.times.usable_at + duration);
        let of_idleness = policy
            .idle_timeout
            .map(|timeout| self.times.active_at + timeout);
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
        if is_over(self.times.usable_at, policy.duration) {
            self.retired_for = Some(Reason::Duration);
        } else if !has_open_queries && is_over(self.times.active_at, policy.idle_timeout) {
            self.retired_for = Some(Reason::Idle);
        }
    }

    /// True if queries were sent and nothing has come back yet. The kernel may have established the
    /// connection although the server never accepts it from its listen queue.
    #[inline]
    fn is_silent(&self) -> bool {
        self.queries_sent > 0 && !self.served
    }

    /// What it counts as now.
    #[inline]
    pub(crate) fn standing(&self) -> Standing {
        match (self.is_open(), self.is_silent()) {
            (false, _) => Standing::Unusable,
            (true, true) => Standing::Silent,
            (true, false) if self.served => Standing::Served,
            (true, false) => Standing::Unasked,
        }
    }

    /// Appends bytes that the socket did not accept at `now` to those kept before.
    pub(crate) fn keep_unsent(&mut self, octets: &[u8], now: Instant) {
        if self.unsent.octets.is_empty() {
            self.unsent.blocked_at = now;
        }
        self.unsent.octets.extend_from_slice(octets);
    }
}
