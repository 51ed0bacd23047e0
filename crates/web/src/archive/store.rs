//! The index of the folder and the records in it.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use history::{Entry, Filter, History, HistoryError, Unreadable, Update, read_record};
use measure::RunRecord;
use measure::ab::{AbComparison, Settings, Side, doubts};
use measure::metric::Metric;
use measure::notation::{count, counted};
use report::trend::{self, Reading};
use report::{Answer, Collection, Source};

use super::pages::{self, Choices, Links, Made};
use super::question::Question;

/// The folder is looked through at most once in that time, however many requests come.
const RESCAN: Duration = Duration::from_secs(2);
/// Runs of a trend: the newest.
pub(crate) const TREND_RUNS_MAX: u64 = 1_000;
/// Values of a fact that a form offers.
const VALUES_MAX: u64 = 200;

/// Pages wait until that many new records are read; of more, they say how far that is.
const WAITED_FOR_MAX: u64 = 500;

/// The records of a folder.
pub(crate) struct Store {
    folder: std::path::PathBuf,
    index: Mutex<Index>,
    /// New records that were read, and all of them, while [`Store::update`] reads them.
    reading: Mutex<Option<(u64, u64)>>,
}

struct Index {
    history: History,
    newest: Update,
    updated_at: Option<Instant>,
}

/// A run whose record was read.
struct Run {
    /// The name of its file, with the folder.
    file: String,
    record: RunRecord,
}

