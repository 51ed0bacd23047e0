//! When each client asked, and what that says about clients of its rate.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;

use load::profile::{IDLE_FACTOR, LogHistogram, RateClass};

/// Clients that are followed.
const CLIENTS_MAX: usize = 1 << 24;

/// Gaps are kept as logarithms to the base 2, in steps of a 32nd: 2 % apart.
const STEPS_PER_OCTAVE: f64 = 32.0;

/// Bursts whose queries are closer together than a 10,000th of the mean gap are all alike.
const STEADINESS_MIN: i32 = -5;

/// The times of all clients.
#[derive(Debug, Default)]
pub(super) struct Clients {
    times: HashMap<SocketAddr, Times>,
}

/// The times of one.
#[derive(Debug)]
struct Times {
    first_ns: u64,
    last_ns: u64,
    /// Gaps in nanoseconds, as steps.
    gaps: Vec<u16>,
}

/// What they say.
#[derive(Debug, Default)]
pub(super) struct ClientFigures {
    pub(super) count: u64,
    pub(super) gaps_s: LogHistogram,
    pub(super) classes: Vec<RateClass>,
}

impl Clients {
    /// Takes in a query; false if there is no room for another client.
    pub(super) fn add(&mut self, client: SocketAddr, at_ns: u64) -> bool {
        if let Some(times) = self.times.get_mut(&client) {
            times.gaps.push(step(at_ns.saturating_sub(times.last_ns)));
            times.first_ns = times.first_ns.min(at_ns);
            times.last_ns = times.last_ns.max(at_ns);
            return true;
        }
        if self.times.len() >= CLIENTS_MAX {
            return false;
        }
        let times = Times {
            first_ns: at_ns,
            last_ns: at_ns,
            gaps: Vec::new(),
        };
        self.times.insert(client, times);
        true
    }

    /// Classes of clients by decades of their rate within `span_ns`, and by their steadiness.
    pub(super) fn finish(self, span_ns: f64) -> ClientFigures {
        let mut times: Vec<(SocketAddr, Times)> = self.times.into_iter().collect();
        // The order of a hash table is another each time.
        times.sort_by_key(|(client, times)| (times.first_ns, *client));
        let mut figures = ClientFigures {
            count: times.len() as u64,
            ..ClientFigures::default()
        };
        let mut classes: BTreeMap<(i32, i32), ClassBuilder> = BTreeMap::new();
        for (_, mut times) in times {
            for &gap in &times.gaps {
                figures.gaps_s.record(gap_ns(gap) / 1e9, 1);
            }
            let silence_ns = span_ns - (times.last_ns - times.first_ns) as f64;
            times.gaps.push(step(silence_ns as u64));
            let mean_ns = span_ns / times.gaps.len() as f64;
            let rate_qps = 1e9 / mean_ns;
            let class = (decade(rate_qps), steadiness(&times.gaps, mean_ns));
            let class = classes.entry(class).or_default();
            class.class.rates_qps.record(rate_qps, 1);
            for &gap in &times.gaps {
                class.add(gap_ns(gap) / mean_ns);
            }
        }
        figures.classes = classes.into_values().map(ClassBuilder::finish).collect();
        figures
    }
}

fn decade(number: f64) -> i32 {
    number.log10().floor() as i32
}

/// The decade of the median gap in mean gaps: 0 for equal gaps, -1 for those of a Poisson process,
/// lower the more a client asks in bursts.
fn steadiness(gaps: &[u16], mean_ns: f64) -> i32 {
    let mut sorted = gaps.to_vec();
    let middle = (sorted.len() - 1) / 2;
    let (_, median, _) = sorted.select_nth_unstable(middle);
    decade(gap_ns(*median) / mean_ns).clamp(STEADINESS_MIN, 0)
}

fn step(gap_ns: u64) -> u16 {
    ((gap_ns.max(1) as f64).log2() * STEPS_PER_OCTAVE) as u16
}

/// The middle of a step.
fn gap_ns(step: u16) -> f64 {
    ((f64::from(step) + 0.5) / STEPS_PER_OCTAVE).exp2()
}

/// A class, as its clients are added one after the other.
///
/// Bursts run on from one client to the next: so there are as many as idle gaps, although a client
/// of few queries often has no idle gap at all.
#[derive(Debug, Default)]
struct ClassBuilder {
    class: RateClass,
    /// Queries since the last idle gap.
    queries: u64,
    /// Queries before the first idle gap: the end of the last burst.
    before_first: Option<u64>,
}

impl ClassBuilder {
    fn add(&mut self, mean_gaps: f64) {
        self.queries += 1;
        if mean_gaps < IDLE_FACTOR {
            self.class.active_gaps.record(mean_gaps, 1);
            return;
        }
        self.class.idle_gaps.record(mean_gaps, 1);
        match self.before_first {
            None => self.before_first = Some(self.queries),
            Some(_) => self.class.bursts.record(self.queries, 1),
        }
        self.queries = 0;
    }

    fn finish(mut self) -> RateClass {
        if let Some(before) = self.before_first {
            self.class.bursts.record(before + self.queries, 1);
        }
        self.class
    }
}
