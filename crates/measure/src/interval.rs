//! What one worker measured in one interval; merged over workers, and added up over time.
//!
//! Each worker keeps one [`Interval`] for the interval that runs and hands on a copy when it ends:
//! set `start_ns`, record, set `end_ns` and `connections_open`, pass on a clone (shrunk), `clear`.
//! Every event of a query is attributed to the phase in which the query was *scheduled* (a
//! response to a warm-up query belongs to the warm-up), and within that phase to the interval in
//! which the event *happened*. So the intervals of the measured phase, including those of the
//! drain after the last query was offered, add up to its total, and the total is balanced.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::histogram::Histogram;

/// The latency distributions of an interval or a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Distributions {
    /// Response latency from the scheduled instant (no coordinated omission).
    pub latency: Histogram,
    /// Response latency from the instant of sending (service time).
    pub service: Histogram,
    /// How long after its scheduled instant each query was sent.
    pub send_lateness: Histogram,
    /// TCP fallback: latency from the scheduled instant of the truncated UDP query.
    pub tcp_fallback: Histogram,
    /// Connection set-up and the first query of each connection.
    pub connections: ConnectionTimes,
    /// Where the latency went, by timestamps of datagrams.
    #[serde(default, skip_serializing_if = "PathTimes::is_empty")]
    pub path: PathTimes,
}

/// Parts of the latency of responses whose stamps are known; they add up to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathTimes {
    /// From the scheduled instant until the query left: waiting in the generator.
    pub generator: Histogram,
    /// Until the response arrived: wire and server.
    pub network: Histogram,
    /// Until the generator had read it: waiting for the reader.
    pub reader: Histogram,
}

impl Default for PathTimes {
    /// Nothing measured; no memory for what is never measured.
    fn default() -> Self {
        PathTimes {
            generator: Histogram::on_demand(),
            network: Histogram::on_demand(),
            reader: Histogram::on_demand(),
        }
    }
}

impl PathTimes {
    /// True if nothing was stamped.
    pub fn is_empty(&self) -> bool {
        self.network.is_empty()
    }

    /// The parts by name, in the order of time.
    pub fn parts(&self) -> [(&'static str, &Histogram); 3] {
        [
            ("in the generator", &self.generator),
            ("wire and server", &self.network),
            ("for the reader", &self.reader),
        ]
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &PathTimes) {
        self.generator.merge(&other.generator);
        self.network.merge(&other.network);
        self.reader.merge(&other.reader);
    }
}

/// Durations of connection set-up, and of connections' first queries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionTimes {
    /// TCP connection set-up: SYN to established.
    pub tcp_connect: Histogram,
    /// Full TLS handshakes over TCP: established to complete.
    pub tls_handshake: Histogram,
    /// Resumed TLS handshakes over TCP: established to complete.
    pub tls_handshake_resumed: Histogram,
    /// Full QUIC handshakes: first Initial packet to complete.
    pub quic_handshake: Histogram,
    /// Resumed QUIC handshakes: first Initial packet to complete.
    pub quic_handshake_resumed: Histogram,
    /// Service time of the first query of each connection that got a response: its sending to its
    /// response. These values are in `service` too; without them, it is that of later queries.
    pub first_query: Histogram,
    /// The same with the set-up: SYN or first Initial packet to the response, without the time that
    /// a usable connection waited for its first query.
    pub set_up_and_first_query: Histogram,
}

impl Default for ConnectionTimes {
    /// Nothing measured; no memory for what is never measured.
    fn default() -> Self {
        ConnectionTimes {
            tcp_connect: Histogram::on_demand(),
            tls_handshake: Histogram::on_demand(),
            tls_handshake_resumed: Histogram::on_demand(),
            quic_handshake: Histogram::on_demand(),
            quic_handshake_resumed: Histogram::on_demand(),
            first_query: Histogram::on_demand(),
            set_up_and_first_query: Histogram::on_demand(),
        }
    }
}

