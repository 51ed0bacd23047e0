//! `--metrics`: what a command shows while it goes on, for Prometheus.

use std::net::SocketAddr;

use exporter::{About, Exporter, Limits};
use lab::live::Live;

use crate::failure::Failure;

/// Serves what is published from now on until the command ends, and says where; nothing without
/// an address.
pub(crate) fn serve(
    live: &Live,
    address: Option<SocketAddr>,
    command: &str,
) -> Result<Option<Exporter>, Failure> {
    let Some(address) = address else {
        return Ok(None);
    };
    let about = About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: command.to_owned(),
    };
    let exporter = Exporter::start(live, address, (about, Limits::default()))
        .map_err(|error| Failure::usage(format!("--metrics: {error}"), error.cure()))?;
    // A port that the system chose is known nowhere else: it is shown with --quiet, too.
    tell!("metrics at http://{}/metrics", exporter.address());
    Ok(Some(exporter))
}
