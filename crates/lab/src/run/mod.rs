//! One run from request to record: look before, start what is needed, run, judge.

pub(crate) mod aborting;
mod addresses;
mod decided;
mod division;
mod local;
mod path_watch;
mod preflight;
pub(crate) mod record;
mod recorded_transport;
mod request;
mod self_test;
pub mod shares;
pub(crate) mod simulation;
mod site;

use std::collections::BTreeMap;
use std::sync::Arc;

use driver::kernel::DriverChoice;
use engine::{Control, Outcome, Progress, RunInputs, RunOptions};
use load::Arrival;
use measure::RunRecord;
use observe::Newest;

use crate::host::HostWatch;
use crate::live::{Live, Publisher};
use crate::observing::{self, Observing};
use aborting::Aborting;
use path_watch::PathWatch;

pub use addresses::{choose_local_addresses, choose_own_addresses};
pub use decided::{decided, difference};
pub use division::{Division, divide};
pub use local::{TargetScope, default_workers, target_scope};
pub use preflight::{check_host, check_local_addresses, check_target};
pub use request::{Description, RunError, RunRequest, TlsRequest};
pub use self_test::{
    ResponderShare, Serving, SocketUse, note_responder, serve, serve_hint, serve_share,
};
pub use simulation::{
    InjectedDatagram, Simulation, simulate, simulate_servers, simulate_until_interrupted,
};

/// Runs the request on the kernel's sockets; `on_progress` sees each interval as it ends.
///
/// # Errors
/// [`RunError`] if the run could not be started.
pub fn run(
    request: &RunRequest,
    control: &Arc<Control>,
    mut on_progress: impl FnMut(&Progress),
) -> Result<RunRecord, RunError> {
    run_with(std::slice::from_ref(request), control, |progress, _| {
        on_progress(progress)
    })
}

/// Runs several groups of clients at once, on the same threads, and publishes each interval as it
/// ends; what is the run's as a whole, such as its duration and CPUs, is that of the first.
///
/// # Errors
/// [`RunError`] if the run could not be started.
pub fn run_groups(
    groups: &[RunRequest],
    control: &Arc<Control>,
    live: &Live,
) -> Result<RunRecord, RunError> {
    let mut aborting = Aborting::of(groups)?;
    let mut publisher = Publisher::begin(live, groups);
    if publisher.judges() {
        control.tell_checkpoints();
    }
    let mut record = run_with(groups, control, |progress, meanwhile| {
        aborting.look_at(progress, control);
        publisher.note_observed(&meanwhile.observed);
        publisher.show(progress);
        if let (Some(checkpoint), true) = (&progress.checkpoint, publisher.judges()) {
            let (outcome, meanwhile) = (Outcome::clone(checkpoint), Arc::clone(meanwhile));
            publisher.judge(move |intervals| {
                let outcome = Outcome {
                    intervals,
                    ..outcome
                };
                Some(meanwhile.record(outcome))
            });
        }
    })?;
    aborting.note(&mut record, control);
    publisher.end(&record);
    Ok(record)
}

/// What surrounds a run on this host from its beginning on.
struct Meanwhile {
    groups: Vec<RunRequest>,
    watch: HostWatch,
    path: Option<PathWatch>,
    started: record::Started,
    kernel_before: BTreeMap<String, u64>,
    observed: Newest,
}

impl Meanwhile {
    fn begin(groups: &[RunRequest], observed: Newest) -> Self {
        Meanwhile {
            observed,
            groups: groups.to_vec(),
            watch: HostWatch::begin(groups, Vec::new()),
            path: PathWatch::begin(groups),
            started: record::Started::now(),
            kernel_before: crate::host::counters(),
        }
    }

    /// The record of what was measured until now, concluded.
    fn record(&self, outcome: Outcome) -> RunRecord {
        let surroundings = record::Surroundings {
            started: self.started.clone(),
            host: crate::host::facts(),
            kernel: crate::host::difference(&self.kernel_before, &crate::host::counters()),
            simulation: None,
        };
        let mut record = record::from_outcome(&self.groups, outcome, surroundings);
        self.watch.note(&mut record);
        if let Some(path) = &self.path {
            path.note(&mut record);
        }
        record.conclude();
        record
    }
}

fn run_with(
    groups: &[RunRequest],
    control: &Arc<Control>,
    mut on_progress: impl FnMut(&Progress, &Arc<Meanwhile>),
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
    let observed = observing.as_ref().map(Observing::newest);
    let meanwhile = Arc::new(Meanwhile::begin(groups, observed.unwrap_or_default()));
    let on_progress = |progress: &Progress| on_progress(progress, &meanwhile);
    let outcome = engine::run(&inputs, &options, control, on_progress)
        .map_err(|error| setup_error(&error))?;
    let mut record = meanwhile.record(outcome);
    if let Some(observing) = observing {
        observing.end(&mut record);
        record.conclude();
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
