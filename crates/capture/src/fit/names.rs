//! How often names are asked for, and how often while their answer is still known.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use load::profile::Popularity;

use crate::observed::Observed;

/// Distinct names that are counted, at most.
const NAMES_MAX: usize = 1 << 24;

/// Ranks of their own at the head of the table.
const RANKS_EXACT: usize = 16;
/// Ranks of the table for each tenfold, after the head.
const RANKS_PER_DECADE: f64 = 16.0;

/// Terms of a harmonic sum that are added one by one; the rest is an integral.
const TERMS_EXACT: u64 = 1_000;

/// Counts names by their hash: of 16 million names two share one with a probability of 10^-5.
#[derive(Debug, Default)]
pub(super) struct Names {
    counts: HashMap<u64, Count>,
    without_room: u64,
    hasher: BuildHasherDefault<DefaultHasher>,
}

#[derive(Debug)]
struct Count {
    queries: u64,
    name: Option<Box<[u8]>>,
}

impl Names {
    /// Counts a name; returns its hash.
    pub(super) fn add(&mut self, name: &[u8], keeps_name: bool) -> u64 {
        let hash = self.hasher.hash_one(name);
        let has_room = self.counts.len() < NAMES_MAX;
        match self.counts.get_mut(&hash) {
            Some(count) => count.queries += 1,
            None if has_room => {
                let name = keeps_name.then(|| name.into());
                self.counts.insert(hash, Count { queries: 1, name });
            }
            None => self.without_room += 1,
        }
        hash
    }

    /// Queries for names that there was no room for.
    pub(super) fn without_room(&self) -> u64 {
        self.without_room
    }

    pub(super) fn finish(self) -> Popularity {
        let mut counts: Vec<Count> = self.counts.into_values().collect();
        counts.sort_by(|one, other| {
            let by_queries = other.queries.cmp(&one.queries);
            by_queries.then_with(|| one.name.cmp(&other.name))
        });
        let kept = counts.iter().filter_map(|count| count.name.as_deref());
        let kept = kept.filter_map(proto::name::to_text).collect();
        let queries: Vec<u64> = counts.iter().map(|count| count.queries).collect();
        // What there was no room for came too late to come often.
        let distinct = queries.len() as u64 + self.without_room;
        let total = queries.iter().sum::<u64>() + self.without_room;
        let repeated = queries.partition_point(|&count| count > 1);
        let mut ranks = Vec::new();
        let (mut sum, mut next) = (0, 1);
        for (index, count) in queries.iter().enumerate() {
            sum += count;
            let rank = index + 1;
            // Names that were asked for once begin with a step of their own.
            if (rank >= next || rank == repeated) && rank as u64 != distinct {
                ranks.push((rank as u64, six_digits(sum as f64 / total as f64)));
                next = next.max(next_rank(rank));
            }
        }
        ranks.push((distinct, 1.0));
        Popularity {
            distinct,
            once: distinct - repeated as u64,
            zipf_exponent: six_digits(zipf_exponent(&queries)),
            ranks,
            kept,
        }
    }
}

fn next_rank(rank: usize) -> usize {
    if rank < RANKS_EXACT {
        return rank + 1;
    }
    let factor = 10_f64.powf(1.0 / RANKS_PER_DECADE);
    ((rank as f64 * factor).round() as usize).max(rank + 1)
}

fn six_digits(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

/// The exponent under which counts, in descending order, are most likely: that with which the mean
/// logarithm of a rank is the one seen.
fn zipf_exponent(counts: &[u64]) -> f64 {
    let total: u64 = counts.iter().sum();
    let logarithms = counts
        .iter()
        .zip(1_u64..)
        .map(|(&count, rank)| count as f64 * (rank as f64).ln());
    let seen = logarithms.sum::<f64>() / total as f64;
    let (mut low, mut high) = (0.0, 5.0);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        // The mean falls as the exponent rises.
        match mean_logarithm(counts.len() as u64, middle) > seen {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// The mean logarithm of a rank of `ranks` by Zipf's law.
fn mean_logarithm(ranks: u64, exponent: f64) -> f64 {
    let (mut weights, mut logarithms) = (0.0, 0.0);
    for rank in 1..=ranks.min(TERMS_EXACT) {
        let weight = (rank as f64).powf(-exponent);
        weights += weight;
        logarithms += weight * (rank as f64).ln();
    }
    // The rest in steps of a hundredth of their rank, each by its middle.
    let (mut from, end) = (TERMS_EXACT as f64 + 0.5, ranks as f64 + 0.5);
    while from < end {
        let to = (from * 1.01).min(end);
        let middle = f64::midpoint(from, to);
        let weight = (to - from) * middle.powf(-exponent);
        weights += weight;
        logarithms += weight * middle.ln();
        from = to;
    }
    logarithms / weights
}

/// One cache for all clients, without limit: what it would have known.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// Until when, by name and QTYPE.
    until_ns: HashMap<(u64, u16), u64>,
    within_ttl: u64,
    knows_ttls: bool,
}

impl Cache {
    pub(super) fn add(&mut self, name: u64, observed: &Observed) {
        let key = (name, observed.question.qtype);
        if self
            .until_ns
            .get(&key)
            .is_some_and(|&until_ns| until_ns > observed.at_ns)
        {
            self.within_ttl += 1;
            return;
        }
        let Some(response) = &observed.response else {
            return;
        };
        let Some(ttl_s) = response.ttl_s_min else {
            return;
        };
        self.knows_ttls = true;
        if self.until_ns.len() >= NAMES_MAX {
            self.until_ns
                .retain(|_, until_ns| *until_ns > observed.at_ns);
        }
        if self.until_ns.len() < NAMES_MAX {
            let answered_ns = observed
                .at_ns
                .saturating_add(response.latency_ns.unwrap_or(0));
            let until_ns = answered_ns.saturating_add(u64::from(ttl_s) * 1_000_000_000);
            self.until_ns.insert(key, until_ns);
        }
    }

    pub(super) fn within_ttl(&self) -> u64 {
        self.within_ttl
    }

    pub(super) fn knows_ttls(&self) -> bool {
        self.knows_ttls
    }
}
