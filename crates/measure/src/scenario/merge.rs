//! One scenario of several: that of groups and of records that are merged.

use super::{Arrival, ScenarioRecord};

impl ScenarioRecord {
    /// Adds what adds up: clients, workers, places, rates; the rest stays as in the first record.
    pub(crate) fn merge(&mut self, other: ScenarioRecord) {
        self.clients += other.clients;
        self.workers += other.workers;
        self.cpus.extend(other.cpus);
        self.duration_ns = self.duration_ns.max(other.duration_ns);
        self.queries_max = both(self.queries_max, other.queries_max, |a, b| a + b);
        for address in other.local_addresses {
            if !self.local_addresses.contains(&address) {
                self.local_addresses.push(address);
            }
        }
        let rates = (self.connections.rate_max, other.connections.rate_max);
        self.connections.rate_max = both(rates.0, rates.1, |a, b| a + b);
        match (&mut self.arrival, other.arrival) {
            (
                Arrival::Closed {
                    outstanding,
                    rate_qps_max,
                },
                Arrival::Closed {
                    outstanding: more,
                    rate_qps_max: more_qps,
                },
            ) => {
                *outstanding += more;
                *rate_qps_max = both(*rate_qps_max, more_qps, |a, b| a + b);
            }
            (Arrival::Open { rate_qps, .. }, Arrival::Open { rate_qps: more, .. }) => {
                *rate_qps += more
            }
            (Arrival::Clients { rate_qps }, Arrival::Clients { rate_qps: more }) => {
                *rate_qps = both(*rate_qps, more, |a, b| a + b);
            }
            // Refused before.
            (Arrival::Closed { .. } | Arrival::Open { .. } | Arrival::Clients { .. }, _) => {}
        }
    }
}

/// A limit that holds for the sum only if it held for both.
fn both<T>(a: Option<T>, b: Option<T>, sum: impl FnOnce(T, T) -> T) -> Option<T> {
    a.zip(b).map(|(a, b)| sum(a, b))
}
