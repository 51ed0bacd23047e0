//! `throng fleet status`, `attach`, `fetch`, `stop` and `end`: what a person asks a lead.

use std::process::ExitCode;

use engine::Control;
use lab::kubernetes::{Fleet, State};
use measure::RunRecord;

use super::cluster;
use super::remote::{Remote, Told, status_line};
use super::status::Phase;
use crate::args::fleet::{FetchArguments, LeadCommand};
use crate::failure::{Failure, print};
use crate::records::{self, Destination, Links};
use crate::run;
use crate::run::group::Group;
use crate::signals::Interrupt;

/// The lead that a person means.
fn meant(command: &LeadCommand) -> Result<Remote, Failure> {
    match (&command.lead, &command.fleet) {
        (Some(lead), _) => Remote::by(lead),
        (None, fleet) => {
            let fleet = fleet.as_deref().unwrap_or_default();
            let fleet = Fleet::attach(fleet, command.namespace.as_deref())?;
            let look = fleet.look()?;
            let lead = look.lead.as_ref().filter(|lead| lead.state == State::Runs);
            let lead = lead.ok_or_else(|| {
                let why = look.why().unwrap_or_else(|| "it has ended".to_owned());
                let cure = "`throng fleet end FLEET` removes what is left of it";
                Failure::usage(
                    format!("the lead of `{}` does not run: {why}", fleet.name()),
                    cure,
                )
            })?;
            Remote::by(&cluster::lead_command(&fleet, &lead.name))
        }
    }
}

/// `throng fleet run --detach`.
pub(super) fn begin(groups: &[Group]) -> Result<ExitCode, Failure> {
    let mut groups = groups.to_vec();
    run::check_groups(&groups)?;
    cluster::settle(&mut groups, &Interrupt::default())?;
    let lead = groups[0].run.generator.lead.clone().unwrap_or_default();
    for group in &mut groups {
        group.run.generator.lead = None;
    }
    let number = Remote::by(&lead)?.begin(groups)?;
    let attach = match cluster::leave() {
        Some((fleet, namespace)) => format!("throng fleet attach {fleet} --namespace {namespace}"),
        None => format!("throng fleet attach --lead '{lead}'"),
    };
    tell!("run {number} is asked for; follow it with `{attach}`");
    Ok(ExitCode::SUCCESS)
}

/// `throng fleet status`.
pub(crate) fn status(lead: &LeadCommand) -> Result<ExitCode, Failure> {
    let status = meant(lead)?.status()?;
    let mut text = status_line(&status) + "\n";
    for (index, agent) in status.agents.iter().enumerate() {
        let name = agent.as_deref().unwrap_or("not there");
        text.push_str(&format!("agent {}: {name}\n", index + 1));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// `throng fleet stop`.
pub(crate) fn stop(lead: &LeadCommand) -> Result<ExitCode, Failure> {
    meant(lead)?.tell("stop")?;
    Ok(ExitCode::SUCCESS)
}

/// `throng fleet end`.
pub(crate) fn end(lead: &LeadCommand) -> Result<ExitCode, Failure> {
    if let Some(fleet) = &lead.fleet {
        Fleet::attach(fleet, lead.namespace.as_deref())?.remove()?;
        return Ok(ExitCode::SUCCESS);
    }
    meant(lead)?.tell("end")?;
    Ok(ExitCode::SUCCESS)
}

/// `throng fleet attach`: Ctrl-C leaves the run alone.
pub(crate) fn attach(arguments: &FetchArguments) -> Result<ExitCode, Failure> {
    let remote = meant(&arguments.lead)?;
    let status = remote.status()?;
    if status.runs == 0 {
        return Err(Failure::usage(
            "the lead has no run",
            "`throng run --lead COMMAND` begins one",
        ));
    }
    let control = Control::new(1);
    let result = remote.follow(status.runs, &control, |told| {
        match told {
            Told::Progress(progress) if !arguments.quiet => {
                tell!("{}", report::text::interval_line(&progress.interval));
            }
            Told::Progress(_) | Told::Status(_) => {}
        }
        Ok(())
    })?;
    hand_over(arguments, &remote.fetch(result)?)
}

/// `throng fleet fetch`.
pub(crate) fn fetch(arguments: &FetchArguments) -> Result<ExitCode, Failure> {
    let remote = meant(&arguments.lead)?;
    let status = remote.status()?;
    if status.phase != Phase::Over {
        return Err(Failure::usage(
            format!("there is no result yet: {}", status_line(&status)),
            "follow the run with `throng fleet attach`",
        ));
    }
    let result = remote.follow(status.runs, &Control::new(1), |_| Ok(()))?;
    hand_over(arguments, &remote.fetch(result)?)
}

fn hand_over(arguments: &FetchArguments, record: &RunRecord) -> Result<ExitCode, Failure> {
    let destination = arguments.record.as_deref();
    let destination = destination
        .map(|path| Destination::check("--record", path, Links::Refused))
        .transpose()?;
    let rendered = |record: &RunRecord| records::render(record, crate::args::Format::Text);
    let text = records::hand_over(record, destination.as_ref(), rendered)?;
    print(&text)?;
    let has_failed = run::is_failure(record);
    Ok(ExitCode::from(u8::from(has_failed)))
}
