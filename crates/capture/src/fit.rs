//! From queries observed to a profile of those who asked (`load::profile`).
//!
//! Order of calls: [`Fit::add`] for each query, [`Fit::next_capture`] between two captures,
//! [`Fit::finish`]. What is kept for it: two octets for each query, and tables of clients, names
//! and connections, which are bounded; what did not fit is in [`FitNotes`].
//!
//! The time that was observed is taken as a circle: the silence before a client's first query and
//! that after its last are one gap. So a client's mean gap is the inverse of its mean rate, also
//! if it asked only once.

mod clients;
mod names;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::SocketAddr;

use load::profile::{CountHistogram, FlagCounts, Profile, Repeats, VERSION};
use proto::{Transport, rr};

use crate::observed::Observed;
use clients::Clients;
use names::{Cache, Names};

/// Connections whose queries are counted.
const CONNECTIONS_MAX: usize = 1 << 24;

/// How far back the time of a query may be before it is remarked on: queries within a capture are
/// nearly in order.
const REVERSAL_NS: u64 = 60_000_000_000;

/// Who is one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientIdentity {
    /// All queries from an address.
    #[default]
    Address,
    /// All queries from an address and port: for captures in which many clients share an address.
    AddressAndPort,
}

impl ClientIdentity {
    /// The client that a query is from.
    pub(crate) fn of(self, client: SocketAddr) -> SocketAddr {
        match self {
            ClientIdentity::Address => (client.ip(), 0).into(),
            ClientIdentity::AddressAndPort => client,
        }
    }
}

/// What is fitted, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FitOptions {
    /// Keep the names asked for in the profile.
    pub keep_names: bool,
    /// Who is one client.
    pub identity: ClientIdentity,
}

/// What happened on the way that the profile does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FitNotes {
    /// Queries of clients for which there was no room; they are in no figure of clients.
    pub without_client: u64,
    /// Queries for names for which there was no room; each counts as a name of its own.
    pub without_name: u64,
    /// Queries on connections for which there was no room.
    pub without_connection: u64,
    /// Queries more than a minute before one that was seen earlier: captures out of order.
    pub reversals: u64,
}

/// A profile, and what to say about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The profile.
    pub profile: Profile,
    /// What it does not say.
    pub notes: FitNotes,
}

/// Why there is no profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FitError {
    /// No query was observed.
    NoQueries,
    /// All queries have the same time, or none has any.
    NoTimes,
}

impl FitError {
    /// What can be done about it.
    pub fn cure(self) -> &'static str {
        match self {
            FitError::NoQueries => {
                "see what was skipped; servers on another port than 53 need --port"
            }
            FitError::NoTimes => {
                "write a time before each line of the log: `kubectl logs --timestamps`, or \
                 `ts '%Y-%m-%dT%H:%M:%.S'` behind the server"
            }
        }
    }
}

impl fmt::Display for FitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FitError::NoQueries => "no query was found",
            FitError::NoTimes => "no time passes between the queries: no rate can be derived",
        })
    }
}

impl std::error::Error for FitError {}

/// Which connection a query came on.
type ConnectionKey = (SocketAddr, Transport, Option<u64>, u32);

/// Takes in queries.
#[derive(Debug, Default)]
pub struct Fit {
    options: FitOptions,
    clients: Clients,
    names: Names,
    cache: Cache,
    connections: HashMap<ConnectionKey, u64>,
    capture: u32,
    transports: [u64; Transport::ALL.len()],
    qtypes: HashMap<u16, u64>,
    rcodes: HashMap<u16, u64>,
    flags: FlagCounts,
    queries: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    notes: FitNotes,
}

impl Fit {
    /// Nothing yet.
    pub fn new(options: FitOptions) -> Self {
        Fit {
            options,
            ..Fit::default()
        }
    }

    /// Says that what follows is from another capture, in which connections have other numbers.
    pub fn next_capture(&mut self) {
        self.capture += 1;
    }

    /// Queries taken in so far.
    pub fn queries(&self) -> u64 {
        self.queries
    }

