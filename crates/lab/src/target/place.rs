//! The requirements of a server program, and the locations of one start.

use std::net::Ipv4Addr;

use super::folder::TempFolder;
use super::process::Program;
use super::{Endpoints, Service};

/// Properties of a server program, the same for all its targets.
#[derive(Debug)]
pub(super) struct Server {
    /// The program.
    pub(super) program: Program,
    /// What it can offer beside UDP and TCP.
    pub(super) services: &'static [Service],
    /// Must be in its log before the first query is sent.
    pub(super) ready_line: Option<&'static str>,
    /// A line of its log that contains one of these, in lower case, means failure.
    pub(super) fatal_lines: &'static [&'static str],
}

/// Where one attempt puts everything.
///
/// The folder holds the zone in `zone.db`; if a service needs a certificate, that is in
/// `server.pem`, its key in `server.key`, and both one after the other in `server.both.pem`.
pub(super) struct Place<'a> {
    pub(super) folder: &'a TempFolder,
    pub(super) endpoints: &'a Endpoints,
    pub(super) extra_ports: &'a [u16],
    /// Their address: on this host only, or in a pod.
    pub(super) other_address: Ipv4Addr,
}
