//! A run that has been decided, and why it could not be started.

use std::fmt;
use std::sync::Arc;

use driver::kernel::DriverChoice;
use engine::{Observer, TlsSettings};
use load::{Plan, TlsAsked};
use measure::scenario::{ProfileRecord, ReplayRecord};

use crate::key_log::KeyLogFile;
use crate::observing::Sources;

/// A run that has been decided but not started.
#[derive(Clone)]
pub struct RunRequest {
    /// The name of its group of clients; of several groups each has another one.
    pub group: String,
    /// The plan, already validated.
    pub plan: Plan,
    /// How sessions are made; none on transports without TLS.
    pub tls: Option<TlsRequest>,
    /// CPU of each worker, as far as given.
    pub cpus: Vec<usize>,
    /// What is to move the octets.
    pub driver: DriverChoice,
    /// What was asked for, without secrets, for the record.
    pub asked: Arc<settings::Run>,
    /// What the record says beside that and the plan.
    pub description: Description,
    /// Try to reach the target before anything else, and end the run where its first queries have
    /// all failed.
    pub preflight: bool,
    /// Told of every query and connection.
    pub observer: Option<Observer>,
    /// What servers and hosts are asked meanwhile; that of the first group counts.
    pub observe: Sources,
}

impl RunRequest {
    /// Sets the target's address, which is known late if it is the built-in responder's.
    pub fn set_target(&mut self, address: std::net::SocketAddr) {
        self.plan.target = address;
        if let Some(stub) = &mut self.plan.stub {
            std::sync::Arc::make_mut(stub).servers[0] = address;
        }
    }
}

/// How DoT is to be spoken.
#[derive(Clone)]
pub struct TlsRequest {
    /// Configuration and name for the engine.
    pub settings: TlsSettings,
    /// The certificate is verified.
    pub verified: bool,
    /// The name as given.
    pub name: String,
    /// Everything that was asked for, for the record; the engine takes `resume_share` from it.
    pub asked: TlsAsked,
    /// The key log, to be asked for losses after the run.
    pub key_log: Option<Arc<KeyLogFile>>,
}

/// What the record says about the scenario that only the files show which were asked for.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// Where the questions came from.
    pub questions_source: String,
    /// The profile that clients are drawn from.
    pub profile: Option<ProfileRecord>,
    /// The capture that is replayed.
    pub replay: Option<ReplayRecord>,
}

/// Why a run could not be started; nothing was sent.
#[derive(Debug)]
pub struct RunError {
    /// What, where.
    pub what: String,
    /// The cure.
    pub hint: Option<String>,
}

impl RunError {
    /// An error with its cure.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        RunError {
            what: what.into(),
            hint: Some(hint.into()),
        }
    }

    /// As [`RunError::new`], where the message says it all.
    pub(crate) fn plain(what: impl fmt::Display) -> Self {
        RunError {
            what: what.to_string(),
            hint: None,
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for RunError {}