impl ConnectionTimes {
    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &ConnectionTimes) {
        // Names every field, so that a new one cannot be forgotten here.
        let ConnectionTimes {
            tcp_connect,
            tls_handshake,
            tls_handshake_resumed,
            quic_handshake,
            quic_handshake_resumed,
            first_query,
            set_up_and_first_query,
        } = other;
        self.tcp_connect.merge(tcp_connect);
        self.tls_handshake.merge(tls_handshake);
        self.tls_handshake_resumed.merge(tls_handshake_resumed);
        self.quic_handshake.merge(quic_handshake);
        self.quic_handshake_resumed.merge(quic_handshake_resumed);
        self.first_query.merge(first_query);
        self.set_up_and_first_query.merge(set_up_and_first_query);
    }

    /// The steps of set-up by name, with the time that each took.
    pub fn steps(&self) -> [(&'static str, &Histogram); 5] {
        [
            ("TCP connect", &self.tcp_connect),
            ("TLS handshake", &self.tls_handshake),
            ("resumed TLS handshake", &self.tls_handshake_resumed),
            ("QUIC handshake", &self.quic_handshake),
            ("resumed QUIC handshake", &self.quic_handshake_resumed),
        ]
    }

    /// The sum of all steps of all connections, in nanoseconds.
    pub fn set_up_ns(&self) -> u128 {
        self.steps().iter().map(|(_, times)| times.sum_ns()).sum()
    }

    fn each(&mut self, change: impl FnMut(&mut Histogram)) {
        // Names every field, so that a new one cannot be forgotten here.
        let ConnectionTimes {
            tcp_connect,
            tls_handshake,
            tls_handshake_resumed,
            quic_handshake,
            quic_handshake_resumed,
            first_query,
            set_up_and_first_query,
        } = self;
        [
            tcp_connect,
            tls_handshake,
            tls_handshake_resumed,
            quic_handshake,
            quic_handshake_resumed,
            first_query,
            set_up_and_first_query,
        ]
        .into_iter()
        .for_each(change);
    }
}

impl Distributions {
    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Distributions) {
        // Names every field, so that a new one cannot be forgotten here.
        let Distributions {
            latency,
            service,
            send_lateness,
            tcp_fallback,
            connections,
            path,
        } = other;
        self.latency.merge(latency);
        self.service.merge(service);
        self.send_lateness.merge(send_lateness);
        self.tcp_fallback.merge(tcp_fallback);
        self.connections.merge(connections);
        self.path.merge(path);
    }

    fn each(&mut self, mut change: impl FnMut(&mut Histogram)) {
        [
            &mut self.latency,
            &mut self.service,
            &mut self.send_lateness,
            &mut self.tcp_fallback,
            &mut self.path.generator,
            &mut self.path.network,
            &mut self.path.reader,
        ]
        .into_iter()
        .for_each(&mut change);
        self.connections.each(change);
    }
}

/// One interval of one worker, and, merged, of all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// Start in nanoseconds since the start of the measured run (in the warm-up: since its own
    /// start).
    pub start_ns: u64,
    /// End in nanoseconds since the same instant.
    pub end_ns: u64,
    /// What was counted.
    pub counts: Counts,
    /// What was timed.
    pub distributions: Distributions,
    /// Integral of the number of queries in flight over time, in query-nanoseconds;
    /// mean in flight = this / (end - start). Queries that will be lost are in flight until they
    /// time out. A decimal string in JSON.
    #[serde(with = "decimal_string")]
    #[schemars(with = "String")]
    pub in_flight_ns: u128,
    /// CPU time of the worker, nanoseconds.
    pub cpu_ns: u64,
    /// Connections usable at the end of the interval, without those that have carried queries and
    /// no response yet; in a total, and in an interval merged from several, the maximum of them.
    pub connections_open: u64,
    /// The most that were open so at one time within the interval. Of several workers the sum of
    /// what each had at most, which they may have had at different times; in a total or merged
    /// interval, the most of any. None in a record of a version that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_open_max: Option<u64>,
    /// Usable connections at the end of the interval on which a response had come: as many as the
    /// target serves at once. In a total or merged interval, the most of any. None in a record of a
    /// version that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections_served: Option<u64>,
    /// Connections that carried a query in the interval; in a total or merged interval, the most of
    /// any.
    pub connections_active: u64,
    /// When the first response came that is of use (NOERROR or NXDOMAIN), in nanoseconds since the
    /// start of the measured run, to 10 ms. None if none came, or in a record of a version that did
    /// not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_usable_ns: Option<u64>,
    /// When the last of them came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_usable_ns: Option<u64>,
    /// Queries open at its end: all that were offered since the start of the measured run, less all
    /// that were answered, ended without a response, or were not sent. None in a total or in the
    /// warm-up, or in a record of a version that did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open: Option<u64>,
}

