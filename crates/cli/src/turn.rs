//! `throng turn`: a run that a command makes in a process of its own, so that what one run leaves
//! behind cannot touch the next. Nobody but that command starts it.
//!
//! What it is to do comes as that of an agent does: through standard input and as types, for
//! everybody on the host may read the command line of a process. Its record it writes by itself.

use std::fs::File;
use std::io::{Read, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::run::group::Group;
use crate::signals::Interrupt;
use crate::{agent, child, inputs, run_command, streams};

/// The subcommand, which has no help of its own.
pub(crate) const NAME: &str = "turn";

/// What a turn is told.
#[derive(Serialize, Deserialize)]
struct Setup {
    groups: Vec<Group>,
    inputs: Value,
    /// A file that is to be there once the load has begun.
    begun: Option<PathBuf>,
}

/// Where what a run leaves goes.
pub(crate) struct Places<'a> {
    /// Its record.
    pub(crate) record: &'a Path,
    /// What it prints; without one, only errors are shown.
    pub(crate) log: Option<&'a File>,
    /// A file that it makes when its load begins.
    pub(crate) begun: Option<&'a Path>,
}

/// Makes a run and waits for its end.
pub(crate) fn make(
    groups: &[Group],
    places: &Places<'_>,
    interrupt: &Interrupt,
) -> Result<ExitStatus> {
    let Places { record, log, begun } = *places;
    let mut groups = groups.to_vec();
    // The first group says it for all.
    let output = &mut groups[0].output;
    (output.record, output.quiet) = (Some(record.to_owned()), true);
    let inputs = inputs::to_json();
    let setup = serde_json::to_value(Setup {
        groups,
        inputs,
        begun: begun.map(Path::to_owned),
    })?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(NAME);
    match log {
        Some(log) => command.stdout(log.try_clone()?).stderr(log.try_clone()?),
        None => command.stdout(Stdio::null()),
    };
    child::run(&mut command, Some(&setup), interrupt)
}

/// Makes the run that this process is told of.
pub(crate) fn execute() -> std::result::Result<ExitCode, Failure> {
    let mut setup = String::new();
    let read = streams::input().read_to_string(&mut setup);
    read.map_err(|error| agent::by_hand(&error.to_string()))?;
    let setup: Setup =
        serde_json::from_str(&setup).map_err(|error| agent::by_hand(&error.to_string()))?;
    inputs::provide(&setup.inputs).map_err(Failure::in_operation)?;
    run_command::execute_groups(setup.groups, setup.begun)
}
