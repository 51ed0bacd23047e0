//! Questions to the index.

use std::collections::BTreeMap;

use measure::metric::Metric;
use rusqlite::params_from_iter;

use crate::error::HistoryError;
use crate::index::History;

/// `NAME=VALUE`: only runs whose fact of that name has that value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The fact's name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A run as the index knows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// Its number in this index.
    pub id: i64,
    /// Its record, from the folder on.
    pub file: String,
    /// Its facts by name.
    pub facts: BTreeMap<String, String>,
    /// Its figures by the names of [`Metric`].
    pub figures: BTreeMap<String, f64>,
}

/// The figures of the runs that have one value of a fact.
#[derive(Clone, Debug, PartialEq)]
pub struct TrendGroup {
    /// The value of the fact.
    pub value: String,
    /// When its first run started, RFC 3339.
    pub first_started: String,
    /// The figures, in the order in which the runs started.
    pub values: Vec<f64>,
    /// Their runs, by number.
    pub runs: Vec<i64>,
}

impl History {
    /// The runs that meet all `conditions`, the earliest first.
    ///
    /// # Errors
    /// SQLite's.
    pub fn list(&self, conditions: &[Condition]) -> Result<Vec<Entry>, HistoryError> {
        let (met, values) = met(conditions);
        let query =
            format!("SELECT id, file FROM run WHERE problem IS NULL {met} ORDER BY started, file");
        let mut statement = self.connection.prepare(&query)?;
        let rows = statement.query_map(params_from_iter(&values), |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        })?;
        let mut entries = Vec::new();
        for row in rows {
            let (id, file) = row?;
            entries.push(self.entry(id, file)?);
        }
        Ok(entries)
    }

    /// The run with this number, or whose record this is.
    ///
    /// # Errors
    /// SQLite's.
    pub fn find(&self, run: &str) -> Result<Option<Entry>, HistoryError> {
        let query = "SELECT id, file FROM run WHERE problem IS NULL AND (file = ?1 OR id = ?2)";
        let mut statement = self.connection.prepare(query)?;
        let number: Option<i64> = run.parse().ok();
        let mut rows = statement.query(rusqlite::params![run, number])?;
        match rows.next()? {
            None => Ok(None),
            Some(row) => self.entry(row.get(0)?, row.get(1)?).map(Some),
        }
    }

    pub(crate) fn entry(&self, id: i64, file: String) -> Result<Entry, HistoryError> {
        let mut facts = self
            .connection
            .prepare_cached("SELECT name, value FROM fact WHERE run = ?1")?;
        let facts = facts.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let mut figures = self
            .connection
            .prepare_cached("SELECT name, value FROM figure WHERE run = ?1")?;
        let figures = figures.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Entry {
            id,
            file,
            facts: facts.collect::<Result<_, _>>()?,
            figures: figures.collect::<Result<_, _>>()?,
        })
    }

    /// The figures of `metric`, by the values of the fact `by`: groups in the order in which their
    /// first runs started.
    ///
    /// # Errors
    /// SQLite's.
    pub fn trend(
        &self,
        metric: Metric,
        by: &str,
        conditions: &[Condition],
    ) -> Result<Vec<TrendGroup>, HistoryError> {
        let mut groups: Vec<TrendGroup> = Vec::new();
        for entry in self.list(conditions)? {
            let (Some(value), Some(figure)) =
                (entry.facts.get(by), entry.figures.get(metric.name()))
            else {
                continue;
            };
            let place = groups.iter().position(|group| group.value == *value);
            let place = place.unwrap_or_else(|| {
                groups.push(TrendGroup {
                    value: value.clone(),
                    first_started: entry.facts.get("started").cloned().unwrap_or_default(),
                    values: Vec::new(),
                    runs: Vec::new(),
                });
                groups.len() - 1
            });
            groups[place].values.push(*figure);
            groups[place].runs.push(entry.id);
        }
        Ok(groups)
    }

    /// Names of facts that some run has.
    ///
    /// # Errors
    /// SQLite's.
    pub fn fact_names(&self) -> Result<Vec<String>, HistoryError> {
        let query = "SELECT DISTINCT name FROM fact ORDER BY name";
        let mut statement = self.connection.prepare(query)?;
        let rows = statement.query_map([], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

/// The words of SQL for `conditions`, and the values for its places.
fn met(conditions: &[Condition]) -> (String, Vec<&str>) {
    let one = "AND id IN (SELECT run FROM fact WHERE name = ? AND value = ?)";
    let words = vec![one; conditions.len()].join(" ");
    let values = conditions
        .iter()
        .flat_map(|it| [it.name.as_str(), it.value.as_str()]);
    (words, values.collect())
}
