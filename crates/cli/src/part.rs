//! `throng part I/N`: one process of a command that needs several. Nobody but its parent starts it.
//!
//! Its parent tells it through standard input (`lab::parts`) what the command was told, as types
//! and not as a command line, with what only one process can read or make: standard input, the
//! responder's ports and certificate. Everybody on the host may read the command line of a process,
//! and settings may have keys: so they are not on it. Files it reads by itself.

use std::net::SocketAddr;

use lab::parts::{PartCommand, child};
use proto::Transport;
use responder::certificate::Identity;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::ResponderArguments;
use crate::failure::Failure;
use crate::inputs;
use crate::run::group::Group;

/// The subcommand, which has no help of its own.
pub(crate) const NAME: &str = "part";
/// Behind its place: it says first who it is, because its parent is on another host.
pub(crate) const HELLO: &str = "hello";

/// What a part is told at its start.
#[derive(Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) work: Work,
    /// Where the responder listens; none for its first part, which opens the ports.
    pub(crate) addresses: Option<Vec<(Transport, SocketAddr)>>,
    pub(crate) certificate: Option<Certificate>,
    pub(crate) inputs: Value,
}

/// What a part has a share in.
#[derive(Serialize, Deserialize)]
pub(crate) enum Work {
    /// A run.
    Run { groups: Vec<Group>, role: Role },
    /// A responder of its own.
    Responder(Box<ResponderArguments>),
}

/// On which side of a run a part is.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Role {
    /// It simulates clients; times are since this instant of the shared clock.
    Generator { epoch_ns: u64 },
    /// The same on another host, by a clock of its own.
    Agent,
    /// It is the target.
    Target,
}

/// A certificate with its key, as PEM.
#[derive(Serialize, Deserialize)]
pub(crate) struct Certificate {
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl Setup {
    /// What the first part of a command is told.
    pub(crate) fn new(work: Work, identity: Option<&Identity>) -> Self {
        let certificate = identity.map(|identity| Certificate {
            chain: identity.certificate_pem.clone(),
            key: identity.key_pem.clone(),
        });
        Setup {
            work,
            addresses: None,
            certificate,
            inputs: inputs::to_json(),
        }
    }

    /// The same where the responder listens at these addresses.
    pub(crate) fn at(self, addresses: Option<&[(Transport, SocketAddr)]>) -> Self {
        Setup {
            addresses: addresses.map(<[_]>::to_vec),
            ..self
        }
    }

    /// As the parent sends it.
    pub(crate) fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("settings are data, and their maps have names for keys")
    }
}

/// What this process is told at its start.
///
/// # Errors
/// Nothing: nobody but `throng` starts it.
pub(crate) fn told<T: DeserializeOwned>() -> Result<T, Failure> {
    let setup = child::receive_setup().map_err(by_hand)?;
    serde_json::from_value(setup).map_err(|error| by_hand(error.to_string()))
}

/// A person has started what only `throng` starts.
pub(crate) fn by_hand(reason: String) -> Failure {
    Failure::usage(
        format!("this command is for `throng` itself: {reason}"),
        "use `throng run`; --processes N divides a run",
    )
}

/// A part's place among those of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartIndex {
    /// From 0.
    pub(crate) index: u32,
    /// How many there are.
    pub(crate) count: u32,
}

/// How this command starts its parts.
pub(crate) fn command() -> Result<PartCommand, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::in_operation(format!("cannot start further processes: {error}"))
    })?;
    Ok(PartCommand {
        program: program.into(),
        before: vec![NAME.into()],
        after: Vec::new(),
        host: None,
    })
}

/// What the parts of a command share: the certificate that their parent has made, and where the
/// responder listens, none for its first part.
pub(crate) type Shared = (Option<Identity>, Option<Vec<(Transport, SocketAddr)>>);
