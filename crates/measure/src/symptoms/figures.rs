//! The figures that symptoms are computed from, taken from the record once.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::agent_counts::AgentCounts;
use crate::counts::Counts;
use crate::histogram::Histogram;
use crate::interval::per;
use crate::observation::{ProgramUse, QueryUse};
use crate::record::RunRecord;
use crate::scenario::Arrival;
use crate::timeline::Outages;

/// Queries that leave later than this (p99) are not on time, unless responses take long.
pub(crate) const LATENESS_MAX_NS: u64 = 1_000_000;
/// In one response time that many times the lateness, it changes nothing that is measured: queries
/// that leave so late are on time where all are answered.
const RESPONSE_TIMES_LATENESS: u64 = 20;
/// Above this share of its CPU a worker that is late is late for lack of it.
pub(crate) const BUSY_SHARE_WHEN_LATE: f64 = 0.9;

pub(crate) struct Figures<'a> {
    pub(crate) record: &'a RunRecord,
    pub(crate) counts: &'a Counts,
    pub(crate) window_s: f64,
    pub(crate) achieved_qps: f64,
    /// Slots of the closed loop.
    pub(crate) outstanding: Option<u64>,
    /// Mean number in flight within the window, lost queries included.
    pub(crate) in_flight: f64,
    pub(crate) mean_latency_ns: Option<f64>,
    pub(crate) service_p50_ns: Option<u64>,
    /// The shortest way to the target and back that was seen at all.
    pub(crate) path_ns: Option<u64>,
    pub(crate) lateness_p99_ns: u64,
    /// Spans in which nothing came back; none are known without a timeline.
    pub(crate) outages: Outages,
    /// Observed programs that serve the target, the target's own first.
    pub(crate) programs: Vec<ProgramUse<'a>>,
    /// Observed servers that count queries, the target first.
    pub(crate) servers: Vec<QueryUse<'a>>,
    /// What several symptoms are computed from, by its type, once it was asked for.
    found: RefCell<BTreeMap<TypeId, Box<dyn Any>>>,
}

impl<'a> Figures<'a> {
    pub(crate) fn of(record: &'a RunRecord) -> Self {
        let total = &record.total.distributions;
        let warmup = &record.warmup.distributions;
        // A saturated server queues from the first measured query on, so the shortest latency of
        // the measured phase alone may already contain the queue.
        let shortest = [
            &total.service,
            &warmup.service,
            &total.connections.tcp_connect,
            &warmup.connections.tcp_connect,
        ];
        Figures {
            record,
            counts: &record.total.counts,
            window_s: record.measured_seconds(),
            achieved_qps: record.achieved_qps(),
            outstanding: record.outstanding(),
            in_flight: record.mean_in_flight(),
            mean_latency_ns: total.latency.mean_ns(),
            service_p50_ns: total.service.percentile(0.5),
            path_ns: shortest.into_iter().filter_map(Histogram::min_ns).min(),
            lateness_p99_ns: total.send_lateness.percentile(0.99).unwrap_or(0),
            outages: outages_of(record),
            programs: record.programs(),
            servers: record.servers(),
            found: RefCell::default(),
        }
    }

