//! From the flags of a search to its plan, and to those of each of its trials.

use std::time::Duration;

use lab::capacity::Attempt;
use load::arrival::parse_rate;
use measure::capacity::search::LENGTH_FACTOR;
use measure::capacity::{CapacityPlan, Objective, SearchFacts, Sought};
use settings::{Arrival, ClientArrival, DriverKind, Run};

use crate::args::capacity::{CapacityArguments, SearchFor};
use crate::args::flags::Asker;
use crate::failure::{Failure, refuse};
use crate::run::group::Group;
use crate::run::unused;

/// Tried first unless told otherwise.
const START_QPS: f64 = 1_000.0;
const START_CLIENTS: f64 = 10.0;
/// Not exceeded unless told otherwise.
const MAX_QPS: f64 = 10_000_000.0;
const MAX_CLIENTS: f64 = 1_000_000.0;
/// The same for simulations, which use one core: a trial must not take minutes.
const MAX_QPS_SIMULATED: f64 = 1_000_000.0;
const MAX_CLIENTS_SIMULATED: f64 = 100_000.0;
/// A verdict needs a run of a second.
const TRIAL_MIN: Duration = Duration::from_secs(1);
/// What passed and what failed cannot be nearer than rounding makes them.
const PRECISION_MIN: f64 = 0.001;
const PRECISION_MAX: f64 = 0.5;

/// The plan of the search.
pub(super) fn plan(arguments: &CapacityArguments) -> Result<CapacityPlan, Failure> {
    reject_unused(arguments)?;
    let is_simulated = arguments.run.driver == Some(DriverKind::Sim);
    let (sought, start, max) = match (arguments.search, is_simulated) {
        (SearchFor::Rate, false) => (Sought::Rate, START_QPS, MAX_QPS),
        (SearchFor::Rate, true) => (Sought::Rate, START_QPS, MAX_QPS_SIMULATED),
        (SearchFor::Clients, false) => (Sought::Clients, START_CLIENTS, MAX_CLIENTS),
        (SearchFor::Clients, true) => (Sought::Clients, START_CLIENTS, MAX_CLIENTS_SIMULATED),
    };
    let max = value("--max", arguments.max.as_deref(), sought, max)?;
    let start = value(
        "--start",
        arguments.start.as_deref(),
        sought,
        start.min(max),
    )?;
    if start > max {
        return Err(Failure::usage(
            format!("--start {start} is above --max {max}"),
            "give a lower --start or a higher --max",
        ));
    }
    check_times(arguments)?;
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Ok(CapacityPlan {
        objective: Objective {
            lost_share_max: arguments.max_loss,
            latency_p99_ns_max: nanos(arguments.max_p99),
            goodput_share_min: arguments.min_goodput,
        },
        search: SearchFacts {
            sought,
            rate_per_client_qps: rate_per_client(arguments)?,
            start,
            max,
            precision: arguments.precision,
            rounds: arguments.repeat.into(),
            trial_ns: nanos(arguments.trial_duration),
            confirmation_ns: Some(nanos(LENGTH_FACTOR * arguments.trial_duration)),
            time_max_ns: nanos(arguments.max_duration),
            ..SearchFacts::default()
        },
    })
}

/// A bound of the search.
fn value(flag: &str, text: Option<&str>, sought: Sought, default: f64) -> Result<f64, Failure> {
    let Some(text) = text else {
        return Ok(default);
    };
    let form = || {
        Failure::usage(
            format!("{flag} {text}: not a number from 1 on"),
            "write 500, 20k or 1.5M",
        )
    };
    let value = parse_rate(text).map_err(|_| form())?;
    let whole = sought == Sought::Rate || value.fract() == 0.0;
    let min = SearchFacts::default().min;
    match value >= min && whole && (sought == Sought::Rate || value <= f64::from(u32::MAX)) {
        true => Ok(value),
        false => Err(form()),
    }
}

