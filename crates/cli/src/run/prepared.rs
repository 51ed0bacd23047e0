//! A run that is decided, with its target if that is built in.

use std::net::SocketAddr;

use lab::run::{RunRequest, Serving};
use proto::Transport;
use responder::certificate::Identity;

use super::group::{Group, share_rounds};
use super::request;
use super::self_test::{self, Responder};
use crate::failure::Failure;

/// A run that is decided, and the responder that is to be its target, if it is a self-test.
pub(super) struct Prepared {
    pub(super) requests: Vec<RunRequest>,
    pub(super) responder: Option<Responder>,
}

impl Prepared {
    /// Starts the responder in this process, if it is the target.
    pub(super) fn serve(&mut self) -> Result<Option<Serving>, Failure> {
        let Some(responder) = &self.responder else {
            return Ok(None);
        };
        let serving = responder.serve()?;
        self.point_at(serving.addresses());
        Ok(Some(serving))
    }

    /// The responder listens there.
    pub(super) fn point_at(&mut self, addresses: &[(Transport, SocketAddr)]) {
        for request in self.requests.iter_mut() {
            let own = addresses.iter();
            let own = own.filter(|(transport, _)| *transport == request.plan.transport);
            if let Some((_, address)) = own.copied().next() {
                request.set_target(address);
            }
        }
    }

    /// Looks whether there is somebody to ask, and where to ask from.
    pub(super) fn look_before(&self) -> Result<(), Failure> {
        lab::run::check_local_addresses(&self.requests)?;
        for request in self.requests.iter().filter(|request| request.preflight) {
            lab::run::check_target(request)?;
        }
        Ok(())
    }
}

/// The requests, and the built-in responder where it is the target; nothing is started.
/// `identity` is the responder's, if it has one already.
pub(super) fn prepare(groups: &[Group], identity: Option<Identity>) -> Result<Prepared, Failure> {
    let servers = groups.iter().filter(|group| !group.run.is_self_test());
    let mut prepared = match servers.count() {
        0 => self_test::prepare(groups, identity)?,
        all if all == groups.len() => {
            let mut requests = Vec::new();
            for group in groups {
                let request = request::against(group);
                requests.push(request.map_err(|failure| group.blame(failure))?);
            }
            Prepared {
                requests,
                responder: None,
            }
        }
        _ => {
            return Err(Failure::usage(
                "some groups of clients have a server and some have none",
                "give one to all of them, at the top of the scenario or with --server",
            ));
        }
    };
    for (request, group) in prepared.requests.iter_mut().zip(groups) {
        request.group.clone_from(&group.name);
    }
    share_rounds(groups, &mut prepared.requests)?;
    Ok(prepared)
}
