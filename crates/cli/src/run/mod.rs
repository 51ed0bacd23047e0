//! `throng run`: one run, its progress, its result.

mod progress;
mod questions;
mod request;
mod self_test;
pub(crate) mod tls;
mod unused;

use std::process::ExitCode;

use lab::run::{RunRequest, Serving};
use measure::RunRecord;

use crate::args::{DriverChoice, RunArguments};
use crate::failure::{Failure, print};
use crate::records::{self, Destination};
use crate::scenario::{self, Group};
use crate::signals::{self, Interrupt};
use progress::Display;

/// Runs and prints.
pub(crate) fn execute(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    if let Some(path) = &arguments.scenario {
        return scenario::execute(path, arguments);
    }
    let destination = arguments
        .record
        .as_deref()
        .map(|path| Destination::check("--record", path))
        .transpose()?;
    let interrupt = signals::watch(|| {
        eprintln!("ending the run; waiting for open queries (again to abort)");
    });
    let record = measure(arguments, &interrupt)?;
    if let Some(destination) = &destination {
        destination.write(&record)?;
    }
    print(&records::render(&record, arguments.format))?;
    Ok(match was_in_vain(&record) {
        false => ExitCode::SUCCESS,
        true => ExitCode::from(1),
    })
}

/// True if the run tried and got no response at all; one that only opens connections, not a single
/// one.
pub(crate) fn was_in_vain(record: &RunRecord) -> bool {
    if record.asks_nothing() {
        return record.connections_opened() == 0;
    }
    let tried = record.total.counts.offered > 0 || record.connections().attempted > 0;
    tried && record.total.counts.responses == 0
}

/// Runs with the progress display; `interrupt` ends it.
pub(crate) fn measure(
    arguments: &RunArguments,
    interrupt: &Interrupt,
) -> Result<RunRecord, Failure> {
    measure_groups(&[Group::plain(arguments)], interrupt)
}

/// Runs several groups of clients at once.
pub(crate) fn measure_groups(
    groups: &[Group],
    interrupt: &Interrupt,
) -> Result<RunRecord, Failure> {
    reject_unused(groups)?;
    let first = &groups[0].arguments;
    if first.driver == DriverChoice::Sim {
        return self_test::simulate(groups);
    }
    let (requests, serving) = prepare(groups)?;
    let control = lab::run::control(&requests);
    interrupt.stops(&control);
    let mut display = Display::new(&requests[0], first.quiet);
    let outcome = lab::run::run_groups(&requests, &control, |progress| display.show(progress));
    display.finish();
    for request in &requests {
        tls::report_losses(request.tls.as_ref());
    }
    drop(serving);
    Ok(outcome?)
}

/// Checks all that can be checked without sending load: flags, files, this host, and whether
/// somebody listens.
pub(crate) fn check(arguments: &RunArguments) -> Result<(), Failure> {
    let groups = [Group::plain(arguments)];
    check_groups(&groups)
}

/// As [`check`], for several groups of clients.
pub(crate) fn check_groups(groups: &[Group]) -> Result<(), Failure> {
    reject_unused(groups)?;
    if groups[0].arguments.driver == DriverChoice::Sim {
        return self_test::check_simulation(groups);
    }
    let (requests, _serving) = prepare(groups)?;
    lab::run::check_host(&requests)?;
    for request in requests.iter().filter(|request| request.preflight) {
        lab::run::check_target(request)?;
    }
    Ok(())
}

/// Refuses flags without effect.
fn reject_unused(groups: &[Group]) -> Result<(), Failure> {
    let reject =
        |group: &Group| unused::reject(&group.arguments).map_err(|failure| group.blame(failure));
    groups.iter().try_for_each(reject)
}

/// The requests, and the built-in responder where it is the target.
fn prepare(groups: &[Group]) -> Result<(Vec<RunRequest>, Option<Serving>), Failure> {
    let servers = groups
        .iter()
        .filter(|group| group.arguments.server.is_some());
    let (mut requests, serving) = match servers.count() {
        0 => {
            let (requests, serving) = self_test::prepare(groups)?;
            (requests, Some(serving))
        }
        all if all == groups.len() => {
            let mut requests = Vec::new();
            for group in groups {
                let server = group.arguments.server.as_deref().unwrap_or_default();
                let request = request::against(&group.arguments, server);
                requests.push(request.map_err(|failure| group.blame(failure))?);
            }
            (requests, None)
        }
        _ => {
            return Err(Failure::usage(
                "some groups of clients have a server and some have none",
                "give one to all of them, at the top of the scenario or with --server",
            ));
        }
    };
    for (request, group) in requests.iter_mut().zip(groups) {
        request.group.clone_from(&group.name);
        request.preflight = !group.arguments.no_preflight;
    }
    Ok((requests, serving))
}