impl Interval {
    /// Adds the same interval of another worker.
    pub fn merge(&mut self, other: &Interval) {
        self.add(other);
        self.connections_open += other.connections_open;
        let sum = |a: Option<u64>, b: Option<u64>| a.map_or(b, |it| Some(it + b.unwrap_or(0)));
        self.connections_open_max = sum(self.connections_open_max, other.connections_open_max);
        self.connections_served = sum(self.connections_served, other.connections_served);
        self.connections_active += other.connections_active;
    }

    /// Adds a later interval of the same workers; for totals and wider intervals.
    pub fn append_in_time(&mut self, next: &Interval) {
        self.add(next);
        self.connections_open = self.connections_open.max(next.connections_open);
        self.connections_open_max = self.connections_open_max.max(next.connections_open_max);
        self.connections_served = self.connections_served.max(next.connections_served);
        self.connections_active = self.connections_active.max(next.connections_active);
    }

    /// Appends this interval to those before, if there are any.
    pub fn append_to(&self, before: &mut Option<Interval>) {
        match before {
            Some(before) => before.append_in_time(self),
            none => *none = Some(self.clone()),
        }
    }

    fn add(&mut self, other: &Interval) {
        self.start_ns = self.start_ns.min(other.start_ns);
        self.end_ns = self.end_ns.max(other.end_ns);
        self.counts.add(&other.counts);
        self.distributions.merge(&other.distributions);
        self.in_flight_ns = self.in_flight_ns.saturating_add(other.in_flight_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        let firsts = [self.first_usable_ns, other.first_usable_ns];
        self.first_usable_ns = firsts.into_iter().flatten().min();
        self.last_usable_ns = self.last_usable_ns.max(other.last_usable_ns);
        // Known again when all of them are together: see `RunRecord::conclude`.
        self.open = None;
    }

    /// Notes that usable responses came between two instants, after all that is noted already.
    pub fn note_usable(&mut self, from_ns: u64, until_ns: u64) {
        self.first_usable_ns.get_or_insert(from_ns);
        self.last_usable_ns = Some(until_ns);
    }

    /// The total of successive intervals, from the start of the first to the end of the last.
    pub fn total(intervals: &[Interval]) -> Interval {
        let mut total = Interval {
            start_ns: intervals.first().map_or(0, |first| first.start_ns),
            ..Interval::default()
        };
        intervals.iter().for_each(|next| total.append_in_time(next));
        total
    }

    /// What lacks for the accounts to balance of what was counted until then, as an interval that
    /// follows: queries that have not ended are interrupted, and those that have not been sent
    /// never were. None if nothing lacks.
    pub fn rest_of(counted: &Counts, end_ns: u64) -> Option<Interval> {
        let counts = counted.cut_off();
        (counts != Counts::default()).then(|| Interval {
            start_ns: end_ns,
            end_ns: end_ns + 1,
            counts,
            ..Interval::default()
        })
    }

    /// Intervals as one that is as long as all of them together, whatever lies between them; it
    /// starts at 0.
    pub(crate) fn joined<'a>(intervals: impl Iterator<Item = &'a Interval>) -> Interval {
        let mut joined = Interval::default();
        let mut length_ns = 0;
        for interval in intervals {
            length_ns += interval.length_ns();
            joined.append_in_time(interval);
        }
        joined.start_ns = 0;
        joined.end_ns = length_ns;
        joined
    }

    /// The most connections that were open at one time; of a record that does not tell, at the end
    /// of an interval.
    pub fn most_open(&self) -> u64 {
        self.connections_open_max.unwrap_or(self.connections_open)
    }

    /// Resets everything in place; keeps the memory.
    pub fn clear(&mut self) {
        // Names every field, so that a new one cannot be forgotten here.
        let Interval {
            start_ns,
            end_ns,
            counts,
            distributions,
            in_flight_ns,
            cpu_ns,
            connections_open,
            connections_open_max,
            connections_served,
            connections_active,
            first_usable_ns,
            last_usable_ns,
            open,
        } = self;
        for unknown in [
            connections_open_max,
            connections_served,
            first_usable_ns,
            last_usable_ns,
            open,
        ] {
            *unknown = None;
        }
        *counts = Counts::default();
        distributions.each(Histogram::clear);
        *in_flight_ns = 0;
        let connections = [connections_open, connections_active];
        for number in [start_ns, end_ns, cpu_ns].into_iter().chain(connections) {
            *number = 0;
        }
    }

