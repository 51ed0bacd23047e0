//! Programmable behaviour: when responses are sent, which are spoilt, how connections end.
//!
//! [`Behaviour`] is what the user states; [`crate::worker`] acts on it. All chances are drawn from
//! one seeded generator for each worker, in the order in which queries arrive.

mod parse;

use std::fmt;
use std::time::Duration;

use driver::Close;
use proto::quic::Admission;
use proto::{Instant, Transport};
use serde::{Deserialize, Serialize};

pub use parse::{
    BehaviourError, parse_duration, parse_http_status_shares, parse_rcode_shares, parse_share,
};

/// How long after its query a response is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Delay {
    /// At once.
    #[default]
    None,
    /// Always the same.
    Constant(Duration),
    /// Every duration from `min` to `max` alike.
    Uniform {
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// Exponentially distributed, as from a server with random service times.
    Exponential {
        /// The mean.
        mean: Duration,
    },
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |time: &Duration| measure::notation::latency(time.as_nanos() as f64);
        match self {
            Delay::None => f.write_str("no time"),
            Delay::Constant(delay) => write!(f, "{}", time(delay)),
            Delay::Uniform { min, max } => write!(f, "{} to {}, evenly", time(min), time(max)),
            Delay::Exponential { mean } => write!(f, "{} on average, exponential", time(mean)),
        }
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// When it starts, counted from the responder's start.
    pub at: Duration,
    /// How long it lasts.
    pub length: Duration,
    /// From one start to the next, if it repeats; longer than `length`.
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

/// Stalls that can follow one another without a gap; more are not looked at.
const ADJACENT_STALLS_MAX: usize = 64;

/// The first instant at or after `due` that lies in no stall.
pub(crate) fn after_stalls(stalls: &[Stall], start: Instant, due: Instant) -> Instant {
    let mut due = due;
    for _ in 0..ADJACENT_STALLS_MAX {
        let elapsed = due.duration_since(start);
        if due < start {
            break;
        }
        match stalls.iter().find_map(|stall| stall.end(elapsed)) {
            Some(end) => due = start + end,
            None => break,
        }
    }
    due
}

/// How a connection ends after its last query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    GoAway,
    /// QUIC's CONNECTION_CLOSE with this application error code, at once. Without QUIC the same as
    /// `Close`.
    Error(u64),
}

/// Shares of QUIC connections (0 to 1) that do not begin as they should; each at most one of them.
/// All Initials of one attempt meet with the same.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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

impl QuicShares {
    fn all(&self) -> [f64; 4] {
        [
            self.ignore,
            self.version_negotiation,
            self.refuse,
            self.retry,
        ]
    }

    /// What the attempt with this chance, from 0 to below 1, meets with.
    pub(crate) fn admission(&self, chance: f64) -> Admission {
        let admissions = [
            Admission::Ignore,
            Admission::VersionNegotiation,
            Admission::Refuse,
            Admission::Retry,
        ];
        let mut cumulative = 0.0;
        for (admission, share) in admissions.into_iter().zip(self.all()) {
            cumulative += share;
            if chance < cumulative {
                return admission;
            }
        }
        Admission::Accept
    }

    /// True if every connection begins as it should.
    pub(crate) fn is_none(&self) -> bool {
        self.all() == [0.0; 4]
    }
}

/// Shares of responses (0 to 1) that are treated in a special way; each response in at most one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultShares {
    /// Not sent.
    pub loss: f64,
    /// Sent without records and with this RCODE (0 to 15).
    pub rcodes: Vec<(u8, f64)>,
    /// Sent without records and with the TC bit, over streams too.
    pub truncated: f64,
    /// Sent with an ID other than the query's.
    pub wrong_id: f64,
    /// Sent with a question other than the query's.
    pub wrong_question: f64,
    /// Sent as random octets of the same length.
    pub garbage: f64,
    /// Sent with a record that makes it 65,535 octets long (65,507 over UDP).
    pub oversized: f64,
    /// Not sent: the stream of the query is reset. Over transports on which queries have no
    /// stream of their own, the response is sent.
    pub reset: f64,
    /// Not sent: an HTTP response with this status (200 to 999) and no content is. Without HTTP,
    /// the response is sent.
    pub http_statuses: Vec<(u16, f64)>,
}

