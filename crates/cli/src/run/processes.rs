//! A run in several processes: the parent's side, and that of a part.

use std::time::Duration;

use driver::clock::Clock;
use engine::PartOfRun;
use lab::parts::{Files, Parts, start_responders};
use lab::run::{Division, RunRequest, Serving};
use measure::RunRecord;

use super::agents::{self, Source};
use super::prepared::{Prepared, prepare};
use super::progress::Display;
use crate::failure::Failure;
use crate::fleet::remote;
use crate::part::{self, PartIndex, Role, Setup, Shared, Work};
use crate::run::group::Group;
use crate::signals::Interrupt;

/// The responder of a self-test while it serves.
enum Target {
    /// Somebody else's.
    Foreign,
    /// On threads of this process, until it is dropped.
    Here(Serving),
    /// In processes of its own.
    Parts(Parts),
}

/// Runs in as many processes as `division` says.
pub(super) fn measure(
    mut prepared: Prepared,
    division: Division,
    (groups, quiet, shown_each): (&[Group], bool, Duration),
    (interrupt, watch): (&Interrupt, &mut dyn FnMut(&engine::Progress)),
) -> Result<RunRecord, Failure> {
    let (command, clock) = (part::command()?, Clock::start());
    let setup = |role: Role| {
        let responder = prepared.responder.as_ref();
        let identity = responder.and_then(|responder| responder.identity.as_ref());
        let groups = groups.to_vec();
        Setup::new(Work::Run { groups, role }, identity)
    };
    let files: Files = crate::inputs::travelling().1;
    let (target, addresses) = match &prepared.responder {
        None => (Target::Foreign, Vec::new()),
        Some(responder) if division.responders == 1 => {
            let serving = responder.serve()?;
            let addresses = serving.addresses().to_vec();
            (Target::Here(serving), addresses)
        }
        Some(_) => {
            let mut parts = Parts::new(division.responders, clock);
            parts.offer(files.clone());
            let addresses = start_responders(&mut parts, &command, |addresses| {
                setup(Role::Target).0.at(addresses).to_json()
            })?;
            (Target::Parts(parts), addresses)
        }
    };
    let epoch_ns = clock.epoch_ns();
    let (setup, _) = setup(Role::Generator { epoch_ns });
    let setup = setup.at(Some(&addresses)).to_json();
    prepared.point_at(&addresses);
    prepared.look_before()?;
    let mut parts = Parts::new(division.processes, clock);
    parts.offer(files);
    for _ in 0..division.processes {
        parts.start(&command, &setup)?;
    }
    // A responder on threads of this process serves until the run is over.
    let (responders, serving) = match target {
        Target::Foreign => (None, None),
        Target::Here(serving) => (None, Some(serving)),
        Target::Parts(parts) => (Some(parts), None),
    };
    let of_run = (prepared.requests.as_slice(), quiet, shown_each);
    let mut record = lead(of_run, (&mut parts, responders), (interrupt, watch))?;
    if let Some(serving) = serving {
        lab::run::note_responder(&mut record, &serving.stop(), None);
    }
    Ok(record)
}

/// Runs on other hosts.
pub(super) fn measure_on(
    source: Source,
    mut prepared: Prepared,
    (groups, quiet, shown_each): (&[Group], bool, Duration),
    (interrupt, watch): (&Interrupt, &mut dyn FnMut(&engine::Progress)),
) -> Result<RunRecord, Failure> {
    let mut groups = groups.to_vec();
    let mut agents = source.agents(interrupt)?;
    let division = agents::divide(&mut prepared.requests, &mut groups, &agents)?;
    super::check_loss(&groups[0].run, &division)?;
    let role = Role::Agent;
    let (setup, files) = Setup::new(Work::Run { groups, role }, None);
    agents.parts.offer(files);
    let setup = setup.to_json().to_string();
    agents.parts.say_to_all("setup", &setup);
    let of_run = (prepared.requests.as_slice(), quiet, shown_each);
    let record = lead(of_run, (&mut agents.parts, None), (interrupt, watch))?;
    if record.degraded.is_none() {
        source.keep(agents);
    }
    Ok(record)
}

/// Has the lead of a fleet make the run.
pub(super) fn measure_by_lead(
    (groups, quiet, shown_each): (&[Group], bool, Duration),
    (interrupt, watch): (&Interrupt, &mut dyn FnMut(&engine::Progress)),
) -> Result<RunRecord, Failure> {
    crate::inputs::keep_all();
    let requests = prepare(groups, None)?.requests;
    let command = groups[0].run.generator.lead.as_deref().unwrap_or_default();
    let control = lab::run::control(&requests);
    interrupt.stops(&control);
    let mut display = Display::new(&requests, quiet, shown_each);
    let mut show = |progress: &engine::Progress| {
        display.show(progress);
        watch(progress);
    };
    let record = remote::measure(command, groups, (&control, &mut show));
    display.finish();
    record
}

/// Leads the parts through the run, with the progress display.
fn lead(
    (requests, quiet, shown_each): (&[RunRequest], bool, Duration),
    parts: (&mut Parts, Option<Parts>),
    (interrupt, watch): (&Interrupt, &mut dyn FnMut(&engine::Progress)),
) -> Result<RunRecord, Failure> {
    let control = lab::run::control(requests);
    interrupt.stops(&control);
    let mut display = Display::new(requests, quiet, shown_each);
    let show = |progress: &engine::Progress| {
        display.show(progress);
        watch(progress);
    };
    let record = lab::parts::run_parts(requests, parts, &control, show);
    display.finish();
    Ok(record?)
}

/// Does a part of a run: simulates a share of the clients, or answers as the target.
pub(super) fn execute_part(
    groups: &[Group],
    role: Role,
    (identity, addresses): Shared,
    place: PartIndex,
) -> Result<(), Failure> {
    let mut prepared = prepare(groups, identity)?;
    let is_elsewhere = matches!(role, Role::Agent);
    let clock = match (role, &prepared.responder) {
        (Role::Generator { epoch_ns }, _) => Clock::with_epoch(epoch_ns),
        (Role::Agent, _) => Clock::start(),
        (Role::Target, Some(responder)) => return responder.serve_part(place, addresses),
        (Role::Target, None) => {
            let what = "the setup of a process is wrong: no responder";
            return Err(Failure::in_operation(what));
        }
    };
    let division = Division::into(&mut prepared.requests, place.count);
    prepared.point_at(&addresses.unwrap_or_default());
    let part = PartOfRun {
        threads: division.threads_of(place.index),
        clock,
    };
    if is_elsewhere {
        prepared.look_before()?;
    }
    lab::parts::run_part(&prepared.requests, part, is_elsewhere)?;
    for request in &prepared.requests {
        super::tls::report_losses(request.tls.as_ref());
    }
    Ok(())
}
