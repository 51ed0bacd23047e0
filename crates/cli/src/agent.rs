//! `throng agent I/N`: one process of a command that needs several. Only its lead starts it.
//!
//! Its lead says through standard input (`lab::agents`) what it is to do, as types and not as a
//! command line, with what only one process can read or make: standard input, the responder's ports
//! and certificate. Everybody on the host may read the command line of a process, and settings may
//! have keys: so they are not on it. On this host it reads files by itself.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use lab::agents::{AgentCommand, Inputs, Place, Task};
use lab::run::RunRequest;
use proto::Transport;
use responder::certificate::Identity;
use serde::{Deserialize, Serialize};

use crate::args::ResponderArguments;
use crate::failure::Failure;
use crate::inputs;
use crate::run::group::Group;

/// The subcommand, which has no help of its own.
pub(crate) const NAME: &str = "agent";
/// Behind its number: it says first who it is, because its lead is on another host.
pub(crate) const HELLO: &str = "hello";

/// What an agent is to do.
#[derive(Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) work: Work,
    /// Where the responder listens; none for its first process, which opens the ports.
    pub(crate) addresses: Option<Vec<(Transport, SocketAddr)>>,
    pub(crate) certificate: Option<Certificate>,
    /// What the lead has decided, which an agent decides alike; none for a responder.
    pub(crate) decided: Option<String>,
    /// The hash of each file that its lead has read, by its path.
    pub(crate) inputs: BTreeMap<String, String>,
    /// Their contents, which travel beside this.
    #[serde(skip)]
    contents: Inputs,
}

/// What an agent has a share in.
#[derive(Serialize, Deserialize)]
pub(crate) enum Work {
    /// A run.
    Run { groups: Vec<Group>, role: Role },
    /// A responder of its own.
    Responder(Box<ResponderArguments>),
}

/// On which side of a run an agent is.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Role {
    /// It simulates clients on the host of its lead, whose clock it shares.
    Generator,
    /// The same on another host, by a clock of its own.
    Elsewhere,
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
    /// What the first agent of a command is to do.
    pub(crate) fn new(work: Work, identity: Option<&Identity>) -> Self {
        let certificate = identity.map(|identity| Certificate {
            chain: identity.certificate_pem.clone(),
            key: identity.key_pem.clone(),
        });
        let (inputs, contents) = inputs::for_agents();
        Setup {
            work,
            addresses: None,
            certificate,
            decided: None,
            inputs,
            contents,
        }
    }

    /// The same where the responder listens at these addresses.
    pub(crate) fn at(self, addresses: Option<&[(Transport, SocketAddr)]>) -> Self {
        Setup {
            addresses: addresses.map(<[_]>::to_vec),
            ..self
        }
    }

    /// The same where the lead has decided this.
    pub(crate) fn decided(self, requests: &[RunRequest]) -> Self {
        Setup {
            decided: Some(lab::run::decided(requests)),
            ..self
        }
    }

    /// As the lead sends it.
    pub(crate) fn task(self) -> Task {
        let setup = serde_json::to_value(&self);
        Task {
            setup: setup.expect("settings are data, and their maps have names for keys"),
            inputs: self.contents,
            is_last: false,
        }
    }
}

/// A person has started what only `throng` starts.
pub(crate) fn by_hand(reason: &str) -> Failure {
    Failure::usage(
        format!("this command is for `throng` itself: {reason}"),
        "use `throng run`; --agents N divides a run",
    )
}

/// An agent's place among those of its lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AgentIndex {
    /// From 0.
    pub(crate) index: u32,
    /// How many there are.
    pub(crate) count: u32,
}

/// How this command starts agents on this host.
pub(crate) fn command() -> Result<AgentCommand, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::in_operation(format!("cannot start further processes: {error}"))
    })?;
    Ok(AgentCommand {
        program: program.into(),
        before: vec![NAME.into()],
        after: Vec::new(),
        place: Place::Here,
    })
}

/// What the agents of a command share.
pub(crate) struct Shared {
    /// The certificate that their lead has made.
    pub(crate) identity: Option<Identity>,
    /// Where the responder listens; none for its first process.
    pub(crate) addresses: Option<Vec<(Transport, SocketAddr)>>,
    /// What the lead has decided; none for a responder.
    pub(crate) decided: Option<String>,
}
