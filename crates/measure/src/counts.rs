//! Counters of one interval, one worker or one run; merged by addition.
//!
//! The accounting identity (asserted by [`Counts::check_identity`]):
//! `offered = sent + not_sent`, `sent = responses + timeouts + connection_losses`. It holds for
//! whole phases of a run, not for single intervals: a query may be sent in one interval and
//! answered in the next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod rcodes;
#[cfg(test)]
mod tests;

pub use rcodes::{Rcodes, rcode_name};

/// Everything that is counted. Unit: messages, unless the name ends in `octets`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Queries that the scenario scheduled.
    pub offered: u64,
    /// Queries handed to the network.
    pub sent: u64,
    /// Queries scheduled but never handed to the network, by cause.
    pub not_sent: NotSent,
    /// Queries that got a response (matched by socket, ID and question).
    pub responses: u64,
    /// Queries sent that got no response within the time-out.
    pub timeouts: u64,
    /// Queries sent whose connection was lost before the response came.
    pub connection_losses: u64,
    /// Responses by RCODE.
    pub rcodes: Rcodes,
    /// Responses with the TC bit set.
    pub truncated: u64,
    /// Responses that matched a query which had already timed out.
    pub late: u64,
    /// Further responses to a query that already had one.
    pub duplicate: u64,
    /// Messages received that match no query, by reason.
    pub unexpected: Unexpected,
    /// ICMP port unreachable messages received for datagrams sent.
    pub port_unreachable: u64,
    /// Octets of DNS messages sent, without transport framing.
    pub sent_octets: u64,
    /// Octets of the DNS messages counted in `responses`, without transport framing.
    pub received_octets: u64,
    /// Queries sent again over TCP because the UDP response was truncated; counted apart from all
    /// of the above.
    pub tcp_fallback: TcpFallback,
    /// Connections of stream transports.
    pub connections: Connections,
}

/// Why queries were scheduled but never handed to the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotSent {
    /// The time-out passed while the query waited for its connection.
    pub timed_out_waiting: u64,
    /// The client had 32,768 open queries, half of the message ID space and the most it may.
    pub no_free_id: u64,
    /// The socket's send buffer was full or the kernel refused the datagram.
    pub send_failed: u64,
    /// The run ended while the query waited for its connection, or for the generator, which
    /// could not keep up.
    pub run_ended: u64,
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
    /// Shorter than a header, or not a response.
    pub malformed: u64,
}

/// Queries repeated over TCP after a truncated UDP response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpFallback {
    /// Queries sent again over TCP, or meant to be.
    pub sent: u64,
    /// Responses to them.
    pub responses: u64,
    /// Time-outs of them, waiting for the connection included.
    pub timeouts: u64,
    /// Lost with their connection, or never connected.
    pub connection_losses: u64,
}

/// Connections of stream transports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Connections {
    /// Attempts to connect.
    pub attempted: u64,
    /// TCP connections established.
    pub established: u64,
    /// TLS handshakes completed.
    pub handshakes: u64,
    /// Attempts that never became usable, by cause.
    pub failed: ConnectionFailures,
    /// Usable connections closed by us.
    pub closed_by_client: u64,
    /// Usable connections closed in order by the target.
    pub closed_by_target: u64,
    /// Usable connections reset by the target.
    pub reset_by_target: u64,
    /// Usable connections ended by a TLS alert or a TLS error.
    pub ended_by_tls: u64,
}

/// Why a connection never became usable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionFailures {
    /// Connection refused.
    pub refused: u64,
    /// Reset before it was usable.
    pub reset: u64,
    /// Closed by the target before it was usable.
    pub closed: u64,
    /// Not usable within the time-out.
    pub timed_out: u64,
    /// Network or host unreachable.
    pub unreachable: u64,
    /// No free local port.
    pub no_local_port: u64,
    /// Out of file descriptors or kernel memory.
    pub no_resources: u64,
    /// The target sent a TLS alert.
    pub tls_alert: u64,
    /// The target's certificate was refused.
    pub tls_certificate: u64,
    /// Another TLS error.
    pub tls_protocol: u64,
    /// Any other socket error.
    pub other: u64,
}

