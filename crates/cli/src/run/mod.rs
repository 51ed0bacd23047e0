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
use crate::signals::{self, Interrupt};
use progress::Display;

/// Runs and prints.
pub(crate) fn execute(arguments: &RunArguments) -> Result<ExitCode, Failure> {
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
    unused::reject(arguments)?;
    if arguments.driver == DriverChoice::Sim {
        return self_test::simulate(arguments);
    }
    let (request, serving) = prepare(arguments)?;
    let control = lab::run::control(std::slice::from_ref(&request));
    interrupt.stops(&control);
    let mut display = Display::new(&request, arguments.quiet);
    let outcome = lab::run::run(&request, &control, |progress| display.show(progress));
    display.finish();
    tls::report_losses(request.tls.as_ref());
    drop(serving);
    Ok(outcome?)
}

/// Checks all that can be checked without sending load: flags, files, this host, and whether
/// somebody listens.
pub(crate) fn check(arguments: &RunArguments) -> Result<(), Failure> {
    unused::reject(arguments)?;
    if arguments.driver == DriverChoice::Sim {
        return self_test::check_simulation(arguments);
    }
    let (request, _serving) = prepare(arguments)?;
    lab::run::check_host(std::slice::from_ref(&request))?;
    if request.preflight {
        lab::run::check_target(&request)?;
    }
    Ok(())
}

/// The request, and the built-in responder where it is the target.
fn prepare(arguments: &RunArguments) -> Result<(RunRequest, Option<Serving>), Failure> {
    let (mut request, serving) = match &arguments.server {
        Some(server) => (request::against(arguments, server)?, None),
        None => {
            let (request, serving) = self_test::prepare(arguments)?;
            (request, Some(serving))
        }
    };
    request.preflight = !arguments.no_preflight;
    Ok((request, serving))
}
