//! When each client that is drawn from a profile sends queries.

use std::ops::Range;
use std::time::Duration;

use proto::Instant;

use super::{ClientDraw, Population};
use crate::plan_error::PlanError;
use crate::random::Draws;
use crate::shape::Shape;

/// Separates the gaps of a client from its other random numbers.
const STREAM: u64 = 0x7072_6f66_6761_7073; // "profgaps"

/// A population to draw clients from, with a factor on their rates.
#[derive(Clone, Debug)]
pub struct ProfiledClients {
    population: Population,
    rate_factor: f64,
}

impl ProfiledClients {
    /// Clients with `rate_factor` times the rate of the population, in the same pattern.
    ///
    /// # Errors
    /// The factor is not a number above 0, or the mean rate of a client cannot be offered.
    pub fn new(population: Population, rate_factor: f64) -> Result<Self, PlanError> {
        if !(rate_factor.is_finite() && rate_factor > 0.0) {
            let what = format!("{rate_factor} is not a factor");
            return Err(PlanError::new(
                "rate-factor",
                what,
                "write a number such as 0.5 or 2",
            ));
        }
        let clients = ProfiledClients {
            population,
            rate_factor,
        };
        crate::arrival::check_rate("profile", clients.rate_qps_mean())?;
        Ok(clients)
    }

    /// The mean rate of a client, in queries a second.
    pub fn rate_qps_mean(&self) -> f64 {
        self.population.rate_qps_mean() * self.rate_factor
    }

    /// The factor on the population's rates.
    pub fn rate_factor(&self) -> f64 {
        self.rate_factor
    }

    /// The clients of one worker: some of those that a population of `all` has with this seed. So
    /// a client is the same whichever worker simulates it.
    pub fn paces(&self, seed: u64, all: u32, clients: Range<u32>) -> Vec<ProfilePace> {
        let drawn = self.population.clients(all, seed);
        let own = drawn.into_iter().zip(0..all);
        let own = own.filter(|(_, number)| clients.contains(number));
        own.map(|(draw, number)| ProfilePace {
            draw,
            draws: Draws::of_client(seed ^ STREAM, number),
        })
        .collect()
    }
}

/// State of one client: its rate, its position in a burst, its random numbers. 24 bytes.
#[derive(Clone, Debug)]
pub struct ProfilePace {
    draw: ClientDraw,
    draws: Draws,
}

impl ProfilePace {
    /// When the client's first query is due if it joins at `start`.
    pub fn first_due(
        &mut self,
        clients: &ProfiledClients,
        shape: Option<&Shape>,
        start: Instant,
    ) -> Instant {
        let gap = self.draw.first_gap(&clients.population, &mut self.draws);
        clients.advance(shape, start, gap)
    }

    /// When the query after the one due at `due` is due. Does not allocate.
    #[inline]
    pub fn next_due(
        &mut self,
        clients: &ProfiledClients,
        shape: Option<&Shape>,
        due: Instant,
    ) -> Instant {
        let gap = self.draw.next_gap(&clients.population, &mut self.draws);
        clients.advance(shape, due, gap)
    }
}

impl ProfiledClients {
    #[inline]
    fn advance(&self, shape: Option<&Shape>, from: Instant, gap: Duration) -> Instant {
        if shape.is_none() && self.rate_factor == 1.0 {
            let gap_ns = u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX);
            return Instant::from_nanos(from.as_nanos().saturating_add(gap_ns));
        }
        let gap_s = gap.as_secs_f64() / self.rate_factor;
        crate::client_arrival::advance(shape, from, gap_s)
    }
}
