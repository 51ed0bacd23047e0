//! `throng run`: one run, its progress, its result.

mod address;
mod asked;
pub(crate) mod captured;
mod doh;
mod elsewhere;
pub(crate) mod group;
mod hosts;
pub(crate) mod identity;
pub(crate) mod message;
pub(crate) mod names;
pub(crate) mod permission;
mod prepared;
pub(crate) mod processes;
pub(crate) mod profile;
pub(crate) mod progress;
mod questions;
mod request;
mod runner;
mod self_test;
mod shares;
pub(crate) mod tls;
pub(crate) mod unused;

use std::time::Duration;

use lab::agents::Connection;
use lab::run::{Division, RunRequest, Serving};
use measure::experience::GroupRecord;
use measure::{Aborted, RunRecord};
use settings::Run;

use crate::agent::{AgentIndex, Role, Shared};
use crate::failure::Failure;
use crate::run::group::Group;
pub(crate) use address::{address_of, lookup_failure};
use elsewhere::Elsewhere;
pub(crate) use elsewhere::quorum;
use prepared::prepare;
pub(crate) use request::CLIENTS;
pub(crate) use runner::Runner;
pub(crate) use shares::show_shares;

/// True if the run got no response; or if the script of all clients of a group failed, a worker
/// hung or an agent was lost, which is reported.
pub(crate) fn is_failure(record: &RunRecord) -> bool {
    let mut errors: Vec<String> = record.groups.iter().filter_map(failed_script).collect();
    let workers = record.workers.iter().enumerate();
    let stuck = workers.filter(|(_, worker)| worker.left_behind);
    errors.extend(stuck.map(|(number, _)| {
        format!("worker {number} did not end with the run: not all that it did is in the result")
    }));
    errors.extend(lost_agents(record));
    errors.iter().for_each(|error| tell!("error: {error}"));
    was_in_vain(record) || !errors.is_empty()
}

/// What ended the clients of a group, if an error in their script ended them all.
fn failed_script(group: &GroupRecord) -> Option<String> {
    let failure = group.script_failure()?;
    let of_group = match group.name.as_str() {
        GroupRecord::PLAIN => String::new(),
        name => format!(" of group `{name}`"),
    };
    Some(format!(
        "the script of every client{of_group} failed: {failure}"
    ))
}

/// True if the run tried and got no response at all; one that only opens connections, not a single
/// one.
fn was_in_vain(record: &RunRecord) -> bool {
    if record.asks_nothing() {
        return record.connections_opened() == 0;
    }
    let held = record.warmup.counts.lost() + record.answered_after_warmup();
    // A run that ended in its warm-up has measured nothing.
    let is_stuck = record.total.counts.offered == 0 && held > 0 && record.measured_ns > 0;
    let tried = record.total.counts.offered > 0 || record.connections().attempted > 0 || is_stuck;
    tried && record.total.counts.responses == 0
}

/// Runs with the progress display, and publishes what it shows.
pub(crate) fn measure(group: &Group, runner: &Runner<'_>) -> Result<RunRecord, Failure> {
    whole(measure_groups(std::slice::from_ref(group), runner)?)
}

/// Refuses the record of a run that has lost an agent, or that a condition ended early, as one of
/// several that are compared.
pub(crate) fn whole(record: RunRecord) -> Result<RunRecord, Failure> {
    let aborted = record.aborted.as_ref().map(Aborted::sentence);
    match lost_agents(&record).into_iter().next().or(aborted) {
        None => Ok(record),
        Some(why) => Err(Failure::in_operation(why)),
    }
}

/// The error for each agent that was lost.
fn lost_agents(record: &RunRecord) -> Vec<String> {
    let lost = record.degraded.iter().flat_map(|degraded| &degraded.lost);
    let told = lost.map(|lost| {
        format!(
            "agent {} was lost ({}): the result is that of the last checkpoint of all agents",
            lost.agent, lost.how
        )
    });
    told.collect()
}

