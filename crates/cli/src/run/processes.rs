//! A run in several processes: the parent's side, and that of a part.

use std::time::Duration;

use driver::clock::Clock;
use engine::PartOfRun;
use lab::parts::{Parts, setup_line, start_responders};
use lab::run::{Division, RunRequest, Serving};
use measure::RunRecord;

use super::hosts::{self, Hosts};
use super::prepared::{Prepared, prepare};
use super::progress::Display;
use crate::failure::Failure;
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
    let (target, addresses) = match &prepared.responder {
        None => (Target::Foreign, Vec::new()),
        Some(responder) if division.responders == 1 => {
            let serving = responder.serve()?;
            let addresses = serving.addresses().to_vec();
            (Target::Here(serving), addresses)
        }
        Some(_) => {
            let mut parts = Parts::new(division.responders, clock);
            let addresses = start_responders(&mut parts, &command, |addresses| {
                setup(Role::Target).at(addresses).to_json()
            })?;
            (Target::Parts(parts), addresses)
        }
    };
    let epoch_ns = clock.epoch_ns();
    let setup = setup(Role::Generator { epoch_ns }).at(Some(&addresses));
    let setup = setup.to_json();
    prepared.point_at(&addresses);
    prepared.look_before()?;
    let mut parts = Parts::new(division.processes, clock);
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
    let mut record = lead(of_run, (parts, responders), clock, (interrupt, watch))?;
    if let Some(serving) = serving {
        lab::run::note_responder(&mut record, &serving.stop(), None);
    }
    Ok(record)
}

/// Runs on other hosts.
pub(super) fn measure_on(
    hosts: &Hosts,
    mut prepared: Prepared,
    (groups, quiet, shown_each): (&[Group], bool, Duration),
    (interrupt, watch): (&Interrupt, &mut dyn FnMut(&engine::Progress)),
) -> Result<RunRecord, Failure> {
    let clock = Clock::start();
    let mut groups = groups.to_vec();
    let (mut parts, hellos) = hosts.start(clock, interrupt)?;
    let division = hosts::divide(&mut prepared.requests, &mut groups, &hellos, &parts)?;
    super::check_loss(&groups[0].run, &division)?;
    let role = Role::Agent;
    let setup = Setup::new(Work::Run { groups, role }, None).to_json();
    parts.say_to_all(&setup_line(&setup));
    let of_run = (prepared.requests.as_slice(), quiet, shown_each);
    lead(of_run, (parts, None), clock, (interrupt, watch))
}

/// Leads the parts through the run, with the progress display.
fn lead(
    (requests, quiet, shown_each): (&[RunRequest], bool, Duration),
    parts: (Parts, Option<Parts>),
    clock: Clock,
    (interrupt, watch): (&Interrupt, &mut dyn FnMut(&engine::Progress)),
) -> Result<RunRecord, Failure> {
    let control = lab::run::control(requests);
    interrupt.stops(&control);
    let mut display = Display::new(requests, None, (quiet, shown_each));
    let show = |progress: &engine::Progress| {
        display.show(progress);
        watch(progress);
    };
    let record = lab::parts::run_parts(requests, parts, (clock, &control), show);
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
