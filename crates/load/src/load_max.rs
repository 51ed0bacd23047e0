//! The most that a plan can send, where it says so before anything is sent.

use settings::ServerOrder;

use crate::arrival::Arrival;
use crate::client_arrival::ClientArrival;
use crate::plan::Plan;

/// An upper bound of what a run sends, or several runs at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadMax {
    /// Queries a second; those sent at the same instant, and connections opened at the start,
    /// count as if they were spread over a second.
    pub rate_qps: f64,
    /// Queries in all, the warm-up's and further attempts included.
    pub queries: f64,
}

impl LoadMax {
    /// Both at once.
    #[must_use]
    pub fn plus(self, other: LoadMax) -> LoadMax {
        LoadMax {
            rate_qps: self.rate_qps + other.rate_qps,
            queries: self.queries + other.queries,
        }
    }
}

impl Plan {
    /// The most that it sends; none where responses, a script, a capture, a profile or a shape
    /// decide on that.
    pub fn load_max(&self) -> Option<LoadMax> {
        if self.shape.is_some() || self.connections.asks_nothing() {
            return None;
        }
        let (rate_qps, at_once) = match &self.arrival {
            Arrival::Closed {
                rate_qps_max: Some(rate_qps),
                ..
            } => (*rate_qps, 1),
            Arrival::Open {
                rate_qps, burst, ..
            } => (*rate_qps, *burst),
            Arrival::Clients(
                ClientArrival::Constant { rate_qps }
                | ClientArrival::Turns { rate_qps, .. }
                | ClientArrival::Poisson { rate_qps },
            ) => (rate_qps * f64::from(self.clients), 1),
            _ => return None,
        };
        let seconds = self.duration.map_or(f64::INFINITY, |it| it.as_secs_f64());
        let queries = self.queries_max.map_or(f64::INFINITY, |most| most as f64);
        let measured = queries.min(rate_qps * seconds);
        let all = measured + rate_qps * self.warmup.as_secs_f64();
        let connections = match self.transport.has_connections() {
            true => self.clients,
            false => 0,
        };
        let attempts = f64::from(self.attempts_max());
        Some(LoadMax {
            rate_qps: attempts * rate_qps.max(at_once.max(connections).into()),
            queries: attempts * all,
        })
    }

    /// The most messages that are sent for one query.
    fn attempts_max(&self) -> u32 {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let of_stub = self.stub.as_ref().map_or(1, |stub| {
            let servers = match stub.order {
                ServerOrder::All => count(stub.servers.len()),
                _ => 1,
            };
            count(stub.waits.len()).saturating_mul(servers)
        });
        of_stub.saturating_mul(1 + u32::from(self.tcp_fallback))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use proto::Transport;
    use settings::{Process, StubPolicy};

    use super::*;
    use crate::client_arrival::Think;
    use crate::questions::QuestionSet;
    use crate::shape::Shape;

    fn open(rate_qps: f64, burst: u32) -> Arrival {
        Arrival::Open {
            rate_qps,
            process: Process::Constant,
            burst,
        }
    }

    /// A plan of ten seconds.
    fn plan(arrival: Arrival) -> Plan {
        let target = "127.0.0.1:53".parse().unwrap();
        Plan {
            arrival,
            duration: Some(Duration::from_secs(10)),
            ..Plan::new(target, Transport::Udp, Arc::new(QuestionSet::new()))
        }
    }

    fn bound(plan: &Plan) -> Option<(f64, f64)> {
        plan.load_max().map(|it| (it.rate_qps, it.queries))
    }

    #[test]
    fn a_rate_and_a_time_bound_a_run() {
        let mut plan = plan(open(50.0, 1));
        assert_eq!(bound(&plan), Some((50.0, 500.0)));
        plan.warmup = Duration::from_secs(4);
        assert_eq!(bound(&plan), Some((50.0, 700.0)));
        plan.queries_max = Some(100);
        assert_eq!(bound(&plan), Some((50.0, 300.0)));
        plan.arrival = Arrival::Closed {
            outstanding: 100,
            rate_qps_max: Some(20.0),
        };
        assert_eq!(bound(&plan), Some((20.0, 180.0)));
        plan.duration = None;
        assert_eq!(bound(&plan), Some((20.0, 180.0)));
        plan.queries_max = None;
        assert_eq!(bound(&plan), Some((20.0, f64::INFINITY)));
    }

    #[test]
    fn bursts_clients_and_attempts_count() {
        assert_eq!(bound(&plan(open(50.0, 200))), Some((200.0, 500.0)));
        let each = ClientArrival::Poisson { rate_qps: 0.5 };
        let mut plan = plan(Arrival::Clients(each));
        plan.clients = 80;
        assert_eq!(bound(&plan), Some((40.0, 400.0)));
        plan.transport = Transport::Tcp;
        assert_eq!(bound(&plan), Some((80.0, 400.0)));
        plan.transport = Transport::Udp;
        plan.tcp_fallback = true;
        let mut stub = StubPolicy {
            servers: vec![plan.target; 3],
            order: ServerOrder::First,
            waits: vec![plan.timeout; 2],
            failover_rcodes: Vec::new(),
            dead_for: Duration::ZERO,
            race_delay: None,
        };
        plan.stub = Some(Arc::new(stub.clone()));
        assert_eq!(bound(&plan), Some((160.0, 1_600.0)));
        stub.order = ServerOrder::All;
        plan.stub = Some(Arc::new(stub));
        assert_eq!(bound(&plan), Some((480.0, 4_800.0)));
    }

    #[test]
    fn what_responses_and_others_decide_has_no_bound() {
        let closed = Arrival::Closed {
            outstanding: 1,
            rate_qps_max: None,
        };
        assert_eq!(bound(&plan(closed)), None);
        let thinking = ClientArrival::Closed {
            outstanding: 1,
            think: Think::Constant(Duration::from_secs(1)),
        };
        assert_eq!(bound(&plan(Arrival::Clients(thinking))), None);
        let mut shaped = plan(open(5.0, 1));
        shaped.shape = Some(Arc::new(Shape::parse("linear:0s=0,60s=1").unwrap()));
        assert_eq!(bound(&shaped), None);
        let mut connecting = plan(open(5.0, 1));
        connecting.connections.queries_max = Some(0);
        assert_eq!(bound(&connecting), None);
    }
}
