//! Statistics of a run's single clients, and of groups of clients.
//!
//! A total hides that one client in a hundred waits ten times as long as the others. Here each
//! client is one value: [`ClientFigures`] is what a worker keeps of a client, and
//! [`ClientExperience`] holds distributions of such figures *over clients*. Like everything else
//! they merge exactly: a client belongs to one worker of one generator, so distributions add up.
//!
//! Figures are of queries of the measured run. A client's quantiles come from its
//! [`ClientLatency`] and are at most 7.25 % off; its numbers of queries and responses, its longest
//! latency and all counts of clients are exact.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::client_latency::ClientLatency;
use crate::histogram::Histogram;
use crate::interval::per;

mod group;
#[cfg(test)]
mod tests;

pub use group::{GroupRecord, merge_groups};

/// A query is after idleness if its client had no open query for at least this long before, or sent
/// none before: 1 s. By then a connection may be closed, a radio asleep and a cache cold.
pub const IDLE_NS_MIN: u64 = 1_000_000_000;
/// Worst clients that are kept by number.
pub const WORST_MAX: usize = 8;
/// Millihertz in a query a second.
const MQPS: f64 = 1_000.0;
/// The unit of shares.
pub const PPM: u64 = 1_000_000;

/// A worker's counts and times of one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFigures {
    /// Latencies of its responses, from the scheduled instants.
    pub latency: ClientLatency,
    /// Queries scheduled for it.
    pub queries: u64,
    /// Responses that are neither NOERROR nor NXDOMAIN, or that are truncated and not repeated over
    /// TCP.
    pub failures: u64,
    /// Total time of its connection set-ups, nanoseconds.
    pub set_up_ns: u64,
    /// Connections of it that became usable, those before the measured run included.
    pub connections: u32,
}

impl ClientFigures {
    /// One response. A few dozen instructions and two cache lines; does not allocate.
    #[inline]
    pub fn respond(&mut self, latency_ns: u64, rcode: u16) {
        self.respond_many(latency_ns, rcode, 1);
    }

    /// Counts responses with the same latency.
    #[inline]
    pub fn respond_many(&mut self, latency_ns: u64, rcode: u16, responses: u64) {
        if is_failure(rcode) {
            self.failures += responses;
        }
        self.latency.record_many(latency_ns, responses);
    }

    /// Counts responses with an RCODE that makes them useless, among those counted already.
    pub fn fail_many(&mut self, rcode: u16, responses: u64) {
        if !is_failure(rcode) {
            self.failures += responses;
        }
    }
}

/// True if it is neither NOERROR nor NXDOMAIN.
fn is_failure(rcode: u16) -> bool {
    rcode != 0 && rcode != 3
}

/// How the clients of a group fared: distributions over clients, each client one value.
///
/// The histograms have the one layout, but not all count nanoseconds: see each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientExperience {
    /// Latency of the clients that got a response.
    pub latency: LatencyOverClients,
    /// Queries scheduled for each client; its count is the number of clients, its unit is queries.
    pub queries: Histogram,
    /// Queries that each client sent in 1,000 seconds of its presence in the measured run; of the
    /// clients that were present. None in records of versions that did not write it.
    #[serde(default = "Histogram::on_demand")]
    pub rate_mqps: Histogram,
    /// Responses to each client; unit: responses.
    pub responses: Histogram,
    /// Share of each client's queries without a response, in millionths, rounded up; of the clients
    /// that sent any.
    pub unanswered_ppm: Histogram,
    /// Share of each client's queries without a response or with a useless one, in millionths,
    /// rounded up; of the clients that sent any. A response is useless if it is neither NOERROR nor
    /// NXDOMAIN, or is truncated and not repeated over TCP.
    pub unsuccessful_ppm: Histogram,
    /// Connections of each client that became usable, those before the measured run included;
    /// unit: connections.
    pub connections: Histogram,
    /// Mean time in nanoseconds that each client needed to set up a connection, first packet to
    /// usable; of the clients that had one.
    pub set_up_mean: Histogram,
    /// Latency in nanoseconds of queries after idleness: the client had no open query for a second
    /// or more, or sent none before. One value a query.
    pub first_after_idle: Histogram,
    /// The clients with the greatest 99th percentile, the worst first; before them those that sent
    /// queries and got no response.
    #[schemars(length(max = WORST_MAX))]
    pub worst: Vec<WorstClient>,
    /// Times that a client's latencies were halved because it had many; 0 unless some client had
    /// 65,535 responses of about the same latency. Then only a part of what followed was kept.
    pub halvings: u64,
}

/// Latency over clients, in nanoseconds: the quantiles that each client itself saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyOverClients {
    /// Each client's own median.
    pub p50: Histogram,
    /// Each client's own 90th percentile.
    pub p90: Histogram,
    /// Each client's own 99th percentile.
    pub p99: Histogram,
    /// Each client's longest latency.
    pub max: Histogram,
}

