//! A profile: the traffic pattern of a population of clients, without their identities or the names
//! they query.
//!
//! Fitted from captures (crate capture), kept as TOML, and generated from at any scale:
//! [`Population`] draws clients, their gaps and their questions. A profile has names only on
//! request, and never addresses.
//!
//! Clients are classified by the decade of their mean rate and by burstiness. Clients alike in both
//! form a [`RateClass`]: the distribution of their rates, and their bursts, with *active* gaps
//! within and *idle* gaps between. The unit of gaps is the client's own mean gap, so that one shape
//! fits all rates of the class. A gap is idle if it is [`IDLE_FACTOR`] times as long as the mean or
//! longer.

mod arrival;
mod error;
mod histogram;
mod population;
mod questions;
mod sampler;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use arrival::{ProfilePace, ProfiledClients};
pub use error::ProfileError;
pub use histogram::{CountHistogram, LogHistogram};
pub use population::{ClientDraw, Population};
pub use questions::{RankNames, RankedNames, questions};

/// Octets of the header of a message (RFC 1035, section 4.1.1).
const HEADER_OCTETS: usize = 12;

/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 1;

/// A gap at least this many times as long as the client's mean gap is idle.
///
/// One gap in 55 of a Poisson process is; none of equally spaced queries; and nearly all pauses
/// between page views, whose queries come within a second.
pub const IDLE_FACTOR: f64 = 4.0;

/// Names have 48-bit numbers, of which a run needs some itself.
const DISTINCT_MAX: u64 = 1 << 40;

/// The traffic pattern of a population of clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// [`VERSION`].
    pub version: u32,
    /// Observed time, in seconds.
    pub span_s: f64,
    /// Clients seen.
    pub clients: u64,
    /// Queries seen.
    pub queries: u64,
    /// Queries without a response, if the capture has responses.
    pub unanswered: u64,
    /// Queries by transport, by name (`udp`, `tcp`, ...).
    pub transports: BTreeMap<String, u64>,
    /// Queries by QTYPE, by mnemonic.
    pub qtypes: BTreeMap<String, u64>,
    /// Responses by RCODE, by mnemonic.
    pub rcodes: BTreeMap<String, u64>,
    /// Queries with bits that change what a server does.
    pub flags: FlagCounts,
    /// How often a question was repeated while a cache would still have had its answer; `None` if
    /// the TTLs are unknown.
    pub repeats: Option<Repeats>,
    /// Popularity of names.
    pub names: Popularity,
    /// Queries of a connection, on transports with connections.
    pub queries_per_connection: CountHistogram,
    /// Time between two queries of a client, in seconds.
    pub gaps_s: LogHistogram,
    /// Classes of similar clients, slowest first.
    #[serde(rename = "class")]
    pub classes: Vec<RateClass>,
}

/// Queries with a bit set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlagCounts {
    /// RD.
    pub recursion_desired: u64,
    /// CD (RFC 4035).
    pub checking_disabled: u64,
    /// With an OPT record (RFC 6891).
    pub edns: u64,
    /// DO (RFC 3225).
    pub dnssec_ok: u64,
}

/// Questions repeated within the TTL of an earlier response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repeats {
    /// Queries that one cache for all clients could have answered.
    pub within_ttl: u64,
    /// All queries.
    pub queries: u64,
}

/// Distribution of queries over names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Popularity {
    /// Names seen.
    pub distinct: u64,
    /// Names seen in one query alone.
    #[serde(default)]
    pub once: u64,
    /// Exponent of Zipf's law that fits best.
    pub zipf_exponent: f64,
    /// Rank and the share of queries for names up to that rank, ascending; the last is
    /// `[distinct, 1.0]`.
    pub ranks: Vec<(u64, f64)>,
    /// The names by popularity, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
}

/// Clients of similar rate and burstiness.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateClass {
    /// Clients by mean rate, in queries a second.
    pub rates_qps: LogHistogram,
    /// Queries of a burst: those between two idle gaps.
    pub bursts: CountHistogram,
    /// Gaps within bursts, in mean gaps of the client.
    pub active_gaps: LogHistogram,
    /// Gaps between bursts, in mean gaps of the client.
    pub idle_gaps: LogHistogram,
}

impl Profile {
    /// Reads the TOML form.
    ///
    /// # Errors
    /// It is not TOML of this form, of another version, or contradicts itself.
    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        let profile: Profile = toml::from_str(text).map_err(|error| ProfileError {
            what: format!("not a profile: {}", error.to_string().trim_end()),
            hint: "`throng fit CAPTURE -o FILE` writes one",
        })?;
        profile.check()?;
        Ok(profile)
    }

    /// Writes the TOML form.
    ///
    /// # Errors
    /// A number is not finite, which no capture leads to.
    pub fn to_toml(&self) -> Result<String, ProfileError> {
        self.check()?;
        toml::to_string(self).map_err(|error| ProfileError {
            what: error.to_string(),
            hint: "this is a fault of the program: please report it",
        })
    }

    /// Mean rate of all clients together as they were seen, in queries a second.
    pub fn rate_qps(&self) -> f64 {
        self.queries as f64 / self.span_s
    }

    /// Checks that a population can be drawn.
    fn check(&self) -> Result<(), ProfileError> {
        let fault = |what: &str| {
            Err(ProfileError {
                what: what.to_owned(),
                hint: "fit it again from the capture, or undo what was changed by hand",
            })
        };
        if self.version != VERSION {
            return fault(&format!("version {} is not {VERSION}", self.version));
        }
        if !(self.span_s.is_finite() && self.span_s > 0.0) {
            return fault("`span_s` is not a length of time");
        }
        if self.clients == 0 || self.queries == 0 {
            return fault("there are no clients or no queries");
        }
        if self
            .classes
            .iter()
            .all(|class| class.rates_qps.total() == 0)
        {
            return fault("no `class` has clients");
        }
        for class in &self.classes {
            let gaps = class
                .active_gaps
                .total()
                .checked_add(class.idle_gaps.total());
            if class.rates_qps.total() > 0 && gaps.is_none_or(|gaps| gaps == 0) {
                return fault("a `class` with clients has no gaps");
            }
        }
        if self.qtypes.values().all(|&count| count == 0) {
            return fault("`qtypes` counts nothing");
        }
        let ranks = &self.names.ranks;
        let ascend = ranks
            .windows(2)
            .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        let shares = ranks
            .iter()
            .all(|&(rank, share)| rank > 0 && (0.0..=1.0).contains(&share));
        if ranks.is_empty() || !ascend || !shares {
            return fault("`names.ranks` does not ascend to a share of 1");
        }
        if self.names.once > self.names.distinct {
            return fault("`names.once` is more than all names");
        }
        if ranks
            .last()
            .is_none_or(|&(rank, _)| rank != self.names.distinct)
        {
            return fault("`names.ranks` does not end with `names.distinct`");
        }
        if self.names.distinct > DISTINCT_MAX {
            return fault("`names.distinct` is more than can be told apart");
        }
        if !(self.names.zipf_exponent.is_finite()) {
            return fault("`names.zipf_exponent` is not a number");
        }
        Ok(())
    }
}

fn unknown_type(text: &str) -> ProfileError {
    ProfileError {
        what: format!("`qtypes`: unknown type `{text}`"),
        hint: "types are mnemonics such as A, AAAA, MX, TXT, or `TYPE` and a number",
    }
}

#[cfg(test)]
mod tests;
