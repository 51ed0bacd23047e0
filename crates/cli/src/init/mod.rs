//! `throng init`: a commented scenario or experiment to start from, for each motive.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use lab::files::{self, Access};
use report::table::{Align, Table};

use crate::args::init::{InitArguments, Motive};
use crate::failure::{Failure, print};
use crate::shell;

/// Makes the questions that templates with a `names` key read.
const MAKE_NAMES: &str = "throng names records --zone example.org > names.txt";

/// What a template is, and what has to be done before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A scenario for the user's server.
    Scenario,
    /// An experiment on the user's servers.
    Experiment,
    /// An experiment that starts its servers.
    LabExperiment,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Scenario => "scenario",
            Kind::Experiment | Kind::LabExperiment => "experiment",
        }
    }

    /// The command that runs the file.
    fn command(self, file: &str) -> String {
        match self {
            Kind::Scenario => format!("throng run {file}"),
            Kind::Experiment | Kind::LabExperiment => {
                format!("throng experiment run {file} --short")
            }
        }
    }
}

/// Lists the motives, or writes the template of one.
///
/// # Errors
/// The file exists, or cannot be written.
pub(crate) fn execute(arguments: &InitArguments) -> Result<ExitCode, Failure> {
    let Some(motive) = arguments.motive else {
        print(&list())?;
        return Ok(ExitCode::SUCCESS);
    };
    let (kind, text) = template(motive);
    let output = arguments.output.clone();
    let path = output.unwrap_or_else(|| PathBuf::from(format!("{}.toml", name(motive))));
    if path == Path::new("-") {
        print(text)?;
        return Ok(ExitCode::SUCCESS);
    }
    write(&path, text)?;
    report_next(kind, &path);
    Ok(ExitCode::SUCCESS)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    files::write_new(path, Access::Umask, text).map_err(|error| {
        let file = path.display();
        match error.kind() {
            ErrorKind::AlreadyExists => Failure::usage(
                format!("{file} exists, and is not overwritten"),
                "give another file with --output, or remove this one",
            ),
            _ => Failure::unwritable(
                format!("cannot write to {file}: {error}"),
                &error,
                "give --output a file in a folder that exists and may be written",
            ),
        }
    })
}

/// Prints on standard error what was written, and what to do next.
fn report_next(kind: Kind, path: &Path) {
    let file = path.display().to_string();
    tell!("wrote {file}, {}", with_article(kind.name()));
    let command = kind.command(&shell::quoted(&file));
    match kind {
        Kind::LabExperiment => tell!("next: {command}"),
        Kind::Scenario | Kind::Experiment => {
            tell!("next: change `server` in it, and make questions: {MAKE_NAMES}");
            tell!("then: {command}");
        }
    }
}

fn with_article(noun: &str) -> String {
    let article = match noun.starts_with(['a', 'e', 'i', 'o', 'u']) {
        true => "an",
        false => "a",
    };
    format!("{article} {noun}")
}

/// All motives, with what is written for each and the question that it answers.
fn list() -> String {
    let mut table = Table::new([Align::Left; 3]);
    table.row(["motive", "writes", "question"].map(str::to_owned));
    for motive in Motive::value_variants() {
        let (kind, _) = template(*motive);
        let value = motive.to_possible_value();
        let help = value.as_ref().and_then(|value| value.get_help());
        let question = help.map(ToString::to_string).unwrap_or_default();
        table.row([name(*motive), kind.name().to_owned(), question]);
    }
    let mut text = "`throng init MOTIVE` writes MOTIVE.toml, with comments\n\n".to_owned();
    table.write_to(&mut text);
    text.push_str("\nA scenario is for `throng run`, an experiment for `throng experiment run`\n");
    text
}

/// As it is typed.
fn name(motive: Motive) -> String {
    let value = motive.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

fn template(motive: Motive) -> (Kind, &'static str) {
    match motive {
        Motive::Capacity => (Kind::Scenario, include_str!("capacity.toml")),
        Motive::Sla => (Kind::Scenario, include_str!("sla.toml")),
        Motive::Regression => (Kind::Experiment, include_str!("regression.toml")),
        Motive::Plugins => (Kind::LabExperiment, include_str!("plugins.toml")),
        Motive::Resilience => (Kind::Scenario, include_str!("resilience.toml")),
        Motive::Encryption => (Kind::Experiment, include_str!("encryption.toml")),
        Motive::Tuning => (Kind::LabExperiment, include_str!("tuning.toml")),
        Motive::Agents => (Kind::Scenario, include_str!("agents.toml")),
        Motive::Clients => (Kind::Scenario, include_str!("clients.toml")),
        Motive::Connections => (Kind::Experiment, include_str!("connections.toml")),
        Motive::Proxy => (Kind::LabExperiment, include_str!("proxy.toml")),
    }
}
