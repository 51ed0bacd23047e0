//! `throng report`: records, or folders of them, in the form asked for.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ::report::{Answer, Collection, Source};

use crate::args::{ReportArguments, ReportFormat};
use crate::experiment;
use crate::failure::{Failure, print_result};
use crate::records::{self, Destination, Links};

/// Files that were left out and are named.
const NAMED_MAX: usize = 3;

/// Endings of file names by form.
const ENDINGS: [(&str, ReportFormat); 10] = [
    ("txt", ReportFormat::Text),
    ("text", ReportFormat::Text),
    ("html", ReportFormat::Html),
    ("htm", ReportFormat::Html),
    ("md", ReportFormat::Markdown),
    ("markdown", ReportFormat::Markdown),
    ("csv", ReportFormat::Csv),
    ("json", ReportFormat::Json),
    ("jsonl", ReportFormat::DnsMetrics),
    ("ndjson", ReportFormat::DnsMetrics),
];

/// Reads, renders and writes.
pub(crate) fn execute(arguments: &ReportArguments) -> Result<ExitCode, Failure> {
    let format = format(arguments)?;
    let links = Links::with_force(arguments.force);
    let output = (arguments.output.as_deref())
        .map(|path| Destination::check("--output", path, links))
        .transpose()?;
    let details = arguments.details;
    if details && format != ReportFormat::Text {
        return Err(Failure::usage(
            "--details does nothing in this format, which has all of them",
            "leave it out, or give --format text",
        ));
    }
    let text = match answer(&arguments.records)? {
        Some((file, _)) if details => return Err(details_of_one_run(&file)),
        Some((file, answer)) => render_answer(&answer, &file, format)?,
        None => {
            let Some(collection) = Collection::new(sources(&arguments.records)?) else {
                return Err(Failure::plain("there is no run record to report on"));
            };
            let experiment = match arguments.records.as_slice() {
                [folder] => experiment::name_of(folder),
                _ => None,
            };
            let collection = collection.of_experiment(experiment);
            render(&collection, format, arguments)?
        }
    };
    match output {
        None => print_result(&text)?,
        Some(output) => output.write_text(&text)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The only file, if it is a document of another command than `throng run`.
fn answer(paths: &[PathBuf]) -> Result<Option<(String, Answer)>, Failure> {
    let [path] = paths else {
        return Ok(None);
    };
    if path.is_dir() {
        return Ok(None);
    }
    let octets = records::read_input(path)?;
    let file = path.display().to_string();
    // The reader of run records reports what is not text.
    let read = std::str::from_utf8(&octets).ok().and_then(Answer::read);
    let read = read.transpose();
    let read = read.map_err(|what| Failure::plain(format!("{file}: {what}")))?;
    Ok(read.map(|answer| (file, answer)))
}

fn is_answer(path: &Path) -> bool {
    matches!(answer(&[path.to_owned()]), Ok(Some(_)))
}

fn render_answer(answer: &Answer, file: &str, format: ReportFormat) -> Result<String, Failure> {
    Ok(match format {
        ReportFormat::Text => answer.text(),
        ReportFormat::Html => ::report::html::render(&answer.document(file)),
        ReportFormat::Markdown => answer.markdown(file),
        ReportFormat::Csv => answer.csv(),
        ReportFormat::CsvAgents | ReportFormat::CsvAgentIntervals => {
            return Err(not_of_one_run(file));
        }
        ReportFormat::Json => answer.json(),
        ReportFormat::DnsMetrics => {
            return Err(Failure::usage(
                format!("{file}: metrics of DNS-OARC are those of runs"),
                "give it run records, as --record and --records keep them",
            ));
        }
    })
}

/// Agents are those of one run.
fn not_of_one_run(what: &str) -> Failure {
    Failure::usage(
        format!("{what}: rows of agents are of one run"),
        "give it one run record, as --record keeps it",
    )
}

/// Another document has no summary in place of which `--details` could print more.
fn details_of_one_run(what: &str) -> Failure {
    Failure::usage(
        format!("{what}: --details is of one run"),
        "leave it out, or give one run record, as --record keeps it",
    )
}

/// The records in these files and folders.
pub(crate) fn sources(paths: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let mut sources = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => sources.extend(of_folder(path)?),
            false => sources.push(Source::new(
                path.display().to_string(),
                records::read(path)?,
            )),
        }
    }
    Ok(sources)
}

