//! The scenario as it was run, in the form the run record keeps it.
//!
//! Plain data with addresses and descriptions as text: a record must stay readable without the
//! crates that ran it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counts::Connections;

mod capture;
mod merge;
mod questions;
pub(crate) mod transports;

pub use capture::{CaptureRecord, ClientsBy, ProfileRecord, ReplayRecord};
pub use questions::{
    GeneratedLabels, LabelForm, QtypeShare, QuestionChoice, QuestionOrder, Questions,
    RepeatedQuestions,
};
pub use settings::{
    ConnectionPolicy, DriverKind, HttpMethod, HttpScheme, Presence, Process, Reset, ServerOrder,
    StampSource, StubPolicy, Transport,
};
pub use transports::Transports;

/// Settings of a run: target, transport, questions, load, limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioRecord {
    /// The target's address and port, such as `192.0.2.1:53` or `[2001:db8::1]:853`.
    pub target: String,
    /// The target as the user typed it; none for the built-in responder.
    pub server_name: Option<String>,
    /// How it was reached.
    pub transport: Transports,
    /// Where the questions came from and how many there are.
    pub questions: Questions,
    /// When queries were due.
    pub arrival: Arrival,
    /// Arrivals of each client, such as `poisson:0.5`; none if the load was shared by all.
    pub per_client: Option<String>,
    /// How the rate of each client changed over time, such as `linear:0s=0,60s=1`; none if it did
    /// not.
    pub shape: Option<String>,
    /// The script that each client followed; none without one.
    pub script: Option<String>,
    /// The profile that the clients were drawn from; none without one.
    pub profile: Option<ProfileRecord>,
    /// The capture whose queries were replayed; none without one.
    pub replay: Option<ReplayRecord>,
    /// When the clients were there.
    pub presence: Presence,
    /// Simulated clients over all workers, each with its own socket or connection.
    pub clients: u64,
    /// Worker threads.
    pub workers: u64,
    /// CPUs the workers were pinned to; empty if they were not.
    pub cpus: Vec<u32>,
    /// How long queries were to be offered; none if only `queries_max` ended the run.
    pub duration_ns: Option<u64>,
    /// Length of the warm-up, whose figures are kept apart.
    pub warmup_ns: u64,
    /// A query without response for that long has timed out.
    pub timeout_ns: u64,
    /// Length of one interval.
    pub interval_ns: u64,
    /// The run was to end after that many queries.
    pub queries_max: Option<u64>,
    /// Seed of all randomness.
    pub seed: u64,
    /// Local addresses and prefixes the clients used; empty if the kernel chose.
    pub local_addresses: Vec<String>,
    /// First local port; 0 if the kernel chose.
    pub local_port: u16,
    /// How long connections lived and what they carried.
    pub connections: ConnectionPolicy,
    /// The HTTP request that carried each query; none without HTTP.
    pub http: Option<HttpRequest>,
    /// Requested socket buffers, in bytes; none for the default.
    pub socket_buffer_octets: Option<u64>,
    /// EDNS of every query in words, such as `1232 octets, DO`; none without EDNS.
    pub edns: Option<String>,
    /// Queries were padded to a multiple of that many bytes (RFC 8467); none without padding.
    pub edns_padding_octets: Option<u64>,
    /// Queries requested the target's idle timeout (RFC 7828).
    pub edns_keepalive: bool,
    /// Truncated UDP responses were followed by a query over TCP.
    pub tcp_fallback: bool,
    /// How clients retried and used their servers; none if each query was sent once to one server.
    #[serde(default)]
    pub stub: Option<StubPolicy>,
    /// UDP GSO and GRO were allowed.
    pub offload: bool,
    /// The source of timestamps, if datagrams had any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<StampSource>,
    /// TLS as requested and negotiated; none without TLS.
    pub tls: Option<TlsFacts>,
    /// TSIG algorithm, such as `hmac-sha256`; none without TSIG.
    pub tsig_algorithm: Option<String>,
    /// RCODEs that count as goodput.
    pub goodput_rcodes: Vec<u16>,
    /// The user's labels of the run, such as `cpu` = `2` of the target; settings that differ
    /// between runs of an experiment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl ScenarioRecord {
    /// True if its connections are usable only after a TLS or QUIC handshake: not over TCP, nor
    /// with `http://`.
    pub fn has_handshakes(&self) -> bool {
        let is_cleartext = self
            .http
            .as_ref()
            .is_some_and(|http| http.scheme == HttpScheme::Http);
        match self.transport {
            // Of several transports one or the other may have them.
            Transports::Mixed => self.tls.is_some(),
            Transports::One(transport) => transport.has_tls() && !is_cleartext,
        }
    }

    /// Connections that became usable, of those that were counted in this scenario.
    pub fn usable(&self, connections: &Connections) -> u64 {
        connections.usable(self.has_handshakes())
    }
}

