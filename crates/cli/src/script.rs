//! Scripts of clients: `--script FILE`, and `throng script check FILE`.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use load::{Arrival, Plan, ScriptText, names_file};
use measure::script::OBSERVED_PER_UNIT;
use script::rehearsal::{Rehearsal, rehearse};
use script::{Script, ScriptError, Settings};
use settings::{FileName, Run};

use crate::args::{ScriptArguments, ScriptCommand};
use crate::failure::{Failure, print};
use crate::records::read_input;
use crate::run::message::query_options;

const HINT: &str = "`throng script check FILE` tries a script out; docs/scripting.md says what \
                    scripts can do";

/// Lines of `print` that are shown.
const SHOWN_MAX: usize = 20;

/// The script of a run.
pub(crate) fn text(file: &FileName, run: &Run) -> Result<Arc<ScriptText>, Failure> {
    let path = file.as_path();
    Ok(Arc::new(ScriptText {
        file_name: path.display().to_string(),
        text: read(path)?,
        group: String::new(),
        defaults: query_options(run)?,
    }))
}

fn read(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read_input(path)?).map_err(|error| {
        let octet = error.utf8_error().valid_up_to();
        let what = format!("{}: byte {octet} is not UTF-8", path.display());
        Failure::usage(what, "save the script as UTF-8")
    })
}

/// Loads the script once before the run does: what cannot be used is known before anything is sent.
pub(crate) fn check_loads(plan: &Plan) -> Result<(), Failure> {
    let Arrival::Script(text) = &plan.arrival else {
        return Ok(());
    };
    let settings = Settings {
        questions: Arc::clone(&plan.questions),
        defaults: text.defaults.clone(),
        seed: plan.seed,
        ..Settings::default()
    };
    Script::load(&text.text, &text.file_name, settings)
        .map(drop)
        .map_err(|error| unusable(&error))
}

fn unusable(error: &ScriptError) -> Failure {
    Failure::usage(error, HINT)
}

/// `throng script`.
pub(crate) fn execute(arguments: &ScriptArguments) -> Result<ExitCode, Failure> {
    let ScriptCommand::Check { file, names, seed } = &arguments.command;
    let text = read(file)?;
    let mut settings = Settings {
        seed: *seed,
        group: measure::GroupRecord::PLAIN.to_owned(),
        ..Settings::default()
    };
    if let Some(names) = names {
        let questions = names_file::parse_text(&read_input(names)?, &settings.defaults);
        let questions = questions.map_err(|error| {
            Failure::usage(format!("{}: {error}", names.display()), &error.hint)
        })?;
        settings.questions = Arc::new(questions);
    }
    let file_name = file.display().to_string();
    let seen = rehearse(&text, &file_name, settings).map_err(|error| unusable(&error))?;
    print(&describe(&file_name, &seen))?;
    match seen.failures.messages.first() {
        None => Ok(ExitCode::SUCCESS),
        Some(failure) => Err(Failure::usage(
            &failure.message,
            format!(
                "{} of {} clients ended there",
                failure.clients, seen.clients
            ),
        )),
    }
}

/// What the rehearsal was, in words.
fn describe(file_name: &str, seen: &Rehearsal) -> String {
    let mut text = String::new();
    for (client, line) in seen.printed.iter().take(SHOWN_MAX) {
        let who = client.map_or("setup".to_owned(), |client| {
            format!("client {}", client + 1)
        });
        let _ = writeln!(text, "{who}: {line}");
    }
    if seen.printed.len() > SHOWN_MAX {
        let _ = writeln!(text, "... {} lines more", seen.printed.len() - SHOWN_MAX);
    }
    let _ = writeln!(
        text,
        "{file_name}: {} clients asked {} queries and slept {} times in {:.1} s of virtual time; \
         {} finished, {} failed",
        seen.clients,
        seen.queries,
        seen.sleeps,
        seen.passed.as_secs_f64(),
        seen.finished,
        seen.failures.total
    );
    for (name, number) in &seen.metrics.counters {
        let _ = writeln!(text, "  {name}: {number}");
    }
    for (name, values) in &seen.metrics.observed {
        let value = |p| values.percentile(p).unwrap_or(0) as f64 / OBSERVED_PER_UNIT;
        let _ = writeln!(
            text,
            "  {name}: {} values, p50 {}, p99 {}",
            values.count(),
            value(0.5),
            value(0.99)
        );
    }
    text
}
