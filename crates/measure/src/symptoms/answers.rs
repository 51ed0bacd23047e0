//! What came back: responses of no use, messages that match no query, and queries that HTTP or
//! their stream ended.

use std::ops::RangeInclusive;

use super::Figures;
use super::instances::{self, SomeInstances};
use super::{losses, significance};
use crate::counts::Unexpected;
use crate::interval::per;
use crate::scenario::Transport;

/// From this share of the responses on, those of no use are reported.
const SHARE_MIN: f64 = 0.01;
/// Above this share, a rate is not that of responses that clients can use.
const MANY: f64 = 0.1;
/// From this share on, they are what the run measured.
const MOST: f64 = 0.5;
/// From this share on, all responses are empty: names or types that do not exist are no part of a
/// mix, but the wrong zone or the wrong questions.
const ALL: f64 = 0.99;
/// From this share of the queries sent on, those without a DNS message matter.
const ENDED_MAX: f64 = 0.01;
/// With a larger share of the queries answered, a server that has errors for the others is at work.
const ANSWERED_MIN: f64 = 0.01;

/// RCODEs by number (RFC 1035, section 4.1.1).
const NOERROR: u16 = 0;
const NXDOMAIN: u16 = 3;

/// Why a response is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Useless {
    /// Its RCODE is not in --goodput.
    Rcode(u16),
    /// It was truncated over UDP.
    Truncated,
    /// Its name does not exist, as those of all others.
    NoName,
    /// Its name has no record of the type, as those of all others (NODATA).
    NoData,
}

/// Responses of no use for one reason.
pub(crate) struct ForOneReason {
    pub(crate) reason: Useless,
    pub(crate) number: u64,
    /// The server instances that sent nearly all of them; none where all did, or unknown ones.
    pub(crate) at: Option<SomeInstances>,
}

/// Responses that clients cannot use, by reason.
pub(crate) struct UselessResponses {
    /// The most frequent first.
    pub(crate) by_reason: Vec<ForOneReason>,
    /// All responses.
    pub(crate) all: u64,
    useless: u64,
}

impl UselessResponses {
    pub(crate) fn are_many(&self) -> bool {
        per(self.useless as f64, self.all as f64) > MANY
    }
}

/// True if that many of all responses are what the run measured.
pub(crate) fn is_most(number: u64, all: u64) -> bool {
    per(number as f64, all as f64) >= MOST
}

pub(super) fn useless_responses(figures: &Figures<'_>) -> Option<UselessResponses> {
    let counts = figures.counts;
    let all = counts.rcodes.total();
    let good = &figures.record.scenario.goodput_rcodes;
    let rcodes = &counts.rcodes.by_rcode;
    let named = rcodes.iter().zip(0_u16..);
    let named = named.filter(|(_, rcode)| !good.contains(rcode));
    let named = named.map(|(number, rcode)| (Useless::Rcode(rcode), *number));
    let beyond = (Useless::Rcode(rcodes.len() as u16), counts.rcodes.other);
    let is_udp = figures.record.scenario.transport == Transport::Udp;
    // Truncation beside drops at a fixed rate is that of one limit.
    let of_limit = losses::rate_limited(figures).map_or(0, |it| it.truncated);
    let number = if is_udp { counts.truncated } else { 0 };
    let truncated = (Useless::Truncated, number - of_limit.min(number));
    let useless = all.saturating_sub(counts.goodput(good) + of_limit);
    let by_reason = by_share(figures, named.chain([beyond, truncated]), all);
    (!by_reason.is_empty()).then_some(UselessResponses {
        by_reason,
        all,
        useless,
    })
}

/// Responses of which all are empty: the names, or their records of the type, do not exist.
pub(crate) struct EmptyResponses {
    pub(crate) by_reason: Vec<ForOneReason>,
    pub(crate) all: u64,
}

