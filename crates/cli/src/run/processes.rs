//! A run in several processes: the parent's side, and that of a part.

use std::net::SocketAddr;
use std::time::Duration;

use driver::clock::Clock;
use lab::parts::{PartOfRun, Parts, addresses_from_json, addresses_json, start_responders};
use lab::run::{Division, Serving};
use measure::RunRecord;
use proto::Transport;
use serde_json::{Value, json};

use super::progress::Display;
use super::{Prepared, prepare};
use crate::failure::Failure;
use crate::part::{self, Place, Setup};
use crate::scenario::Group;
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

/// Runs in as many processes as `division` says; it is run `number` of this command.
pub(super) fn measure(
    mut prepared: Prepared,
    division: Division,
    (number, quiet, shown_each): (usize, bool, Duration),
    (interrupt, watch): (&Interrupt, &mut dyn FnMut(&engine::Progress)),
) -> Result<RunRecord, Failure> {
    let command = part::command()?;
    let setup = |fields: Value| {
        let responder = prepared.responder.as_ref();
        let identity = responder.and_then(|responder| responder.identity.as_ref());
        Setup::new(identity, fields)
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
                let addresses = addresses.map(addresses_json);
                let fields = json!({ "role": "target", "run": number, "addresses": addresses });
                setup(fields).json().clone()
            })?;
            (Target::Parts(parts), addresses)
        }
    };
    let clock = Clock::start();
    let fields = json!({
        "role": "clients",
        "run": number,
        "epoch_ns": clock.epoch_ns(),
        "addresses": addresses_json(&addresses),
    });
    let setup = setup(fields);
    prepared.point_at(&addresses);
    prepared.look_before()?;
    let mut parts = Parts::new(division.processes);
    for _ in 0..division.processes {
        parts.start(&command, setup.json())?;
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
pub(super) fn execute_part(groups: &[Group], setup: &Setup, place: Place) -> Result<(), Failure> {
    let mut prepared = prepare(groups, setup.identity()?)?;
    let addresses = addresses(setup)?;
    if setup.field("role") == "target" {
        let responder = prepared.responder.as_ref();
        let responder = responder.ok_or_else(|| nonsense("no responder"))?;
        return responder.serve_part(place, addresses);
    }
    let division = Division::into(&mut prepared.requests, place.count);
    prepared.point_at(&addresses.unwrap_or_default());
    let part = PartOfRun {
        threads: division.threads_of(place.index),
        clock: Clock::with_epoch(setup.number("epoch_ns")),
    };
    lab::parts::run_part(&prepared.requests, &part)?;
    for request in &prepared.requests {
        super::tls::report_losses(request.tls.as_ref());
    }
    Ok(())
}

/// Where the responder listens; none for the first part of it.
pub(crate) fn addresses(setup: &Setup) -> Result<Option<Vec<(Transport, SocketAddr)>>, Failure> {
    let json = setup.field("addresses");
    if json.is_null() {
        return Ok(None);
    }
    let addresses = addresses_from_json(json).ok_or_else(|| nonsense("no addresses"))?;
    Ok(Some(addresses))
}

fn nonsense(what: &str) -> Failure {
    Failure::in_operation(format!("the setup of a part is wrong: {what}"))
}
