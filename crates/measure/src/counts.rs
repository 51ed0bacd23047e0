//! Counters of one interval, one worker or one run; merged by addition.
//!
//! The accounting identity (asserted by [`Counts::check_identity`]):
//! `offered = sent + not_sent`, `sent = responses + timeouts + connection_losses`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    /// The client had no free message ID or no free place (65,536 in flight).
    pub no_free_id: u64,
    /// The socket's send buffer was full or the kernel refused the datagram.
    pub send_failed: u64,
    /// The run ended while the query waited for its connection.
    pub run_ended: u64,
}

/// Responses by RCODE; index is the RCODE, everything from 24 up is in `other`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rcodes {
    /// Counts of RCODE 0 to 23.
    pub by_rcode: [u64; 24],
    /// Counts of RCODEs from 24 up.
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
    /// Shorter than a header, or not a response.
    pub malformed: u64,
}

/// Queries repeated over TCP after a truncated UDP response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TcpFallback {
    /// Queries sent again over TCP.
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
