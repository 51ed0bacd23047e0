//! Runs that were recorded: what each met, and what they show together.

use std::process::ExitCode;

use measure::RunRecord;
use measure::doctor::{of_run, of_runs};
use report::doctor::OfRuns;

use crate::args::DocumentFormat;
use crate::args::doctor::DoctorArguments;
use crate::failure::{Failure, print};
use crate::reports;

/// Reads the records and judges them.
pub(super) fn execute(arguments: &DoctorArguments) -> Result<ExitCode, Failure> {
    let sources = reports::sources(&arguments.records)
        .map_err(|failure| failure.or_hint("give run records: files that --record wrote"))?;
    let records: Vec<&RunRecord> = sources.iter().map(|source| &source.record).collect();
    let each: Vec<_> = records.iter().map(|record| of_run(record)).collect();
    let found = OfRuns {
        sources: &sources,
        each: &each,
        together: &of_runs(&records),
    };
    print(&match arguments.format {
        DocumentFormat::Text => found.text(),
        DocumentFormat::Json => found.json(),
    })?;
    Ok(super::exit_code(&found.all()))
}