    /// Takes in a query.
    pub fn add(&mut self, observed: &Observed) {
        self.queries += 1;
        let first_ns = self.first_ns.get_or_insert(observed.at_ns);
        *first_ns = (*first_ns).min(observed.at_ns);
        self.notes.reversals +=
            u64::from(observed.at_ns.saturating_add(REVERSAL_NS) < self.last_ns);
        self.last_ns = self.last_ns.max(observed.at_ns);

        let client = self.options.identity.of(observed.client);
        if !self.clients.add(client, observed.at_ns) {
            self.notes.without_client += 1;
        }
        let hash = self
            .names
            .add(&observed.question.name, self.options.keep_names);
        self.cache.add(hash, observed);
        self.transports[observed.transport as usize] += 1;
        *self.qtypes.entry(observed.question.qtype).or_default() += 1;
        if let Some(response) = &observed.response {
            *self.rcodes.entry(response.rcode).or_default() += 1;
        }
        let flags = &observed.flags;
        self.flags.recursion_desired += u64::from(flags.recursion_desired);
        self.flags.checking_disabled += u64::from(flags.checking_disabled);
        self.flags.edns += u64::from(flags.edns);
        self.flags.dnssec_ok += u64::from(flags.dnssec_ok);
        if observed.transport.has_connections() {
            self.add_to_connection(observed);
        }
    }

    fn add_to_connection(&mut self, observed: &Observed) {
        let key = (
            observed.client,
            observed.transport,
            observed.connection,
            self.capture,
        );
        // A log that knows neither port nor connection cannot tell them apart.
        let is_known = observed.connection.is_some() || observed.client.port() != 0;
        let has_room = is_known && self.connections.len() < CONNECTIONS_MAX;
        match self.connections.get_mut(&key) {
            Some(queries) => *queries += 1,
            None if has_room => {
                self.connections.insert(key, 1);
            }
            None => self.notes.without_connection += 1,
        }
    }

    /// Makes the profile.
    ///
    /// # Errors
    /// There were no queries, or no time passed between them.
    pub fn finish(self) -> Result<Fitted, FitError> {
        let first_ns = self.first_ns.ok_or(FitError::NoQueries)?;
        if self.last_ns == first_ns {
            return Err(FitError::NoTimes);
        }
        // A mean gap after the last query as after all others.
        let queries = self.queries as f64;
        let span_ns = (self.last_ns - first_ns) as f64 * queries / (queries - 1.0);
        let mut notes = self.notes;
        notes.without_name = self.names.without_room();
        let mut queries_per_connection = CountHistogram::default();
        for &queries in self.connections.values() {
            queries_per_connection.record(queries, 1);
        }
        let answered: u64 = self.rcodes.values().sum();
        let named = |counts: HashMap<u16, u64>, text: fn(u16) -> String| -> BTreeMap<_, _> {
            counts
                .into_iter()
                .map(|(number, count)| (text(number), count))
                .collect()
        };
        let transports = Transport::ALL.into_iter().zip(self.transports);
        let transports = transports.filter(|(_, count)| *count > 0);
        let clients = self.clients.finish(span_ns);
        let profile = Profile {
            version: VERSION,
            span_s: span_ns / 1e9,
            clients: clients.count,
            queries: self.queries,
            unanswered: if answered == 0 {
                0
            } else {
                self.queries - answered
            },
            transports: transports
                .map(|(each, count)| (each.name().into(), count))
                .collect(),
            qtypes: named(self.qtypes, rr::type_to_text),
            rcodes: named(self.rcodes, rr::rcode_to_text),
            flags: self.flags,
            repeats: self.cache.knows_ttls().then_some(Repeats {
                within_ttl: self.cache.within_ttl(),
                queries: self.queries,
            }),
            names: self.names.finish(),
            queries_per_connection,
            gaps_s: clients.gaps_s,
            classes: clients.classes,
        };
        Ok(Fitted { profile, notes })
    }
}

#[cfg(test)]
mod tests;
