//! What a run took from a capture: a profile fitted from one, or its queries themselves.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The profile that clients were drawn from. The names in it are not kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileRecord {
    /// Its file.
    pub file: String,
    /// SHA-256 of its content, in hexadecimal.
    pub sha256: String,
    /// Clients that it was fitted from.
    pub clients_seen: u64,
    /// Queries that it was fitted from.
    pub queries_seen: u64,
    /// Distinct names of those queries.
    pub names_seen: u64,
    /// Factor by which the clients of the run were to ask more often than those.
    pub rate_factor: f64,
}

/// The replayed capture. Neither its names nor its addresses are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplayRecord {
    /// The captures, in the order in which they were read.
    pub captures: Vec<CaptureRecord>,
    /// What made a client.
    pub clients_by: ClientsBy,
    /// Requested speed, relative to the capture.
    pub speed: f64,
    /// Requested number of rounds.
    pub rounds: u64,
    /// Queries of a round.
    pub queries: u64,
    /// Time from the first to the last of them, at that speed.
    pub span_ns: u64,
    /// Filters, as they were written, such as `only-qtypes A,AAAA`.
    pub filters: Vec<String>,
    /// Queries of the captures that the filters excluded.
    pub filtered: u64,
    /// Queries beyond the requested number.
    pub beyond_limit: u64,
    /// Parts of the captures that did not become queries, by reason.
    pub skipped: BTreeMap<String, u64>,
}

/// A capture or query log that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CaptureRecord {
    /// Its file.
    pub file: String,
    /// Its format, such as `pcap` or `dnstap`.
    pub format: String,
    /// Queries in it.
    pub queries: u64,
    /// Why it was not read to its end; none if it was.
    pub cut_off: Option<String>,
}

/// What made a client of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientsBy {
    /// A source address.
    #[default]
    Address,
    /// A source address and port.
    AddressAndPort,
}
