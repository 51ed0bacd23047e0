//! One run from request to record: look before, start what is needed, run, judge.

mod addresses;
mod division;
mod local;
mod preflight;
pub(crate) mod record;
mod recorded_transport;
mod self_test;
pub mod shares;
mod simulation;

use std::fmt;
use std::sync::Arc;

use driver::kernel::DriverChoice;
use engine::{Control, Observer, Progress, RunInputs, RunOptions, TlsSettings};
use load::{Arrival, Plan, TlsAsked};
use measure::RunRecord;
use measure::scenario::{ProfileRecord, ReplayRecord};

use crate::key_log::KeyLogFile;
use crate::observing::{self, Sources};

pub use addresses::choose_local_addresses;
pub use division::{Division, divide};
pub use local::{TargetScope, default_workers, target_scope};
pub use preflight::{check_host, check_local_addresses, check_target};
pub use self_test::{
    ResponderShare, Serving, SocketUse, note_responder, serve, serve_hint, serve_share,
};
pub use simulation::{
    InjectedDatagram, Simulation, simulate, simulate_servers, simulate_until_interrupted,
};

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

/// Runs the request on the kernel's sockets; `on_progress` sees each interval as it ends.
///
/// # Errors
/// [`RunError`] if the run could not be started.
pub fn run(
    request: &RunRequest,
    control: &Arc<Control>,
    on_progress: impl FnMut(&Progress),
) -> Result<RunRecord, RunError> {
    run_groups(std::slice::from_ref(request), control, on_progress)
}

/// Runs several groups of clients at once, on the same threads; what is the run's as a whole, such
/// as its duration and CPUs, is that of the first.
///
/// # Errors
/// [`RunError`] if the run could not be started.
pub fn run_groups(
    groups: &[RunRequest],
    control: &Arc<Control>,
    on_progress: impl FnMut(&Progress),
) -> Result<RunRecord, RunError> {
    check_host(groups)?;
    for request in groups.iter().filter(|request| request.preflight) {
        check_target(request)?;
    }
    let inputs = inputs(groups);
    let options = RunOptions {
        cpus: own_cpus(groups),
        driver: own_driver(groups),
        ..RunOptions::default()
    };
    let observing = observing::begin(groups, control)?;
    let started = record::Started::now();
    let kernel_before = crate::host::counters();
    let outcome = engine::run(&inputs, &options, control, on_progress)
        .map_err(|error| setup_error(&error))?;
    let kernel = crate::host::difference(&kernel_before, &crate::host::counters());
    let surroundings = record::Surroundings {
        started,
        host: crate::host::facts(),
        kernel,
        simulation: None,
    };
    let mut record = record::from_outcome(groups, outcome, surroundings);
    if let Some(observing) = observing {
        observing.end(&mut record);
    }
    Ok(record)
}

/// As [`check_target`] for each of several runs, all at once: a target that is silent does not make
/// the others wait.
pub fn check_targets(requests: &[RunRequest]) -> Vec<Result<(), RunError>> {
    std::thread::scope(|scope| {
        let check = |request| scope.spawn(move || check_target(request));
        let checks: Vec<_> = requests.iter().map(check).collect();
        let joined = checks.into_iter().map(|check| check.join());
        let broken = |_| {
            Err(RunError::new(
                "the check failed unexpectedly",
                "please report this",
            ))
        };
        joined
            .map(|outcome| outcome.unwrap_or_else(broken))
            .collect()
    })
}

/// What the engine is given for each group.
pub(crate) fn inputs(groups: &[RunRequest]) -> Vec<RunInputs> {
    let inputs = |request: &RunRequest| {
        let mut plan = request.plan.clone();
        if let Arrival::Script(script) = &mut plan.arrival {
            Arc::make_mut(script).group.clone_from(&request.group);
        }
        RunInputs {
            plan: Arc::new(plan),
            tls: request.tls.as_ref().map(|tls| tls.settings.clone()),
            observer: request.observer.clone(),
        }
    };
    groups.iter().map(inputs).collect()
}

/// Shared by the workers of a run of these groups.
pub fn control(groups: &[RunRequest]) -> Arc<Control> {
    let workers = groups.iter().map(|request| request.plan.workers);
    let control = Control::new(workers.sum());
    let gives_up = groups.iter().all(|request| request.preflight);
    Arc::new(if gives_up {
        control.giving_up()
    } else {
        control
    })
}

/// The CPUs of a run's threads: those of the first group.
pub(crate) fn own_cpus(groups: &[RunRequest]) -> Vec<usize> {
    let first = groups.first();
    first.map_or_else(Vec::new, |request| request.cpus.clone())
}

/// The driver of a run: that of the first group.
pub(crate) fn own_driver(groups: &[RunRequest]) -> DriverChoice {
    let first = groups.first();
    first.map_or_else(DriverChoice::default, |request| request.driver)
}

pub(crate) fn setup_error(error: &engine::SetupError) -> RunError {
    RunError {
        what: error.to_string(),
        hint: setup_hint(error),
    }
}

fn setup_hint(error: &engine::SetupError) -> Option<String> {
    let hint = match error {
        engine::SetupError::Socket { local: Some(_), .. } => {
            "give addresses of this host with --local-address, and a free port range"
        }
        engine::SetupError::Driver(_) => "let --driver auto choose, or use --driver epoll",
        engine::SetupError::Cpu { .. } => "give CPUs of this machine with --cpus",
        _ => return None,
    };
    Some(hint.to_owned())
}
