//! How long connections live, and how they are opened: the part of a plan that only transports with
//! connections have.

use std::time::Duration;

use proto::Transport;

use crate::arrival::{Arrival, check_rate};
use crate::plan::{OUTSTANDING_PER_CLIENT_MAX, Plan, PlanError};

/// The life of each client's connection. The default opens one before the run and keeps it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectionPolicy {
    /// Close a connection after that many queries and open a new one. 0 opens connections, closes
    /// them as soon as they are usable and asks nothing.
    pub queries_max: Option<u32>,
    /// Close a connection that long after it became usable, once its responses are in, and open a
    /// new one.
    pub duration: Option<Duration>,
    /// Close a connection that has had no query in flight for that long (RFC 7766, section 6.2.3).
    /// The client opens the next one when it has a query again.
    pub idle_timeout: Option<Duration>,
    /// Wait that long after a connection has ended before opening the next one.
    pub reconnect_delay: Duration,
    /// Most queries in flight on one connection, its pipelining depth (RFC 7766, section 6.2.1.1);
    /// further ones wait. `None` leaves it to the protocol.
    pub in_flight_max: Option<u32>,
    /// Send the first octets with the SYN (RFC 7413), if the kernel and the target can.
    pub tcp_fast_open: bool,
    /// Pass over STOP_SENDING from a DoQ server, which is fatal to a connection otherwise (RFC
    /// 9250, section 4.3.3).
    pub stop_sending_allowed: bool,
    /// Never open more than that many connections a second, over all workers, evenly spaced.
    pub rate_max: Option<f64>,
}

impl ConnectionPolicy {
    /// True if connections are opened and closed, and nothing is asked.
    pub fn asks_nothing(&self) -> bool {
        self.queries_max == Some(0)
    }

    /// The settings that were given, by the names of their options.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            ("queries-per-connection", self.queries_max.is_some()),
            ("connection-duration", self.duration.is_some()),
            ("connection-idle-timeout", self.idle_timeout.is_some()),
            ("reconnect-delay", !self.reconnect_delay.is_zero()),
            ("pipeline", self.in_flight_max.is_some()),
            ("tcp-fast-open", self.tcp_fast_open),
            ("doq-allow-stop-sending", self.stop_sending_allowed),
            ("connect-rate", self.rate_max.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_given)| is_given.then_some(name))
    }

    /// Looks for settings that cannot be used in this plan.
    pub(crate) fn validate(&self, plan: &Plan) -> Result<(), PlanError> {
        if let (Some(setting), false) = (self.given().next(), plan.transport.has_connections()) {
            let what = "udp has no connections";
            let hint = "use another transport, or leave it out";
            return Err(PlanError::new(setting, what, hint));
        }
        self.validate_values()?;
        if self.tcp_fast_open && !plan.transport.is_stream() {
            let what = format!("{} has no TCP connections", plan.transport);
            let hint = "use tcp, dot or doh2; over QUIC, --tls-early-data does what it does";
            return Err(PlanError::new("tcp-fast-open", what, hint));
        }
        if self.stop_sending_allowed && plan.transport != Transport::Doq {
            let what = format!("{} has no such rule", plan.transport);
            let hint = "use doq, or leave it out";
            return Err(PlanError::new("doq-allow-stop-sending", what, hint));
        }
        match self.asks_nothing() {
            true => self.validate_without_queries(plan),
            false => self.validate_depth(plan),
        }
    }

    /// A depth that no connection can reach would change nothing.
    fn validate_depth(&self, plan: &Plan) -> Result<(), PlanError> {
        let Some(depth) = self.in_flight_max else {
            return Ok(());
        };
        if let Some(queries) = self.queries_max.filter(|queries| *queries < depth) {
            let what =
                format!("a connection that carries {queries} in all never has {depth} in flight");
            let hint = "lower it, or raise --queries-per-connection";
            return Err(PlanError::new("pipeline", what, hint));
        }
        match plan.client_outstanding_max() {
            Some(most) if u64::from(depth) > most => {
                let what = format!(
                    "no client has more than {most} in flight, so that {depth} are never reached"
                );
                let hint = "lower it, raise --outstanding, or use fewer --clients";
                Err(PlanError::new("pipeline", what, hint))
            }
            _ => Ok(()),
        }
    }

    /// A run that opens connections and asks nothing can be ended by time alone, and nothing can be
    /// asked of its connections.
    fn validate_without_queries(&self, plan: &Plan) -> Result<(), PlanError> {
        let refuse = |setting, what: &str, hint: &str| Err(PlanError::new(setting, what, hint));
        if plan.queries_max.is_some() || plan.duration.is_none() {
            let what =
                "connections without queries are opened and closed until the duration is over";
            return refuse("queries", what, "give --duration and no number of queries");
        }
        if matches!(plan.arrival, Arrival::Open { .. }) {
            let what = "connections that carry no queries have no rate of queries";
            return refuse("rate", what, "use --connect-rate for a rate of connections");
        }
        let moot = [
            ("connection-duration", self.duration.is_some()),
            ("connection-idle-timeout", self.idle_timeout.is_some()),
            ("pipeline", self.in_flight_max.is_some()),
        ];
        if let Some((setting, _)) = moot.into_iter().find(|(_, is_given)| *is_given) {
            let what = "connections without queries are closed as soon as they are usable";
            return refuse(setting, what, "leave it out");
        }
        if self.tcp_fast_open && plan.transport == Transport::Tcp {
            let what = "a SYN that waits for the first octets is never sent without a query";
            return refuse("tcp-fast-open", what, "leave it out, or use dot or doh2");
        }
        Ok(())
    }

    fn validate_values(&self) -> Result<(), PlanError> {
        let times = [
            ("connection-duration", self.duration),
            ("connection-idle-timeout", self.idle_timeout),
        ];
        for (setting, time) in times {
            if time.is_some_and(|time| time.is_zero()) {
                let hint = "give a time above zero, such as 10s, or leave it out";
                return Err(PlanError::new(setting, "it is zero", hint));
            }
        }
        let in_flight_max = u64::from(self.in_flight_max.unwrap_or(1));
        if !(1..=OUTSTANDING_PER_CLIENT_MAX).contains(&in_flight_max) {
            let what = format!("a connection can have 1 to {OUTSTANDING_PER_CLIENT_MAX} in flight");
            return Err(PlanError::new("pipeline", what, "give a number of these"));
        }
        self.rate_max
            .map_or(Ok(()), |rate| check_rate("connect-rate", rate).map(drop))
    }
}
