//! Questions by the share of them that a cache could answer (`--cache-hit-ratio`).
//!
//! The model: the target's cache holds every answer until its TTL has passed. So a query either
//! *repeats* a question (name and QTYPE) that the same worker sent within the TTL, or it is
//! *fresh*: its question is new in this run, or its TTL has passed. A share of the queries repeats,
//! the rest is fresh. This needs no warm-up: only the first query of each worker cannot repeat
//! anything.
//!
//! Queries repeat, with equal probabilities,
//! * with a list, its names that have been queried. Each name's first query is fresh, as is the
//!   first after its TTL; a fresh query takes names of the list before generated ones.
//! * without a list, the most recent generated names, up to a limit.
//!
//! All other fresh names are generated. The TTL counts from when a query was chosen. A cache counts
//! it from the answer's arrival, which is later. So a repeated question is still in the cache,
//! unless the cache rounds TTLs down by more than that difference.

use std::collections::VecDeque;
use std::time::Duration;

use proto::Instant;
use proto::pending::Question;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Repeats;
use super::chooser::{Choice, Variations};
use crate::plan::share;
use crate::random;

/// Keeps these random numbers apart from others that are drawn with the same seed.
const STREAM: u64 = 0x0072_6570_6561_7473; // "repeats"

/// How strongly a query corrects the deviation so far: the number of repeats then stays within
/// about ten of the exact share, however long the run, and single queries still look random.
const CORRECTION: f64 = 1.0 / 64.0;

/// Largest deviation, in repeats, that is corrected.
const OWED_MAX: f64 = 64.0;

/// One worker's choice between a repeated and a fresh question.
#[derive(Debug)]
pub(super) struct RepeatChooser {
    repeated_share: f64,
    /// Repeats missing so far; negative if there were too many.
    owed: f64,
    generator: Xoshiro256PlusPlus,
    ttl: Option<Duration>,
    /// Questions that can be repeated, in the order of their queries.
    asked: VecDeque<Asked>,
    asked_max: usize,
    /// Questions of the list whose TTL has passed.
    expired: VecDeque<Question>,
    list: List,
}

#[derive(Debug)]
struct Asked {
    question: Question,
    at: Instant,
}

/// This worker's names of the list: every `step`-th from `next` on.
#[derive(Debug)]
struct List {
    next: u64,
    step: u64,
    /// Names in the list, and the template of generated names.
    names: u32,
}

impl RepeatChooser {
    /// `templates` are the names of the list and then the zone of generated names.
    pub(super) fn new(
        repeats: &Repeats,
        templates: u32,
        seed: u64,
        (worker, workers): (u32, u32),
    ) -> Self {
        let names = templates - 1;
        let names_max = match names {
            0 => repeats.names_max,
            _ => names,
        };
        let asked_max = share(names_max.into(), worker, workers) as usize;
        let expired_max = match (names, repeats.ttl) {
            (0, _) | (_, None) => 0,
            _ => asked_max,
        };
        RepeatChooser {
            repeated_share: repeats.share,
            owed: 0.0,
            generator: random::generator(seed, STREAM, worker),
            ttl: repeats.ttl,
            asked: VecDeque::with_capacity(asked_max),
            asked_max,
            expired: VecDeque::with_capacity(expired_max),
            list: List {
                next: worker.into(),
                step: workers.into(),
                names,
            },
        }
    }

    pub(super) fn next(&mut self, now: Instant, variations: &mut Variations) -> Choice {
        self.expire(now);
        let wanted = self.repeated_share + self.owed * CORRECTION;
        let is_repeat = !self.asked.is_empty() && random::below_one(&mut self.generator) < wanted;
        let owed = self.owed + self.repeated_share - f64::from(u8::from(is_repeat));
        self.owed = owed.clamp(-OWED_MAX, OWED_MAX);
        let question = match is_repeat {
            true => {
                let place = random::below(&mut self.generator, self.asked.len() as u64);
                self.asked[place as usize].question
            }
            false => self.fresh(now, variations),
        };
        Choice {
            question,
            is_repeat,
        }
    }

    fn expire(&mut self, now: Instant) {
        let Some(ttl) = self.ttl else { return };
        while let Some(oldest) = self.asked.front()
            && oldest.at + ttl <= now
        {
            if self.list.names > 0 {
                self.expired.push_back(oldest.question);
            }
            self.asked.pop_front();
        }
    }

    fn fresh(&mut self, now: Instant, variations: &mut Variations) -> Question {
        let of_list = self
            .expired
            .pop_front()
            .or_else(|| self.list.take().map(|name| variations.typed(name)));
        let is_kept = of_list.is_some() || self.list.names == 0;
        let question = of_list.unwrap_or_else(|| variations.labelled(self.list.names));
        if is_kept {
            if self.asked.len() == self.asked_max {
                self.asked.pop_front();
            }
            self.asked.push_back(Asked { question, at: now });
        }
        question
    }
}

impl List {
    /// The next name that was never queried.
    fn take(&mut self) -> Option<u32> {
        let name = u32::try_from(self.next)
            .ok()
            .filter(|name| *name < self.names)?;
        self.next += self.step;
        Some(name)
    }
}
