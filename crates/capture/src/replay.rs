//! From queries observed to a list of what to ask again, by whom and when.
//!
//! The list keeps each client's order and timing. Questions that are alike share a message
//! template; a query takes 16 bytes.

mod prefix;

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;

use load::QuestionSet;
use load::names_file::edns_uses;
use load::replay::ReplayQuery;
use proto::Transport;
use proto::query::{Edns, QueryOptions, write_query};

use crate::fit::ClientIdentity;
use crate::observed::{Observed, QueryFlags, Question};
pub use prefix::Prefix;

/// Which queries are replayed, and how fast.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayFilter {
    /// Only clients with these addresses; all if there are none.
    pub clients: Vec<Prefix>,
    /// Only these QTYPEs; all if there are none.
    pub qtypes: Vec<u16>,
    /// Only queries for these names, in wire format, and those below them; all if there are none.
    pub suffixes: Vec<Box<[u8]>>,
    /// Only queries that came over these transports; all if there are none.
    pub transports: Vec<Transport>,
    /// Only queries from that many nanoseconds after the first of the capture on.
    pub from_ns: u64,
    /// Only queries less than that many nanoseconds after the first of the capture; `None` for all.
    pub until_ns: Option<u64>,
    /// At most that many queries, the first that pass.
    pub limit: u64,
    /// How many times as fast as they came.
    pub speed: f64,
    /// Who is one client.
    pub identity: ClientIdentity,
    /// What every query has; RD, CD, EDNS and DO are those of the capture where this says nothing
    /// of them.
    pub options: QueryOptions,
}

impl Default for ReplayFilter {
    /// Everything, as fast as it came.
    fn default() -> Self {
        ReplayFilter {
            clients: Vec::new(),
            qtypes: Vec::new(),
            suffixes: Vec::new(),
            transports: Vec::new(),
            from_ns: 0,
            until_ns: None,
            limit: u64::MAX,
            speed: 1.0,
            identity: ClientIdentity::default(),
            options: QueryOptions::default(),
        }
    }
}

/// What to ask again.
#[derive(Debug)]
pub struct ReplayList {
    /// In the order of their times; queries of the same time as they came.
    pub queries: Vec<ReplayQuery>,
    /// What they ask.
    pub questions: QuestionSet,
    /// How many clients there are, numbered in the order in which they first asked.
    pub clients: u32,
    /// Queries that the filter held back.
    pub filtered: u64,
    /// Queries beyond the limit, or beyond 4 billion clients or questions.
    pub beyond_limit: u64,
    /// Queries that have no room for the EDNS options that every query is to have.
    pub too_long: u64,
}

/// Why there is nothing to replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplayError {
    /// The speed is not a positive number.
    Speed(f64),
    /// No query passed the filter, which held back that many.
    NoQueries(u64),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplayError::Speed(speed) => write!(f, "{speed} is not a speed"),
            ReplayError::NoQueries(0) => f.write_str("no query was found"),
            ReplayError::NoQueries(filtered) => {
                write!(f, "none of {filtered} queries passes the filters")
            }
        }
    }
}

impl std::error::Error for ReplayError {}

impl ReplayError {
    /// What can be done about it.
    pub fn cure(self) -> &'static str {
        match self {
            ReplayError::Speed(_) => "write a factor such as 1, 2.5 or 0.1",
            ReplayError::NoQueries(0) => {
                "see what was skipped; servers on another port than 53 need --port"
            }
            ReplayError::NoQueries(_) => "leave out filters one by one",
        }
    }
}

/// Takes in queries; [`ReplayBuilder::finish`] makes the list.
#[derive(Debug)]
pub struct ReplayBuilder {
    filter: ReplayFilter,
    first_ns: Option<u64>,
    queries: Vec<ReplayQuery>,
    set: QuestionSet,
    questions: HashMap<(Question, QueryFlags), u32>,
    clients: HashMap<SocketAddr, u32>,
    filtered: u64,
    beyond_limit: u64,
    too_long: u64,
}

impl ReplayBuilder {
    /// Nothing yet.
    ///
    /// # Errors
    /// The speed is not a positive number.
    pub fn new(filter: ReplayFilter) -> Result<Self, ReplayError> {
        if !(filter.speed.is_finite() && filter.speed > 0.0) {
            return Err(ReplayError::Speed(filter.speed));
        }
        Ok(ReplayBuilder {
            filter,
            first_ns: None,
            queries: Vec::new(),
            set: QuestionSet::new(),
            questions: HashMap::new(),
            clients: HashMap::new(),
            filtered: 0,
            beyond_limit: 0,
            too_long: 0,
        })
    }

