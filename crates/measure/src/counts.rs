//! Counters of one interval, one worker or one run; merged by addition.
//!
//! The accounting identity (asserted by [`Counts::check_identity`]):
//! `offered = sent + not_sent`, `sent = responses + timeouts + connection_losses +
//! exchange_failures + interrupted`. It holds for whole phases of a run, not for single intervals:
//! a query may be sent in one interval and answered in the next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::zero::is_zero;

/// Implements `add`, which adds the named fields of `other`: numbers up to the most there is, which
/// no run reaches but a file may, groups by `add`.
macro_rules! impl_add {
    ($type:ty, numbers: [$($number:ident),* $(,)?], groups: [$($group:ident),* $(,)?]) => {
        impl $type {
            /// Adds everything counted in `other`.
            pub fn add(&mut self, other: &Self) {
                // Names every field, so that a new one cannot be forgotten here.
                let Self { $($number,)* $($group,)* } = other;
                $(self.$number = self.$number.saturating_add(*$number);)*
                $(self.$group.add($group);)*
            }
        }
    };
}

mod codes;
mod connections;
mod ends;
pub mod error_codes;
mod exchanges;
mod rcodes;
mod stub;
#[cfg(test)]
mod tests;
mod wire;

pub use codes::{CODES_MAX, Codes, Names};
pub use connections::{
    CertificateFaults, ConnectionFailures, Connections, EarlyData, EndedAfter, Handshakes,
    OwnClosures,
};
pub use ends::{ENDS, End};
pub use exchanges::ExchangeFailures;
pub use rcodes::{Rcodes, rcode_name};
pub use stub::{Failovers, StubCounts};
pub use wire::WireCounts;

/// Everything that is counted. Unit: messages, unless the name ends in `octets`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Queries that the scenario scheduled.
    pub offered: u64,
    /// Offered queries whose question was sent before, within the TTL, so that a cache could answer
    /// them; only counted if questions were chosen by a cache-hit ratio.
    pub repeated: u64,
    /// Queries handed to the network.
    pub sent: u64,
    /// Queries scheduled but never handed to the network, by cause.
    pub not_sent: NotSent,
    /// Queries that got a response (matched by socket, ID and question).
    pub responses: u64,
    /// Queries sent that got no response within the timeout.
    pub timeouts: u64,
    /// Queries sent whose connection was lost before the response came.
    pub connection_losses: u64,
    /// Queries sent that HTTP or a QUIC stream ended without a DNS message, by cause.
    pub exchange_failures: ExchangeFailures,
    /// Queries sent that were still open when the run was interrupted, or at the checkpoint that is
    /// its result: how they would have ended is unknown, and they are not lost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub interrupted: u64,
    /// Times that a query was sent again on another connection because the target said that it had
    /// not processed it (GOAWAY, REFUSED_STREAM). It is still one query: `sent` and `sent_octets`
    /// count it once.
    pub retried_unprocessed: u64,
    /// Queries that had to wait because their connection carried as many streams at once as the
    /// target allows, or as many queries as the scenario allows.
    pub waited_for_stream: u64,
    /// Responses by RCODE.
    pub rcodes: Rcodes,
    /// Responses with RCODE NOERROR but without a record of the queried type, although the name
    /// exists: NODATA (RFC 2308, section 2.2). Referrals are not counted.
    #[serde(default)]
    pub nodata: u64,
    /// Responses with the TC bit set.
    pub truncated: u64,
    /// Of these, by RCODE; empty in a record of a version that did not write it.
    #[serde(default, skip_serializing_if = "Rcodes::is_empty")]
    pub truncated_rcodes: Rcodes,
    /// Responses with the RA bit set to queries with a generated label: the server is recursive.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub generated_recursed: u64,
    /// Responses that matched a query which had already timed out.
    pub late: u64,
    /// Further responses to a query that already had one.
    pub duplicate: u64,
    /// Messages received that match no query, by reason.
    pub unexpected: Unexpected,
    /// ICMP port unreachable messages received for datagrams sent.
    pub port_unreachable: u64,
    /// Bytes of DNS messages sent, without transport framing.
    pub sent_octets: u64,
    /// Bytes of the DNS messages counted in `responses`, without transport framing.
    pub received_octets: u64,
    /// Queries sent again over TCP because the UDP response was truncated; counted apart from all
    /// of the above.
    pub tcp_fallback: TcpFallback,
    /// Stub-resolver behaviour of clients: attempts, servers, races.
    #[serde(default, skip_serializing_if = "StubCounts::is_empty")]
    pub stub: StubCounts,
    /// Connections of TCP and QUIC.
    pub connections: Connections,
    /// Responses without usable timestamps.
    #[serde(default, skip_serializing_if = "StampCounts::is_empty")]
    pub stamps: StampCounts,
    /// Data passed to and from sockets; zero in a record of a version that did not write it.
    #[serde(default, skip_serializing_if = "WireCounts::is_empty")]
    pub wire: WireCounts,
}