fn rate_per_client(arguments: &CapacityArguments) -> Result<Option<f64>, Failure> {
    let text = arguments.rate_per_client.as_deref();
    let rate = text.map(parse_rate).transpose();
    let rate = rate.map_err(|error| {
        Failure::usage(format!("--rate-per-client: {}", error.what), error.hint)
    })?;
    match (arguments.search, rate) {
        (SearchFor::Rate, Some(_)) => Err(Failure::usage(
            "--rate-per-client has no effect on the search for a rate",
            "add --search clients, or leave it out",
        )),
        (SearchFor::Clients, None) => Err(Failure::usage(
            "--search clients needs to know how often each of them asks",
            "add --rate-per-client 2",
        )),
        (_, rate) => Ok(rate),
    }
}

fn check_times(arguments: &CapacityArguments) -> Result<(), Failure> {
    let trial = arguments.trial_duration;
    if trial < TRIAL_MIN {
        return Err(Failure::usage(
            format!("--trial-duration {trial:?}: too short to tell what limits a trial"),
            "give 1s or more",
        ));
    }
    if arguments.max_duration < trial {
        return Err(Failure::usage(
            "--max-duration is shorter than a single trial",
            "make it longer, or --trial-duration shorter",
        ));
    }
    let precision = arguments.precision;
    if !(PRECISION_MIN..=PRECISION_MAX).contains(&precision) {
        return Err(Failure::usage(
            format!("--precision {precision}: not from 0.1% to 50%"),
            "give a share such as 1%",
        ));
    }
    Ok(())
}

/// Refuses flags of a run that mean nothing where the search decides.
fn reject_unused(arguments: &CapacityArguments) -> Result<(), Failure> {
    let run = &arguments.run;
    let place = "in a search for capacity";
    unused::refuse(run, Asker::Capacity, place)?;
    let flags = [
        (
            "--clients",
            run.clients.is_some() && arguments.search == SearchFor::Clients,
            "use --start and --max",
        ),
        (
            "--queries-per-connection 0",
            run.connections.asks_nothing(),
            "use --connect-rate with `throng run`",
        ),
    ];
    refuse(&flags, place)
}

/// What every trial has in common, and the first one's load.
pub(super) fn base(arguments: &CapacityArguments, plan: &CapacityPlan) -> Result<Group, Failure> {
    let mut flags = arguments.run.clone();
    let mut run = match plan.search.rate_per_client_qps {
        None => flags.settings_with_rate(plan.search.start)?,
        Some(each) => {
            // The search says itself how they ask.
            flags.given.retain(|given| given.name != "arrival");
            Run {
                arrival: Arrival::Clients(ClientArrival::spread(flags.arrival, each)),
                ..flags.settings()?
            }
        }
    };
    run.limits.duration = Some(arguments.trial_duration);
    Ok(Group::of(&flags, run))
}

/// One trial.
pub(super) fn trial(base: &Group, attempt: Attempt) -> Group {
    let mut group = base.clone();
    let run = &mut group.run;
    run.limits.duration = Some(attempt.length);
    // What is drawn in one trial is not drawn again in the next.
    let seed = &mut run.generator.seed;
    *seed = seed.wrapping_add(attempt.position as u64);
    match &mut run.arrival {
        Arrival::Open { rate_qps, .. } => *rate_qps = (attempt.value * 1e3).round() / 1e3,
        _ => run.clients = Some(attempt.value.round() as u32),
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Command;

    #[test]
    fn a_search_without_flags_is_the_default_one() {
        let line = ["throng", "capacity", "--server", "192.0.2.1"];
        let parsed = crate::command_line::parse(line.map(Into::into).to_vec()).expect("flags");
        let Command::Capacity(arguments) = parsed.command else {
            panic!("it is a search");
        };
        let made = plan(&arguments).expect("a plan");
        let default = CapacityPlan::default();
        // 99.9 % is no binary fraction.
        let share = |plan: &CapacityPlan| (plan.objective.goodput_share_min * 1e6).round();
        assert_eq!(share(&made), share(&default));
        let objective = Objective {
            goodput_share_min: default.objective.goodput_share_min,
            ..made.objective
        };
        assert_eq!(CapacityPlan { objective, ..made }, default);
    }
}
