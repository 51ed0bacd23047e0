//! When each client of a population sends queries, independent of all others.
//!
//! A population is not one queue: a client with two queries a minute is not a scaled-down client at
//! full speed. Here every client has its own schedule and random number generator, both derived
//! from the seed and its number. So its queries do not depend on how many workers or processes
//! simulate the others.

use proto::Instant;
pub use settings::{ClientArrival, Think};

use crate::plan_error::PlanError;
use crate::random::Draws;
use crate::shape::Shape;

mod notation;
#[cfg(test)]
mod tests;

pub use notation::{FULL_SPEED_OUTSTANDING, parse};

/// Checks the values of an arrival.
///
/// # Errors
/// The first one found.
pub fn validate(arrival: &ClientArrival) -> Result<(), PlanError> {
    let wrong = |what: &str, hint: &str| Err(PlanError::new("per-client", what, hint));
    match *arrival {
        ClientArrival::OnOff { pareto_shape, .. } if pareto_shape <= 1.0 => wrong(
            "a Pareto distribution with an exponent of 1 or less has no mean",
            "give a shape above 1, such as shape=1.5",
        ),
        ClientArrival::OnOff {
            on_mean, off_mean, ..
        } if on_mean.is_zero() || off_mean.is_zero() => wrong(
            "a period must not be zero",
            "give both on and off, such as on=2s,off=10s",
        ),
        ClientArrival::Turns { clients: 0, .. } => wrong(
            "turns need clients",
            "give 1 or more, such as turns:2,of=10",
        ),
        ClientArrival::Bursts { queries: 0, .. } => {
            wrong("a burst needs a query", "give 1 or more queries")
        }
        ClientArrival::Closed { outstanding: 0, .. } => {
            wrong("at least one query at a time is needed", "give 1 or more")
        }
        _ => match arrival.rate_qps() {
            Some(rate) => crate::arrival::check_rate("per-client", rate).map(drop),
            None => Ok(()),
        },
    }
}

/// State of one client from which its next query is scheduled. 32 bytes.
#[derive(Clone, Debug)]
pub struct ClientPace {
    draws: Draws,
    /// Active until then (ON/OFF), by a clock that is stopped in pauses of the shape.
    on_until: Instant,
    /// Queries of the current burst still to come.
    burst_left: u32,
    /// Its number in the population.
    client: u32,
}

impl ClientPace {
    /// The pace of client number `client` of the population.
    pub fn new(seed: u64, client: u32) -> Self {
        ClientPace {
            draws: Draws::of_client(seed, client),
            on_until: Instant::ZERO,
            burst_left: 0,
            client,
        }
    }

    /// When the client's first query is due if it joins at `start`.
    pub fn first_due(
        &mut self,
        arrival: &ClientArrival,
        shape: Option<&Shape>,
        start: Instant,
    ) -> Instant {
        let gap_s = match *arrival {
            ClientArrival::Constant { rate_qps } => self.draws.uniform() / rate_qps,
            ClientArrival::Turns { rate_qps, clients } => {
                (f64::from(self.client) + 1.0) / (rate_qps * f64::from(clients))
            }
            ClientArrival::Poisson { rate_qps } => self.draws.exponential(1.0 / rate_qps),
            ClientArrival::OnOff {
                rate_qps,
                on_mean,
                off_mean,
                pareto_shape,
            } => {
                // At a random moment: active with the probability that its periods give.
                let (on_s, off_s) = (on_mean.as_secs_f64(), off_mean.as_secs_f64());
                let is_active = self.draws.uniform() < on_s / (on_s + off_s);
                let pause_s = match is_active {
                    true => 0.0,
                    false => self.draws.pareto(pareto_shape, off_s) * self.draws.uniform(),
                };
                let active_s = self.draws.pareto(pareto_shape, on_s);
                let began = later(start, pause_s);
                self.on_until = later(began, active_s);
                let gap_s = self.draws_gap(rate_qps);
                return self.next_active(arrival, began, gap_s);
            }
            ClientArrival::Bursts { queries, every } => {
                self.burst_left = queries - 1;
                self.draws.exponential(every.as_secs_f64())
            }
            ClientArrival::Closed { think, .. } => self.think_s(think) * self.draws.uniform(),
        };
        advance(shape, start, gap_s)
    }

    /// When the query after the one due at `due` is due. In the closed loop, `due` is when the
    /// response came.
    #[inline]
    pub fn next_due(
        &mut self,
        arrival: &ClientArrival,
        shape: Option<&Shape>,
        due: Instant,
    ) -> Instant {
        match *arrival {
            ClientArrival::Constant { rate_qps } | ClientArrival::Turns { rate_qps, .. } => {
                advance(shape, due, 1.0 / rate_qps)
            }
            ClientArrival::Poisson { rate_qps } => {
                let gap_s = self.draws.exponential(1.0 / rate_qps);
                advance(shape, due, gap_s)
            }
            ClientArrival::OnOff { rate_qps, .. } => {
                let gap_s = self.draws_gap(rate_qps);
                self.next_active(arrival, due, gap_s)
            }
            ClientArrival::Bursts { queries, every } => {
                if self.burst_left > 0 {
                    self.burst_left -= 1;
                    return due;
                }
                self.burst_left = queries - 1;
                let gap_s = self.draws.exponential(every.as_secs_f64());
                advance(shape, due, gap_s)
            }
            ClientArrival::Closed { think, .. } => later(due, self.think_s(think)),
        }
    }

    fn draws_gap(&mut self, rate_qps: f64) -> f64 {
        self.draws.exponential(1.0 / rate_qps)
    }

    /// `gap_s` of active time after `from`, not counting pauses.
    fn next_active(
        &mut self,
        arrival: &ClientArrival,
        mut from: Instant,
        mut gap_s: f64,
    ) -> Instant {
        let ClientArrival::OnOff {
            on_mean,
            off_mean,
            pareto_shape,
            ..
        } = *arrival
        else {
            return from;
        };
        // Each turn passes a period; a thousand without a query end the search there.
        for _ in 0..1_000 {
            let left_s = self.on_until.nanos_since(from) as f64 / 1e9;
            if gap_s <= left_s {
                break;
            }
            gap_s -= left_s;
            let pause_s = self.draws.pareto(pareto_shape, off_mean.as_secs_f64());
            let active_s = self.draws.pareto(pareto_shape, on_mean.as_secs_f64());
            from = later(self.on_until.max(from), pause_s);
            self.on_until = later(from, active_s);
        }
        later(from, gap_s)
    }

    fn think_s(&mut self, think: Think) -> f64 {
        match think {
            Think::Constant(time) => time.as_secs_f64(),
            Think::Exponential(mean) => self.draws.exponential(mean.as_secs_f64()),
        }
    }
}

/// The moment that is `gap_s` of unshaped time after `from`.
#[inline]
pub(crate) fn advance(shape: Option<&Shape>, from: Instant, gap_s: f64) -> Instant {
    match shape {
        None => later(from, gap_s),
        Some(shape) => shape.advance(from, gap_s),
    }
}

#[inline]
fn later(from: Instant, seconds: f64) -> Instant {
    // Saturates: a query due in centuries is never due.
    Instant::from_nanos(from.as_nanos().saturating_add((seconds * 1e9) as u64))
}