/// Responses to timestamped queries without usable timestamps. Both are zero in a run without
/// timestamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StampCounts {
    /// A stamp did not come, or came too late.
    pub missing: u64,
    /// The instants are not in their order, because a clock was set meanwhile.
    pub implausible: u64,
}

impl StampCounts {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        *self == StampCounts::default()
    }
}

/// Why queries were scheduled but never handed to the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotSent {
    /// The timeout passed while the query waited for its connection.
    pub timed_out_waiting: u64,
    /// The client had 61,440 open queries, the most that it may: a message ID each, and 4,096 IDs
    /// stay with the queries that timed out last, so that late responses are known.
    pub no_free_id: u64,
    /// The kernel refused the datagram.
    pub send_failed: u64,
    /// Of those, why.
    #[serde(default, skip_serializing_if = "SendFailures::is_empty")]
    pub send_failed_for: SendFailures,
    /// The run ended while the query waited for its connection, or for the generator, which
    /// could not keep up.
    pub run_ended: u64,
}

/// Why the kernel refused datagrams. All zero in a record of a version that did not write it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendFailures {
    /// No route to the target: the interface is down or gone, or has lost its address (ENETUNREACH,
    /// EHOSTUNREACH, ENETDOWN, EHOSTDOWN, ENODEV, EADDRNOTAVAIL).
    pub unreachable: u64,
    /// A firewall of this host forbids it (EPERM, EACCES).
    pub forbidden: u64,
    /// Nothing is listening on the port: ICMP port unreachable came for those before
    /// (ECONNREFUSED).
    pub refused: u64,
    /// The queue of the interface or the kernel's memory was full (ENOBUFS, ENOMEM).
    pub no_resources: u64,
    /// Any other error.
    pub other: u64,
}

/// Why a received message matched no query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unexpected {
    /// No query with that ID was sent on that socket recently.
    pub wrong_id: u64,
    /// The ID is in flight but the question differs (RFC 5452, section 9.1).
    pub wrong_question: u64,
    /// It came from another address than the target's (where the driver can see that).
    pub wrong_source: u64,
    /// Shorter than a header; in a record of a version that did not count `queries`, those too.
    pub malformed: u64,
    /// A query, not a response: its QR bit is clear (RFC 1035, section 4.1.1).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub queries: u64,
}

/// Queries repeated over TCP after a truncated UDP response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpFallback {
    /// Queries sent again over TCP, or meant to be.
    pub sent: u64,
    /// Responses to them.
    pub responses: u64,
    /// Of these, those that were whole, by RCODE; empty in a record of a version that did not write
    /// it.
    #[serde(default, skip_serializing_if = "Rcodes::is_empty")]
    pub rcodes: Rcodes,
    /// Timeouts of them, waiting for the connection included.
    pub timeouts: u64,
    /// Lost with their connection, or never connected.
    pub connection_losses: u64,
    /// They were still open when the run was interrupted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub interrupted: u64,
}

impl_add!(
    Counts,
    numbers: [
        offered, repeated, sent, responses, timeouts, connection_losses, interrupted, nodata,
        truncated, generated_recursed, late, duplicate, port_unreachable, sent_octets,
        received_octets,
        retried_unprocessed, waited_for_stream,
    ],
    groups: [
        not_sent, exchange_failures, rcodes, truncated_rcodes, unexpected, tcp_fallback,
        stub, connections, stamps, wire,
    ]
);
impl_add!(
    NotSent,
    numbers: [timed_out_waiting, no_free_id, send_failed, run_ended],
    groups: [send_failed_for]
);
impl_add!(
    SendFailures,
    numbers: [unreachable, forbidden, refused, no_resources, other],
    groups: []
);
impl_add!(
    Unexpected,
    numbers: [wrong_id, wrong_question, wrong_source, malformed, queries],
    groups: []
);
impl_add!(StampCounts, numbers: [missing, implausible], groups: []);
impl_add!(
    TcpFallback,
    numbers: [sent, responses, timeouts, connection_losses, interrupted],
    groups: [rcodes]
);
impl NotSent {
    /// Queries not sent for whatever cause.
    pub fn total(&self) -> u64 {
        self.timed_out_waiting + self.no_free_id + self.send_failed + self.run_ended
    }
}

impl SendFailures {
    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        *self == SendFailures::default()
    }
}

impl Unexpected {
    /// Messages that matched no query for whatever reason.
    pub fn total(&self) -> u64 {
        self.wrong_id + self.wrong_question + self.wrong_source + self.malformed + self.queries
    }
}