impl Store {
    pub(crate) fn open(folder: &Path) -> Result<Store, HistoryError> {
        let index = Index {
            history: History::open(folder)?,
            newest: Update::default(),
            updated_at: None,
        };
        Ok(Store {
            folder: folder.to_owned(),
            index: Mutex::new(index),
            reading: Mutex::default(),
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        // Whatever panicked while it was held has changed nothing: SQLite takes back what was not
        // finished.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the folder now, and shows how far that is.
    pub(crate) fn update(&self, mut show: impl FnMut(u64, u64)) -> Result<Update, HistoryError> {
        let mut index = self.index();
        let updated = index.update(|read, all| {
            *self.reading() = Some((read, all));
            show(read, all);
        });
        *self.reading() = None;
        updated?;
        Ok(index.newest.clone())
    }

    fn reading(&self) -> MutexGuard<'_, Option<(u64, u64)>> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far [`Store::update`] is, if it takes long.
    fn long_reading(&self) -> Option<(u64, u64)> {
        match self.index.try_lock() {
            Err(TryLockError::WouldBlock) => {
                self.reading().filter(|(_, all)| *all > WAITED_FOR_MAX)
            }
            Ok(_) | Err(TryLockError::Poisoned(_)) => None,
        }
    }

    /// The index, brought up to date if that was long ago.
    fn current(&self) -> Result<MutexGuard<'_, Index>, HistoryError> {
        let mut index = self.index();
        if index.updated_at.is_none_or(|at| at.elapsed() >= RESCAN) {
            index.update(|_, _| {})?;
        }
        Ok(index)
    }

    pub(crate) fn answer(&self, question: &Question, links: &Links) -> Made {
        if let Some((read, all)) = self.long_reading() {
            let (read, all) = (count(read), counted(all, "new record"));
            let what = format!("{read} of {all} are read. Load this page again.");
            return pages::error(503, &what, links);
        }
        let answered = match question {
            Question::List { filter, page } => self.list(filter, *page, links),
            Question::Record { id } => self.record(*id, links),
            Question::Compare { a, b, is_forced } => self.compare((*a, *b), *is_forced, links),
            Question::Trend { metric, by, filter } => self.trend((*metric, by), filter, links),
        };
        answered.unwrap_or_else(|error| {
            let hint = error.hint.map(|hint| format!(" ({hint})"));
            let what = report::html::sentence(&error.what);
            let what = format!("{what}{}.", hint.unwrap_or_default());
            pages::error(500, &what, links)
        })
    }

    fn list(&self, filter: &Filter, page: u64, links: &Links) -> Result<Made, HistoryError> {
        let (page, choices, unreadable) = {
            let index = self.current()?;
            let page = index.history.search(filter, page)?;
            (page, index.choices()?, index.newest.unreadable.clone())
        };
        let folder = self.folder.display().to_string();
        let list = pages::List {
            folder: &folder,
            filter,
            page: &page,
            choices: &choices,
            unreadable: &unreadable,
        };
        Ok(Made::page(list.render(links)))
    }

    fn record(&self, id: i64, links: &Links) -> Result<Made, HistoryError> {
        Ok(match self.run(id, links)? {
            Ok(run) => {
                let collection = Collection::new(vec![Source::new(run.file, run.record)]);
                let collection = collection.expect("it has one run");
                let document = report::several::document(&collection);
                Made::page(report::html::render(&document))
            }
            Err(error) => error,
        })
    }

    /// The run of that number, or the page that says why there is none.
    fn run(&self, id: i64, links: &Links) -> Result<Result<Run, Made>, HistoryError> {
        // Reading takes long: nothing else waits for it.
        let file = self.current()?.history.file_of(id)?;
        let Some(file) = file else {
            let what = format!("There is no run {id}.");
            return Ok(Err(pages::error(404, &what, links)));
        };
        let read = read_record(&self.folder, &file);
        Ok(match read {
            Ok(record) => Ok(Run {
                file: self.folder.join(&file).display().to_string(),
                record,
            }),
            Err(error) => {
                let (status, state) = match error.has_gone {
                    true => (404, "has gone"),
                    false => (500, "cannot be read"),
                };
                let what = format!("The record of run {id}, {file}, {state}: {}.", error.why);
                Err(pages::error(status, &what, links))
            }
        })
    }

    fn compare(
        &self,
        (a, b): (i64, i64),
        is_forced: bool,
        links: &Links,
    ) -> Result<Made, HistoryError> {
        let runs = match (self.run(a, links)?, self.run(b, links)?) {
            (Ok(a), Ok(b)) => [a, b],
            (Err(error), _) | (_, Err(error)) => return Ok(error),
        };
        let [one, other] = runs.each_ref().map(|run| Side {
            label: run.file.clone(),
            runs: vec![(run.file.clone(), &run.record)],
        });
        let doubts = doubts(&one, &other);
        if !doubts.refusals.is_empty() && !is_forced {
            return Ok(Made::page(pages::refused((a, b), &doubts.refusals, links)));
        }
        let mut comparison = AbComparison::new(&one, &other, &[], &Settings::default());
        comparison.notes.extend(doubts.refusals);
        comparison.notes.extend(doubts.warnings);
        let files = format!("{} and {}", runs[0].file, runs[1].file);
        let document = Answer::Sides(Box::new(comparison)).document(&files);
        Ok(Made::page(report::html::render(&document)))
    }

    fn trend(
        &self,
        (metric, by): (Metric, &str),
        filter: &Filter,
        links: &Links,
    ) -> Result<Made, HistoryError> {
        let (samples, choices) = {
            let index = self.current()?;
            let samples = (index.history).samples((metric, by), filter, TREND_RUNS_MAX)?;
            (samples, index.choices()?)
        };
        let readings = samples.iter().map(|sample| Reading {
            started: sample.started.clone(),
            group: sample.group.clone(),
            value: sample.value,
        });
        let readings: Vec<Reading> = readings.collect();
        let page = pages::Trend {
            metric,
            by,
            filter,
            choices: &choices,
            samples: &samples,
            chart: trend::chart(metric, by, &readings),
        };
        Ok(Made::page(page.render(links)))
    }
}

impl Index {
    fn update(&mut self, show: impl FnMut(u64, u64)) -> Result<(), HistoryError> {
        self.newest = self.history.update_and_show(show)?;
        self.updated_at = Some(Instant::now());
        Ok(())
    }

    fn choices(&self) -> Result<Choices, HistoryError> {
        let mut facts = self.history.fact_names()?;
        facts.retain(|name| name != "started");
        facts.truncate(usize::try_from(VALUES_MAX).unwrap_or(usize::MAX));
        Ok(Choices {
            transports: self.history.values_of("transport", VALUES_MAX)?,
            limits: self.history.values_of("limit", VALUES_MAX)?,
            facts,
        })
    }
}

/// What a list shows of a run.
pub(crate) fn fact<'a>(entry: &'a Entry, name: &str) -> &'a str {
    entry.facts.get(name).map_or("", String::as_str)
}

/// The unreadable files that a list names, at most `most` of them.
pub(crate) fn named(unreadable: &[Unreadable], most: usize) -> &[Unreadable] {
    &unreadable[..unreadable.len().min(most)]
}
