//! This host, or one whose files were copied.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use lab::host::{Host, UnknownInterface};
use measure::doctor::{Aim, of_host};
use report::doctor::OfHost;

use crate::args::DocumentFormat;
use crate::args::doctor::DoctorArguments;
use crate::failure::{Failure, print};

/// How long counters are watched: CPU time is counted in steps of 10 ms.
const WATCH: Duration = Duration::from_millis(500);

/// Reads the host and judges it.
pub(super) fn execute(arguments: &DoctorArguments) -> Result<ExitCode, Failure> {
    let host = match &arguments.root {
        None => Host::this(),
        Some(root) => copied(root)?,
    };
    let reading = host
        .reading(arguments.interface.as_deref(), WATCH)
        .map_err(|error| unknown_interface(&error))?;
    let aim = Aim {
        clients: arguments.clients,
        is_server: arguments.server,
    };
    let diagnoses = of_host(&reading, aim);
    let found = OfHost {
        throng_version: env!("CARGO_PKG_VERSION"),
        host: &reading,
        aim,
        diagnoses: &diagnoses,
    };
    print(&match arguments.format {
        DocumentFormat::Text => found.text(),
        DocumentFormat::Json => found.json(),
    })?;
    Ok(super::exit_code(&diagnoses))
}

/// A folder that has something of a host in it.
fn copied(root: &Path) -> Result<Host, Failure> {
    match root.join("proc").is_dir() || root.join("sys").is_dir() {
        true => Ok(Host::at(root)),
        false => Err(Failure::usage(
            format!(
                "--root {}: there is neither proc nor sys in it",
                root.display()
            ),
            "give the folder that the files of the other host were copied to",
        )),
    }
}

fn unknown_interface(error: &UnknownInterface) -> Failure {
    let hint = match error.known.is_empty() {
        true => "there is none that can be read".to_owned(),
        false => format!("there are: {}", error.known.join(", ")),
    };
    Failure::usage(format!("--interface: {error}"), hint)
}