impl Counts {
    /// What lacks for the identity to hold for a phase of which the end was not counted: what was
    /// still open is interrupted, and what had not been sent never was.
    #[must_use]
    pub fn cut_off(&self) -> Counts {
        let fallback = &self.tcp_fallback;
        let ended_again = fallback.responses + fallback.timeouts + fallback.connection_losses;
        let ended = self.responses + self.sent_in_vain();
        let mut lacking = Counts {
            interrupted: self.sent.saturating_sub(ended),
            ..Counts::default()
        };
        lacking.tcp_fallback.interrupted = fallback
            .sent
            .saturating_sub(ended_again + fallback.interrupted);
        lacking.not_sent.run_ended = self
            .offered
            .saturating_sub(self.sent + self.not_sent.total());
        lacking
    }

    /// Responses whose RCODE is in `rcodes` and that are whole: a truncated one is goodput if the
    /// TCP fallback brought a whole one. An RCODE from 24 up is never in it.
    pub fn goodput(&self, rcodes: &[u16]) -> u64 {
        let of = |all: &Rcodes| all.of(rcodes);
        let whole = of(&self.rcodes).saturating_sub(of(&self.truncated_rcodes));
        whole + of(&self.tcp_fallback.rcodes)
    }

    /// Responses that are no goodput. None where more came over TCP than were truncated, as in an
    /// interval after that of the truncated ones.
    pub fn failures(&self, goodput_rcodes: &[u16]) -> u64 {
        self.responses.saturating_sub(self.goodput(goodput_rcodes))
    }

    /// Checks the accounting identity. Valid for a whole phase, not for one interval.
    ///
    /// # Errors
    /// Names both sides of the first equation that does not hold, with all numbers; the run has
    /// lost or invented queries and its figures must not be used.
    pub fn check_identity(&self) -> Result<(), String> {
        let not_sent = self.not_sent.total();
        let fallback = &self.tcp_fallback;
        balance(
            ("offered", self.offered),
            &[("sent", self.sent), ("not_sent", not_sent)],
        )?;
        let in_vain = ENDS.iter().filter(|end| end.was_sent);
        let in_vain = in_vain.map(|end| (end.counter, (end.count)(self)));
        let ends: Vec<_> = std::iter::once(("responses", self.responses))
            .chain(in_vain)
            .collect();
        balance(("sent", self.sent), &ends)?;
        balance(
            ("responses", self.responses),
            &[("rcodes", self.rcodes.total())],
        )?;
        balance(
            ("tcp_fallback.sent", fallback.sent),
            &[
                ("responses", fallback.responses),
                ("timeouts", fallback.timeouts),
                ("connection_losses", fallback.connection_losses),
                ("interrupted", fallback.interrupted),
            ],
        )?;
        self.check_shares_of_responses()?;
        self.check_stub()
    }

    /// Checks that counts of subsets of responses do not exceed the responses.
    fn check_shares_of_responses(&self) -> Result<(), String> {
        let fallback = &self.tcp_fallback;
        for (what, some, all) in [
            ("NODATA", self.nodata, self.rcodes.by_rcode[0]),
            (
                "truncated, by RCODE",
                self.truncated_rcodes.total(),
                self.truncated,
            ),
            (
                "of the fallback, by RCODE",
                fallback.rcodes.total(),
                fallback.responses,
            ),
        ] {
            if some > all {
                return Err(format!("{some} responses are {what}, of {all}"));
            }
        }
        Ok(())
    }

    /// Checks counts by server and attempt against queries sent and answered. Groups with one
    /// server and one attempt have none.
    fn check_stub(&self) -> Result<(), String> {
        let stub = &self.stub;
        let by_server: u64 = stub.responses_by_server.iter().sum();
        balance(
            ("stub.responses_by_attempt", stub.responses()),
            &[("stub.responses_by_server", by_server)],
        )?;
        let sent: u64 = stub.sent_by_server.iter().sum();
        for (what, all, most) in [
            ("responses by attempt", stub.responses(), self.responses),
            ("messages sent", sent, self.sent + stub.retransmitted),
        ] {
            if all > most {
                return Err(format!("stub: {all} {what}, but {most} in all"));
            }
        }
        Ok(())
    }
}

/// Checks that `parts` add up to `whole`.
fn balance(whole: (&str, u64), parts: &[(&str, u64)]) -> Result<(), String> {
    let sum: u64 = parts.iter().map(|(_, count)| count).sum();
    if sum == whole.1 {
        return Ok(());
    }
    let named: Vec<String> = parts
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    Err(format!(
        "{} {} is not {} = {sum}",
        whole.0,
        whole.1,
        named.join(" + ")
    ))
}
