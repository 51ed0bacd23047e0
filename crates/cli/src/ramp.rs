//! `throng ramp`: a rate that grows until the target cannot follow, or a limit is met.

use std::process::ExitCode;
use std::time::Duration;

use lab::ramp;
use load::arrival::parse_rate;
use measure::ramp::{Ramp, RampPlan, Stop, Watch};
use settings::{Arrival, ClientArrival, Process};

use crate::args::Format;
use crate::args::flags::Asker;
use crate::args::ramp::RampArguments;
use crate::failure::{Failure, refuse};
use crate::records::{Destination, Links, hand_over};
use crate::run::group::Group;
use crate::run::{self, unused};
use crate::signals;

/// Runs and prints.
pub(crate) fn execute(arguments: &RampArguments) -> Result<ExitCode, Failure> {
    let plan = plan(arguments)?;
    let group = group_of(arguments, &plan)?;
    let record_to = Destination::of_record(&group.output)?;
    let links = Links::with_force(arguments.run.force);
    let plot_to = (arguments.plot.as_deref())
        .map(|path| Destination::check("--plot", path, links))
        .transpose()?;
    let interrupt = signals::watch(|| {
        tell!("ending the ramp; waiting for open queries (interrupt again to abort)");
    });
    let mut watch = Watch::new(plan);
    let mut stop: Option<Stop> = None;
    let record = run::measure_watched(&group, &interrupt, &mut |progress| {
        if stop.is_none()
            && let Some(found) = watch.look(&progress.interval)
        {
            stop = Some(found);
            interrupt.end_run();
        }
    })?;
    let ramp = Ramp::new(&plan, &record, stop);
    hand_over(&record, record_to.as_ref(), |_| {
        match arguments.run.format {
            Format::Text => report::ramp::text(&ramp),
            Format::Json => report::ramp::json(&ramp),
            Format::Csv => report::ramp::csv(&ramp),
        }
    })?;
    if let Some(plot_to) = plot_to {
        plot_to.write_text(&report::ramp::plot(&ramp))?;
    }
    Ok(match ramp.responses {
        0 => ExitCode::from(1),
        _ => ExitCode::SUCCESS,
    })
}

/// What the ramp is to do.
fn plan(arguments: &RampArguments) -> Result<RampPlan, Failure> {
    reject_unused(arguments)?;
    let rate = rate(arguments)?;
    if (arguments.over + arguments.sustain).is_zero() {
        return Err(Failure::usage(
            "--over and --sustain are both zero",
            "give the ramp some time, such as --over 60s",
        ));
    }
    let point = arguments.run.interval.unwrap_or(run::INTERVAL);
    if point.is_zero() {
        return Err(Failure::usage("--interval: must not be zero", "give 500ms"));
    }
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Ok(RampPlan {
        rate_qps_max: rate,
        ramp_ns: nanos(arguments.over),
        sustain_ns: nanos(arguments.sustain),
        point_ns: nanos(ramp::point(point)),
        outstanding_max: arguments.max_outstanding,
        behind_max: Some(arguments.max_behind).filter(|most| *most > 0),
        lost_share_max: arguments.max_loss,
        ignores_losses: arguments.max_loss >= 1.0,
    })
}

/// Refuses flags of a run that mean nothing on a ramp.
fn reject_unused(arguments: &RampArguments) -> Result<(), Failure> {
    let run = &arguments.run;
    let place = "on a ramp";
    unused::refuse(run, Asker::Ramp, place)?;
    let flags = [(
        "--queries-per-connection 0",
        run.connections.asks_nothing(),
        "use `throng run`",
    )];
    refuse(&flags, place)
}

fn rate(arguments: &RampArguments) -> Result<f64, Failure> {
    parse_rate(&arguments.to)
        .map_err(|error| Failure::usage(format!("--to: {}", error.what), error.hint))
}

/// The clients of the ramp.
fn group_of(arguments: &RampArguments, plan: &RampPlan) -> Result<Group, Failure> {
    let (mut flags, process) = (arguments.run.clone(), arguments.run.arrival);
    if process == Process::Poisson {
        // The ramp says itself how they ask.
        flags.given.retain(|given| given.name != "arrival");
    }
    let mut run = flags.settings()?;
    let (rate, clients) = (plan.rate_qps_max, run.clients.unwrap_or(run::CLIENTS));
    run.clients = Some(clients);
    run.arrival = Arrival::Clients(match process {
        Process::Constant => ramp::in_turns(rate, clients, (arguments.over, arguments.sustain)),
        Process::Poisson => ClientArrival::spread(process, rate / f64::from(clients.max(1))),
    });
    run.shape = ramp::shape(arguments.over);
    let limits = &mut run.limits;
    limits.duration = Some(arguments.over + arguments.sustain);
    limits.interval = Some(ramp::interval(limits.interval.unwrap_or(run::INTERVAL)));
    Ok(Group::of(&flags, run))
}
