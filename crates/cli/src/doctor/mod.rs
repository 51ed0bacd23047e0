//! `throng doctor`: what stands in the way of load, on this host or in runs that were recorded.
//!
//! What is wrong with what is read is decided in `measure::doctor`; here are the modes: [`host`]
//! and [`records`]; `--ceiling` looks at the generator itself. Exit code 3 says that a problem was
//! found.

use std::process::ExitCode;

use measure::doctor::{Diagnosis, State, worst};

use crate::args::DocumentFormat;
use crate::args::doctor::DoctorArguments;
use crate::ceiling;
use crate::failure::{CONDITION_FAILED, Failure};

mod host;
mod records;

/// Looks, and says what it found.
pub(crate) fn execute(arguments: &DoctorArguments) -> Result<ExitCode, Failure> {
    if arguments.ceiling {
        return ceiling::of_all_transports(arguments.format == DocumentFormat::Json);
    }
    match arguments.records.is_empty() {
        true => host::execute(arguments),
        false => records::execute(arguments),
    }
}

/// A problem is what a script has to stop for.
fn exit_code(diagnoses: &[Diagnosis]) -> ExitCode {
    match worst(diagnoses) {
        State::Problem => ExitCode::from(CONDITION_FAILED),
        State::Ok | State::Unknown | State::Warning => ExitCode::SUCCESS,
    }
}