    /// Takes in a query; false if it was held back.
    pub fn add(&mut self, observed: &Observed) -> bool {
        let first_ns = *self.first_ns.get_or_insert(observed.at_ns);
        if !self
            .filter
            .passes(observed, observed.at_ns.saturating_sub(first_ns))
        {
            self.filtered += 1;
            return false;
        }
        let room = u32::MAX as usize;
        let is_full = self.queries.len() as u64 >= self.filter.limit;
        if is_full || self.clients.len() >= room || self.set.len() >= room {
            self.beyond_limit += 1;
            return false;
        }
        let Some(question) = self.question(observed) else {
            self.too_long += 1;
            return false;
        };
        let client = self.filter.identity.of(observed.client);
        let next = self.clients.len() as u32;
        let client = *self.clients.entry(client).or_insert(next);
        self.queries.push(ReplayQuery {
            at_ns: observed.at_ns,
            client,
            question,
        });
        true
    }

    /// The index of the query's template; none if it is too long for a message.
    fn question(&mut self, observed: &Observed) -> Option<u32> {
        let key = (observed.question.clone(), observed.flags);
        if let Some(&index) = self.questions.get(&key) {
            return Some(index);
        }
        let (question, flags) = (&observed.question, &observed.flags);
        let base = &self.filter.options;
        let asks_do = base.edns.as_ref().is_some_and(|edns| edns.dnssec_ok);
        let has_edns = flags.edns || base.edns.is_some();
        let options = QueryOptions {
            recursion_desired: flags.recursion_desired && base.recursion_desired,
            checking_disabled: flags.checking_disabled || base.checking_disabled,
            edns: has_edns.then(|| Edns {
                dnssec_ok: flags.dnssec_ok || asks_do,
                ..base.edns.clone().unwrap_or_default()
            }),
            ..base.clone()
        };
        let mut message = Vec::new();
        write_query(
            &question.name,
            question.qtype,
            question.qclass,
            &options,
            &mut message,
        )
        .ok()?;
        let index = self.set.len() as u32;
        self.set.push(&message, question.name.len() + 4);
        if let Some(edns) = &options.edns {
            self.set.note_edns_uses(edns_uses(edns));
        }
        self.questions.insert(key, index);
        Some(index)
    }

    /// Makes the list.
    ///
    /// # Errors
    /// No query passed.
    pub fn finish(mut self) -> Result<ReplayList, ReplayError> {
        // Stable: queries of the same time stay as they came.
        self.queries.sort_by_key(|query| query.at_ns);
        let first = self.queries.first();
        let start_ns = first.ok_or(ReplayError::NoQueries(self.filtered))?.at_ns;
        for query in &mut self.queries {
            let since_ns = query.at_ns - start_ns;
            query.at_ns = match self.filter.speed {
                1.0 => since_ns,
                speed => (since_ns as f64 / speed).round() as u64,
            };
        }
        Ok(ReplayList {
            queries: self.queries,
            questions: self.set,
            clients: self.clients.len() as u32,
            filtered: self.filtered,
            beyond_limit: self.beyond_limit,
            too_long: self.too_long,
        })
    }
}

impl ReplayFilter {
    fn passes(&self, observed: &Observed, since_ns: u64) -> bool {
        let address = observed.client.ip();
        since_ns >= self.from_ns
            && self.until_ns.is_none_or(|until_ns| since_ns < until_ns)
            && (self.qtypes.is_empty() || self.qtypes.contains(&observed.question.qtype))
            && (self.suffixes.is_empty() || is_below(&observed.question.name, &self.suffixes))
            && (self.transports.is_empty() || self.transports.contains(&observed.transport))
            && (self.clients.is_empty() || self.clients.iter().any(|each| each.contains(address)))
    }
}

/// True if a name is one of others or below one; all are in wire format.
fn is_below(name: &[u8], others: &[Box<[u8]>]) -> bool {
    let mut rest = name;
    loop {
        if others.iter().any(|other| rest.eq_ignore_ascii_case(other)) {
            return true;
        }
        let Some((&octets, labels)) = rest.split_first().filter(|(octets, _)| **octets > 0) else {
            return false;
        };
        rest = labels.get(usize::from(octets)..).unwrap_or(&[]);
    }
}

#[cfg(test)]
mod tests;
