//! `throng run`: one run, its progress, its result.

mod address;
mod asked;
mod doh;
pub(crate) mod processes;
pub(crate) mod profile;
mod progress;
mod questions;
mod request;
mod self_test;
pub(crate) mod tls;
pub(crate) mod unused;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use engine::Progress;
use lab::run::{RunRequest, Serving};
use measure::RunRecord;
use measure::experience::GroupRecord;
use proto::Transport;
use report::table::{Align, Table};
use responder::certificate::Identity;
use settings::Run;

use crate::args::RunArguments;
use crate::conditions::{Conditions, exit_code};
use crate::failure::Failure;
use crate::part::{PartIndex, Role, Shared};
use crate::records::{self, Destination};
use crate::scenario::{self, Group};
use crate::signals::{self, Interrupt};
pub(crate) use address::{address_of, lookup_failure};
use progress::Display;
pub(crate) use request::{CLIENTS, named_questions, query_options};
use self_test::Responder;

/// Runs and prints.
pub(crate) fn execute(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    if arguments.profile.profile_mix {
        return scenario::execute(None, arguments);
    }
    execute_group(&Group::plain(arguments)?)
}

/// Runs a group of clients that is alone, and prints.
pub(crate) fn execute_group(group: &Group) -> Result<ExitCode, Failure> {
    let output = &group.output;
    let conditions = Conditions::of_run(output)?;
    let destination = Destination::of_record(output)?;
    let interrupt = signals::watch(|| {
        tell!("ending the run; waiting for open queries (interrupt again to abort)");
    });
    let record = measure(group, &interrupt)?;
    let rendered = |record: &RunRecord| records::render(record, output.format);
    let text = records::hand_over(&record, destination.as_ref(), rendered)?;
    let checks = conditions.check_run(&record);
    let has_failed = conditions.conclude("throng run", &checks, &text)?;
    Ok(exit_code(is_failure(&record), has_failed))
}

/// True if the run was in vain; or if the script of all clients of a group has failed or a worker
/// did not end, which is told.
pub(crate) fn is_failure(record: &RunRecord) -> bool {
    let mut errors: Vec<String> = record.groups.iter().filter_map(failed_script).collect();
    let workers = record.workers.iter().enumerate();
    let stuck = workers.filter(|(_, worker)| worker.left_behind);
    errors.extend(stuck.map(|(number, _)| {
        format!("worker {number} did not end with the run: not all that it did is in the result")
    }));
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
    let tried = record.total.counts.offered > 0 || record.connections().attempted > 0;
    tried && record.total.counts.responses == 0
}

/// Runs with the progress display; `interrupt` ends it.
pub(crate) fn measure(group: &Group, interrupt: &Interrupt) -> Result<RunRecord, Failure> {
    measure_groups(std::slice::from_ref(group), interrupt)
}

/// As [`measure`]; `watch` sees each interval as it ends, unless the run is a simulation.
pub(crate) fn measure_watched(
    group: &Group,
    interrupt: &Interrupt,
    watch: &mut dyn FnMut(&Progress),
) -> Result<RunRecord, Failure> {
    watch_groups(std::slice::from_ref(group), interrupt, watch)
}

/// Runs several groups of clients at once.
pub(crate) fn measure_groups(
    groups: &[Group],
    interrupt: &Interrupt,
) -> Result<RunRecord, Failure> {
    watch_groups(groups, interrupt, &mut |_| {})
}