    /// What `find` finds, which is called the first time only.
    pub(super) fn once<T: Copy + 'static>(&self, find: fn(&Self) -> T) -> T {
        let key = TypeId::of::<T>();
        let known = self.found.borrow();
        if let Some(found) = known.get(&key).and_then(|it| it.downcast_ref::<T>()) {
            return *found;
        }
        drop(known);
        let found = find(self);
        self.found.borrow_mut().insert(key, Box::new(found));
        found
    }

    /// Mean number in flight of the queries that were answered, by Little's law.
    pub(crate) fn answered_in_flight(&self) -> f64 {
        self.mean_latency_ns.unwrap_or(0.0) / 1e9 * self.achieved_qps
    }

    /// Slots that queries without response held on average until they timed out; never more
    /// than the answered ones left, for the timeout may reach beyond the window.
    pub(crate) fn held_by_lost(&self) -> f64 {
        let held_s = self.counts.timeouts as f64 * self.record.scenario.timeout_ns as f64 / 1e9;
        let left = (self.in_flight - self.answered_in_flight()).max(0.0);
        per(held_s, self.window_s).min(left)
    }

    /// Queries that all connections together may carry at once, where the target's limit of
    /// streams (if queries waited for it) or the scenario sets one, with that of one connection.
    pub(crate) fn carried_max(&self) -> Option<(u64, u64)> {
        let by_target = match self.counts.waited_for_stream {
            0 => None,
            _ => self.record.streams_max(),
        };
        let by_scenario = self
            .record
            .scenario
            .connections
            .in_flight_max
            .map(u64::from);
        let each = by_target.into_iter().chain(by_scenario).min()?;
        Some((each.saturating_mul(self.record.scenario.clients), each))
    }

    /// Queries sent that got no response and no other end that the target chose.
    pub(crate) fn unanswered(&self) -> u64 {
        self.counts.timeouts + self.counts.connection_losses
    }

    /// Share of the queries sent that got no response, 0 to 1.
    pub(crate) fn unanswered_share(&self) -> f64 {
        per(self.unanswered() as f64, self.counts.sent as f64)
    }

    /// Position and busy share of the busiest worker.
    pub(crate) fn busiest_worker(&self) -> Option<(usize, f64)> {
        let shares = self.record.workers.iter().map(|worker| worker.busy_share());
        shares.enumerate().max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// True if a worker had no time to spare: it used its CPU or waited for it.
    pub(crate) fn has_no_time_left(&self) -> bool {
        let workers = self.record.workers.iter();
        let mut shares = workers.map(|it| it.busy_share() + it.cpu_wait_share());
        shares.any(|share| share >= BUSY_SHARE_WHEN_LATE)
    }

    /// The rate asked for: that of the open loop, or the cap of the closed loop.
    pub(crate) fn rate_asked(&self) -> Option<f64> {
        match self.record.scenario.arrival {
            Arrival::Closed { rate_qps_max, .. } => rate_qps_max,
            Arrival::Open { rate_qps, .. } => Some(rate_qps),
            Arrival::Clients { rate_qps } => rate_qps,
        }
    }

    /// The target runs on the CPUs of the generating host.
    pub(crate) fn target_shares_cpus(&self) -> bool {
        // Found by its address as a process of this host, in whatever network namespace.
        let as_process = format!("process={}", self.record.scenario.target);
        let mut observations = self.record.observations.iter();
        self.target_is_local() || observations.any(|it| it.source == as_process)
    }

    /// The target runs on the generating host, in its network namespace: the kernel's counters are
    /// those of both.
    pub(crate) fn target_is_local(&self) -> bool {
        let target = &self.record.scenario.target;
        let address = target.parse::<std::net::SocketAddr>();
        self.record.self_test || address.is_ok_and(|address| address.ip().is_loopback())
    }

    /// How long a target on this host waited for CPUs; none if that is unknown.
    pub(crate) fn target_waited_ns(&self) -> Option<u64> {
        let record = self.record;
        match record.self_test {
            true => record.responder.and_then(|it| it.cpu_wait_ns),
            false => record
                .host_use
                .as_ref()
                .filter(|host| host.is_target_here)
                .and_then(|host| host.target_wait_ns),
        }
    }

    /// Queries travel in datagrams: counters of UDP may be of this run.
    pub(crate) fn has_datagrams(&self) -> bool {
        let transport = self.record.scenario.transport;
        !transport.has_connections() || transport.is_quic()
    }

    /// Its connections are of TCP: events of TCP may be of this run.
    pub(crate) fn connects_over_tcp(&self) -> bool {
        let transport = self.record.scenario.transport;
        transport.has_connections() && !transport.is_quic()
    }

    /// What the kernel of each host counted, by the host's position; of a single one, everything.
    pub(crate) fn kernels(&self) -> &'a [BTreeMap<String, u64>] {
        let network = &self.record.network;
        match network.kernel_of_hosts.is_empty() {
            true => std::slice::from_ref(&network.kernel),
            false => &network.kernel_of_hosts,
        }
    }

    /// What an agent counted itself, where there are several.
    pub(crate) fn counts_of_agent(&self, position: usize) -> Option<&'a AgentCounts> {
        let agents = &self.record.agents;
        let agent = agents.get(position).filter(|_| agents.len() > 1)?;
        agent.counts.as_ref()
    }

    /// How late the queries of the worker at `position` left (p99): one of several agents may be
    /// late, and few of all queries with it.
    pub(crate) fn lateness_p99_ns_of(&self, position: usize) -> u64 {
        let own = (self.record.workers.get(position)).and_then(|it| it.send_lateness_p99_ns);
        match self.record.agents.len() > 1 {
            true => self.lateness_p99_ns.max(own.unwrap_or(0)),
            false => self.lateness_p99_ns,
        }
    }

    /// The lateness (p99) from which on queries were not on time.
    pub(crate) fn lateness_max_ns(&self) -> u64 {
        let all_were_answered = self.counts.responses == self.counts.sent;
        let response_ns = self.service_p50_ns.filter(|_| all_were_answered);
        LATENESS_MAX_NS.max(response_ns.unwrap_or(0) / RESPONSE_TIMES_LATENESS)
    }

    /// A counter of the host's, over both versions of IP.
    pub(crate) fn of_udp(&self, name: &str) -> u64 {
        let counter = |group| {
            let network = &self.record.network;
            network.kernel_counter(&format!("{group}.{name}"))
        };
        counter("Udp") + counter("Udp6")
    }

    /// Counters of a host count what others do there too. Each datagram of this run that is dropped
    /// is a query that is lost, or sent again.
    pub(crate) fn can_be_of_run(&self, drops: u64) -> bool {
        let warmup = &self.record.warmup.counts;
        let lost = self.counts.lost() + warmup.lost();
        let missing = lost + self.counts.stub.retransmitted + warmup.stub.retransmitted;
        drops <= missing + missing / 10
    }

    /// Times from the send to the response in the last third of the window.
    pub(crate) fn service_in_last_third(&self) -> Histogram {
        let intervals = self.record.intervals_in_window();
        let service: Vec<_> = intervals.map(|it| &it.distributions.service).collect();
        Histogram::merged(&service[2 * service.len() / 3..])
    }

    /// Latency (from the scheduled instant) in each interval of the window.
    pub(crate) fn latency_by_interval(&self) -> Vec<&'a Histogram> {
        let intervals = self.record.intervals_in_window();
        intervals.map(|it| &it.distributions.latency).collect()
    }
}

fn outages_of(record: &RunRecord) -> Outages {
    match record.asks_nothing() {
        true => Outages::default(),
        false => record.outages().unwrap_or_default(),
    }
}