/// Runs several groups of clients at once.
pub(crate) fn measure_groups(groups: &[Group], runner: &Runner<'_>) -> Result<RunRecord, Failure> {
    let (interrupt, live) = (runner.interrupt, runner.live);
    // What is decided anew for each run is decided once for all of its agents.
    let mut groups = groups.to_vec();
    for group in &mut groups {
        questions::decide_seed(&mut group.run);
        if !group.run.is_self_test() && !group.run.is_simulated() {
            let addresses = address::addresses_of(&group.run);
            group.addresses = Some(addresses.map_err(|failure| group.blame(failure))?);
        }
    }
    let groups = groups.as_slice();
    let (first, is_quiet) = (&groups[0].run, groups[0].output.quiet);
    if first.is_simulated() {
        return self_test::simulate(groups, interrupt, live);
    }
    let elsewhere = Elsewhere::of(groups)?;
    let mut prepared = prepare(groups, None)?;
    permission::check(&prepared.requests, groups[0].runs)?;
    show_shares(&prepared.requests, is_quiet);
    if let Some(elsewhere) = elsewhere {
        let of_run = (groups, is_quiet, shown_each(first));
        return processes::measure_on(elsewhere, prepared, of_run, runner);
    }
    lab::run::choose_local_addresses(&mut prepared.requests)?;
    let agents = first.generator.agents;
    if let Some(division) = lab::run::divide(&mut prepared.requests, agents)? {
        check_loss(first, &division)?;
        let of_run = (groups, is_quiet, shown_each(first));
        return processes::measure(prepared, division, of_run, runner);
    }
    let serving = prepared.serve()?;
    let requests = &prepared.requests;
    let control = lab::run::control(requests);
    interrupt.stops(&control);
    let how = (is_quiet, shown_each(first));
    let shown = progress::follow(live, requests, Some(&control), how);
    let outcome = lab::run::run_groups(requests, &control, live);
    progress::end(shown);
    for request in requests {
        tls::report_losses(request.tls.as_ref());
    }
    let responder = serving.map(Serving::stop_and_tell);
    let mut record = outcome?;
    if let Some((counted, waited)) = responder {
        lab::run::note_responder(&mut record, &counted, Some(waited));
    }
    Ok(record)
}

/// What a lost agent means for a run of several that is longer than this has to be said.
const LONG: Duration = Duration::from_mins(30);

fn check_loss(run: &Run, division: &Division) -> Result<(), Failure> {
    let is_long = run.limits.duration.is_some_and(|duration| duration > LONG);
    if !is_long || division.agents < 2 || run.generator.on_agent_loss.is_some() {
        return Ok(());
    }
    Err(Failure::usage(
        format!(
            "a run of more than 30 minutes by {} agents does not say what to do when one of them \
             is lost",
            division.agents
        ),
        "give --on-agent-loss end, continue or fail",
    ))
}

/// Length of an interval unless told; short runs have shorter ones.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// How often progress is shown.
fn shown_each(run: &Run) -> Duration {
    run.limits.interval.unwrap_or(INTERVAL)
}

/// The run as decided, against a server; nothing is sent.
pub(crate) fn request(group: &Group) -> Result<RunRequest, Failure> {
    let request = request::against(group)?;
    permission::check(std::slice::from_ref(&request), group.runs)?;
    Ok(request)
}

/// Reads all files that a run needs, and checks what can be checked of it without a network.
pub(crate) fn read_inputs(groups: &[Group]) -> Result<(), Failure> {
    prepare(groups, None).map(drop)
}

/// Does the share of a run that is this agent's.
pub(crate) fn execute_share(
    connection: &mut Connection,
    groups: &[Group],
    role: Role,
    shared: Shared,
    place: AgentIndex,
) -> Result<(), Failure> {
    processes::execute_share(connection, groups, role, shared, place)
}

/// Checks all that can be checked without sending load: flags, files, this host, and whether
/// somebody listens.
pub(crate) fn check(group: &Group) -> Result<(), Failure> {
    check_groups(std::slice::from_ref(group))
}

/// As [`check`], for several groups of clients.
pub(crate) fn check_groups(groups: &[Group]) -> Result<(), Failure> {
    if groups[0].run.is_simulated() {
        return self_test::check_simulation(groups);
    }
    let elsewhere = Elsewhere::of(groups)?;
    let mut prepared = prepare(groups, None)?;
    permission::check(&prepared.requests, groups[0].runs)?;
    if elsewhere.is_some() {
        // The rest is for the agents to see.
        return Ok(());
    }
    lab::run::choose_local_addresses(&mut prepared.requests)?;
    let agents = groups[0].run.generator.agents;
    if let Some(division) = lab::run::divide(&mut prepared.requests, agents)? {
        check_loss(&groups[0].run, &division)?;
        // A responder in parts is started when it is needed.
        return match division.responders {
            1 => {
                let _serving = prepared.serve()?;
                prepared.look_before()
            }
            _ => Ok(()),
        };
    }
    let _serving = prepared.serve()?;
    lab::run::check_host(&prepared.requests)?;
    prepared.look_before()
}