/// Those that are a share worth a word, the most frequent first.
fn by_share(
    figures: &Figures<'_>,
    reasons: impl IntoIterator<Item = (Useless, u64)>,
    all: u64,
) -> Vec<ForOneReason> {
    let worth = |it: &(Useless, u64)| per(it.1 as f64, all as f64) >= SHARE_MIN;
    let each = reasons.into_iter().filter(worth);
    let each = each.map(|(reason, number)| ForOneReason {
        reason,
        number,
        at: match reason {
            Useless::Rcode(rcode) => instances::that_have(figures, |it| it.rcodes.of(&[rcode])),
            Useless::Truncated | Useless::NoName | Useless::NoData => None,
        },
    });
    let mut each: Vec<ForOneReason> = each.collect();
    each.sort_by_key(|it| std::cmp::Reverse(it.number));
    each
}

/// Where both NOERROR and NXDOMAIN are good: who measures one of them says so.
pub(super) fn empty_responses(figures: &Figures<'_>) -> Option<EmptyResponses> {
    let counts = figures.counts;
    let all = counts.rcodes.total();
    let good = &figures.record.scenario.goodput_rcodes;
    let by_reason = [
        (
            Useless::NoName,
            counts.rcodes.by_rcode[usize::from(NXDOMAIN)],
        ),
        (Useless::NoData, counts.nodata),
    ];
    let empty: u64 = by_reason.iter().map(|(_, number)| number).sum();
    let are_good = good.contains(&NOERROR) && good.contains(&NXDOMAIN);
    let are_all = empty > 0 && per(empty as f64, all as f64) >= ALL;
    (are_good && are_all).then(|| EmptyResponses {
        by_reason: by_share(figures, by_reason, all),
        all,
    })
}

/// Messages that match no query.
pub(crate) struct UnmatchedMessages {
    pub(crate) by_reason: Unexpected,
    are_responses: bool,
}

impl UnmatchedMessages {
    /// As many as half of the queries without response, and a tenth of all messages.
    pub(crate) fn are_responses(&self) -> bool {
        self.are_responses
    }
}

pub(super) fn unmatched_messages(figures: &Figures<'_>) -> Option<UnmatchedMessages> {
    let counts = figures.counts;
    let by_reason = counts.unexpected;
    let number = by_reason.total();
    let share = per(number as f64, (counts.responses + number) as f64);
    (number > 0 && share >= SHARE_MIN).then(|| UnmatchedMessages {
        by_reason,
        are_responses: share >= MANY && 2 * number >= figures.unanswered(),
    })
}

/// At least half of the queries ended with one HTTP status other than 200.
pub(crate) struct HttpErrors {
    pub(crate) status: u64,
    pub(crate) number: u64,
}

/// HTTP 429 is a limit on the rate, and errors of the server beside answers come with the load,
/// which [`exchanges_failed`] reports.
pub(super) fn http_errors(figures: &Figures<'_>) -> Option<HttpErrors> {
    const TOO_MANY_REQUESTS: u64 = 429;
    const OF_SERVER: RangeInclusive<u64> = 500..=599;
    let counts = figures.counts;
    let are_some_answered = significance::is_above(counts.responses, counts.sent, ANSWERED_MIN);
    let is_of_load = |status: u64| {
        status == TOO_MANY_REQUESTS || are_some_answered && OF_SERVER.contains(&status)
    };
    let most = counts.exchange_failures.status_of_most(counts.sent);
    let most = most.filter(|(status, _)| !is_of_load(*status));
    most.map(|(status, number)| HttpErrors { status, number })
}

/// Queries that were answered without a DNS message.
pub(crate) struct ExchangesFailed {
    are_many: bool,
    /// Half of them or more were turned away, as by a limit on the rate of a client.
    pub(crate) are_turned_away: bool,
    /// Half of them or more have the media type `application/dns`.
    pub(crate) are_mistyped: bool,
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
        are_mistyped: 2 * ended.media_type_dns >= ended.total(),
    })
}
