//! Which response belongs to which query.
//!
//! Queries wait in the order in which they were seen and leave in that order, with their response
//! or when it can no longer be expected.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;

use proto::Transport;

use crate::observed::{Observed, Question, Response};
use crate::skipped::{Skip, Skipped};

/// Queries that wait for a response at the same time.
const OPEN_MAX: usize = 1 << 20;

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

/// Queries that wait.
pub(crate) struct Pairing {
    queue: VecDeque<Entry>,
    /// Number of the first query in the queue.
    first: u64,
    open: HashMap<Key, u64>,
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
            queue: VecDeque::new(),
            first: 0,
            open: HashMap::new(),
            timeout_ns,
        }
    }

    /// Takes in a query.
    pub(crate) fn query(&mut self, key: Key, observed: Observed, skipped: &mut Skipped) {
        let number = self.first + self.queue.len() as u64;
        if let Some(&earlier) = self.open.get(&key) {
            if key.question.is_some() {
                // Without an ID, the same question once more is another query.
                return self.whole(observed);
            }
            let entry = &mut self.queue[(earlier - self.first) as usize];
            let age_ns = observed.at_ns.saturating_sub(entry.observed.at_ns);
            if entry.observed.question == observed.question && age_ns < self.timeout_ns {
                skipped.count(Skip::RepeatedQuery);
                return;
            }
            entry.key = None;
        }
        self.open.insert(key.clone(), number);
        self.queue.push_back(Entry {
            observed,
            key: Some(key),
        });
    }

    /// Takes in a query that will get no response in this capture, or has it.
    pub(crate) fn whole(&mut self, observed: Observed) {
        self.queue.push_back(Entry {
            observed,
            key: None,
        });
    }

    /// Gives a response to its query; false if there is none.
    pub(crate) fn response(&mut self, key: &Key, seen: &Seen<'_>) -> bool {
        let Some(&number) = self.open.get(key) else {
            return false;
        };
        let entry = &mut self.queue[(number - self.first) as usize];
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
        let head = self.queue.front()?;
        if head.key.is_some()
            && let Some(now_ns) = now_ns
        {
            let age_ns = now_ns.saturating_sub(head.observed.at_ns);
            if age_ns < self.timeout_ns {
                if self.queue.len() < OPEN_MAX {
                    return None;
                }
                skipped.count(Skip::PairingOverflow);
            }
        }
        let head = self.queue.pop_front()?;
        if let Some(key) = &head.key {
            self.open.remove(key);
        }
        self.first += 1;
        Some(head.observed)
    }
}
