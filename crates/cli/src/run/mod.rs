//! `throng run`: one run, its progress, its result.

mod progress;
mod request;
mod self_test;
pub(crate) mod tls;
mod unused;

use std::process::ExitCode;
use std::sync::Arc;

use engine::Control;
use measure::RunRecord;

use crate::args::{DriverChoice, RunArguments};
use crate::failure::{Failure, print};
use crate::records::{self, Destination};
use crate::signals;
use progress::Display;

/// Runs and prints.
pub(crate) fn execute(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let destination = arguments
        .record
        .as_deref()
        .map(|path| Destination::check("--record", path))
        .transpose()?;
    let record = measure(arguments)?;
    if let Some(destination) = &destination {
        destination.write(&record)?;
    }
    print(&records::render(&record, arguments.format))?;
    let answered = record.total.counts.responses > 0;
    let tried = record.total.counts.offered > 0 || record.connections().attempted > 0;
    Ok(if answered || !tried {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

fn measure(arguments: &RunArguments) -> Result<RunRecord, Failure> {
    unused::reject(arguments)?;
    if arguments.driver == DriverChoice::Sim {
        return self_test::simulate(arguments);
    }
    let (mut request, serving) = match &arguments.server {
        Some(server) => (request::against(arguments, server)?, None),
        None => {
            let (request, serving) = self_test::prepare(arguments)?;
            (request, Some(serving))
        }
    };
    request.preflight = !arguments.no_preflight;
    let control = Arc::new(Control::new(request.plan.workers));
    signals::stop_on_interrupt(&control, || {
        eprintln!("ending the run; waiting for open queries (again to abort)");
    });
    let mut display = Display::new(&request, arguments.quiet);
    let outcome = lab::run::run(&request, &control, |progress| display.show(progress));
    display.finish();
    tls::report_losses(request.tls.as_ref());
    drop(serving);
    Ok(outcome?)
}
