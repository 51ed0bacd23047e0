//! The index itself: what is in it, and how it follows the folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use measure::RunRecord;
use measure::metric::Metric;
use rusqlite::{
    Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params,
};

use crate::error::HistoryError;
use crate::facts;
use crate::folder::{self, File};

/// The index of a folder, in it.
pub const INDEX_FILE: &str = "index.sqlite";

/// Changes when an index of an earlier version would be misread: such a one is made anew.
const VERSION: i64 = 4;
/// How long another process that writes the index is waited for.
const BUSY_MAX: Duration = Duration::from_secs(10);
/// Octets of a file that is read: a record of a day at one interval a second has some 500 MB.
const OCTETS_MAX: u64 = 2 << 30;
/// Files that are taken in at a time: what was read before an interruption stays.
const BATCH: usize = 200;

const TABLES: &str = "
CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file TEXT NOT NULL UNIQUE,
    octets INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    started TEXT NOT NULL,
    problem TEXT
);
CREATE TABLE fact (
    run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;
CREATE INDEX fact_by_value ON fact (name, value);
CREATE TABLE figure (
    run INTEGER NOT NULL REFERENCES run(id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    value REAL NOT NULL,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;
";

/// The records of a folder, ready for questions.
#[derive(Debug)]
pub struct History {
    pub(crate) connection: Connection,
    folder: PathBuf,
}

/// What [`History::update`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Update {
    /// Records in the index.
    pub runs: u64,
    /// Of them, those that are new or have changed.
    pub added: u64,
    /// Files that are no longer there.
    pub removed: u64,
    /// Files that end in `.json` and are not run records.
    pub unreadable: Vec<Unreadable>,
}

/// A file that is not a run record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// From the folder on.
    pub file: String,
    /// What is wrong with it.
    pub why: String,
}

impl History {
    /// Opens the index of `folder`, or makes it. It is kept in memory if the folder cannot be
    /// written.
    ///
    /// # Errors
    /// There is no such folder, or SQLite's error.
    pub fn open(folder: &Path) -> Result<History, HistoryError> {
        fs::read_dir(folder).map_err(|error| HistoryError::of_folder(folder, &error))?;
        let path = folder.join(INDEX_FILE);
        let connection = match ready(&path) {
            Ok(connection) => connection,
            // Derived from the records: one that cannot be read is worth nothing.
            Err(_) if path.exists() && fs::remove_file(&path).is_ok() => ready(&path)?,
            Err(_) => prepared(Connection::open_in_memory()?)?,
        };
        Ok(History {
            connection,
            folder: folder.to_owned(),
        })
    }

    /// The folder that it is about.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Follows the folder: takes in what is new or has changed, forgets what has gone.
    ///
    /// # Errors
    /// The folder cannot be read, or SQLite's error.
    pub fn update(&mut self) -> Result<Update, HistoryError> {
        self.update_and_show(|_, _| {})
    }

    /// The same; calls `show` after each new or changed file with the number of those that were
    /// read, and of all that are to be read.
    ///
    /// # Errors
    /// As [`History::update`].
    pub fn update_and_show(
        &mut self,
        mut show: impl FnMut(u64, u64),
    ) -> Result<Update, HistoryError> {
        let mut files = folder::files(&self.folder)?;
        let mut known = known(&self.connection)?;
        files.retain(|file| {
            let seen = known.remove(&file.name);
            seen != Some((file.octets, file.modified_ns))
        });
        let (mut update, mut read) = (Update::default(), 0);
        for batch in files.chunks(BATCH) {
            let behavior = TransactionBehavior::Immediate;
            let transaction = self.connection.transaction_with_behavior(behavior)?;
            for file in batch {
                update.added += u64::from(take_in(&transaction, file)?);
                read += 1;
                show(read, files.len() as u64);
            }
            transaction.commit()?;
        }
        let transaction = self.connection.transaction()?;
        for gone in known.keys() {
            transaction.execute("DELETE FROM run WHERE file = ?1", [gone])?;
            update.removed += 1;
        }
        let count = "SELECT count(*) FROM run WHERE problem IS NULL";
        let runs: i64 = transaction.query_row(count, [], |row| row.get(0))?;
        update.runs = runs.unsigned_abs();
        update.unreadable = unreadable(&transaction)?;
        transaction.commit()?;
        Ok(update)
    }
}

/// The index at `path`, of this version.
fn ready(path: &Path) -> Result<Connection, HistoryError> {
    // A link in its place is not followed. SQLite would refuse links to the folder, too.
    let folder = path.parent().and_then(|it| fs::canonicalize(it).ok());
    let path = folder.map_or_else(|| path.to_owned(), |it| it.join(INDEX_FILE));
    let flags = OpenFlags::default() | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    prepared(Connection::open_with_flags(path, flags)?)
}

fn prepared(connection: Connection) -> Result<Connection, HistoryError> {
    connection.busy_timeout(BUSY_MAX)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version != VERSION {
        let tables = "DROP TABLE IF EXISTS figure; DROP TABLE IF EXISTS fact; \
                      DROP TABLE IF EXISTS run;";
        let all = format!("BEGIN; {tables} {TABLES} PRAGMA user_version = {VERSION}; COMMIT;");
        connection.execute_batch(&all)?;
    }
    // One that was damaged, or that is somebody else's, would fail at some question.
    let own = Connection::open_in_memory()?;
    own.execute_batch(TABLES)?;
    let check: String = connection.pragma_query_value(None, "quick_check", |row| row.get(0))?;
    match check == "ok" && schema(&connection)? == schema(&own)? {
        true => Ok(connection),
        false => Err(HistoryError::damaged()),
    }
}

/// The names of all tables and indices, and the statements that made them.
fn schema(connection: &Connection) -> Result<Vec<(String, Option<String>)>, HistoryError> {
    let query = "SELECT type || ' ' || name || ' ' || tbl_name, sql FROM sqlite_schema ORDER BY 1";
    let mut statement = connection.prepare(query)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Files that the index has seen, with their sizes and times.
fn known(connection: &Connection) -> Result<BTreeMap<String, (u64, i64)>, HistoryError> {
    let mut statement = connection.prepare("SELECT file, octets, modified_ns FROM run")?;
    let row = |row: &rusqlite::Row<'_>| {
        let octets: i64 = row.get(1)?;
        Ok((row.get(0)?, (octets as u64, row.get(2)?)))
    };
    let rows = statement.query_map([], row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn unreadable(transaction: &Transaction<'_>) -> Result<Vec<Unreadable>, HistoryError> {
    let query = "SELECT file, problem FROM run WHERE problem IS NOT NULL ORDER BY file";
    let mut statement = transaction.prepare(query)?;
    let row = |row: &rusqlite::Row<'_>| {
        Ok(Unreadable {
            file: row.get(0)?,
            why: row.get(1)?,
        })
    };
    let rows = statement.query_map([], row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Takes in one file; true if it is a record. A file keeps its number when it has changed.
fn take_in(transaction: &Transaction<'_>, file: &File) -> Result<bool, HistoryError> {
    let read = read(file);
    let started = read
        .as_ref()
        .map_or("", |record| record.started_at.as_str());
    let problem = read.as_ref().err();
    let find = "SELECT id FROM run WHERE file = ?1";
    let known: Option<i64> = transaction
        .query_row(find, [&file.name], |row| row.get(0))
        .optional()?;
    let octets = i64::try_from(file.octets).unwrap_or(i64::MAX);
    let row = params![file.name, octets, file.modified_ns, started, problem];
    let id = match known {
        Some(id) => {
            let set = "UPDATE run SET octets = ?2, modified_ns = ?3, started = ?4, problem = ?5 \
                       WHERE file = ?1";
            transaction.execute(set, row)?;
            transaction.execute("DELETE FROM fact WHERE run = ?1", [id])?;
            transaction.execute("DELETE FROM figure WHERE run = ?1", [id])?;
            id
        }
        None => {
            let insert = "INSERT INTO run (file, octets, modified_ns, started, problem) \
                          VALUES (?1, ?2, ?3, ?4, ?5)";
            transaction.execute(insert, row)?;
            transaction.last_insert_rowid()
        }
    };
    let Ok(record) = read else {
        return Ok(false);
    };
    let mut insert = transaction.prepare_cached("INSERT INTO fact VALUES (?1, ?2, ?3)")?;
    for (name, value) in facts::of(&record) {
        insert.execute(params![id, name, value])?;
    }
    let mut insert = transaction.prepare_cached("INSERT INTO figure VALUES (?1, ?2, ?3)")?;
    for metric in Metric::ALL {
        if let Some(value) = metric.of(&record).filter(|value| value.is_finite()) {
            insert.execute(params![id, metric.name(), value])?;
        }
    }
    Ok(true)
}

fn read(file: &File) -> Result<RunRecord, String> {
    read_bounded(&file.path, file.octets)
}

/// The record in a file of that size.
pub(crate) fn read_bounded(path: &Path, octets: u64) -> Result<RunRecord, String> {
    if octets > OCTETS_MAX {
        return Err(format!("{octets} bytes are too many for a record"));
    }
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    RunRecord::from_json(&text)
}
