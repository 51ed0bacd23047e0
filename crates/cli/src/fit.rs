//! `throng fit`: from captures and query logs to a profile of those who asked.

mod summary;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use capture::fit::{Fit, FitOptions};
use capture::{Capture, CaptureError, Observed, Options, Skipped};

use crate::args::fit::{FitArguments, ReadingArguments};
use crate::failure::{Failure, print};

/// Fits, writes the profile, and says what is in it.
pub(crate) fn execute(arguments: &FitArguments) -> Result<ExitCode, Failure> {
    let mut fit = Fit::new(FitOptions {
        keep_names: arguments.keep_names,
        identity: arguments.reading.client.into(),
    });
    let mut skipped = Skipped::default();
    for path in &arguments.captures {
        read(path, &arguments.reading, &mut skipped, |query| {
            fit.add(query)
        })?;
        fit.next_capture();
    }
    eprint!("{}", summary::skipped(&skipped));
    let fitted = fit
        .finish()
        .map_err(|error| Failure::usage(error, error.cure()))?;
    eprint!("{}", summary::notes(&fitted.notes));
    let text = summary::profile(&fitted.profile);
    match &arguments.output {
        None => print(&text)?,
        Some(path) => {
            let toml = fitted.profile.to_toml().map_err(Failure::in_operation)?;
            if path == Path::new("-") {
                print(&toml)?;
            } else {
                std::fs::write(path, toml).map_err(|error| {
                    Failure::usage(
                        format!("cannot write the profile to {}: {error}", path.display()),
                        "give --output a file in a folder that exists and may be written",
                    )
                })?;
                print(&text)?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Hands every query of a capture to `take`, and says on standard error what it is and whether it
/// was read to its end.
pub(crate) fn read(
    path: &Path,
    reading: &ReadingArguments,
    skipped: &mut Skipped,
    mut take: impl FnMut(&Observed),
) -> Result<(), Failure> {
    let name = path.display();
    let options = Options {
        format: reading.format,
        ports: reading.port.clone(),
        ..Options::default()
    };
    let failed = |error: &CaptureError| Failure::usage(format!("{name}: {error}"), error.cure());
    let mut capture = Capture::new(open(path)?, &options).map_err(|error| failed(&error))?;
    let mut queries = 0_u64;
    for observed in &mut capture {
        queries += 1;
        take(&observed);
    }
    skipped.merge(capture.skipped());
    let counted = measure::notation::counted(queries, "query");
    eprintln!("{name}: {}, {counted}", capture.format());
    match capture.end() {
        Some(error) if queries == 0 => Err(failed(error)),
        Some(error) => {
            eprintln!("warning: {name}: {error}\nhint: {}", error.cure());
            Ok(())
        }
        None => Ok(()),
    }
}

fn open(path: &Path) -> Result<Box<dyn Read>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin()));
    }
    let file = File::open(path).map_err(|error| {
        Failure::usage(
            format!("cannot read {}: {error}", path.display()),
            "check that the file exists and may be read",
        )
    })?;
    Ok(Box::new(file))
}
