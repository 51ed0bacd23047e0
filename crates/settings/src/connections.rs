//! How long connections live, and how they are opened: what only transports with connections have.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::nanos;

/// The life of each client's connection. The default opens one before the run and keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionPolicy {
    /// A connection is closed after that many queries, with 0 as soon as it is usable, and nothing
    /// is asked; none for any number.
    #[serde(rename = "queries_per_connection")]
    pub queries_max: Option<u32>,
    /// A connection is closed that long after it became usable, once its responses are in; none if
    /// its age does not matter.
    #[serde(rename = "duration_ns", with = "nanos::option")]
    #[schemars(with = "Option<u64>")]
    pub duration: Option<Duration>,
    /// A connection is closed after that long without a query in flight (RFC 7766, section 6.2.3),
    /// and its client opens the next one when it has a query again; none if it is kept.
    #[serde(rename = "idle_timeout_ns", with = "nanos::option")]
    #[schemars(with = "Option<u64>")]
    pub idle_timeout: Option<Duration>,
    /// A client waits that long between the end of a connection and its next one.
    #[serde(rename = "reconnect_delay_ns", with = "nanos")]
    #[schemars(with = "u64")]
    pub reconnect_delay: Duration,
    /// Queries that one connection carries at once, its pipelining depth (RFC 7766, section
    /// 6.2.1.1); further ones wait. None for as many as the transport allows.
    pub in_flight_max: Option<u32>,
    /// The first bytes are sent with the SYN (RFC 7413), if the kernel and the target can.
    pub tcp_fast_open: bool,
    /// STOP_SENDING from a DoQ server is tolerated, which is fatal to a connection otherwise (RFC
    /// 9250, section 4.3.3).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stop_sending_allowed: bool,
    /// Connections opened a second over all workers, at most, evenly spaced; none for as fast as
    /// possible.
    pub rate_max: Option<f64>,
}

impl ConnectionPolicy {
    /// True if connections are opened and closed, and nothing is asked.
    pub fn asks_nothing(&self) -> bool {
        self.queries_max == Some(0)
    }

    /// The settings that are not as by default, by the names of their flags.
    pub fn given(&self) -> impl Iterator<Item = &'static str> {
        // Names every field, so that a new one cannot be forgotten here.
        let ConnectionPolicy {
            queries_max,
            duration,
            idle_timeout,
            reconnect_delay,
            in_flight_max,
            tcp_fast_open,
            stop_sending_allowed,
            rate_max,
        } = self;
        [
            ("queries-per-connection", queries_max.is_some()),
            ("connection-duration", duration.is_some()),
            ("connection-idle-timeout", idle_timeout.is_some()),
            ("reconnect-delay", !reconnect_delay.is_zero()),
            ("pipeline", in_flight_max.is_some()),
            ("tcp-fast-open", *tcp_fast_open),
            ("doq-allow-stop-sending", *stop_sending_allowed),
            ("connect-rate", rate_max.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_given)| is_given.then_some(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_nanoseconds_in_json_and_come_back() {
        let policy = ConnectionPolicy {
            duration: Some(Duration::from_millis(1_500)),
            reconnect_delay: Duration::from_micros(7),
            ..ConnectionPolicy::default()
        };
        let json = serde_json::to_value(policy).unwrap();
        assert_eq!(json["duration_ns"], 1_500_000_000_u64);
        assert_eq!(json["idle_timeout_ns"], serde_json::Value::Null);
        assert_eq!(json["reconnect_delay_ns"], 7_000);
        assert_eq!(json["queries_per_connection"], serde_json::Value::Null);
        let read: ConnectionPolicy = serde_json::from_value(json).unwrap();
        assert_eq!(read, policy);
        assert_eq!(
            policy.given().collect::<Vec<_>>(),
            ["connection-duration", "reconnect-delay"]
        );
    }
}
