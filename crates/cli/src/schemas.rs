//! `throng schema`: JSON Schemas of documents, and tables of what they may have.

use std::process::ExitCode;

use measure::RunRecord;

use crate::args::SchemaOf;
use crate::failure::{Failure, print};
use crate::scenario;

/// Prints a JSON Schema.
pub(crate) fn execute(of: SchemaOf) -> Result<ExitCode, Failure> {
    let schema = match of {
        SchemaOf::Observations => {
            print(&observe::profiles::tables())?;
            return Ok(ExitCode::SUCCESS);
        }
        SchemaOf::Metrics => {
            print(&measure::Metric::table())?;
            return Ok(ExitCode::SUCCESS);
        }
        SchemaOf::Verdict => {
            print(&measure::verdict_document())?;
            return Ok(ExitCode::SUCCESS);
        }
        SchemaOf::Record => RunRecord::json_schema(),
        SchemaOf::Scenario => scenario::schema(),
        SchemaOf::Ramp => measure::Ramp::json_schema(),
        SchemaOf::Capacity => measure::Capacity::json_schema(),
        SchemaOf::Compare => measure::AbComparison::json_schema(),
        SchemaOf::CompareTransports => measure::Comparison::json_schema(),
    };
    print(&report::json::pretty(&schema))?;
    Ok(ExitCode::SUCCESS)
}
