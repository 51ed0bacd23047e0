//! `throng schema`: JSON Schemas of documents, and tables of what they may have.

use std::process::ExitCode;

use lab::target::Listed;
use measure::RunRecord;
use schemars::{JsonSchema, schema_for};
use serde_json::Value;

use crate::args::SchemaOf;
use crate::ceiling::Ceilings;
use crate::experiment::claims::Claims;
use crate::experiment::results::document::Document;
use crate::failure::{Failure, print};
use crate::history::list::Run;
use crate::history::trend::Trend;
use crate::probe::ping;
use crate::{experiment, help, scenario};

/// Prints a JSON Schema.
pub(crate) fn execute(of: SchemaOf) -> Result<ExitCode, Failure> {
    let schema = match of {
        SchemaOf::Commands => return page(&help::reference()),
        SchemaOf::Observations => return page(&observe::profiles::tables()),
        SchemaOf::Metrics => return page(&measure::Metric::table()),
        SchemaOf::Verdict => return page(&measure::verdict_document()),
        SchemaOf::Record => RunRecord::json_schema(),
        SchemaOf::Scenario => scenario::schema::schema(),
        SchemaOf::Experiment => experiment::schema::schema(),
        SchemaOf::ExperimentResults => schema_of::<Document<'_>>(),
        SchemaOf::ExperimentClaims => schema_of::<Claims<'_>>(),
        SchemaOf::Ramp => measure::Ramp::json_schema(),
        SchemaOf::Capacity => measure::Capacity::json_schema(),
        SchemaOf::Compare => measure::AbComparison::json_schema(),
        SchemaOf::CompareTransports => measure::Comparison::json_schema(),
        SchemaOf::Report => report::collection::json_schema(),
        SchemaOf::Doctor => report::doctor::json_schema(),
        SchemaOf::Ceilings => schema_of::<Ceilings>(),
        SchemaOf::HistoryList => schema_of::<Vec<Run<'_>>>(),
        SchemaOf::HistoryTrend => schema_of::<Trend<'_>>(),
        SchemaOf::Ping => schema_of::<ping::Line<'_>>(),
        SchemaOf::Eval => schema_of::<measure::Evaluation>(),
        SchemaOf::Trace => schema_of::<measure::Trace>(),
        SchemaOf::Line => schema_of::<measure::line::Line>(),
        SchemaOf::LabList => schema_of::<Vec<Listed>>(),
    };
    page(&report::json::pretty(&schema))
}

fn page(text: &str) -> Result<ExitCode, Failure> {
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

fn schema_of<T: JsonSchema>() -> Value {
    schema_for!(T).to_value()
}
