//! The way to a server, hop by hop: what `throng trace` found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The way to one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// What was asked: name and type.
    pub question: String,
    /// The server as it was given.
    pub server: String,
    /// Its address and port.
    pub address: String,
    /// The hops, from the first one that was tried.
    pub hops: Vec<Hop>,
    /// Why it ended.
    pub ended: TraceEnd,
    /// Messages that came after the wait for them was over, or that belong to no query.
    pub unexpected: u64,
}

/// What came back from one distance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hop {
    /// TTL or hop limit of the queries.
    pub distance: u8,
    /// What each query met, in order.
    pub probes: Vec<Probe>,
}

/// What became of one query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Probe {
    /// Nothing came in time.
    Silence,
    /// An ICMP error.
    Icmp {
        /// Who sent it.
        from: String,
        /// What it says.
        reason: IcmpReason,
        /// How long after the query.
        after_ns: u64,
    },
    /// The DNS response.
    Response {
        /// The server's address.
        from: String,
        /// Length of the message.
        octets: u32,
        /// Its RCODE.
        rcode: String,
        /// How long after the query.
        after_ns: u64,
    },
}

/// What an ICMP error says (RFC 792, RFC 1812, RFC 4443).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IcmpReason {
    /// TTL or hop limit exceeded in transit: the router on the way that is looked for.
    TimeExceeded,
    /// No route to the network.
    NetworkUnreachable,
    /// The host cannot be reached.
    HostUnreachable,
    /// The port has no listener.
    PortUnreachable,
    /// An administrator does not want it.
    Prohibited,
    /// Something else.
    Other {
        /// ICMP or ICMPv6 type.
        icmp_type: u8,
        /// Its code.
        code: u8,
    },
}

/// Why a trace ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceEnd {
    /// A DNS response came.
    Response,
    /// A router, or the server's host, reports that it goes no further.
    Unreachable,
    /// The server is further away than was tried, or silent.
    HopsMax,
    /// The user interrupted it.
    Interrupted,
}

impl Hop {
    /// True if a DNS response came from here.
    pub fn is_answered(&self) -> bool {
        let mut probes = self.probes.iter();
        probes.any(|probe| matches!(probe, Probe::Response { .. }))
    }

    /// True if no query goes further than here.
    pub fn is_dead_end(&self) -> bool {
        let is_end = |probe: &Probe| match probe {
            Probe::Icmp { reason, .. } => *reason != IcmpReason::TimeExceeded,
            _ => false,
        };
        self.probes.iter().any(is_end)
    }
}
