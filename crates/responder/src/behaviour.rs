//! Programmable behaviour: when responses are sent, which are corrupted, how connections end.
//!
//! [`Behaviour`] is the user's setting; [`crate::worker`] applies it. All random choices come from
//! one seeded generator per worker, in the order in which queries arrive.

mod parse;

use proto::quic::Admission;
use proto::{Instant, Transport};
pub use settings::{Behaviour, ConnectionEnd, Delay, FaultShares, QuicShares, Stall};

pub use parse::{
    BehaviourError, parse_connection_end, parse_delay, parse_duration, parse_http_status_shares,
    parse_rcode_shares, parse_share, parse_stall,
};

/// Most consecutive stalls without a gap; more are not followed.
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

/// The shares of QUIC connections, in the order in which the random number is compared with them.
fn quic_shares(shares: &QuicShares) -> [(Admission, f64); 4] {
    [
        (Admission::Ignore, shares.ignore),
        (Admission::VersionNegotiation, shares.version_negotiation),
        (Admission::Refuse, shares.refuse),
        (Admission::Retry, shares.retry),
    ]
}

/// The admission of a connection with this random number, from 0 to below 1.
pub(crate) fn admission(shares: &QuicShares, chance: impl FnOnce() -> f64) -> Admission {
    if *shares == QuicShares::default() {
        return Admission::Accept;
    }
    let chance = chance();
    let mut cumulative = 0.0;
    for (admission, share) in quic_shares(shares) {
        cumulative += share;
        if chance < cumulative {
            return admission;
        }
    }
    Admission::Accept
}

/// A fault of one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    Lost,
    Rcode(u8),
    Truncated,
    WrongId,
    WrongQuestion,
    WrongQr,
    Garbage,
    Oversized,
    Reset,
    HttpStatus(u16),
    WrongMediaType,
}

impl Fault {
    /// False if the transport cannot have this fault.
    pub(crate) fn is_possible(self, transport: Transport) -> bool {
        match self {
            Fault::Reset => transport.is_doh() || transport == Transport::Doq,
            Fault::HttpStatus(_) | Fault::WrongMediaType => transport.is_doh(),
            _ => true,
        }
    }
}

/// Each fault with its share, without those whose share is zero.
pub(crate) fn table(shares: &FaultShares) -> Vec<(Fault, f64)> {
    let mut table = vec![
        (Fault::Lost, shares.loss),
        (Fault::Truncated, shares.truncated),
        (Fault::WrongId, shares.wrong_id),
        (Fault::WrongQuestion, shares.wrong_question),
        (Fault::WrongQr, shares.wrong_qr),
        (Fault::Garbage, shares.garbage),
        (Fault::Oversized, shares.oversized),
        (Fault::Reset, shares.reset),
        (Fault::WrongMediaType, shares.wrong_media_type),
    ];
    let rcodes = shares.rcodes.iter();
    table.extend(rcodes.map(|&(rcode, share)| (Fault::Rcode(rcode), share)));
    let statuses = shares.http_statuses.iter();
    table.extend(statuses.map(|&(status, share)| (Fault::HttpStatus(status), share)));
    table.retain(|&(_, share)| share != 0.0);
    table
}

/// Checks that the parts of a behaviour are consistent.
///
/// # Errors
/// The first part that contradicts itself or another.
pub fn validate(behaviour: &Behaviour) -> Result<(), BehaviourError> {
    let faults = table(&behaviour.faults).into_iter().map(|(_, share)| share);
    let faults: Vec<f64> = faults.collect();
    let quic = quic_shares(&behaviour.quic).map(|(_, share)| share);
    let all = faults
        .iter()
        .chain([&behaviour.duplicate_share])
        .chain(&quic);
    for share in all {
        if !(0.0..=1.0).contains(share) {
            return Err(BehaviourError::Share(share.to_string()));
        }
    }
    // Shares typed as decimals may sum to a little more than 1.
    let sum: f64 = quic.iter().sum();
    if sum > 1.0 + 1e-9 {
        return Err(BehaviourError::QuicSharesSum(sum));
    }
    let sum: f64 = faults.iter().sum();
    if sum > 1.0 + 1e-9 {
        return Err(BehaviourError::SharesSum(sum));
    }
    let FaultShares {
        rcodes,
        http_statuses,
        ..
    } = &behaviour.faults;
    if let Some((rcode, _)) = rcodes.iter().find(|(rcode, _)| *rcode > 15) {
        return Err(BehaviourError::Rcode(rcode.to_string()));
    }
    if let Some((status, _)) = http_statuses
        .iter()
        .find(|it| !(200..1_000).contains(&it.0))
    {
        return Err(BehaviourError::HttpStatus(status.to_string()));
    }
    if let Delay::Uniform { min, max } = behaviour.delay
        && min > max
    {
        return Err(BehaviourError::DelayOrder { min, max });
    }
    behaviour.stalls.iter().try_for_each(check_stall)?;
    match behaviour.rate_qps_max {
        Some(rate) if !(rate.is_finite() && rate > 0.0) => Err(BehaviourError::Rate(rate)),
        _ if matches!(behaviour.end_after, Some((0, _))) => Err(BehaviourError::EndAfterNone),
        _ => Ok(()),
    }
}

/// Refuses a stall that never ends.
fn check_stall(stall: &Stall) -> Result<(), BehaviourError> {
    match stall.every {
        Some(every) if every <= stall.length => Err(BehaviourError::StallForever {
            length: stall.length,
            every,
        }),
        _ => Ok(()),
    }
}
