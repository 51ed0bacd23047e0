//! Flags about the life of connections.

use std::time::Duration;

use clap::Args;
use load::ConnectionPolicy;

use super::values::{count, duration};

/// How long connections live, and how they are opened.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connections")]
pub(crate) struct ConnectionArguments {
    /// Close a connection after this many queries and open a new one; 0 opens and closes
    /// connections without sending queries [default: no limit]
    #[arg(long, value_name = "N", value_parser = count::<u32>)]
    queries_per_connection: Option<u32>,
    /// Close a connection this long after it became usable, once its responses are in, and open a
    /// new one [default: never]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    connection_duration: Option<Duration>,
    /// Close a connection that has had no query in flight for this long; its client opens the next
    /// one when it has a query [default: never]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    connection_idle_timeout: Option<Duration>,
    /// Wait this long after a connection has ended before opening the next one; after failures the
    /// wait grows to up to 1s [default: 0s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    reconnect_delay: Option<Duration>,
    /// Maximum queries in flight on one connection; further ones wait [default: only the protocol's
    /// limit]
    #[arg(long, value_name = "N", value_parser = count::<u32>)]
    pipeline: Option<u32>,
    /// Open at most this many connections a second (100, 2k), evenly spaced, over all clients: at
    /// the start and later [default: as fast as possible]
    #[arg(long, value_name = "RATE")]
    connect_rate: Option<String>,
    /// Send the first bytes with the SYN (RFC 7413), if kernel and server support it; over plain
    /// TCP a connection is then opened by its first query
    #[arg(long)]
    tcp_fast_open: bool,
    /// Keep a DoQ connection whose server sends STOP_SENDING, as hickory 0.26 does with each
    /// response, instead of closing it (RFC 9250, section 4.3.3)
    #[arg(long)]
    doq_allow_stop_sending: bool,
}

impl ConnectionArguments {
    /// True if connections are opened and closed, and nothing is asked.
    pub(crate) fn asks_nothing(&self) -> bool {
        self.queries_per_connection == Some(0)
    }

    /// As the plan wants them.
    ///
    /// # Errors
    /// The connect rate is not a rate.
    pub(crate) fn policy(&self) -> Result<ConnectionPolicy, load::PlanError> {
        let rate = self.connect_rate.as_deref();
        Ok(ConnectionPolicy {
            queries_max: self.queries_per_connection,
            duration: self.connection_duration,
            idle_timeout: self.connection_idle_timeout,
            reconnect_delay: self.reconnect_delay.unwrap_or_default(),
            in_flight_max: self.pipeline,
            tcp_fast_open: self.tcp_fast_open,
            stop_sending_allowed: self.doq_allow_stop_sending,
            rate_max: rate.map(load::arrival::parse_rate).transpose()?,
        })
    }
}
