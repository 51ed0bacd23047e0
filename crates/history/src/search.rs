//! Searches for web pages: runs that match a filter, the newest first, a page at a time; and the
//! records of runs in the index.

use std::fs;
use std::io::{Error, ErrorKind};
use std::path::Path;

use measure::RunRecord;
use measure::metric::Metric;
use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use crate::error::HistoryError;
use crate::facts::FIXED_FACTS;
use crate::index::{History, read_bounded};
use crate::query::Entry;

#[cfg(test)]
mod tests;

/// Runs on a page.
pub const PAGE_ROWS: u64 = 50;

/// Which runs are meant: those that meet all of it. An empty text is met by every run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Is within the name of the record's file, the target, the observed server or a label, in
    /// upper or lower case.
    pub text: String,
    /// The fact `transport`.
    pub transport: String,
    /// The fact `limit`, which is the verdict.
    pub limit: String,
}

/// Some of the runs that match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The runs, the newest first: at most [`PAGE_ROWS`].
    pub entries: Vec<Entry>,
    /// All that match.
    pub total: u64,
    /// Which page it is, from 1.
    pub number: u64,
    /// How many there are: at least 1.
    pub pages: u64,
}

/// A figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The number of the run.
    pub id: i64,
    /// When it started, RFC 3339.
    pub started: String,
    /// The value of the fact that groups the runs; empty if the run has none.
    pub group: String,
    /// The figure.
    pub value: f64,
}

/// Why the record of a run that the index knows cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// It is no longer there.
    pub has_gone: bool,
    /// What is wrong with it.
    pub why: String,
}

impl History {
    /// A page of the runs that match, the newest first. Behind the last page is the last one.
    ///
    /// # Errors
    /// SQLite's.
    pub fn search(&self, filter: &Filter, number: u64) -> Result<Page, HistoryError> {
        let (met, mut values) = met(filter);
        let count = format!("SELECT count(*) FROM run WHERE problem IS NULL {met}");
        let whole = |row: &Row<'_>| row.get::<_, i64>(0);
        let total = (self.connection).query_row(&count, params_from_iter(&values), whole)?;
        let total = total.unsigned_abs();
        let pages = total.div_ceil(PAGE_ROWS).max(1);
        let number = number.clamp(1, pages);
        let query = format!(
            "SELECT id, file FROM run WHERE problem IS NULL {met} \
             ORDER BY started DESC, file DESC LIMIT ? OFFSET ?"
        );
        values.push(integer(PAGE_ROWS));
        values.push(integer((number - 1) * PAGE_ROWS));
        let mut statement = self.connection.prepare(&query)?;
        let row = |row: &Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
        let mut entries = Vec::new();
        for row in statement.query_map(params_from_iter(&values), row)? {
            let (id, file) = row?;
            entries.push(self.entry(id, file)?);
        }
        Ok(Page {
            entries,
            total,
            number,
            pages,
        })
    }

    /// The figures of `metric` of the newest runs that match and have one, at most `most` of them;
    /// the earliest is the first. `by` is the fact that groups them.
    ///
    /// # Errors
    /// SQLite's.
    pub fn samples(
        &self,
        (metric, by): (Metric, &str),
        filter: &Filter,
        most: u64,
    ) -> Result<Vec<Sample>, HistoryError> {
        let (met, of_filter) = met(filter);
        let query = format!(
            "SELECT run.id, run.started, coalesce(fact.value, ''), figure.value FROM run \
             JOIN figure ON figure.run = run.id AND figure.name = ? \
             LEFT JOIN fact ON fact.run = run.id AND fact.name = ? \
             WHERE problem IS NULL {met} ORDER BY run.started DESC, run.file DESC LIMIT ?"
        );
        let mut values = vec![text(metric.name()), text(by)];
        values.extend(of_filter);
        values.push(integer(most));
        let mut statement = self.connection.prepare(&query)?;
        let rows = statement.query_map(params_from_iter(&values), |row| {
            Ok(Sample {
                id: row.get(0)?,
                started: row.get(1)?,
                group: row.get(2)?,
                value: row.get(3)?,
            })
        })?;
        let mut samples: Vec<Sample> = rows.collect::<Result<_, _>>()?;
        samples.reverse();
        Ok(samples)
    }

    /// The name of the record of a run, from the folder on; none if the index has no such run.
    ///
    /// # Errors
    /// SQLite's.
    pub fn file_of(&self, id: i64) -> Result<Option<String>, HistoryError> {
        let query = "SELECT file FROM run WHERE problem IS NULL AND id = ?1";
        let mut statement = self.connection.prepare_cached(query)?;
        let mut rows = statement.query([id])?;
        let row = rows.next()?;
        Ok(row.map(|row| row.get(0)).transpose()?)
    }

    /// The values that a fact has, in their order; at most `most`.
    ///
    /// # Errors
    /// SQLite's.
    pub fn values_of(&self, fact: &str, most: u64) -> Result<Vec<String>, HistoryError> {
        let query = "SELECT DISTINCT value FROM fact WHERE name = ? ORDER BY value LIMIT ?";
        let mut statement = self.connection.prepare_cached(query)?;
        let values = [text(fact), integer(most)];
        let rows = statement.query_map(params_from_iter(values), |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// The record in `file`, a name from `folder` on that an index has. A link that leads out of the
/// folder is not followed.
///
/// # Errors
/// It has gone, or is not a run record any more.
pub fn read_record(folder: &Path, file: &str) -> Result<RunRecord, Unreachable> {
    let failed = |error: Error| Unreachable {
        has_gone: error.kind() == ErrorKind::NotFound,
        why: error.to_string(),
    };
    let folder = fs::canonicalize(folder).map_err(failed)?;
    let path = fs::canonicalize(folder.join(file)).map_err(failed)?;
    let wrong = |why: String| Unreachable {
        has_gone: false,
        why,
    };
    if !path.starts_with(&folder) {
        return Err(wrong(
            "it is a link that leads out of the folder".to_owned(),
        ));
    }
    let facts = fs::metadata(&path).map_err(failed)?;
    if !facts.is_file() {
        return Err(wrong("it is not a file".to_owned()));
    }
    read_bounded(&path, facts.len()).map_err(wrong)
}

/// The words of SQL for a filter, and the values for its places.
fn met(filter: &Filter) -> (String, Vec<Value>) {
    let (mut words, mut values) = (String::new(), Vec::new());
    if !filter.text.is_empty() {
        // Of the fixed facts only the target is a name that users look for.
        let fixed = FIXED_FACTS.iter().filter(|name| **name != "target");
        let fixed: Vec<String> = fixed.map(|name| format!("'{name}'")).collect();
        words.push_str(&format!(
            "AND (instr(lower(run.file), lower(?)) > 0 OR run.id IN (SELECT run FROM fact WHERE \
             name NOT IN ({}) AND instr(lower(value), lower(?)) > 0)) ",
            fixed.join(", ")
        ));
        values.extend([text(&filter.text), text(&filter.text)]);
    }
    for (name, value) in [("transport", &filter.transport), ("limit", &filter.limit)] {
        if !value.is_empty() {
            words.push_str("AND run.id IN (SELECT run FROM fact WHERE name = ? AND value = ?) ");
            values.extend([text(name), text(value)]);
        }
    }
    (words, values)
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

fn integer(value: u64) -> Value {
    Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}
