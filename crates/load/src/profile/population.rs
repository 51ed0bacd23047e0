//! Clients drawn from a profile, with the times and questions of their queries.

use std::time::Duration;

use proto::rr;
use rand_core::Rng;

use super::sampler::{CountSampler, LogSampler, Ranks, Steps, uniform};
use super::{Profile, ProfileError, RateClass};
use crate::random;

/// Keeps these random numbers apart from others that are drawn with the same seed.
const STREAM: u64 = 0x7072_6f66_696c_6573; // "profiles"

/// A profile prepared for drawing clients. Read-only, shared by all workers.
#[derive(Clone, Debug)]
pub struct Population {
    classes: Vec<ClassSampler>,
    by_clients: Steps,
    qtypes: Vec<u16>,
    by_queries: Steps,
    ranks: Ranks,
}

#[derive(Clone, Debug)]
struct ClassSampler {
    rates_qps: LogSampler,
    bursts: CountSampler,
    active_gaps: LogSampler,
    idle_gaps: LogSampler,
    /// Mean of all drawn gaps, in the histograms' unit.
    gap_mean: f64,
    /// The share of all time that passes in idle gaps.
    idle_share: f64,
}

/// A client: its rate, and its position in a burst. 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientDraw {
    /// Its mean rate, in queries a second.
    pub rate_qps: f64,
    class: u32,
    /// Queries of the burst that are still to come.
    burst_left: u32,
}

impl Population {
    /// Prepares a profile.
    ///
    /// # Errors
    /// The profile was changed after it was read, so that it contradicts itself.
    pub fn new(profile: &Profile) -> Result<Self, ProfileError> {
        profile.check()?;
        let with_clients = |class: &&RateClass| class.rates_qps.total() > 0;
        let classes = profile.classes.iter().filter(with_clients);
        let by_clients = Steps::new(classes.clone().map(|class| class.rates_qps.total() as f64));
        let qtypes = profile
            .qtypes
            .keys()
            .map(|text| rr::type_from_text(text).ok_or_else(|| super::unknown_type(text)));
        Ok(Population {
            classes: classes.map(ClassSampler::new).collect(),
            by_clients,
            qtypes: qtypes.collect::<Result<_, _>>()?,
            by_queries: Steps::new(profile.qtypes.values().map(|&count| count as f64)),
            ranks: Ranks::new(&profile.names),
        })
    }

    /// Draws `count` clients, in random order.
    ///
    /// Their rates are drawn one from each of `count` equal parts of the distribution: a few heavy
    /// clients carry much of the load, so that the total of independent draws would vary widely.
    pub fn clients(&self, count: u32, seed: u64) -> Vec<ClientDraw> {
        let mut generator = random::generator(seed, STREAM, 0);
        let mut clients: Vec<ClientDraw> = (0..count)
            .map(|part| {
                let share = (f64::from(part) + uniform(&mut generator)) / f64::from(count);
                let (class, within) = self.by_clients.find(share);
                ClientDraw {
                    rate_qps: self.classes[class].rates_qps.at(within),
                    class: class as u32,
                    burst_left: 0,
                }
            })
            .collect();
        for last in (1..clients.len()).rev() {
            let other = random::below(&mut generator, last as u64 + 1);
            clients.swap(last, other as usize);
        }
        clients
    }

    /// The mean rate of a client, in queries a second.
    pub fn rate_qps_mean(&self) -> f64 {
        let shares = self.classes.iter().zip(0..).map(|(class, index)| {
            let before = if index == 0 {
                0.0
            } else {
                self.by_clients.sum(index - 1)
            };
            class.rates_qps.mean() * (self.by_clients.sum(index) - before)
        });
        shares.sum::<f64>() / self.by_clients.total()
    }

    /// Draws a question: the rank of its name, from 1, and its QTYPE.
    #[inline]
    pub fn question(&self, generator: &mut impl Rng) -> (u64, u16) {
        let rank = self.ranks.at(uniform(generator));
        let (step, _) = self.by_queries.find(uniform(generator));
        (rank, self.qtypes[step])
    }
}

impl ClassSampler {
    fn new(class: &RateClass) -> Self {
        let bursts = CountSampler::new(&class.bursts);
        let active_gaps = LogSampler::new(&class.active_gaps);
        let idle_gaps = LogSampler::new(&class.idle_gaps);
        // A burst of n queries has n - 1 active gaps and then an idle one.
        let queries = bursts.mean().max(1.0);
        let (active, idle) = match (active_gaps.is_empty(), idle_gaps.is_empty()) {
            (true, _) => (0.0, idle_gaps.mean()),
            (false, true) => (active_gaps.mean(), 0.0),
            (false, false) => (
                active_gaps.mean() * (queries - 1.0) / queries,
                idle_gaps.mean() / queries,
            ),
        };
        ClassSampler {
            rates_qps: LogSampler::new(&class.rates_qps),
            bursts,
            active_gaps,
            idle_gaps,
            gap_mean: active + idle,
            idle_share: idle / (active + idle),
        }
    }

    /// Draws the next gap, in mean gaps.
    fn gap(&self, burst_left: &mut u32, generator: &mut impl Rng) -> f64 {
        if *burst_left == 0 {
            let queries = self.bursts.at(uniform(generator));
            *burst_left = u32::try_from(queries).unwrap_or(u32::MAX);
        }
        *burst_left -= 1;
        let is_idle = *burst_left == 0;
        let gaps = match (self.active_gaps.is_empty(), self.idle_gaps.is_empty()) {
            (true, _) => &self.idle_gaps,
            (_, true) => &self.active_gaps,
            _ if is_idle => &self.idle_gaps,
            _ => &self.active_gaps,
        };
        gaps.at(uniform(generator)) / self.gap_mean
    }

    /// Draws the rest of a gap from a random moment within it.
    fn first_gap(&self, burst_left: &mut u32, generator: &mut impl Rng) -> f64 {
        let is_idle = uniform(generator) <= self.idle_share;
        let gaps = if is_idle {
            &self.idle_gaps
        } else {
            &self.active_gaps
        };
        if !is_idle {
            let queries = self.bursts.at_moment(uniform(generator));
            let left = (uniform(generator) * queries as f64).ceil();
            *burst_left = left as u32;
        }
        gaps.at_moment(uniform(generator)) * uniform(generator) / self.gap_mean
    }
}

impl ClientDraw {
    /// Draws the time from the start of a run to the client's first query: the run starts at a
    /// random moment of the client's life, so that a population has its rate from the start.
    pub fn first_gap(&mut self, population: &Population, generator: &mut impl Rng) -> Duration {
        let class = &population.classes[self.class as usize];
        let gap = class.first_gap(&mut self.burst_left, generator);
        self.duration(gap)
    }

    /// Draws the time from one query of the client to its next. Does not allocate.
    #[inline]
    pub fn next_gap(&mut self, population: &Population, generator: &mut impl Rng) -> Duration {
        let class = &population.classes[self.class as usize];
        let gap = class.gap(&mut self.burst_left, generator);
        self.duration(gap)
    }

    fn duration(&self, mean_gaps: f64) -> Duration {
        Duration::from_nanos((mean_gaps / self.rate_qps * 1e9).round() as u64)
    }
}
