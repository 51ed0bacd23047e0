//! What the built-in responder does to queries beside answering them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::nanos;

/// When responses are sent, which are spoilt, how connections end. The default does nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Behaviour {
    /// Time from query to response.
    pub delay: Delay,
    /// Responses that are lost or spoilt.
    pub faults: FaultShares,
    /// Share of responses that are sent twice, 0 to 1.
    pub duplicate_share: f64,
    /// Times in which nothing is answered.
    pub stalls: Vec<Stall>,
    /// Answers at most this many queries a second, over all workers.
    pub rate_qps_max: Option<f64>,
    /// Queries that may wait for their turn under `rate_qps_max`, over all workers; further ones
    /// are dropped.
    pub rate_queue_max: usize,
    /// Nothing waits for its turn under `rate_qps_max`: queries over it are dropped at once, but
    /// those that come at most so long before their turn, which are answered at once.
    #[serde(rename = "rate_burst_ns", with = "nanos::option")]
    #[schemars(with = "Option<u64>")]
    pub rate_burst: Option<Duration>,
    /// TCP connections, with TLS or without, open at once, over all workers; further ones are
    /// accepted and ended.
    pub tcp_clients_max: Option<u32>,
    /// The connections beyond `tcp_clients_max` are reset, rather than closed.
    pub excess_is_reset: bool,
    /// A connection on which nothing is received for so long is closed.
    #[serde(rename = "idle_timeout_ns", with = "nanos::option")]
    #[schemars(with = "Option<u64>")]
    pub idle_timeout: Option<Duration>,
    /// After how many queries (at least 1) a connection ends, and how.
    pub end_after: Option<(u64, ConnectionEnd)>,
    /// Faults at the beginning of QUIC connections.
    pub quic: QuicShares,
}

impl Default for Behaviour {
    fn default() -> Self {
        Behaviour {
            delay: Delay::None,
            faults: FaultShares::default(),
            duplicate_share: 0.0,
            stalls: Vec::new(),
            rate_qps_max: None,
            rate_queue_max: 10_000,
            rate_burst: None,
            tcp_clients_max: None,
            excess_is_reset: true,
            idle_timeout: None,
            end_after: None,
            quic: QuicShares::default(),
        }
    }
}

/// How long after its query a response is due, or something else takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delay {
    /// At once.
    #[default]
    None,
    /// Always the same, in nanoseconds.
    Constant(
        #[serde(with = "nanos")]
        #[schemars(with = "u64")]
        Duration,
    ),
    /// Every duration from `min` to `max` alike.
    Uniform {
        /// The shortest.
        #[serde(rename = "min_ns", with = "nanos")]
        #[schemars(with = "u64")]
        min: Duration,
        /// The longest.
        #[serde(rename = "max_ns", with = "nanos")]
        #[schemars(with = "u64")]
        max: Duration,
    },
    /// Exponentially distributed, as from a server with random service times.
    Exponential {
        /// The mean.
        #[serde(rename = "mean_ns", with = "nanos")]
        #[schemars(with = "u64")]
        mean: Duration,
    },
}

impl Delay {
    /// The delay at the point `chance` (0 to below 1) of the distribution.
    pub fn at(self, chance: f64) -> Duration {
        match self {
            Delay::None => Duration::ZERO,
            Delay::Constant(delay) => delay,
            Delay::Uniform { min, max } => min + max.saturating_sub(min).mul_f64(chance),
            // `1 - chance` is never zero; the longest possible is 37 times the mean.
            Delay::Exponential { mean } => mean.mul_f64(-(1.0 - chance).ln()),
        }
    }
}

/// A time in which nothing is answered; what would have been is answered at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stall {
    /// When it starts, counted from the responder's start.
    #[serde(rename = "at_ns", with = "nanos")]
    #[schemars(with = "u64")]
    pub at: Duration,
    /// How long it lasts.
    #[serde(rename = "length_ns", with = "nanos")]
    #[schemars(with = "u64")]
    pub length: Duration,
    /// From one start to the next, if it repeats; longer than `length`.
    #[serde(rename = "every_ns", with = "nanos::option")]
    #[schemars(with = "Option<u64>")]
    pub every: Option<Duration>,
}

impl Stall {
    /// The end of the stall if `elapsed` since the start lies in one.
    pub fn end(&self, elapsed: Duration) -> Option<Duration> {
        let since = elapsed.checked_sub(self.at)?;
        let into = match self.every {
            Some(every) => Duration::from_nanos(
                u64::try_from(since.as_nanos() % every.as_nanos().max(1)).unwrap_or(u64::MAX),
            ),
            None => since,
        };
        (into < self.length).then(|| elapsed - into + self.length)
    }
}

/// How a connection ends after its last query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConnectionEnd {
    /// All answers, then an orderly close.
    Close,
    /// A reset as soon as the answers are handed to the network. QUIC: the connection is forgotten,
    /// and what the client sends next is answered with a stateless reset.
    Reset,
    /// Half of the close: FIN, over TLS a close_notify, after which queries are received and not
    /// answered.
    HalfClose,
    /// The connection stays open and is not read any more, so that in the end the client blocks.
    StopReading,
    /// A fatal TLS alert, then a close; without TLS the same as `Close`.
    TlsAlert,
    /// GOAWAY: further requests are refused, the connection is open until the client closes it.
    /// Without HTTP the same as `Close`.
    #[serde(rename = "goaway")]
    GoAway,
    /// QUIC's CONNECTION_CLOSE with this application error code, at once. Without QUIC the same as
    /// `Close`.
    Error(u64),
}

/// Shares of QUIC connections (0 to 1) that do not begin as they should; each at most one of them.
/// All Initials of one attempt meet with the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QuicShares {
    /// Answered with a Retry packet (RFC 9000, section 8.1.2), then accepted.
    pub retry: f64,
    /// Answered with a Version Negotiation packet that names no version of use.
    pub version_negotiation: f64,
    /// Refused with CONNECTION_REFUSED.
    pub refuse: f64,
    /// Not answered.
    pub ignore: f64,
}

/// Shares of responses (0 to 1) that are treated in a special way; each response in at most one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultShares {
    /// Not sent.
    pub loss: f64,
    /// Sent without records and with an RCODE (0 to 15), each with its share.
    pub rcodes: Vec<(u8, f64)>,
    /// Sent without records and with the TC bit, over streams too.
    pub truncated: f64,
    /// Sent with an ID other than the query's.
    pub wrong_id: f64,
    /// Sent with a question other than the query's.
    pub wrong_question: f64,
    /// Sent with the QR bit clear, as a query (RFC 1035, section 4.1.1).
    #[serde(default, skip_serializing_if = "is_none")]
    pub wrong_qr: f64,
    /// Sent as random octets of the same length.
    pub garbage: f64,
    /// Sent with a record that makes it 65,535 octets long (65,507 over UDP).
    pub oversized: f64,
    /// Not sent: the stream of the query is reset. Over transports on which queries have no
    /// stream of their own, the response is sent.
    pub reset: f64,
    /// Not sent: an HTTP response with a status (200 to 999) and no content is, each with its
    /// share. Without HTTP, the response is sent.
    pub http_statuses: Vec<(u16, f64)>,
    /// HTTP: sent with the media type `application/dns`, which does not exist, in place of
    /// `application/dns-message` (RFC 8484, section 6). Without HTTP, the response is sent.
    #[serde(default, skip_serializing_if = "is_none")]
    pub wrong_media_type: f64,
}

/// A share that leaves all responses as they are.
fn is_none(share: &f64) -> bool {
    *share == 0.0
}
