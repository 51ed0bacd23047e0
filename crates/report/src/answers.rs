//! What a search for a capacity, a ramp, or a comparison found, in every form of a report: each is
//! a document that its command wrote, and shown again from its file.

use measure::condition::ConditionRecord;
use measure::{AbComparison, Capacity, Comparison, Ramp};
use serde::de::DeserializeOwned;

use crate::document::{Block, Document, Remark, Section, Sheet, Subject};
use crate::plain;

mod capacity;
mod comparison;
mod ramp;

/// A document that is not a run record.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Of `throng capacity`.
    Capacity(Box<Capacity>),
    /// Of `throng ramp`.
    Ramp(Box<Ramp>),
    /// Of `throng compare-transports`.
    Transports(Box<Comparison>),
    /// Of `throng compare`.
    Sides(Box<AbComparison>),
}

impl Answer {
    /// The command that finds it.
    pub fn command(&self) -> &'static str {
        match self {
            Answer::Capacity(_) => "throng capacity",
            Answer::Ramp(_) => "throng ramp",
            Answer::Transports(_) => "throng compare-transports",
            Answer::Sides(_) => "throng compare",
        }
    }

    /// Its report as Markdown; `file` keeps it, or is what made it.
    pub fn markdown(&self, file: &str) -> String {
        plain::markdown(&self.document(file))
    }

    /// Reads a document, if it says that it is one of these.
    ///
    /// # Errors
    /// A message for the user, without the file's name: it is not of the version that this binary
    /// reads, or not what its schema says.
    pub fn read(json: &str) -> Option<Result<Answer, String>> {
        let value: serde_json::Value = serde_json::from_str(json).ok()?;
        let kinds: [(&str, &str, Read); 4] = [
            (
                "capacity_version",
                measure::capacity::CAPACITY_VERSION,
                |text| parse(text).map(|it| Answer::Capacity(Box::new(it))),
            ),
            ("ramp_version", measure::ramp::RAMP_VERSION, |text| {
                parse(text).map(|it| Answer::Ramp(Box::new(it)))
            }),
            (
                "comparison_version",
                measure::comparison::COMPARISON_VERSION,
                |text| parse(text).map(|it| Answer::Transports(Box::new(it))),
            ),
            ("ab_version", measure::ab::AB_VERSION, |text| {
                parse(text).map(|it| Answer::Sides(Box::new(it)))
            }),
        ];
        let found = kinds.iter().find(|(key, _, _)| value.get(*key).is_some());
        let (key, known, read) = found?;
        let version = value.get(*key).and_then(serde_json::Value::as_str);
        Some(match version == Some(*known) {
            true => read(json),
            false => Err(format!(
                "its {key} is {}, this binary reads {known}: use the version of throng that wrote \
                 it",
                version.unwrap_or("unknown")
            )),
        })
    }

    /// Whether it says what it was measured for. In a comparison of two sides only conditions do.
    pub fn decisions(&self) -> &[ConditionRecord] {
        match self {
            Answer::Capacity(it) => &it.decisions,
            Answer::Ramp(it) => &it.decisions,
            Answer::Transports(it) => &it.decisions,
            Answer::Sides(it) => &it.conditions,
        }
    }

    /// As its command prints it.
    pub fn text(&self) -> String {
        match self {
            Answer::Capacity(it) => crate::capacity::text(it),
            Answer::Ramp(it) => crate::ramp::text(it),
            Answer::Transports(it) => crate::comparison::text(it),
            Answer::Sides(it) => crate::ab::text(it),
        }
    }

    /// As JSON, as its command writes it.
    pub fn json(&self) -> String {
        match self {
            Answer::Capacity(it) => crate::capacity::json(it),
            Answer::Ramp(it) => crate::ramp::json(it),
            Answer::Transports(it) => crate::comparison::json(it),
            Answer::Sides(it) => crate::ab::json(it),
        }
    }

    /// As CSV.
    pub fn csv(&self) -> String {
        match self {
            Answer::Capacity(it) => crate::capacity::csv(it),
            Answer::Ramp(it) => crate::ramp::csv(it),
            Answer::Transports(it) => crate::comparison::csv(it),
            Answer::Sides(it) => crate::ab::csv(it),
        }
    }

    /// As a report with charts, for HTML and Markdown; `file` keeps it.
    pub fn document(&self, file: &str) -> Document {
        let mut document = match self {
            Answer::Capacity(it) => capacity::document(it),
            Answer::Ramp(it) => ramp::document(it),
            Answer::Transports(it) => comparison::of_transports(it),
            Answer::Sides(it) => comparison::of_sides(it),
        };
        let version = env!("CARGO_PKG_VERSION");
        document.colophon = format!("Made by throng {version} from {file}.");
        document
    }
}

type Read = fn(&str) -> Result<Answer, String>;

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| format!("not what its schema says: {error}"))
}

/// A document with notes, and without what it has not.
fn blank(title: String, subtitle: String, notes: &[String]) -> Document {
    let notes = notes.iter();
    Document {
        title,
        subtitle,
        tiles: Vec::new(),
        verdict: None,
        conclusions: Vec::new(),
        remarks: notes
            .map(|note| Remark::new(Subject::Limits, note, ""))
            .collect(),
        sections: Vec::new(),
        colophon: String::new(),
    }
}

fn section(heading: &str, sheet: Sheet) -> Section {
    Section::new(heading, vec![Block::Sheet(sheet)])
}
