//! Run records as files: reading, writing, `throng merge`, `throng schema`.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

use measure::RunRecord;

use crate::args::{Format, MergeArguments, RunArguments, SchemaOf};
use crate::failure::{Failure, print};
use crate::scenario;

/// Merges records.
pub(crate) fn merge(arguments: &MergeArguments) -> Result<ExitCode, Failure> {
    let records = arguments
        .records
        .iter()
        .map(|path| read(path))
        .collect::<Result<_, _>>()?;
    let merged = measure::merge(records).map_err(|reason| {
        Failure::usage(
            format!("these records cannot be merged: {reason}"),
            "merge only records of the same scenario run at the same time by several generators",
        )
    })?;
    match &arguments.output {
        Some(path) => Destination::check("--output", path)?.write(&merged)?,
        None => print(&report::json::render(&merged))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a JSON Schema.
pub(crate) fn schema(of: SchemaOf) -> Result<ExitCode, Failure> {
    let schema = match of {
        SchemaOf::Record => RunRecord::json_schema(),
        SchemaOf::Scenario => scenario::schema(),
        SchemaOf::Ramp => measure::Ramp::json_schema(),
        SchemaOf::Capacity => measure::Capacity::json_schema(),
    };
    print(&report::json::pretty(&schema))?;
    Ok(ExitCode::SUCCESS)
}

/// A record in the form asked for.
pub(crate) fn render(record: &RunRecord, format: Format) -> String {
    match format {
        Format::Text => report::text::render(record),
        Format::Json => report::json::render(record),
        Format::Csv => report::csv::render(record),
    }
}

/// The record in a file.
pub(crate) fn read(path: &Path) -> Result<RunRecord, Failure> {
    let octets = read_input(path)?;
    let text = String::from_utf8(octets)
        .map_err(|_| Failure::plain(format!("{}: not UTF-8 text", path.display())))?;
    RunRecord::from_json(&text)
        .map_err(|reason| Failure::plain(format!("{}: {reason}", path.display())))
}

/// Standard input, once it has been read: it can be read but once, and by one process.
static INPUT: OnceLock<Vec<u8>> = OnceLock::new();

/// What was read from standard input, if anything was.
pub(crate) fn input() -> Option<&'static [u8]> {
    INPUT.get().map(Vec::as_slice)
}

/// Lets `octets` stand for standard input, which has another use in this process.
pub(crate) fn provide_input(octets: Vec<u8>) {
    // Only the first can be in force, and a process is told once.
    let _ = INPUT.set(octets);
}

/// The octets of a file, or of standard input for `-`.
pub(crate) fn read_input(path: &Path) -> Result<Vec<u8>, Failure> {
    let read = if path == Path::new("-") {
        if let Some(octets) = INPUT.get() {
            return Ok(octets.clone());
        }
        let mut octets = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut octets);
        read.map(|_| INPUT.get_or_init(|| octets).clone())
    } else {
        fs::read(path)
    };
    read.map_err(|error| cannot_read(path, &error))
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

/// A place where a record can be written, checked before the run.
#[derive(Debug)]
pub(crate) struct Destination {
    path: PathBuf,
}

impl Destination {
    /// Makes sure that the file that `flag` names can be written.
    ///
    /// Until the record is written an existing file stays as it is, and no new one is left behind.
    pub(crate) fn check(flag: &str, path: &Path) -> Result<Self, Failure> {
        let existed = path.exists();
        fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(|error| {
                Failure::usage(
                    format!("cannot write to {}: {error}", path.display()),
                    format!("give {flag} a file in a folder that exists and may be written"),
                )
            })?;
        if !existed {
            // Only a folder that somebody changes meanwhile can keep the empty file.
            let _ = fs::remove_file(path);
        }
        Ok(Destination {
            path: path.to_owned(),
        })
    }

    /// As [`Destination::check`] for `--record`, if it is given.
    pub(crate) fn of_record(arguments: &RunArguments) -> Result<Option<Self>, Failure> {
        let path = arguments.record.as_deref();
        path.map(|path| Destination::check("--record", path))
            .transpose()
    }

    /// The file's name as text.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Writes the record: all of it or, if the process dies meanwhile, none.
    pub(crate) fn write(&self, record: &RunRecord) -> Result<(), Failure> {
        self.write_text(&report::json::render(record))
    }

    /// Writes a text, as [`Destination::write`] does.
    pub(crate) fn write_text(&self, text: &str) -> Result<(), Failure> {
        let written = replace(&self.path, text);
        written.map_err(|error| {
            let path = self.path.display();
            Failure::in_operation(format!("cannot write to {path}: {error}"))
        })
    }
}

/// Makes `text` the content of a file: all of it or, if the process dies meanwhile, none.
pub(crate) fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    // What is no file, such as a pipe or /dev/stdout, cannot be replaced by one.
    if path.exists() && !path.is_file() {
        return fs::write(path, text);
    }
    let mut partial = path.to_owned().into_os_string();
    partial.push(".partial");
    fs::write(&partial, text).and_then(|()| fs::rename(&partial, path))
}
