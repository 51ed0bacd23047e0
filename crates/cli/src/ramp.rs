//! `throng ramp`: a rate that grows until the target cannot follow, or a limit is met.

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lab::live::{Follower, Live, Place};
use lab::ramp;
use load::arrival::parse_rate;
use measure::ramp::{Ramp, RampPlan, Stop, Watch};
use report::Answer;
use settings::{Arrival, ClientArrival, Process};

use crate::args::flags::Asker;
use crate::args::ramp::RampArguments;
use crate::conditions::{Gate, exit_code};
use crate::failure::{Failure, refuse};
use crate::records::{Destination, Links, hand_over};
use crate::reports::page_of_answer;
use crate::run::group::Group;
use crate::run::{self, Runner, unused};
use crate::signals::{self, Interrupt};
use crate::views::Views;

/// How long the last intervals may take to be looked at.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs and prints.
pub(crate) fn execute(arguments: &RampArguments) -> Result<ExitCode, Failure> {
    let plan = plan(arguments)?;
    let group = group_of(arguments, &plan)?;
    let record_to = Destination::of_record(&group.output)?;
    let links = Links::with_force(arguments.run.force);
    let gate = Gate::of(&arguments.run.conditions, links)?;
    let plot_to = (arguments.plot.as_deref())
        .map(|path| Destination::check("--plot", path, links))
        .transpose()?;
    let interrupt = signals::watch(|| {
        tell!("ending the ramp; waiting for open queries (interrupt again to abort)");
    });
    let live = Live::default();
    let views = Views::begin(&live, &group.output.views, "ramp")?;
    live.begin(Place::new("", 1, Some(1)));
    let is_simulated = group.run.is_simulated();
    let (watcher, stop) = watch(&live, (plan, is_simulated), &interrupt)?;
    let runner = Runner::new(&interrupt, &live, group.output.quiet);
    runner.note_last();
    let record = run::measure(&group, &runner);
    watcher.end(PATIENCE);
    let record = record?;
    let ramp = Ramp::new(&plan, &record, stop.get().copied());
    let (is_failure, plot) = (ramp.responses == 0, report::ramp::plot(&ramp));
    let answer = Answer::Ramp(Box::new(ramp));
    let format = arguments.run.format;
    let text = hand_over(&record, record_to.as_ref(), |_| format.of(&answer))?;
    if let Some(plot_to) = plot_to {
        plot_to.write_text(&plot)?;
    }
    let has_failed = gate.conclude_answer(&answer, (format, &text))?;
    views.finish(|| page_of_answer(answer));
    Ok(exit_code(is_failure, has_failed))
}

/// Ends the run where it meets a limit; the second has which. A simulation goes on: it would end
/// at another virtual time each time.
fn watch(
    live: &Live,
    (plan, is_simulated): (RampPlan, bool),
    interrupt: &Interrupt,
) -> Result<(Follower, Arc<OnceLock<Stop>>), Failure> {
    let stop: Arc<OnceLock<Stop>> = Arc::default();
    let (found, interrupt, mut watch) = (Arc::clone(&stop), interrupt.clone(), Watch::new(plan));
    let follower = live.follow(move |next| {
        let intervals = next
            .snapshots
            .iter()
            .filter_map(|it| it.shown.interval.as_ref());
        for interval in intervals {
            if !is_simulated
                && found.get().is_none()
                && let Some(limit) = watch.look(interval)
            {
                // It is looked at here alone.
                let _ = found.set(limit);
                interrupt.end_run();
            }
        }
    });
    Ok((follower.map_err(Failure::in_operation)?, stop))
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
