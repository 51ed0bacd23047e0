//! `--web`: what a command shows while it goes on, as a page for browsers.

use std::net::SocketAddr;

use ::web::Server;
use lab::live::Live;

use crate::failure::Failure;

/// Serves what is published from now on until the command ends, and prints where; nothing without
/// an address.
pub(super) fn begin(
    live: &Live,
    address: Option<SocketAddr>,
    command: &str,
) -> Result<Option<Server>, Failure> {
    let Some(address) = address else {
        return Ok(None);
    };
    let server = Server::start(live, address, command)
        .map_err(|error| Failure::usage(format!("--web: {error}"), error.cure()))?;
    // A port that the system chose, and a token, are known nowhere else: with --quiet, too.
    tell!("live page at {}", server.url());
    Ok(Some(server))
}
