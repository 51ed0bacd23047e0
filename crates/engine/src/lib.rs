//! One worker per core: joins load, proto and driver, writes measure.
//!
//! [`run`] runs plans on threads with the epoll driver. A [`Crew`] by itself is what the simulator
//! steps through virtual time. No async runtime, no lock, nothing shared on the data path but
//! read-only configuration and a stop flag.

#![forbid(unsafe_code)]

mod bins;
mod client;
mod control;
mod crew;
mod observer;
mod standings;
mod statistics;
mod tally;
mod threads;
mod worker;

use std::net::SocketAddr;

pub use control::{Control, PartEvents};
pub use crew::Crew;
pub use observer::{Ending, Observation, Observations, Observed, Observer, observer};
pub use threads::{Outcome, Progress, RunOptions, WorkerOutcome, merged, run};
pub use worker::{EndedBy, RunInputs, Timeline, TlsSettings, WorkerSummary};

/// Why a run could not be started.
#[derive(Debug)]
pub enum SetupError {
    /// A datagram socket could not be opened.
    Socket {
        /// The local address asked for.
        local: Option<SocketAddr>,
        /// The target.
        target: SocketAddr,
        /// The kernel's reason.
        error: std::io::Error,
    },
    /// A worker could not be pinned to its CPU.
    Cpu {
        /// The CPU asked for.
        cpu: usize,
        /// The kernel's reason.
        error: std::io::Error,
    },
    /// The driver could not be made.
    Driver(std::io::Error),
    /// The clients' script cannot be used.
    Script(script::ScriptError),
}

impl std::fmt::Display for SetupError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SetupError::Socket {
                local: Some(local),
                target,
                error,
            } => {
                write!(f, "cannot open a socket from {local} to {target}: {error}")
            }
            SetupError::Socket {
                local: None,
                target,
                error,
            } => {
                write!(f, "cannot open a socket to {target}: {error}")
            }
            SetupError::Cpu { cpu, error } => {
                write!(f, "cannot run a worker on CPU {cpu}: {error}")
            }
            SetupError::Script(error) => error.fmt(f),
            SetupError::Driver(error) => write!(f, "cannot open the driver: {error}"),
        }
    }
}

impl std::error::Error for SetupError {}
