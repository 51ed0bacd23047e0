//! Flags of `throng doctor`.

use std::path::PathBuf;

use clap::Args;

use super::values::{DocumentFormat, count_from};

/// Flags of `throng doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArguments {
    /// Run records, or folders of them, to diagnose instead of this host
    #[arg(value_name = "RECORD|FOLDER")]
    pub(crate) records: Vec<PathBuf>,
    /// Judge limits for this many clients
    #[arg(
        long,
        short,
        value_name = "N",
        value_parser = count_from::<u64>(1),
        conflicts_with = "records",
        help_heading = "This host"
    )]
    pub(crate) clients: Option<u64>,
    /// Judge the host as the server of those clients, instead of as their generator
    #[arg(long, conflicts_with = "records", help_heading = "This host")]
    pub(crate) server: bool,
    /// Network interface to check [default: those of the default routes]
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "records",
        help_heading = "This host"
    )]
    pub(crate) interface: Option<String>,
    /// Read proc, sys and etc in this folder, copied from another host
    #[arg(
        long,
        value_name = "FOLDER",
        conflicts_with = "records",
        help_heading = "This host"
    )]
    pub(crate) root: Option<PathBuf>,
    /// Measure the generator alone instead, without network and kernel: the cost of a query over
    /// each transport, and how many queries one core could send; takes 7 seconds
    #[arg(
        long,
        conflicts_with_all = ["records", "clients", "server", "interface", "root"],
        help_heading = "This host"
    )]
    pub(crate) ceiling: bool,
    /// Format of the findings on standard output
    #[arg(long, default_value = "text", value_enum)]
    pub(crate) format: DocumentFormat,
}
