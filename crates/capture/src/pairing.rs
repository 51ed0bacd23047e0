//! Which response belongs to which query.
//!
//! Queries leave in the order of their times, with their response or when it can no longer be
//! expected. Captures are nearly in that order: threads of a server hand in what they logged by the
//! second, and a log of responses is in the order of these.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use proto::Transport;

use crate::observed::{Observed, Question, Response};
use crate::skipped::{Skip, Skipped};

/// Queries that wait at the same time.
const OPEN_MAX: u64 = 1 << 20;

/// How long a query waits for earlier ones that are found later in the capture. Frame Streams are
/// flushed every second.
const REORDER_NS: u64 = 2_000_000_000;

/// What a query has in common with its response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) client: SocketAddr,
    pub(crate) server: Option<SocketAddr>,
    pub(crate) transport: Transport,
    pub(crate) connection: Option<u64>,
    pub(crate) id: u16,
    /// For logs, which know no ID.
    pub(crate) question: Option<Question>,
}

/// A response as it was seen.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) at_ns: u64,
    /// `None` if the response has none.
    pub(crate) question: Option<&'a Question>,
    pub(crate) response: Response,
}

/// When a query came, and how many were seen before it.
type QueryOrder = (u64, u64);

/// Queries that wait.
pub(crate) struct Pairing {
    waiting: BTreeMap<QueryOrder, Entry>,
    seen: u64,
    open: HashMap<Key, QueryOrder>,
    timeout_ns: u64,
}

struct Entry {
    observed: Observed,
    /// `None` if nothing is expected any more.
    key: Option<Key>,
}

impl Pairing {
    pub(crate) fn new(timeout_ns: u64) -> Self {
        Pairing {
            waiting: BTreeMap::new(),
            seen: 0,
            open: HashMap::new(),
            timeout_ns,
        }
    }

    /// Takes in a query.
    pub(crate) fn query(&mut self, key: Key, observed: Observed, skipped: &mut Skipped) {
        if let Some(earlier) = self.open.get(&key) {
            if key.question.is_some() {
                // Without an ID, the same question once more is another query.
                return self.whole(observed);
            }
            if let Some(entry) = self.waiting.get_mut(earlier) {
                let age_ns = observed.at_ns.saturating_sub(entry.observed.at_ns);
                if entry.observed.question == observed.question && age_ns < self.timeout_ns {
                    skipped.count(Skip::RepeatedQuery);
                    return;
                }
                entry.key = None;
            }
        }
        let place = self.insert(observed, Some(key.clone()));
        self.open.insert(key, place);
    }

    /// Takes in a query that will get no response in this capture, or has it.
    pub(crate) fn whole(&mut self, observed: Observed) {
        self.insert(observed, None);
    }

    fn insert(&mut self, observed: Observed, key: Option<Key>) -> QueryOrder {
        let place = (observed.at_ns, self.seen);
        self.seen += 1;
        self.waiting.insert(place, Entry { observed, key });
        place
    }

    /// Gives a response to its query; false if there is none.
    pub(crate) fn response(&mut self, key: &Key, seen: &Seen<'_>) -> bool {
        let place = self.open.get(key);
        let Some(entry) = place.and_then(|place| self.waiting.get_mut(place)) else {
            return false;
        };
        let is_same = |question: &Question| *question == entry.observed.question;
        let latency_ns = seen.at_ns.saturating_sub(entry.observed.at_ns);
        if !seen.question.is_none_or(is_same) || latency_ns >= self.timeout_ns {
            return false;
        }
        entry.observed.response = Some(Response {
            latency_ns: seen.response.latency_ns.or(Some(latency_ns)),
            ..seen.response
        });
        entry.key = None;
        self.open.remove(key);
        true
    }

    /// The next query that is ready; at the end of the capture (`now_ns` is `None`) all are.
    pub(crate) fn pop(&mut self, now_ns: Option<u64>, skipped: &mut Skipped) -> Option<Observed> {
        let head = self.waiting.first_entry()?;
        let is_open = head.get().key.is_some();
        if let Some(now_ns) = now_ns {
            let age_ns = now_ns.saturating_sub(head.key().0);
            let wait_ns = if is_open { self.timeout_ns } else { REORDER_NS };
            if age_ns < wait_ns {
                if self.seen - head.key().1 < OPEN_MAX {
                    return None;
                }
                skipped.add(Skip::PairingOverflow, is_open.into());
            }
        }
        let head = head.remove();
        if let Some(key) = &head.key {
            self.open.remove(key);
        }
        Some(head.observed)
    }
}
