//! Flags of `throng fit`.

use std::path::PathBuf;

use capture::Format;
use capture::fit::ClientIdentity;
use clap::{Args, ValueEnum};

/// Flags of `throng fit`.
#[derive(Clone, Debug, Args)]
pub(crate) struct FitArguments {
    /// Captures (pcap, pcapng, dnstap) or query logs (BIND, Unbound, CoreDNS), oldest first; `-` is
    /// standard input
    #[arg(value_name = "CAPTURE", required = true)]
    pub(crate) captures: Vec<PathBuf>,
    /// Write the profile (TOML) to this file; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Keep the queried names in the profile; without it, only the popularity of each rank
    #[arg(long)]
    pub(crate) keep_names: bool,
    #[command(flatten)]
    pub(crate) reading: ReadingArguments,
}

/// How captures are read.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Reading captures")]
pub(crate) struct ReadingArguments {
    /// Format of the captures [default: detected from their content]
    #[arg(
        long = "capture-format",
        alias = "format",
        value_name = "pcap|pcapng|dnstap|bind|unbound|coredns"
    )]
    pub(crate) format: Option<Format>,
    /// Ports that the servers listen on, in packet captures
    #[arg(
        long,
        default_value = "53",
        value_name = "PORT[,PORT...]",
        value_delimiter = ','
    )]
    pub(crate) port: Vec<u16>,
    /// What counts as a client
    #[arg(long, default_value = "address", value_enum)]
    pub(crate) client: ClientChoice,
}

/// What counts as a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientChoice {
    /// An address
    Address,
    /// An address and port, for clients that share an address
    Port,
}

impl From<ClientChoice> for ClientIdentity {
    fn from(choice: ClientChoice) -> Self {
        match choice {
            ClientChoice::Address => ClientIdentity::Address,
            ClientChoice::Port => ClientIdentity::AddressAndPort,
        }
    }
}