fn watch_groups(
    groups: &[Group],
    interrupt: &Interrupt,
    watch: &mut dyn FnMut(&Progress),
) -> Result<RunRecord, Failure> {
    // What is decided anew for each run is decided once, whoever has a part in it.
    let mut groups = groups.to_vec();
    let each = groups.iter_mut();
    each.for_each(|group| questions::decide_seed(&mut group.run));
    let groups = groups.as_slice();
    let (first, is_quiet) = (&groups[0].run, groups[0].output.quiet);
    if first.is_simulated() {
        return self_test::simulate(groups, interrupt);
    }
    let mut prepared = prepare(groups, None)?;
    show_shares(&prepared.requests, is_quiet);
    let processes = first.generator.processes;
    if let Some(division) = lab::run::divide(&mut prepared.requests, processes)? {
        let of_run = (groups, is_quiet, shown_each(first));
        return processes::measure(prepared, division, of_run, (interrupt, watch));
    }
    let serving = prepared.serve()?;
    let requests = &prepared.requests;
    let control = lab::run::control(requests);
    interrupt.stops(&control);
    let mut display = Display::new(requests, is_quiet, shown_each(first));
    let outcome = lab::run::run_groups(requests, &control, |progress| {
        display.show(progress);
        watch(progress);
    });
    display.finish();
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

/// Length of an interval unless told; short runs have shorter ones.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// How often progress is shown.
fn shown_each(run: &Run) -> Duration {
    run.limits.interval.unwrap_or(INTERVAL)
}

/// The run as decided, against a server; nothing is sent.
pub(crate) fn request(group: &Group) -> Result<RunRequest, Failure> {
    request::against(group)
}

/// Says who offers what before a run of several groups or targets starts.
pub(crate) fn show_shares(requests: &[RunRequest], is_quiet: bool) {
    if is_quiet || requests.len() < 2 {
        return;
    }
    let (left, right) = (Align::Left, Align::Right);
    let mut table = Table::new([left, left, left, right, left]);
    table.row(["group", "target", "transport", "clients", "offers"].map(str::to_owned));
    for share in lab::run::shares::shares(requests) {
        let target = share.target;
        table.row([
            share.group,
            target.unwrap_or_else(|| "the built-in responder".to_owned()),
            share.transport,
            measure::notation::count(share.clients.into()),
            share.load,
        ]);
    }
    let mut text = String::new();
    table.write_to(&mut text);
    text.lines().for_each(|line| tell!("{line}"));
}

/// Does the part of a run that is this process's.
pub(crate) fn execute_part(
    groups: &[Group],
    role: Role,
    shared: Shared,
    place: PartIndex,
) -> Result<(), Failure> {
    processes::execute_part(groups, role, shared, place)
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
    let mut prepared = prepare(groups, None)?;
    let processes = groups[0].run.generator.processes;
    if let Some(division) = lab::run::divide(&mut prepared.requests, processes)? {
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

/// A run that is decided, and the responder that is to be its target, if it is a self-test.
struct Prepared {
    requests: Vec<RunRequest>,
    responder: Option<Responder>,
}

impl Prepared {
    /// Starts the responder in this process, if it is the target.
    fn serve(&mut self) -> Result<Option<Serving>, Failure> {
        let Some(responder) = &self.responder else {
            return Ok(None);
        };
        let serving = responder.serve()?;
        self.point_at(serving.addresses());
        Ok(Some(serving))
    }

    /// The responder listens there.
    fn point_at(&mut self, addresses: &[(Transport, SocketAddr)]) {
        for request in self.requests.iter_mut() {
            let own = addresses.iter();
            let own = own.filter(|(transport, _)| *transport == request.plan.transport);
            if let Some((_, address)) = own.copied().next() {
                request.set_target(address);
            }
        }
    }

    /// Looks whether there is somebody to ask, and where to ask from.
    fn look_before(&self) -> Result<(), Failure> {
        lab::run::check_local_addresses(&self.requests)?;
        for request in self.requests.iter().filter(|request| request.preflight) {
            lab::run::check_target(request)?;
        }
        Ok(())
    }
}

/// The requests, and the built-in responder where it is the target; nothing is started.
/// `identity` is the responder's, if it has one already.
fn prepare(groups: &[Group], identity: Option<Identity>) -> Result<Prepared, Failure> {
    let servers = groups.iter().filter(|group| !group.run.is_self_test());
    let mut prepared = match servers.count() {
        0 => self_test::prepare(groups, identity)?,
        all if all == groups.len() => {
            let mut requests = Vec::new();
            for group in groups {
                let request = request::against(group);
                requests.push(request.map_err(|failure| group.blame(failure))?);
            }
            Prepared {
                requests,
                responder: None,
            }
        }
        _ => {
            return Err(Failure::usage(
                "some groups of clients have a server and some have none",
                "give one to all of them, at the top of the scenario or with --server",
            ));
        }
    };
    for (request, group) in prepared.requests.iter_mut().zip(groups) {
        request.group.clone_from(&group.name);
    }
    scenario::share_rounds(groups, &mut prepared.requests)?;
    lab::run::choose_local_addresses(&mut prepared.requests)?;
    Ok(prepared)
}
