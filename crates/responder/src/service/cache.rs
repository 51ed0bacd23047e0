//! The modelled cache: cached answers, pending ones, and evictions.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use proto::Instant;

use super::CacheModel;
use crate::zone::NameHasher;

/// No entry.
const NONE: u32 = u32::MAX;

/// The result of a cache lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// There is no cache: every answer is known.
    Known,
    /// The answer.
    Hit,
    /// The answer is pending, and arrives at this instant.
    Awaited(Instant),
    /// A miss. Without a key, the answer will not be cached.
    Missing { key: Option<u64> },
}

/// Answers, the most recently used one first.
#[derive(Debug)]
pub(super) struct Cache {
    model: CacheModel,
    by_question: HashMap<u64, u32, BuildHasherDefault<NameHasher>>,
    entries: Vec<Entry>,
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    question: u64,
    /// When it arrived, or will arrive.
    there_at: Instant,
    before: u32,
    after: u32,
}

impl Cache {
    pub(super) fn new(model: CacheModel) -> Self {
        Cache {
            model,
            by_question: HashMap::default(),
            entries: Vec::new(),
            first: NONE,
            last: NONE,
        }
    }

    /// Looks up a question at `now`; a message without one is never cached.
    pub(super) fn find(&mut self, question: Option<u64>, now: Instant) -> Found {
        let Some(question) = question else {
            return Found::Missing { key: None };
        };
        let missing = Found::Missing {
            key: Some(question),
        };
        let Some(&index) = self.by_question.get(&question) else {
            return missing;
        };
        let there_at = self.entries[index as usize].there_at;
        if now >= there_at + self.model.ttl {
            return missing;
        }
        self.move_to_front(index);
        match there_at > now {
            true => Found::Awaited(there_at),
            false => Found::Hit,
        }
    }

    /// Caches the answer that arrives at `there_at`. True if an unexpired answer was evicted for
    /// it.
    pub(super) fn keep(&mut self, question: u64, there_at: Instant) -> bool {
        if let Some(&index) = self.by_question.get(&question) {
            self.entries[index as usize].there_at = there_at;
            self.move_to_front(index);
            return false;
        }
        let max = self.model.entries_max.unwrap_or(NONE - 1).max(1) as usize;
        let entry = Entry {
            question,
            there_at,
            before: NONE,
            after: NONE,
        };
        let is_full = self.entries.len() >= max;
        let mut evicts = false;
        let index = match is_full {
            true => {
                let index = self.last;
                self.unlink(index);
                let old = std::mem::replace(&mut self.entries[index as usize], entry);
                self.by_question.remove(&old.question);
                evicts = there_at < old.there_at + self.model.ttl;
                index
            }
            false => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.by_question.insert(question, index);
        self.link_first(index);
        evicts
    }

    fn move_to_front(&mut self, index: u32) {
        if self.first != index {
            self.unlink(index);
            self.link_first(index);
        }
    }

    fn unlink(&mut self, index: u32) {
        let Entry { before, after, .. } = self.entries[index as usize];
        match before {
            NONE => self.first = after,
            before => self.entries[before as usize].after = after,
        }
        match after {
            NONE => self.last = before,
            after => self.entries[after as usize].before = before,
        }
    }

    fn link_first(&mut self, index: u32) {
        let second = self.first;
        let entry = &mut self.entries[index as usize];
        (entry.before, entry.after) = (NONE, second);
        match second {
            NONE => self.last = index,
            second => self.entries[second as usize].before = index,
        }
        self.first = index;
    }
}
