//! The server that `--driver sim` models: what it needs for what, and what it has.

use std::time::Duration;

use clap::Args;
use settings::{CacheModel, Delay, ServiceModel};

use super::values::{count, count_within, delay, duration};

/// The modelled server; without any of these it needs no time.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Simulation (--driver sim)")]
pub(crate) struct ServerModelArguments {
    /// Worker time per query: 50us, uniform:20us..80us, exponential:50us
    #[arg(long, value_name = "DELAY", value_parser = delay)]
    pub(crate) sim_service_time: Option<Delay>,
    /// Workers of the modelled server, which share one queue [default: 1]
    #[arg(long, value_name = "N", value_parser = count_within::<u32>(1..=1_000_000))]
    pub(crate) sim_workers: Option<u32>,
    /// Datagrams that may wait for a worker; further ones are dropped, while streams wait [default:
    /// no limit]
    #[arg(long, value_name = "N", value_parser = count::<u32>)]
    pub(crate) sim_queue: Option<u32>,
    /// Worker time to accept a TCP connection
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) sim_accept_time: Option<Duration>,
    /// Connections that may wait to be accepted; the SYNs of further ones are lost [default: no
    /// limit]
    #[arg(long, value_name = "N", value_parser = count::<u32>)]
    pub(crate) sim_backlog: Option<u32>,
    /// Worker time for a full TLS or QUIC handshake
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) sim_handshake_time: Option<Duration>,
    /// Worker time for a handshake that resumes a session [default: as for a full one]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) sim_resumption_time: Option<Duration>,
    /// Make the modelled server a cache that keeps answers for this long and starts empty
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) sim_cache_ttl: Option<Duration>,
    /// Maximum answers in the cache; the least recently used is evicted [default: no limit]
    #[arg(long, value_name = "N",
          value_parser = count_within::<u32>(1..=1_000_000_000))]
    pub(crate) sim_cache_size: Option<u32>,
    /// Time for an upstream query, which occupies no worker: 30ms, exponential:30ms
    #[arg(long, value_name = "DELAY", value_parser = delay)]
    pub(crate) sim_miss_time: Option<Delay>,
    /// Worker time that an upstream query adds
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) sim_miss_service_time: Option<Duration>,
}

impl ServerModelArguments {
    /// The flags that were given, by name.
    fn given(&self) -> [(&'static str, bool); 11] {
        [
            ("--sim-service-time", self.sim_service_time.is_some()),
            ("--sim-workers", self.sim_workers.is_some()),
            ("--sim-queue", self.sim_queue.is_some()),
            ("--sim-accept-time", self.sim_accept_time.is_some()),
            ("--sim-backlog", self.sim_backlog.is_some()),
            ("--sim-handshake-time", self.sim_handshake_time.is_some()),
            ("--sim-resumption-time", self.sim_resumption_time.is_some()),
            ("--sim-cache-ttl", self.sim_cache_ttl.is_some()),
            ("--sim-cache-size", self.sim_cache_size.is_some()),
            ("--sim-miss-time", self.sim_miss_time.is_some()),
            (
                "--sim-miss-service-time",
                self.sim_miss_service_time.is_some(),
            ),
        ]
    }

    /// The model, if any flag asks for one.
    pub(crate) fn model(&self) -> Option<ServiceModel> {
        if !self.given().iter().any(|(_, is_given)| *is_given) {
            return None;
        }
        let handshake = self.sim_handshake_time.unwrap_or(Duration::ZERO);
        let cache = self.sim_cache_ttl.map(|ttl| CacheModel {
            ttl,
            entries_max: self.sim_cache_size,
            miss: self.sim_miss_time.unwrap_or_default(),
            miss_service: self.sim_miss_service_time.unwrap_or_default(),
        });
        Some(ServiceModel {
            workers: self.sim_workers.unwrap_or(1),
            query: self.sim_service_time.unwrap_or_default(),
            accept: self.sim_accept_time.unwrap_or_default(),
            handshake_full: handshake,
            handshake_resumed: self.sim_resumption_time.unwrap_or(handshake),
            datagrams_max: self.sim_queue,
            backlog_max: self.sim_backlog,
            cache,
        })
    }
}
