//! `throng fleet`: a lead to which agents dial, the agents, and the commands that ask the lead.
//!
//! | module | what it is |
//! |---|---|
//! | `lead` | the process that leads agents through one run after the other |
//! | `clients` | what the lead says to commands that ask it |
//! | `remote` | a command that asks a lead for a run; `commands`: those of a person |
//! | `status` | what lead and command tell each other |
//! | `cluster` | the fleet in Kubernetes that a command makes for its runs |
//! | `manifest` | the same as YAML, for whoever applies it |
//! | `relay` | standard input and output of a command, to the lead on the same host |
//! | `agent` | dials the lead, and is a part of its runs |

mod agent;
mod clients;
pub(crate) mod cluster;
mod commands;
mod lead;
mod manifest;
mod relay;
pub(crate) mod remote;
mod status;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::process::ExitCode;

use lab::kubernetes::{Fleet, State};

use crate::args::FleetArguments;
use crate::args::fleet::{FleetCommand, FleetRunArguments};
use crate::failure::{Failure, print};
use crate::{run_command, scenario};

/// Does what the arguments ask for.
pub(crate) fn execute(arguments: &FleetArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        FleetCommand::Lead(arguments) => lead::execute(arguments),
        FleetCommand::Agent(arguments) => agent::execute(arguments),
        FleetCommand::Relay { name } => relay::execute(name),
        FleetCommand::Keys { folder } => keys(folder),
        FleetCommand::Status(lead) => commands::status(lead),
        FleetCommand::Attach(arguments) => commands::attach(arguments),
        FleetCommand::Fetch(arguments) => commands::fetch(arguments),
        FleetCommand::Stop(lead) => commands::stop(lead),
        FleetCommand::End(lead) => commands::end(lead),
        FleetCommand::List { namespace } => list(namespace.as_deref()),
        FleetCommand::Run(run) => run_by_fleet(run),
        FleetCommand::Manifest(run) => manifest::execute(&run.command),
    }
}

/// A run that says who is to make it.
fn run_by_fleet(arguments: &FleetRunArguments) -> Result<ExitCode, Failure> {
    let runs = scenario::runs(
        arguments.command.scenario.as_deref(),
        &arguments.command.run,
    )?;
    for (_, groups) in &runs {
        let generator = &groups[0].run.generator;
        let is_led = generator.lead.is_some() || generator.kubernetes.is_some();
        if arguments.detach && !is_led {
            return Err(Failure::usage(
                "--detach: the run would end with this command",
                "add --kubernetes or --lead",
            ));
        }
        if !is_led && generator.hosts.is_none() {
            return Err(Failure::usage(
                "the run does not say where its agents are",
                "add --kubernetes, --hosts FILE or --lead COMMAND",
            ));
        }
    }
    match (arguments.detach, runs.as_slice()) {
        (false, _) => run_command::execute(&arguments.command),
        (true, [(_, groups)]) => commands::begin(groups),
        (true, _) => Err(Failure::usage(
            format!("--detach: a sweep is {} runs", runs.len()),
            "begin each by itself",
        )),
    }
}

/// `throng fleet list`.
fn list(namespace: Option<&str>) -> Result<ExitCode, Failure> {
    let fleets = Fleet::list(namespace)?;
    if fleets.is_empty() {
        tell!("no fleet is there");
    }
    for fleet in fleets {
        let state = match &fleet.lead {
            State::Runs => "runs".to_owned(),
            State::Ended => "has ended".to_owned(),
            other => other.why().unwrap_or_default().to_owned(),
        };
        print(&format!(
            "{}  since {}  {state}\n",
            fleet.name, fleet.made_at
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes keys for nobody else to read. Those that are there are not replaced.
fn keys(folder: &Path) -> Result<ExitCode, Failure> {
    let cannot = |path: &Path, error: std::io::Error| {
        Failure::usage(
            format!("cannot write {}: {error}", path.display()),
            "name a folder that is not there yet: a fleet keeps its keys",
        )
    };
    let mut folders = fs::DirBuilder::new();
    let made = folders.recursive(true).mode(0o700).create(folder);
    made.map_err(|error| cannot(folder, error))?;
    for (name, text) in lab::parts::make_keys()? {
        let path = folder.join(name);
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| cannot(&path, error))?;
    }
    tell!(
        "keys are in {0}: give the lead {0}/ca.pem, lead.pem and lead.key, and agents ca.pem, \
         agent.pem and agent.key",
        folder.display()
    );
    Ok(ExitCode::SUCCESS)
}
