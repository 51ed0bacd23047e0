//! `throng fit`: from captures and query logs to a profile of those who asked.

mod summary;

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use capture::fit::{Fit, FitOptions};
use capture::{Capture, CaptureError, Format, Observed, Options, Skipped};
use lab::files::{self, Access};

use crate::args::fit::FitArguments;
use crate::failure::{Failure, print};
use crate::records;
use crate::streams;
use crate::terminal;

pub(crate) use summary::skipped;

/// Fits, writes the profile, and says what is in it.
pub(crate) fn execute(arguments: &FitArguments) -> Result<ExitCode, Failure> {
    let mut fit = Fit::new(FitOptions {
        keep_names: arguments.keep_names,
        identity: arguments.reading.client.into(),
    });
    let mut skipped = Skipped::default();
    let options = Options {
        format: arguments.reading.format,
        ports: arguments.reading.port.clone(),
        ..Options::default()
    };
    for path in &arguments.captures {
        let contents = read(path, open(path)?, &options, |query| fit.add(query))?;
        contents.report();
        skipped.merge(&contents.skipped);
        fit.next_capture();
    }
    terminal::text(&summary::skipped(&skipped));
    let fitted = fit
        .finish()
        .map_err(|error| Failure::usage(error, error.cure()))?;
    terminal::text(&summary::notes(&fitted.notes));
    let text = summary::profile(&fitted.profile);
    match &arguments.output {
        None => print(&text)?,
        Some(path) => {
            let toml = fitted.profile.to_toml().map_err(Failure::in_operation)?;
            if path == Path::new("-") {
                print(&toml)?;
            } else {
                files::write(path, Access::Umask, toml).map_err(|error| {
                    Failure::unwritable(
                        format!("cannot write the profile to {}: {error}", path.display()),
                        &error,
                        "give --output a file in a folder that exists and may be written",
                    )
                })?;
                print(&text)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What was found in a capture.
pub(crate) struct Contents {
    /// Its file.
    pub(crate) name: String,
    pub(crate) format: Format,
    pub(crate) queries: u64,
    /// What did not become a query.
    pub(crate) skipped: Skipped,
    /// Why it was not read to its end, and what can be done about it.
    pub(crate) end: Option<(String, String)>,
}

impl Contents {
    /// Says on standard error what it is, and whether it was read to its end.
    pub(crate) fn report(&self) {
        let counted = measure::notation::counted(self.queries, "query");
        tell!("{}: {}, {counted}", self.name, self.format);
        if let Some((error, cure)) = &self.end {
            tell!("warning: {}: {error}\nhint: {cure}", self.name);
        }
    }
}

/// Hands every query of a capture to `take`.
pub(crate) fn read(
    path: &Path,
    reader: impl Read,
    options: &Options,
    mut take: impl FnMut(&Observed),
) -> Result<Contents, Failure> {
    let name = path.display();
    let failed = |error: &CaptureError| Failure::usage(format!("{name}: {error}"), error.cure());
    let mut capture = Capture::new(reader, options).map_err(|error| failed(&error))?;
    let mut queries = 0_u64;
    for observed in &mut capture {
        queries += 1;
        take(&observed);
    }
    match capture.end() {
        Some(error) if queries == 0 => Err(failed(error)),
        end => Ok(Contents {
            name: name.to_string(),
            format: capture.format(),
            queries,
            skipped: capture.skipped().clone(),
            end: end.map(|error| (error.to_string(), error.cure().to_string())),
        }),
    }
}

fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(streams::input()));
    }
    Ok(Box::new(records::open(path)?))
}
