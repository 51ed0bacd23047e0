//! `--metrics`: what a command shows while it goes on, for Prometheus.

use std::net::SocketAddr;

use exporter::{About, Exporter, Limits};
use lab::live::{ListenError, Live};
use responder::Counters;

use crate::failure::Failure;

/// Serves what is published from now on until the command ends, and says where; nothing without
/// an address.
pub(super) fn serve(
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
    announce(Exporter::start(live, address, (about, Limits::default()))).map(Some)
}

/// Serves what a responder has counted until then; nothing without an address.
pub(crate) fn serve_responder(
    address: Option<SocketAddr>,
    counted: impl Fn() -> Counters + Send + Sync + 'static,
) -> Result<Option<Exporter>, Failure> {
    let Some(address) = address else {
        return Ok(None);
    };
    let named = move || counted().named();
    announce(Exporter::start_for_responder(
        address,
        Limits::default(),
        named,
    ))
    .map(Some)
}

fn announce(started: Result<Exporter, ListenError>) -> Result<Exporter, Failure> {
    let exporter =
        started.map_err(|error| Failure::usage(format!("--metrics: {error}"), error.cure()))?;
    // A port that the system chose is known nowhere else: it is shown with --quiet, too.
    tell!("metrics at http://{}/metrics", exporter.address());
    Ok(exporter)
}
