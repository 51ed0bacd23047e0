//! Flags of `throng ceiling`.

use clap::Args;
use proto::Transport;

use super::values::{count_from, count_within};

/// The load of the project's benchmarks.
pub(crate) const CLIENTS: u32 = 200;
pub(crate) const OUTSTANDING: u32 = 1_000;

/// What is measured, and what comes of it.
#[derive(Debug, Args)]
pub(crate) struct CeilingArguments {
    /// Transports, one after the other
    #[arg(
        long,
        value_name = "NAME[,NAME...]",
        value_delimiter = ',',
        default_value = "udp,tcp,dot,doh2,doh3,doq"
    )]
    pub(crate) transport: Vec<Transport>,
    /// Simulated clients
    #[arg(long, value_name = "N", default_value_t = CLIENTS,
          value_parser = count_within::<u32>(1..=65_536))]
    pub(crate) clients: u32,
    /// Queries in flight
    #[arg(long, value_name = "N", default_value_t = OUTSTANDING,
          value_parser = count_within::<u32>(1..=65_536))]
    pub(crate) outstanding: u32,
    /// Measure this number of queries in virtual time, for programs that count instructions
    #[arg(long, value_name = "N", value_parser = count_from::<u64>(1))]
    pub(crate) queries: Option<u64>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
