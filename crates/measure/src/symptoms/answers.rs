//! What came back: RCODEs, truncation, and queries that HTTP or their stream ended.

use super::Figures;
use super::significance;
use crate::interval::per;
use crate::scenario::Transport;

/// From this share of the responses on, an RCODE or truncation is reported.
const SHARE_MIN: f64 = 0.01;
/// From this share on, responses of no use are what the run measured.
const MOST: f64 = 0.5;
/// From this share of the queries sent on, those without a DNS message matter.
const ENDED_MAX: f64 = 0.01;

/// RCODEs outside of those that count as goodput.
pub(crate) struct UselessResponses {
    /// RCODE and number of its responses, the most frequent first.
    pub(crate) by_rcode: Vec<(u16, u64)>,
    /// All responses.
    pub(crate) all: u64,
    useless: u64,
}

impl UselessResponses {
    pub(crate) fn are_most(&self) -> bool {
        is_most(self.useless, self.all)
    }
}

/// True if so many of all responses are what the run measured.
pub(crate) fn is_most(number: u64, all: u64) -> bool {
    per(number as f64, all as f64) >= MOST
}

pub(super) fn useless_responses(figures: &Figures<'_>) -> Option<UselessResponses> {
    let rcodes = &figures.counts.rcodes;
    let all = rcodes.total();
    let good = &figures.record.scenario.goodput_rcodes;
    let named = rcodes.by_rcode.iter().zip(0_u16..);
    let named = named.filter(|(_, rcode)| !good.contains(rcode));
    let named = named.map(|(number, rcode)| (rcode, *number));
    let beyond = [(rcodes.by_rcode.len() as u16, rcodes.other)];
    let is_shown = |number: u64| number > 0 && per(number as f64, all as f64) >= SHARE_MIN;
    let mut by_rcode: Vec<(u16, u64)> = named
        .chain(beyond)
        .filter(|(_, number)| is_shown(*number))
        .collect();
    by_rcode.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let useless = all.saturating_sub(figures.counts.goodput(good));
    (!by_rcode.is_empty()).then_some(UselessResponses {
        by_rcode,
        all,
        useless,
    })
}

pub(crate) struct Truncated {
    /// More than 1 % of the queries got no response beside.
    pub(crate) is_beside_losses: bool,
}

pub(super) fn truncated(figures: &Figures<'_>) -> Option<Truncated> {
    let counts = figures.counts;
    let is_udp = figures.record.scenario.transport == Transport::Udp;
    let is_shown = per(counts.truncated as f64, counts.responses as f64) >= SHARE_MIN;
    (is_udp && is_shown).then_some(Truncated {
        is_beside_losses: counts.timeouts > counts.sent / 100,
    })
}

/// Queries that were answered without a DNS message.
pub(crate) struct ExchangesFailed {
    are_many: bool,
    /// Half of them or more were turned away, as by a limit on the rate of a client.
    pub(crate) are_turned_away: bool,
}

impl ExchangesFailed {
    pub(crate) fn are_many(&self) -> bool {
        self.are_many
    }
}

pub(super) fn exchanges_failed(figures: &Figures<'_>) -> Option<ExchangesFailed> {
    let ended = &figures.counts.exchange_failures;
    (ended.total() > 0).then(|| ExchangesFailed {
        are_many: significance::is_above(ended.total(), figures.counts.sent, ENDED_MAX),
        are_turned_away: 2 * ended.turned_away() >= ended.total(),
    })
}