/// The form asked for, or that of the file to be written.
fn format(arguments: &ReportArguments) -> Result<ReportFormat, Failure> {
    let output = match (arguments.format, &arguments.output) {
        (Some(format), _) => return Ok(format),
        (None, None) => return Ok(ReportFormat::Text),
        (None, Some(output)) => output,
    };
    let ending = output
        .extension()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    let known = ENDINGS.iter().find(|(known, _)| *known == ending);
    known.map(|(_, format)| *format).ok_or_else(|| {
        Failure::usage(
            format!(
                "{}: its extension does not select a format",
                output.display()
            ),
            "end it in .html, .md, .csv, .json, .jsonl or .txt, or give --format",
        )
    })
}

fn render(
    collection: &Collection,
    format: ReportFormat,
    arguments: &ReportArguments,
) -> Result<String, Failure> {
    if let Some(Source { record, .. }) = collection.only() {
        match format {
            ReportFormat::Text if arguments.details => return Ok(::report::text::render(record)),
            ReportFormat::Text => {
                return Ok(records::summary(
                    record,
                    arguments.records.first().map(PathBuf::as_path),
                ));
            }
            ReportFormat::Json => return Ok(::report::json::render(record)),
            ReportFormat::Csv => return Ok(::report::csv::render(record)),
            ReportFormat::CsvAgents => return Ok(::report::agents::render_csv(record)),
            ReportFormat::CsvAgentIntervals => {
                return Ok(::report::agents::render_series_csv(record));
            }
            ReportFormat::Html | ReportFormat::Markdown | ReportFormat::DnsMetrics => {}
        }
    }
    let runs = collection.runs().len();
    if arguments.details {
        return Err(details_of_one_run(&format!("{runs} runs")));
    }
    let document = || ::report::several::document(collection);
    Ok(match format {
        ReportFormat::Text => ::report::plain::text(&document()),
        ReportFormat::Html => ::report::html::render(&document()),
        ReportFormat::Markdown => ::report::plain::markdown(&document()),
        ReportFormat::Csv => ::report::collection::csv(collection),
        ReportFormat::CsvAgents | ReportFormat::CsvAgentIntervals => {
            return Err(not_of_one_run(&format!("{runs} runs")));
        }
        ReportFormat::Json => ::report::collection::json(collection),
        ReportFormat::DnsMetrics => {
            let mut lines = String::new();
            for Source { file, record, .. } in collection.runs() {
                let of_run = ::report::dns_metrics::render(record);
                let of_run = of_run.map_err(|what| Failure::plain(format!("{file}: {what}")));
                lines.push_str(&of_run?);
            }
            lines
        }
    })
}

/// The records in a folder. Other files that end in `.json` are left out, and said.
fn of_folder(folder: &Path) -> Result<Vec<Source>, Failure> {
    let files = history::record_files(folder)?;
    let (mut sources, mut left_out) = (Vec::new(), Vec::new());
    for path in &files {
        match records::read(path) {
            Ok(record) => {
                let within = path.strip_prefix(folder).unwrap_or(path);
                sources.push(Source::new(within.display().to_string(), record));
            }
            // An answer beside the records that it was found from, such as capacity.json.
            Err(_) if is_answer(path) => {}
            Err(failure) => left_out.push(failure),
        }
    }
    if sources.is_empty() {
        let what = match left_out.first() {
            Some(first) => format!(
                "{}: no run record in it: {}",
                folder.display(),
                first.what()
            ),
            None => format!("{}: no run record in it", folder.display()),
        };
        return Err(Failure::usage(
            what,
            "run records are files that --record wrote, *.json",
        ));
    }
    if !left_out.is_empty() {
        let named = left_out.iter().take(NAMED_MAX).map(Failure::what);
        let named: Vec<&str> = named.collect();
        let more = if left_out.len() > NAMED_MAX {
            ", ..."
        } else {
            ""
        };
        tell!(
            "note: {}: {} of {} files are not run records and were left out: {}{more}",
            folder.display(),
            left_out.len(),
            files.len(),
            named.join("; ")
        );
    }
    Ok(sources)
}

/// The page that reports on these runs; none without runs.
pub(crate) fn page_of_runs(made: Vec<Source>) -> Option<String> {
    Some(page_of(&Collection::new(made)?))
}

fn page_of(collection: &Collection) -> String {
    ::report::html::render(&::report::several::document(collection))
}

/// The same of the runs in a folder; none if it has none, which the command has said.
pub(crate) fn page_of_folder(folder: &Path) -> Option<String> {
    let sources = sources(&[folder.to_owned()]).ok()?;
    let collection = Collection::new(sources)?.of_experiment(experiment::name_of(folder));
    Some(page_of(&collection))
}

/// The same of what a command has found.
pub(crate) fn page_of_answer(answer: Answer) -> Option<String> {
    Some(::report::html::render(&answer.document("its runs")))
}
