//! `throng fleet relay`: what comes in here goes to the lead on this host, and what it says comes
//! out here. A command on another host has it started by ssh or by `kubectl exec`, with the rights
//! that its user has there.

use std::io::{Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::ExitCode;
use std::thread;

use crate::failure::Failure;

/// Exit code if there is no lead of that name: that of wrong usage.
pub(super) const NO_LEAD: i32 = 2;
/// Octets that are passed on at once.
const OCTETS: usize = 64 << 10;

/// Where a lead of this name listens: an abstract name, which ends with its process.
pub(super) fn address(name: &str) -> std::io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("throng-lead-{name}"))
}

/// Passes on until one side ends.
pub(crate) fn execute(name: &str) -> Result<ExitCode, Failure> {
    let lead = address(name).and_then(|address| UnixStream::connect_addr(&address));
    let lead = lead.map_err(|error| {
        Failure::usage(
            format!("no lead of the name `{name}` runs here: {error}"),
            "`throng fleet lead --name NAME` starts one",
        )
    })?;
    let mut to = lead.try_clone().map_err(Failure::in_operation)?;
    thread::spawn(move || {
        pass(&mut std::io::stdin(), &mut to);
        // Who asked has gone: so has the lead's client.
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
    pass(&mut &lead, &mut std::io::stdout());
    Ok(ExitCode::SUCCESS)
}

/// Passes on octets as they come, until there are no more or nobody takes them.
fn pass(from: &mut impl Read, to: &mut impl Write) {
    let mut octets = vec![0; OCTETS];
    while let Ok(read) = from.read(&mut octets)
        && read > 0
    {
        let passed = to.write_all(&octets[..read]).and_then(|()| to.flush());
        if passed.is_err() {
            return;
        }
    }
}
