//! What is asked, and how the question of each query is chosen.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{FileName, nanos};

/// The questions, by reference, and how they are chosen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Questions {
    /// Where they are; none where they are made, come from what the clients follow, or are those
    /// of a self-test.
    pub names: Option<Names>,
    /// Which of them is next.
    pub order: QuestionOrder,
    /// QTYPEs that are asked for in the place of those of the names, by weight, such as
    /// `A=60,AAAA=30`; none for those of the names.
    pub qtypes: Option<String>,
    /// Labels that are made for each query; none where names stay as they are.
    pub labels: Option<Labels>,
    /// How often a question is repeated; none if that is left to the list.
    pub repeats: Option<Repeats>,
}

/// Where questions are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Names {
    /// In a file of lines, `name type` each.
    Text(FileName),
    /// In a file of whole messages, each with a two-byte length prefix.
    Messages(FileName),
    /// Here, `name type` a line.
    Lines(String),
}

impl Names {
    /// The file that they are in; none if they are here.
    pub fn file(&self) -> Option<&FileName> {
        match self {
            Names::Text(file) | Names::Messages(file) => Some(file),
            Names::Lines(_) => None,
        }
    }
}

/// Which question is next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionOrder {
    /// One after another.
    #[default]
    InOrder,
    /// Any, all equally likely.
    Uniform,
    /// Each once in a random order, then each once in another random order.
    Shuffled,
    /// The first ones most often, by Zipf's law.
    Zipf {
        /// Number k is asked in proportion to k to the power of minus this.
        exponent: f64,
    },
}

/// Labels that are made for each query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Labels {
    /// Never the same twice, below a zone.
    Random {
        /// The zone.
        zone: String,
        /// How long a label is; none for the default.
        octets: Option<LabelOctets>,
        /// Seed of the labels; none for one that decides itself.
        seed: Option<u64>,
    },
    /// Counted up, below a zone.
    Walk {
        /// The zone.
        zone: String,
        /// How long a label is; none for the default.
        octets: Option<LabelOctets>,
    },
    /// At random before each name.
    WaterTorture {
        /// How long a label is; none for the default.
        octets: Option<LabelOctets>,
        /// Seed of the labels; none for one that decides itself.
        seed: Option<u64>,
    },
}

/// Bytes of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelOctets {
    /// At least.
    pub min: u8,
    /// At most.
    pub max: u8,
}

impl Questions {
    /// The zone whose names are made, and the flag that names it; none where no names are.
    pub fn zone(&self) -> Option<(&'static str, &str)> {
        self.labels.as_ref()?.zone()
    }
}

impl Labels {
    fn zone(&self) -> Option<(&'static str, &str)> {
        match self {
            Labels::Random { zone, .. } => Some(("random-labels", zone)),
            Labels::Walk { zone, .. } => Some(("walk", zone)),
            Labels::WaterTorture { .. } => None,
        }
    }

    /// The seed, where labels are drawn.
    pub fn seed_mut(&mut self) -> Option<&mut Option<u64>> {
        match self {
            Labels::Random { seed, .. } | Labels::WaterTorture { seed, .. } => Some(seed),
            Labels::Walk { .. } => None,
        }
    }
}

/// Questions that are asked again, so that a cache can answer them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Repeats {
    /// Share of the queries that repeat one, 0 to 1.
    pub share: f64,
    /// A question is repeated only within that long of when it was asked; none for ever.
    #[serde(rename = "ttl_ns", with = "nanos::option")]
    #[schemars(with = "Option<u64>")]
    pub ttl: Option<Duration>,
    /// How many of the names asked last can be repeated; none for the default.
    pub names_max: Option<u32>,
}

/// What every query carries, unless its line says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// RD is clear.
    pub no_recursion: bool,
    /// EDNS; none without it.
    pub edns: Option<Edns>,
    /// Padding is sent also where nothing is encrypted.
    pub allows_plain_padding: bool,
    /// What signs each query; none for no signature. Records have no keys.
    pub tsig: Option<Tsig>,
}

/// EDNS of every query (RFC 6891).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edns {
    /// UDP payload size; none for the default.
    pub udp_payload_octets: Option<u16>,
    /// The DO bit is set.
    pub dnssec_ok: bool,
    /// Options.
    pub options: Vec<EdnsOption>,
    /// Queries are padded to a multiple of that many bytes (RFC 8467); none without padding.
    pub padding_octets: Option<u16>,
    /// Queries ask how long idle connections are kept (RFC 7828).
    pub keepalive: bool,
}

/// An EDNS option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EdnsOption {
    /// Its code.
    pub code: u16,
    /// What is in it, byte by byte.
    pub data: Vec<u8>,
}

/// Where the key is that signs queries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tsig {
    /// Here, `[ALG:]NAME:SECRET`.
    Key(String),
    /// In this file.
    File(FileName),
    /// Not recorded: a record holds no secrets.
    NotRecorded,
}
