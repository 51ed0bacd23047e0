//! Run records as files: reading, writing, `throng merge`, `throng schema`.

mod checkpoint;
mod destination;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use measure::RunRecord;
use measure::merge::{Misfit, Misfits};

use crate::args::{Format, MergeArguments};
use crate::failure::{Failure, print, print_result};
use crate::inputs;
use crate::shell::quoted;
pub(crate) use checkpoint::CheckpointFile;
pub(crate) use destination::{Destination, Links};

/// Merges records.
pub(crate) fn merge(arguments: &MergeArguments) -> Result<ExitCode, Failure> {
    let records = arguments
        .records
        .iter()
        .map(|path| read(path))
        .collect::<Result<_, _>>()?;
    let misfits = match arguments.force {
        true => Misfits::Forced,
        false => Misfits::Refused,
    };
    let merged = measure::merge(records, misfits).map_err(|misfits| refused(&misfits))?;
    match &arguments.record {
        Some(path) => {
            let links = Links::with_force(arguments.force);
            Destination::check("--record", path, links)?.write(&merged)?;
        }
        None => print(&report::json::render(&merged))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn refused(misfits: &[Misfit]) -> Failure {
    let reasons: Vec<&str> = misfits.iter().map(|it| it.reason.as_str()).collect();
    let only = "merge only records of one load on one target, made at the same time by several \
                generators";
    let hint = match misfits.iter().any(|it| it.is_final) {
        true => only.to_owned(),
        false => format!("{only}; --force merges these and marks the result"),
    };
    Failure::usage(
        format!("these records cannot be merged: {}", reasons.join("; ")),
        hint,
    )
}

/// Writes a record where it is to go, then prints what is to be said of it, whether or not it could
/// be written; returns what was printed.
pub(crate) fn hand_over(
    record: &RunRecord,
    to: Option<&Destination>,
    rendered: impl FnOnce(&RunRecord) -> String,
) -> Result<String, Failure> {
    let written = to.map_or(Ok(()), |it| it.write(record));
    let text = rendered(record);
    let printed = print_result(&text);
    // The first one says where the record is.
    written.and(printed).map(|()| text)
}

/// What a report names in place of a file.
const NO_RECORD: &str = "a run without a record file";

/// Writes one of several records, if it is to be kept. If that fails, it is reported and the result
/// is false: the other records and their common result must not be lost for it.
pub(crate) fn keep_one(record: &RunRecord, to: Option<&Destination>) -> bool {
    match to.map_or(Ok(()), |it| it.write(record)) {
        Ok(()) => true,
        Err(failure) => {
            failure.report();
            false
        }
    }
}

/// A record in the form asked for; as text all of it if asked, or else its summary, which says that
/// the record is in `file`.
pub(crate) fn render(
    record: &RunRecord,
    format: Format,
    has_details: bool,
    file: Option<&Path>,
) -> String {
    match format {
        Format::Text if has_details => report::text::render(record),
        Format::Text => summary(record, file),
        Format::Json => report::json::render(record),
        Format::Csv => report::csv::render(record),
        Format::Markdown => {
            let name = file.map_or_else(|| NO_RECORD.into(), |it| it.display().to_string());
            report::several::markdown_of_run(record, &name)
        }
    }
}

/// The summary of a record that is in `file`.
pub(crate) fn summary(record: &RunRecord, file: Option<&Path>) -> String {
    let file = file.map(|it| quoted(&it.to_string_lossy()));
    report::summary::render(record, file.as_deref())
}

/// The record in a file.
pub(crate) fn read(path: &Path) -> Result<RunRecord, Failure> {
    let octets = read_input(path)?;
    let text = String::from_utf8(octets)
        .map_err(|_| Failure::plain(format!("{}: not UTF-8 text", path.display())))?;
    RunRecord::from_json(&text)
        .map_err(|reason| Failure::plain(format!("{}: {reason}", path.display())))
}

/// The octets of a file, or of standard input for `-`.
pub(crate) fn read_input(path: &Path) -> Result<Vec<u8>, Failure> {
    shared_input(path).map(Arc::unwrap_or_clone)
}

/// As [`read_input`], without a copy of what is kept.
pub(crate) fn shared_input(path: &Path) -> Result<Arc<Vec<u8>>, Failure> {
    inputs::content(path).map_err(|error| cannot_read(path, &error))
}

/// Opens a file to be read.
pub(crate) fn open(path: &Path) -> Result<fs::File, Failure> {
    fs::File::open(path).map_err(|error| cannot_read(path, &error))
}

fn cannot_read(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(
        format!("cannot read {}: {error}", path.display()),
        "check that the file exists and may be read",
    )
}