/// Implements `add`, which adds the named fields of `other`: numbers by `+=`, groups by `add`.
macro_rules! impl_add {
    ($type:ty, numbers: [$($number:ident),* $(,)?], groups: [$($group:ident),* $(,)?]) => {
        impl $type {
            /// Adds everything counted in `other`.
            pub fn add(&mut self, other: &Self) {
                // Names every field, so that a new one cannot be forgotten here.
                let Self { $($number,)* $($group,)* } = other;
                $(self.$number += $number;)*
                $(self.$group.add($group);)*
            }
        }
    };
}

impl_add!(
    Counts,
    numbers: [
        offered, sent, responses, timeouts, connection_losses, truncated, late, duplicate,
        port_unreachable, sent_octets, received_octets,
    ],
    groups: [not_sent, rcodes, unexpected, tcp_fallback, connections]
);
impl_add!(NotSent, numbers: [timed_out_waiting, no_free_id, send_failed, run_ended], groups: []);
impl_add!(
    Unexpected,
    numbers: [wrong_id, wrong_question, wrong_source, malformed],
    groups: []
);
impl_add!(
    TcpFallback,
    numbers: [sent, responses, timeouts, connection_losses],
    groups: []
);
impl_add!(
    Connections,
    numbers: [
        attempted, established, handshakes, closed_by_client, closed_by_target, reset_by_target,
        ended_by_tls,
    ],
    groups: [failed]
);
impl_add!(
    ConnectionFailures,
    numbers: [
        refused, reset, closed, timed_out, unreachable, no_local_port, no_resources, tls_alert,
        tls_certificate, tls_protocol, other,
    ],
    groups: []
);

impl NotSent {
    /// Queries not sent for whatever cause.
    pub fn total(&self) -> u64 {
        self.timed_out_waiting + self.no_free_id + self.send_failed + self.run_ended
    }
}

impl Unexpected {
    /// Messages that matched no query for whatever reason.
    pub fn total(&self) -> u64 {
        self.wrong_id + self.wrong_question + self.wrong_source + self.malformed
    }
}

impl ConnectionFailures {
    /// Attempts that never became usable, whatever the cause.
    pub fn total(&self) -> u64 {
        self.by_cause().iter().map(|(_, count)| count).sum()
    }

    /// Every cause in plain words with its count, zero counts included.
    pub fn by_cause(&self) -> [(&'static str, u64); 11] {
        [
            ("refused", self.refused),
            ("reset", self.reset),
            ("closed by the target", self.closed),
            ("timed out", self.timed_out),
            ("unreachable", self.unreachable),
            ("no free local port", self.no_local_port),
            ("out of file descriptors or memory", self.no_resources),
            ("TLS alert", self.tls_alert),
            ("TLS certificate refused", self.tls_certificate),
            ("TLS error", self.tls_protocol),
            ("other", self.other),
        ]
    }
}

impl Counts {
    /// Queries that got no response, whatever the cause: timed out, lost with their connection,
    /// or never sent.
    pub fn lost(&self) -> u64 {
        self.timeouts + self.connection_losses + self.not_sent.total()
    }

    /// Responses whose RCODE is in `rcodes`. An RCODE from 24 up is never in it.
    pub fn goodput(&self, rcodes: &[u16]) -> u64 {
        let wanted = |rcode: &(usize, &u64)| rcodes.contains(&(rcode.0 as u16));
        let by_rcode = self.rcodes.by_rcode.iter().enumerate();
        by_rcode.filter(wanted).map(|(_, count)| count).sum()
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
        balance(
            ("sent", self.sent),
            &[
                ("responses", self.responses),
                ("timeouts", self.timeouts),
                ("connection_losses", self.connection_losses),
            ],
        )?;
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
            ],
        )
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
