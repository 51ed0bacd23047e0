//! `throng history`: questions to the records of a folder.

pub(crate) mod list;
pub(crate) mod trend;

use std::process::ExitCode;

use history::{Condition, History, HistoryError, Update};
use measure::metric::{Metric, TimeUnit};

use crate::args::experiment::{HistoryArguments, HistoryCommand, Selection};
use crate::failure::{Failure, print_result};
use crate::records;
use crate::run::progress::Reading;

/// Files that are no records, named one by one.
const UNREADABLE_SHOWN: usize = 3;

impl From<HistoryError> for Failure {
    fn from(error: HistoryError) -> Self {
        match error.hint {
            Some(hint) => Failure::usage(error.what, hint),
            None => Failure::plain(error.what),
        }
    }
}

/// Answers the question.
pub(crate) fn execute(arguments: &HistoryArguments) -> Result<ExitCode, Failure> {
    let text = match &arguments.command {
        HistoryCommand::List {
            selection,
            last,
            format,
        } => {
            let (history, conditions) = open(selection)?;
            let mut entries = history.list(conditions)?;
            entries.drain(..entries.len().saturating_sub(last.unwrap_or(usize::MAX)));
            list::render(&entries, *format)
        }
        HistoryCommand::Show {
            run,
            selection,
            format,
        } => {
            let (history, _) = open(selection)?;
            let entry = history.find(run)?.ok_or_else(|| {
                let hint = "`throng history list` shows those that there are";
                Failure::usage(format!("there is no run {run}"), hint)
            })?;
            let file = history.folder().join(&entry.file);
            records::render(&records::read(&file)?, *format, false, Some(&file))
        }
        HistoryCommand::Trend {
            metric,
            by,
            selection,
            format,
        } => {
            let (history, conditions) = open(selection)?;
            let groups = history.trend(*metric, by, conditions)?;
            if groups.is_empty() {
                return Err(nothing(&history, by)?);
            }
            trend::render(*metric, by, &groups, *format)
        }
    };
    print_result(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The records, up to date; files that are not records are reported.
fn open(selection: &Selection) -> Result<(History, &[Condition]), Failure> {
    let mut history = History::open(&selection.folder)?;
    let mut reading = Reading::new();
    let update = history.update_and_show(|read, all| reading.show(read, all));
    reading.end();
    let update = update?;
    warn_of_unreadable(&update);
    if update.runs == 0 {
        let what = format!("no run records in {}", selection.folder.display());
        let hint =
            "give --records a folder with records that --record or an experiment has written";
        return Err(Failure::usage(what, hint));
    }
    Ok((history, &selection.conditions))
}

/// Names files that are not run records.
pub(crate) fn warn_of_unreadable(update: &Update) {
    for unreadable in update.unreadable.iter().take(UNREADABLE_SHOWN) {
        tell!(
            "warning: {} is not a run record: {}",
            unreadable.file,
            unreadable.why
        );
    }
    if let Some(more @ 1..) = update.unreadable.len().checked_sub(UNREADABLE_SHOWN) {
        tell!("warning: {more} more files are not run records");
    }
}

/// No run has both the fact and the figure.
fn nothing(history: &History, by: &str) -> Result<Failure, Failure> {
    let names = history.fact_names()?;
    let known: Vec<String> = names.into_iter().filter(|name| name != "started").collect();
    Ok(Failure::usage(
        format!("no run has `{by}` and this figure, or none meets the conditions"),
        format!("runs can be grouped by {}", known.join(", ")),
    ))
}

/// The metric with its unit, as a column's name.
fn csv_name(metric: Metric) -> String {
    metric.key(TimeUnit::Nanoseconds)
}

fn csv_line(cells: &[String]) -> String {
    let fields: Vec<String> = cells.iter().map(|cell| report::csv::field(cell)).collect();
    format!("{}\n", fields.join(","))
}