/// One of the clients that fared worst.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorstClient {
    /// Its number within the group, from 0; of merged records, the clients of the first come first.
    pub client: u64,
    /// Queries scheduled for it.
    pub queries: u64,
    /// Responses to it.
    pub responses: u64,
    /// Its median latency, nanoseconds; none without a response.
    pub p50_ns: Option<u64>,
    /// Its 99th percentile, nanoseconds; none without a response.
    pub p99_ns: Option<u64>,
    /// Its longest latency, nanoseconds; none without a response.
    pub max_ns: Option<u64>,
}

impl WorstClient {
    /// What the list is sorted by: without a response it is as bad as can be.
    fn rank(&self) -> (std::cmp::Reverse<u64>, u64) {
        let p99_ns = self.p99_ns.unwrap_or(u64::MAX);
        (std::cmp::Reverse(p99_ns), self.client)
    }
}

impl Default for ClientExperience {
    /// No clients.
    fn default() -> Self {
        ClientExperience {
            latency: LatencyOverClients {
                p50: Histogram::on_demand(),
                p90: Histogram::on_demand(),
                p99: Histogram::on_demand(),
                max: Histogram::on_demand(),
            },
            queries: Histogram::on_demand(),
            rate_mqps: Histogram::on_demand(),
            responses: Histogram::on_demand(),
            unanswered_ppm: Histogram::on_demand(),
            unsuccessful_ppm: Histogram::on_demand(),
            connections: Histogram::on_demand(),
            set_up_mean: Histogram::on_demand(),
            first_after_idle: Histogram::on_demand(),
            worst: Vec::new(),
            halvings: 0,
        }
    }
}

/// Clients differ if the 99th percentile of the worst is this multiple of the median client's.
const SLOW_CLIENTS_MIN: u64 = 2;

/// With fewer responses, a client's 99th percentile is its longest latency.
const RESPONSES_MIN: u64 = 100;

impl ClientExperience {
    /// Adds the next client, which was there for so long of the measured run.
    pub fn record(&mut self, client: &ClientFigures, present_ns: u64) {
        let latency = &client.latency;
        let responses = latency.count();
        let number = self.clients();
        self.queries.record(client.queries);
        if present_ns > 0 {
            self.rate_mqps.record(rate_mqps(client.queries, present_ns));
        }
        self.responses.record(responses);
        self.connections.record(client.connections.into());
        self.halvings += latency.halvings();
        if client.connections > 0 {
            let mean_ns = client.set_up_ns / u64::from(client.connections);
            self.set_up_mean.record(mean_ns);
        }
        if client.queries == 0 {
            return;
        }
        let unanswered = client.queries.saturating_sub(responses);
        self.unanswered_ppm.record(ppm(unanswered, client.queries));
        let unsuccessful = unanswered + client.failures;
        self.unsuccessful_ppm
            .record(ppm(unsuccessful, client.queries));
        let [p50_ns, p90_ns, p99_ns] = [0.5, 0.9, 0.99].map(|p| latency.percentile(p));
        let over_clients = &mut self.latency;
        for (histogram, value_ns) in [
            (&mut over_clients.p50, p50_ns),
            (&mut over_clients.p90, p90_ns),
            (&mut over_clients.p99, p99_ns),
            (&mut over_clients.max, latency.max_ns()),
        ] {
            value_ns
                .into_iter()
                .for_each(|value_ns| histogram.record(value_ns));
        }
        self.keep_worst(WorstClient {
            client: number,
            queries: client.queries,
            responses,
            p50_ns,
            p99_ns,
            max_ns: latency.max_ns(),
        });
    }

    fn keep_worst(&mut self, client: WorstClient) {
        let place = self
            .worst
            .partition_point(|kept| kept.rank() < client.rank());
        if place < WORST_MAX {
            self.worst.truncate(WORST_MAX - 1);
            self.worst.insert(place, client);
        }
    }

    /// Adds the clients of `other`, which come after these.
    pub fn merge(&mut self, other: &ClientExperience) {
        let clients_before = self.clients();
        for client in &other.worst {
            self.keep_worst(WorstClient {
                client: clients_before + client.client,
                ..client.clone()
            });
        }
        // Names every field, so that a new one cannot be forgotten here.
        let ClientExperience {
            latency: LatencyOverClients { p50, p90, p99, max },
            queries,
            rate_mqps,
            responses,
            unanswered_ppm,
            unsuccessful_ppm,
            connections,
            set_up_mean,
            first_after_idle,
            worst: _,
            halvings,
        } = other;
        self.halvings += halvings;
        let others = [
            p50,
            p90,
            p99,
            max,
            queries,
            rate_mqps,
            responses,
            unanswered_ppm,
            unsuccessful_ppm,
            connections,
            set_up_mean,
            first_after_idle,
        ];
        for (own, other) in self.histograms().into_iter().zip(others) {
            own.merge(other);
        }
    }

    /// Gives back the memory of unused histogram buckets.
    pub fn shrink_to_fit(&mut self) {
        let all = self.histograms();
        all.into_iter().for_each(Histogram::shrink_to_fit);
    }