/// How DoH carried queries (RFC 8484).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HttpRequest {
    /// The method.
    pub method: HttpMethod,
    /// The scheme: `http` is HTTP/2 without TLS, with prior knowledge.
    pub scheme: HttpScheme,
    /// The authority (`:authority`), such as `dns.example` or `192.0.2.1:8443`.
    pub authority: String,
    /// The path without query component, such as `/dns-query`.
    pub path: String,
    /// Further header fields of every request, such as `user-agent: x`, in order. Values that may
    /// be secrets are not recorded: `authorization: (not recorded)`.
    pub headers: Vec<String>,
}

/// When queries were due.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Arrival {
    /// Closed loop: a new query as soon as fewer than `outstanding` are in flight.
    Closed {
        /// Outstanding queries allowed, over all workers.
        outstanding: u64,
        /// Never more than that many queries a second.
        rate_qps_max: Option<f64>,
    },
    /// Open loop: queries were due at their instants whatever the target did.
    Open {
        /// Mean rate over all workers, queries a second.
        rate_qps: f64,
        /// How they were spread.
        process: Process,
        /// Queries that were due at the same instant, all of one client.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        burst: u32,
    },
    /// Each client asked by itself, see [`ScenarioRecord::per_client`].
    Clients {
        /// Mean rate of all clients, queries a second, without shape; none if responses set it.
        rate_qps: Option<f64>,
    },
}

fn one() -> u32 {
    1
}

// serde passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one(number: &u32) -> bool {
    *number == 1
}

/// TLS as requested and negotiated, over TCP or within QUIC.
///
/// How many sessions were resumed, and whether early data was accepted, is counted in
/// `counts.connections`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsFacts {
    /// The target's certificate was verified.
    pub verified: bool,
    /// Name that the certificate was verified against; none if an address was used.
    pub name: Option<String>,
    /// What was asked for.
    pub settings: TlsSettings,
    /// Version, such as `TLSv1.3`; none if no handshake completed.
    pub version: Option<String>,
    /// Cipher suite; none if no handshake completed.
    pub cipher_suite: Option<String>,
    /// Group of the key exchange, such as `X25519MLKEM768`; none if no full handshake completed.
    pub group: Option<String>,
    /// Protocol chosen by ALPN, such as `h2`; none if none was chosen.
    pub alpn: Option<String>,
}

/// How TLS was to be used. Lists name what was offered, the defaults of this tool included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsSettings {
    /// Versions offered.
    pub versions: Vec<String>,
    /// Cipher suites offered, in order of preference.
    pub cipher_suites: Vec<String>,
    /// Groups of the key exchange offered, in order of preference.
    pub groups: Vec<String>,
    /// Protocols offered by ALPN, in order of preference.
    pub alpn: Vec<String>,
    /// The server name that was sent (SNI); none if none was, as with an address.
    pub sni: Option<String>,
    /// Share of the connections that were to resume the session of their client, 0 to 1.
    pub resume_share: f64,
    /// Queries were to be sent in early data where a session allowed it.
    pub early_data: bool,
    /// The clients had a certificate.
    pub client_certificate: bool,
    /// Number of SPKI pins that the target's key was compared with.
    pub spki_pins: u64,
    /// The secrets of the connections were written to a file.
    pub key_log: bool,
    /// rustls did the records of streams to the end, not the lean record layer (`--tls-stock`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stock_records: bool,
}
