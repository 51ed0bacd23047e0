//! Flags of `throng init`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Flags of `throng init`.
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// The question to answer; without it, lists all
    #[arg(value_name = "MOTIVE", value_enum)]
    pub(crate) motive: Option<Motive>,
    /// File to write, which must not exist; `-` is standard output [default: MOTIVE.toml]
    #[arg(long, short, value_name = "FILE", requires = "motive")]
    pub(crate) output: Option<PathBuf>,
}

/// Why people measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Motive {
    /// How does latency grow with the rate, and which rate is too much?
    Capacity,
    /// Does the server keep its service level at the agreed rate?
    Sla,
    /// Is the new version slower, or is it noise?
    Regression,
    /// What does each plugin of CoreDNS cost?
    Plugins,
    /// What do clients see in a spike, or when connections are lost?
    Resilience,
    /// What do TCP, TLS and HTTPS cost?
    Encryption,
    /// Which setting helps until the server's CPU is the limit?
    Tuning,
    /// Is one generator the limit, or the server?
    Agents,
    /// How does a server fare with many clients that keep connections?
    Clients,
    /// How many queries must a connection carry to pay for its set-up?
    Connections,
    /// What does a TLS proxy cost, compared with TLS in the server?
    Proxy,
}