    /// All histograms, in the order of the fields.
    fn histograms(&mut self) -> [&mut Histogram; 12] {
        let LatencyOverClients { p50, p90, p99, max } = &mut self.latency;
        [
            p50,
            p90,
            p99,
            max,
            &mut self.queries,
            &mut self.rate_mqps,
            &mut self.responses,
            &mut self.unanswered_ppm,
            &mut self.unsuccessful_ppm,
            &mut self.connections,
            &mut self.set_up_mean,
            &mut self.first_after_idle,
        ]
    }

    /// Number of clients.
    pub fn clients(&self) -> u64 {
        self.queries.count()
    }

    /// Clients for which a query was scheduled in the measured run.
    pub fn asked(&self) -> u64 {
        self.unanswered_ppm.count()
    }

    /// Clients of which no connection became usable; of old records, which have no connections by
    /// client, none.
    pub(crate) fn without_connection(&self) -> u64 {
        let mut buckets = self.connections.buckets();
        let none = buckets.find(|(_, highest, _)| *highest == 0);
        none.map_or(0, |(_, _, clients)| clients)
    }

    /// Clients that got a response to such a query.
    pub fn answered(&self) -> u64 {
        self.latency.p99.count()
    }

    /// Queries a second, during its presence, of the client at quantile `p` over the clients
    /// present in the measured run. In records without presence, all clients count as present for
    /// the whole window, given in seconds; 0 without a window.
    pub fn rate_qps(&self, p: f64, window_seconds: f64) -> Option<f64> {
        if let Some(mqps) = self.rate_mqps.percentile(p) {
            return Some(mqps as f64 / MQPS);
        }
        let queries = self.queries.percentile(p)?;
        Some(per(queries as f64, window_seconds))
    }

    /// The 99th percentile, in nanoseconds, from which the worst 1 % of the clients begin: for one
    /// client in a hundred, one response in a hundred took that long or longer.
    pub fn worst_percent_p99_ns(&self) -> Option<u64> {
        self.latency.p99.percentile(0.99)
    }

    /// The 99th percentile, in nanoseconds, of the median client and that from which the worst 1 %
    /// of the clients begin, where they differ: by a factor of two, and each client has
    /// enough responses for a percentile of its own.
    pub fn slow_clients(&self) -> Option<(u64, u64)> {
        let is_known = self.responses.percentile(0.0)? >= RESPONSES_MIN;
        let (median, worst) = (
            self.latency.p99.percentile(0.5)?,
            self.worst_percent_p99_ns()?,
        );
        let differ = worst >= median.saturating_mul(SLOW_CLIENTS_MIN);
        (is_known && differ).then_some((median, worst))
    }

    /// Jain's fairness index of the clients' responses, over all clients: 1 if all got equally
    /// many, 1/n if one of n got all. None without responses.
    pub fn fairness(&self) -> Option<f64> {
        let sum = self.responses.sum_ns() as f64;
        let squares = self.responses.sum_squares() as f64;
        (squares > 0.0).then(|| (sum / squares * sum / self.clients() as f64).min(1.0))
    }

    /// Checks that the figures agree with each other.
    ///
    /// # Errors
    /// Names what does not add up.
    pub fn check(&self) -> Result<(), String> {
        let clients = self.clients();
        let of_all = [&self.responses, &self.connections];
        if of_all.iter().any(|over| over.count() != clients) {
            return Err(format!(
                "queries of {clients} clients, but responses of {} and connections of {}",
                self.responses.count(),
                self.connections.count()
            ));
        }
        let answered = self.answered();
        let latency = &self.latency;
        let of_answered = [&latency.p50, &latency.p90, &latency.max];
        let is_uneven = of_answered.iter().any(|over| over.count() != answered)
            || self.unsuccessful_ppm.count() != self.asked();
        if is_uneven || answered > self.asked() || self.asked() > clients {
            return Err(format!(
                "of {clients} clients {} asked and {answered} got responses, or other numbers of \
                 clients in another distribution",
                self.asked()
            ));
        }
        if self.rate_mqps.count() > clients {
            let rates = self.rate_mqps.count();
            return Err(format!("{clients} clients, but rates of {rates}"));
        }
        let is_sorted = self.worst.is_sorted_by_key(WorstClient::rank);
        let is_known = self.worst.iter().all(|worst| worst.client < clients);
        if !is_sorted || !is_known || self.worst.len() > WORST_MAX {
            return Err(format!(
                "the worst clients are not the {WORST_MAX} worst of {clients}, the worst first"
            ));
        }
        Ok(())
    }
}

/// Queries in 1,000 seconds, to the nearest.
fn rate_mqps(queries: u64, present_ns: u64) -> u64 {
    const SPAN_NS: u128 = 1_000 * 1_000_000_000;
    let present_ns = u128::from(present_ns);
    let mqps = (u128::from(queries) * SPAN_NS + present_ns / 2) / present_ns;
    u64::try_from(mqps).unwrap_or(u64::MAX)
}

/// `part` of `whole` in millionths, rounded up so that only nothing is 0; at most a million.
fn ppm(part: u64, whole: u64) -> u64 {
    let millionths = (u128::from(part) * u128::from(PPM)).div_ceil(u128::from(whole.max(1)));
    millionths.min(u128::from(PPM)) as u64
}
