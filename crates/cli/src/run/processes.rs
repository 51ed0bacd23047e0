//! A run in several processes: the parent's side, and that of a part.

use std::time::Duration;

use driver::clock::Clock;
use engine::PartOfRun;
use lab::parts::{Parts, start_responders};
use lab::run::{Division, Serving};
use measure::RunRecord;

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
    let command = part::command()?;
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
            let mut parts = Parts::new(division.responders);
            let addresses = start_responders(&mut parts, &command, |addresses| {
                setup(Role::Target).at(addresses).to_json()
            })?;
            (Target::Parts(parts), addresses)
        }
    };
    let clock = Clock::start();
    let epoch_ns = clock.epoch_ns();
    let setup = setup(Role::Generator { epoch_ns }).at(Some(&addresses));
    let setup = setup.to_json();
    prepared.point_at(&addresses);
    prepared.look_before()?;
    let mut parts = Parts::new(division.processes);
    for _ in 0..division.processes {
        parts.start(&command, &setup)?;
    }
    let requests = &prepared.requests;
    let control = lab::run::control(requests);
    interrupt.stops(&control);
    let mut display = Display::new(requests, quiet, shown_each);
    // A responder on threads of this process serves until the run is over.
    let (responders, serving) = match target {
        Target::Foreign => (None, None),
        Target::Here(serving) => (None, Some(serving)),
        Target::Parts(parts) => (Some(parts), None),
    };
    let show = |progress: &engine::Progress| {
        display.show(progress);
        watch(progress);
    };
    let record = lab::parts::run_parts(requests, (parts, responders), (clock, &control), show);
    display.finish();
    let mut record = record?;
    if let Some(serving) = serving {
        lab::run::note_responder(&mut record, &serving.stop(), None);
    }
    Ok(record)
}

/// Does a part of a run: simulates a share of the clients, or answers as the target.
pub(super) fn execute_part(
    groups: &[Group],
    role: Role,
    (identity, addresses): Shared,
    place: PartIndex,
) -> Result<(), Failure> {
    let mut prepared = prepare(groups, identity)?;
    let epoch_ns = match (role, &prepared.responder) {
        (Role::Generator { epoch_ns }, _) => epoch_ns,
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
        clock: Clock::with_epoch(epoch_ns),
    };
    lab::parts::run_part(&prepared.requests, part)?;
    for request in &prepared.requests {
        super::tls::report_losses(request.tls.as_ref());
    }
    Ok(())
}
