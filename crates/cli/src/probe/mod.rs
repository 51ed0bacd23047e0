//! A query now and then: `throng ping`, `throng eval`, `throng trace`.
//!
//! The first two are runs of one client with a constant rate, on the engine of every other run;
//! what they show beside the record comes from an observer of its queries.

pub(crate) mod eval;
pub(crate) mod ping;
pub(crate) mod trace;

use std::time::Duration;

use clap::CommandFactory;
use load::arrival::{RATE_QPS_MAX, RATE_QPS_MIN};
use settings::{Arrival, DriverKind, Names};

use crate::args::probe::ProbeArguments;
use crate::args::{Arguments, RunArguments};
use crate::failure::Failure;
use crate::run;
use crate::run::group::Group;

/// The questions, one a line, and as they are shown.
fn questions(arguments: &ProbeArguments) -> Result<Vec<String>, Failure> {
    let name = &arguments.name;
    if name.is_empty() || name.contains(char::is_whitespace) || name.starts_with([';', '#', '-']) {
        return Err(Failure::usage(
            format!("`{name}` is not a name to query"),
            "give a domain name, such as www.example.com",
        ));
    }
    if !name.is_ascii() {
        return Err(Failure::usage(
            format!("`{name}` has characters outside ASCII, which DNS sends as they are"),
            format!("give its A-label form, which begins with xn-- (`idn2 {name}` prints it)"),
        ));
    }
    if name.starts_with('@') {
        return Err(Failure::usage(
            format!("`{name}` is a server, and a name to query is missing"),
            format!("give NAME --server {}", name.trim_start_matches('@')),
        ));
    }
    let line = |qtype: &String| match qtype.is_empty() || qtype.contains(char::is_whitespace) {
        true => Err(Failure::usage(
            format!("--type: `{qtype}` is not a type"),
            "give mnemonics such as A or A,AAAA",
        )),
        false => Ok(format!("{name} {}", qtype.to_uppercase())),
    };
    arguments.types.iter().map(line).collect()
}

/// Refuses flags of `throng run` that the help of the command does not show.
pub(crate) fn reject_hidden(command: &str, arguments: &RunArguments) -> Result<(), Failure> {
    let all = Arguments::command();
    let Some(own) = all.find_subcommand(command) else {
        return Ok(());
    };
    let is_hidden = |name: &str| {
        let mut flags = own.get_arguments();
        flags.any(|flag| flag.get_long() == Some(name) && flag.is_hide_set())
    };
    match arguments.given.iter().find(|given| is_hidden(&given.name)) {
        None => Ok(()),
        Some(given) => Err(Failure::usage(
            format!("--{} cannot be used with `throng {command}`", given.name),
            format!("leave it out, or use `throng run`; see `throng {command} --help`"),
        )),
    }
}

/// Queries a second of such a run; refuses flags of which no such run can be made, for any target.
fn rate_of(flags: &RunArguments) -> Result<f64, Failure> {
    if flags.driver == Some(DriverKind::Sim) {
        return Err(Failure::usage(
            "--driver sim simulates the server, too: there is no server to query",
            "leave it out, or use `throng run`",
        ));
    }
    if flags.connections.asks_nothing() {
        return Err(Failure::usage(
            "--queries-per-connection 0 sends no queries",
            "give 1 for a new connection for each query",
        ));
    }
    rate(flags.interval.unwrap_or(run::INTERVAL))
}

/// The run of one server: one client, a query each `interval`.
fn run_of(
    flags: &RunArguments,
    questions: &[String],
    count: Option<u64>,
) -> Result<Group, Failure> {
    let rate_qps = rate_of(flags)?;
    let interval = flags.interval.unwrap_or(run::INTERVAL);
    let mut run = flags.settings()?;
    run.arrival = Arrival::Open {
        rate_qps,
        process: flags.arrival,
        burst: flags.burst,
    };
    run.questions.names = Some(Names::Lines(format!("{}\n", questions.join("\n"))));
    (run.clients, run.generator.workers) = (Some(1), Some(1));
    run.limits.queries = count;
    // Without a number of queries only Ctrl-C ends it.
    run.limits.duration = count
        .is_none()
        .then_some(Duration::from_secs(u64::from(u32::MAX)));
    run.limits.interval = Some(interval.max(run::INTERVAL));
    Ok(Group::of(flags, run).of_runs(1))
}

/// Queries a second, to the millionth.
fn rate(interval: Duration) -> Result<f64, Failure> {
    let rate_qps = 1.0 / interval.as_secs_f64();
    match (RATE_QPS_MIN..=RATE_QPS_MAX).contains(&rate_qps) {
        true => Ok((rate_qps * 1e6).round() / 1e6),
        false => Err(Failure::usage(
            format!(
                "--interval: {} cannot be kept",
                humantime::format_duration(interval)
            ),
            "give a time such as 1s or 100ms",
        )),
    }
}
