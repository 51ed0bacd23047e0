//! `throng ramp`: a rate that grows until the target, or a limit, gives in.

use std::process::ExitCode;
use std::time::Duration;

use load::ClientArrival;
use load::arrival::parse_rate;
use measure::ramp::{Ramp, RampPlan, Stop, Watch};
use settings::Process;

use crate::args::flags::Asker;
use crate::args::ramp::RampArguments;
use crate::args::{Format, RunArguments};
use crate::failure::{Failure, refuse};
use crate::records::{Destination, Links, hand_over};
use crate::run::{self, unused};
use crate::signals;

/// Limits are looked at nearly as often, whatever the length of a point.
const LOOK: Duration = Duration::from_millis(100);

/// Runs and prints.
pub(crate) fn execute(arguments: &RampArguments) -> Result<ExitCode, Failure> {
    let plan = plan(arguments)?;
    let run = run_of(arguments)?;
    let record_to = Destination::of_record(&arguments.run)?;
    let links = Links::with_force(arguments.run.force);
    let plot_to = (arguments.plot.as_deref())
        .map(|path| Destination::check("--plot", path, links))
        .transpose()?;
    let interrupt = signals::watch(|| {
        tell!("ending the ramp; waiting for open queries (again to abort)");
    });
    let mut watch = Watch::new(plan);
    let mut stop: Option<Stop> = None;
    let record = run::measure_watched(&run, &interrupt, &mut |progress| {
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

/// How many looks make a point: a power of two, so that the intervals of a long ramp, which are
/// merged in pairs, make whole points too.
fn looks(point: Duration) -> u32 {
    let looks = point.as_nanos().div_ceil(LOOK.as_nanos());
    let looks = u32::try_from(looks).unwrap_or(u32::MAX);
    1 << looks.max(1).ilog2()
}

/// Length of a point as it can be made of whole intervals: nanoseconds less than asked for.
pub(crate) fn point(point: Duration) -> Duration {
    interval(point) * looks(point)
}

/// Length of an interval of the run: a whole number of them make a point.
pub(crate) fn interval(point: Duration) -> Duration {
    point / looks(point)
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
        return Err(Failure::usage("--interval: it is zero", "give 500ms"));
    }
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Ok(RampPlan {
        rate_qps_max: rate,
        ramp_ns: nanos(arguments.over),
        sustain_ns: nanos(arguments.sustain),
        point_ns: nanos(self::point(point)),
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

/// The flags of the run.
fn run_of(arguments: &RampArguments) -> Result<RunArguments, Failure> {
    let mut run = arguments.run.clone();
    let rate = rate(arguments)?;
    let clients = run.clients.unwrap_or(run::CLIENTS);
    run.clients = Some(clients);
    match run.arrival {
        Process::Constant => {
            let each = in_turns(rate, clients, (arguments.over, arguments.sustain));
            run.population.per_client = Some(each.to_string());
        }
        Process::Poisson => run.let_each_ask(rate / f64::from(clients.max(1))),
    }
    run.population.shape = shape(arguments.over);
    run.duration = Some(arguments.over + arguments.sustain);
    run.interval = Some(interval(run.interval.unwrap_or(run::INTERVAL)));
    Ok(run)
}

/// The clients of a ramp to `rate_qps`: in turn, so that the n-th query is due when n of them are,
/// as in resperf. One that is due at the very end is asked after a ramp alone, and is not where the
/// rate stays constant to the end; the rate is changed by a thousandth of a query for that.
pub(crate) fn in_turns(
    rate_qps: f64,
    clients: u32,
    (over, sustain): (Duration, Duration),
) -> ClientArrival {
    let queries = rate_qps * (over.as_secs_f64() / 2.0 + sustain.as_secs_f64());
    let change = match sustain.is_zero() {
        true => 1e-3,
        false => -1e-3,
    };
    let clients = clients.max(1);
    ClientArrival::Turns {
        rate_qps: rate_qps * (1.0 + change / queries.max(1.0)) / f64::from(clients),
        clients,
    }
}

/// From nothing to the whole rate; none where there is no time for it.
pub(crate) fn shape(over: Duration) -> Option<String> {
    (!over.is_zero()).then(|| format!("linear:0s=0,{}ns=1", over.as_nanos()))
}
