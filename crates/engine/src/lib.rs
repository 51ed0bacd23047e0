//! One worker per core: joins load, proto and driver, writes measure.
//!
//! [`run`] runs plans on threads, each with a driver of its own. [`ThreadWorkers`] by themselves
//! are what the simulator steps through virtual time. No async runtime, no lock, nothing shared on
//! the data path but read-only configuration and a stop flag.
//!
//! # Where to look
//!
//! * `worker`: one worker's turn, and the modules it calls: `worker::population` (clients,
//!   connections, timers), `worker::offer` (which client queries what, and when: a file for each
//!   mode), `worker::wire` (messages as bytes: a file for each way to carry them) and
//!   `worker::ledger` (what is counted, and in which interval).
//! * `thread_workers`: the workers of one thread, one for each group of clients, on one driver.
//! * `collected`: the workers' reports and the outcome computed from them; `watchdog`: threads that
//!   do not end with their run.
//! * `observer`: reports every query as it ends through a bounded queue; absent in runs that
//!   measure load.
//! * `threads`: a plan on threads with a driver each, intervals merged as they end.

#![forbid(unsafe_code)]

mod collected;
mod control;
mod gathering;
mod observer;
mod query_end;
mod thread_workers;
mod threads;
mod watchdog;
mod worker;

use std::net::SocketAddr;

pub use collected::Collected;
pub use control::{AgentEvents, Control};
pub use gathering::{Gathering, Progress};
pub use observer::{Ending, Observation, Observations, Observed, Observer, observer};
pub use thread_workers::ThreadWorkers;
pub use threads::{AgentShare, Outcome, RunOptions, WorkerOutcome, run};
pub use watchdog::{Beat, LOOK_EVERY, PATIENCE, Watchdog};
pub use worker::{EndedBy, RunInputs, Timeline, TlsNotes, TlsSettings, Window, WorkerSummary};

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