    /// Gives back the memory of unused histogram buckets, for an interval that is complete; returns
    /// how many buckets are left.
    pub fn shrink_to_fit(&mut self) -> usize {
        let mut buckets = 0;
        self.distributions.each(|histogram| {
            histogram.shrink_to_fit();
            buckets += histogram.buckets_held();
        });
        buckets
    }

    /// Length in nanoseconds.
    pub fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Mean number of queries in flight; 0 for an interval without length.
    pub fn mean_in_flight(&self) -> f64 {
        per(self.in_flight_ns as f64, self.length_ns() as f64)
    }

    /// `count` events of this interval as events a second; 0 for an interval without length.
    pub fn per_second(&self, count: u64) -> f64 {
        per(count as f64 * 1e9, self.length_ns() as f64)
    }
}

/// `amount / unit`, or 0 where there is no unit.
pub(crate) fn per(amount: f64, unit: f64) -> f64 {
    if unit > 0.0 { amount / unit } else { 0.0 }
}

/// Integers beyond 2^53 as decimal strings, which no JSON reader rounds.
mod decimal_string {
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &u128, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u128, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(|_| {
            serde::de::Error::custom(format!("`{text}` is not a 128-bit decimal number"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(start_ns: u64, end_ns: u64, responses: u64, open: u64) -> Interval {
        let mut interval = Interval {
            start_ns,
            end_ns,
            in_flight_ns: 50,
            cpu_ns: 7,
            connections_open: open,
            connections_open_max: Some(open + 1),
            connections_served: Some(open - 1),
            connections_active: open / 2,
            first_usable_ns: Some(start_ns + 1),
            last_usable_ns: Some(end_ns - 1),
            ..Interval::default()
        };
        interval.counts.responses = responses;
        interval.distributions.latency.record_many(1_000, responses);
        interval
            .distributions
            .connections
            .tls_handshake
            .record(start_ns);
        interval
    }

    #[test]
    fn same_interval_of_two_workers_adds_up() {
        let mut merged = interval(100, 200, 5, 3);
        merged.merge(&interval(95, 210, 6, 4));
        assert_eq!((merged.start_ns, merged.end_ns), (95, 210));
        assert_eq!((merged.counts.responses, merged.connections_open), (11, 7));
        assert_eq!(merged.connections_open_max, Some(9));
        assert_eq!(merged.connections_served, Some(5));
        assert_eq!(merged.connections_active, 3);
        assert_eq!((merged.in_flight_ns, merged.cpu_ns), (100, 14));
        assert_eq!(merged.distributions.latency.count(), 11);
        assert_eq!(merged.distributions.connections.tls_handshake.count(), 2);
        let usable = (merged.first_usable_ns, merged.last_usable_ns);
        assert_eq!(usable, (Some(96), Some(209)));
        merged.merge(&Interval::default());
        assert_eq!((merged.first_usable_ns, merged.last_usable_ns), usable);
    }

    #[test]
    fn total_spans_its_intervals_and_keeps_the_most_connections() {
        let total = Interval::total(&[interval(100, 200, 5, 3), interval(200, 300, 6, 2)]);
        assert_eq!((total.start_ns, total.end_ns), (100, 300));
        assert_eq!((total.counts.responses, total.connections_open), (11, 3));
        assert_eq!(total.connections_open_max, Some(4));
        assert_eq!(total.connections_served, Some(2));
        assert_eq!(total.connections_active, 1);
        assert_eq!(total.mean_in_flight(), 0.5);
        assert_eq!(total.per_second(11), 55_000_000.0);
    }

    #[test]
    fn cleared_interval_equals_a_new_one() {
        let mut interval = interval(1, 2, 3, 4);
        interval.clear();
        assert_eq!(interval, Interval::default());
    }

    #[test]
    fn interval_survives_json_whether_shrunk_or_not() {
        let mut whole = interval(1, 2, 3, 4);
        whole.in_flight_ns = u128::MAX;
        let json = serde_json::to_string(&whole).expect("serializes");
        assert!(json.contains(r#""in_flight_ns":"340282366920938463463374607431768211455""#));
        let back: Interval = serde_json::from_str(&json).expect("reads its own output");
        assert_eq!(back, whole);
        whole.shrink_to_fit();
        assert_eq!(serde_json::to_string(&whole).expect("serializes"), json);
    }
}
