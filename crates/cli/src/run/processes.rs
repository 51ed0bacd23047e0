//! A run of several agents: the lead's side, and that of an agent.

use std::time::Duration;

use driver::clock::Clock;
use engine::AgentShare;
use lab::agents::{
    AgentCommand, Carrier, Connection, Fleet, Task, greet, lead_run, start_responders,
};
use lab::run::{Division, RunRequest, Serving};
use measure::RunRecord;

use super::elsewhere::{self, Elsewhere};
use super::prepared::{Prepared, prepare};
use super::progress;
use super::runner::{Runner, Source};
use crate::agent::{self, AgentIndex, Role, Setup, Shared, Work};
use crate::failure::Failure;
use crate::inputs;
use crate::run::group::Group;

/// The responder of a self-test while it serves.
enum Target {
    /// Somebody else's.
    Foreign,
    /// On threads of this process, until it is dropped.
    Here(Serving),
    /// In processes of its own.
    Processes(Carrier),
}

/// Runs with as many agents as `division` says.
pub(super) fn measure(
    mut prepared: Prepared,
    division: Division,
    (groups, quiet, shown_each): (&[Group], bool, Duration),
    runner: &Runner<'_>,
) -> Result<RunRecord, Failure> {
    let (command, clock) = (agent::command()?, Clock::of_host());
    let setup = |role: Role| {
        let responder = prepared.responder.as_ref();
        let identity = responder.and_then(|responder| responder.identity.as_ref());
        let groups = groups.to_vec();
        Setup::new(Work::Run { groups, role }, identity)
    };
    let (target, addresses) = match &prepared.responder {
        None => (Target::Foreign, Vec::new()),
        Some(responder) if division.responders == 1 => {
            let serving = responder.serve()?;
            let addresses = serving.addresses().to_vec();
            (Target::Here(serving), addresses)
        }
        Some(_) => {
            let mut carrier = Carrier::new(division.responders, clock);
            let addresses = start_responders(&mut carrier, &command, |addresses| {
                setup(Role::Target).at(addresses).task()
            })?;
            (Target::Processes(carrier), addresses)
        }
    };
    let setup = setup(Role::Generator).at(Some(&addresses));
    prepared.point_at(&addresses);
    let setup = setup.decided(&prepared.requests).task();
    prepared.look_before()?;
    let source = Source::Here(division.agents);
    let fleet = runner.fleet(&source, || {
        let commands: Vec<AgentCommand> = vec![command; division.agents as usize];
        let greeted = greet(&commands, None, clock, || runner.interrupt.has_come());
        greeted.map_err(elsewhere::not_greeted)
    })?;
    // A responder on threads of this process serves until the run is over.
    let (responders, serving) = match target {
        Target::Foreign => (None, None),
        Target::Here(serving) => (None, Some(serving)),
        Target::Processes(carrier) => (Some(carrier), None),
    };
    let of_run = (prepared.requests.as_slice(), quiet, shown_each);
    let mut record = lead(of_run, (source, fleet, setup), responders, runner)?;
    if let Some(serving) = serving {
        lab::run::note_responder(&mut record, &serving.stop(), None);
    }
    Ok(record)
}

/// Runs on other hosts.
pub(super) fn measure_on(
    elsewhere: Elsewhere,
    mut prepared: Prepared,
    (groups, quiet, shown_each): (&[Group], bool, Duration),
    runner: &Runner<'_>,
) -> Result<RunRecord, Failure> {
    let mut groups = groups.to_vec();
    let source = Source::Elsewhere(elsewhere.clone());
    let fleet = runner.fleet(&source, || {
        elsewhere.start(Clock::of_host(), (runner.interrupt, &*runner.note))
    })?;
    let division = elsewhere::divide(&mut prepared.requests, &mut groups, &fleet)?;
    super::check_loss(&groups[0].run, &division)?;
    for group in &mut groups {
        // That is done from here.
        group.run.observe.clear();
    }
    let role = Role::Elsewhere;
    let setup = Setup::new(Work::Run { groups, role }, None);
    let setup = setup.decided(&prepared.requests).task();
    let of_run = (prepared.requests.as_slice(), quiet, shown_each);
    lead(of_run, (source, fleet, setup), None, runner)
}

/// Leads the agents through the run, with the progress display.
fn lead(
    (requests, quiet, shown_each): (&[RunRequest], bool, Duration),
    (source, fleet, task): (Source, Fleet, Task),
    responders: Option<Carrier>,
    runner: &Runner<'_>,
) -> Result<RunRecord, Failure> {
    let control = lab::run::control(requests);
    runner.interrupt.stops(&control);
    let shown = progress::follow(runner.live, requests, None, (quiet, shown_each));
    let agents = (fleet, runner.task(task));
    let led = lead_run(agents, requests, responders, &control, runner.live);
    progress::end(shown);
    let (record, fleet) = led?;
    runner.keep(source, fleet);
    Ok(record)
}

/// Does a share of a run: simulates some of the clients, or answers as the target.
pub(super) fn execute_share(
    connection: &mut Connection,
    groups: &[Group],
    role: Role,
    shared: Shared,
    place: AgentIndex,
) -> Result<(), Failure> {
    let mut prepared = prepare(groups, shared.identity)?;
    // Nothing is read any more.
    inputs::forget();
    let is_elsewhere = matches!(role, Role::Elsewhere);
    if !is_elsewhere {
        // All agents of this host share its ports.
        lab::run::choose_local_addresses(&mut prepared.requests)?;
    }
    match (role, &prepared.responder) {
        (Role::Generator | Role::Elsewhere, _) => {}
        (Role::Target, Some(responder)) => {
            return responder.serve_share(connection, place, shared.addresses);
        }
        (Role::Target, None) => {
            let what = "the setup of a process is wrong: no responder";
            return Err(Failure::in_operation(what));
        }
    }
    let division = Division::into(&mut prepared.requests, place.count);
    prepared.point_at(&shared.addresses.unwrap_or_default());
    check_decided(&prepared.requests, shared.decided.as_deref())?;
    let share = AgentShare {
        threads: division.threads_of(place.index),
        clock: connection.clock(),
    };
    if is_elsewhere {
        lab::run::choose_own_addresses(&mut prepared.requests, &share.threads)?;
        prepared.look_before()?;
    }
    lab::agents::run_share(connection, &prepared.requests, share, is_elsewhere)?;
    for request in &prepared.requests {
        super::tls::report_losses(request.tls.as_ref());
    }
    Ok(())
}

/// Refuses a run that this agent would make otherwise than its lead has decided.
fn check_decided(requests: &[RunRequest], of_lead: Option<&str>) -> Result<(), Failure> {
    let own = lab::run::decided(requests);
    match of_lead.and_then(|lead| lab::run::difference(&own, lead)) {
        None => Ok(()),
        Some((own, lead)) => Err(Failure::in_operation(format!(
            "the agent decides the run otherwise than its lead, which is a fault of throng: \
             `{own}`, and there `{lead}`"
        ))),
    }
}