/// What the responder does to queries beside answering them. The default does nothing.
#[derive(Clone, Debug, PartialEq)]
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
    pub rate_burst: Option<Duration>,
    /// TCP connections, with TLS or without, open at once, over all workers; further ones are
    /// accepted and ended.
    pub tcp_clients_max: Option<u32>,
    /// How the connections beyond `tcp_clients_max` end.
    pub excess_close: Close,
    /// A connection on which nothing is received for so long is closed.
    pub idle_timeout: Option<Duration>,
    /// After so many queries (at least 1) a connection ends this way.
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
            excess_close: Close::Reset,
            idle_timeout: None,
            end_after: None,
            quic: QuicShares::default(),
        }
    }
}

/// What happens to one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    Lost,
    Rcode(u8),
    Truncated,
    WrongId,
    WrongQuestion,
    Garbage,
    Oversized,
    Reset,
    HttpStatus(u16),
}

impl Fault {
    /// False if the transport has nothing that could be spoilt in this way.
    pub(crate) fn is_possible(self, transport: Transport) -> bool {
        match self {
            Fault::Reset => transport.is_doh() || transport == Transport::Doq,
            Fault::HttpStatus(_) => transport.is_doh(),
            _ => true,
        }
    }
}

impl FaultShares {
    /// Each fault with its share, those with none left out.
    pub(crate) fn table(&self) -> Vec<(Fault, f64)> {
        let mut table = vec![
            (Fault::Lost, self.loss),
            (Fault::Truncated, self.truncated),
            (Fault::WrongId, self.wrong_id),
            (Fault::WrongQuestion, self.wrong_question),
            (Fault::Garbage, self.garbage),
            (Fault::Oversized, self.oversized),
            (Fault::Reset, self.reset),
        ];
        table.extend(
            self.rcodes
                .iter()
                .map(|&(rcode, share)| (Fault::Rcode(rcode), share)),
        );
        table.extend(
            self.http_statuses
                .iter()
                .map(|&(status, share)| (Fault::HttpStatus(status), share)),
        );
        table.retain(|&(_, share)| share != 0.0);
        table
    }
}

impl Behaviour {
    /// Checks that the parts go together.
    ///
    /// # Errors
    /// The first part that contradicts itself or another.
    pub fn validate(&self) -> Result<(), BehaviourError> {
        let shares = self.faults.table();
        let all = shares
            .iter()
            .map(|&(_, share)| share)
            .chain([self.duplicate_share]);
        for share in all {
            if !(0.0..=1.0).contains(&share) {
                return Err(BehaviourError::Share(share.to_string()));
            }
        }
        let quic = self.quic.all();
        if let Some(share) = quic.iter().find(|share| !(0.0..=1.0).contains(*share)) {
            return Err(BehaviourError::Share(share.to_string()));
        }
        let sum: f64 = quic.iter().sum();
        if sum > 1.0 + 1e-9 {
            return Err(BehaviourError::QuicSharesSum(sum));
        }
        // Shares typed as decimals may sum to a little more than 1.
        let sum: f64 = shares.iter().map(|&(_, share)| share).sum();
        if sum > 1.0 + 1e-9 {
            return Err(BehaviourError::SharesSum(sum));
        }
        if let Some(&(rcode, _)) = self.faults.rcodes.iter().find(|(rcode, _)| *rcode > 15) {
            return Err(BehaviourError::Rcode(rcode.to_string()));
        }
        let statuses = &self.faults.http_statuses;
        if let Some((status, _)) = statuses.iter().find(|it| !(200..1_000).contains(&it.0)) {
            return Err(BehaviourError::HttpStatus(status.to_string()));
        }
        if let Delay::Uniform { min, max } = self.delay
            && min > max
        {
            return Err(BehaviourError::DelayOrder { min, max });
        }
        for stall in &self.stalls {
            stall.validate()?;
        }
        match self.rate_qps_max {
            Some(rate) if !(rate.is_finite() && rate > 0.0) => Err(BehaviourError::Rate(rate)),
            _ if matches!(self.end_after, Some((0, _))) => Err(BehaviourError::EndAfterNone),
            _ => Ok(()),
        }
    }
}

impl Stall {
    pub(crate) fn validate(&self) -> Result<(), BehaviourError> {
        match self.every {
            Some(every) if every <= self.length => Err(BehaviourError::StallForever {
                length: self.length,
                every,
            }),
            _ => Ok(()),
        }
    }
}
