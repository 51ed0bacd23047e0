//! Values that flags of several commands have.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use proto::time::{parse_duration, parse_duration_or_seconds};
use report::Answer;
use serde::{Deserialize, Serialize};
use settings::Named;
use settings::number::{parse_count, parse_number};

/// What `auto` is among the drivers.
pub(super) const FASTER: &str = "The faster one for the load, of those that the kernel allows";

/// Form of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Format {
    /// Human-readable
    #[default]
    Text,
    /// One document; `throng schema` describes it
    Json,
    /// A table: one row per interval, trial, transport or metric
    Csv,
    /// As `throng report` writes it, for the summary of a CI job
    Markdown,
}

impl Format {
    /// A result in this form, as its command prints it.
    pub(crate) fn of(self, answer: &Answer) -> String {
        match (self, answer) {
            (Format::Text, _) => answer.text(),
            (Format::Json, _) => answer.json(),
            (Format::Csv, _) => answer.csv(),
            // Shorter than the report.
            (Format::Markdown, Answer::Sides(it)) => report::ab::markdown(it),
            (Format::Markdown, _) => answer.markdown(answer.command()),
        }
    }

    /// What a list of tests has of this result: documents for programs are too long for it.
    pub(crate) fn excerpt(self, text: &str) -> &str {
        match self {
            Format::Text | Format::Markdown => text,
            Format::Json | Format::Csv => "",
        }
    }
}

/// Reads a form that is not Markdown, for lists.
pub(super) fn list_format() -> impl TypedValueParser<Value = Format> {
    let all = Format::value_variants().iter();
    let offered = all.filter(|format| **format != Format::Markdown);
    PossibleValuesParser::new(offered.filter_map(Format::to_possible_value))
        .try_map(|text| Format::from_str(&text, false))
}

/// Form of a result that is one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    /// Human-readable
    Text,
    /// One document; `throng schema` describes it
    Json,
}

/// A value of a setting, or that it is left out. (clap takes an `Option` for a flag that may be
/// missing; this one has a default that has a name.)
pub(crate) type Chosen<T> = Option<T>;

/// Reads one of `values`, which help and completions list.
pub(super) fn one_of<T: Named + Send + Sync>(
    values: &'static [T],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(listed(values)).try_map(|text| T::named(&text))
}

/// As [`one_of`], beside a word for none of them.
pub(super) fn none_or<T: Named + Send + Sync>(
    none: &'static str,
    meaning: &'static str,
    values: &'static [T],
) -> impl TypedValueParser<Value = Chosen<T>> {
    let none = PossibleValue::new(none).help(meaning);
    let all = [none].into_iter().chain(listed(values));
    // What has no value of its own is the word for none.
    PossibleValuesParser::new(all).map(|text| T::named(&text).ok())
}

pub(super) fn listed<T: Named>(values: &'static [T]) -> impl Iterator<Item = PossibleValue> {
    let values = values.iter();
    values.map(|value| PossibleValue::new(value.name()).help(value.meaning()))
}

/// What is wrong with a value, and the cure, as [`crate::command_line::wrong`] takes them apart.
pub(crate) fn refusal(what: impl Display, cure: impl Display) -> String {
    format!("{what}{CURE}{cure}")
}

/// What is before the cure in the reason that a parser of values gives.
pub(crate) const CURE: &str = "\nhint: ";

/// Reads a time with its unit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| match parse_number(text) {
        Some(_) => refusal(
            format_args!("`{text}` has no unit"),
            format_args!("write {text}s for seconds, {text}ms for milliseconds"),
        ),
        None => not_duration(text),
    })
}

/// Reads the length of a run: a number without a unit is in seconds, as other generators have it.
pub(super) fn length(text: &str) -> Result<Duration, String> {
    parse_duration_or_seconds(text).ok_or_else(|| not_duration(text))
}

fn not_duration(text: &str) -> String {
    refusal(
        format_args!("`{text}` is not a duration"),
        "write numbers with ns, us, ms, s, m or h, such as 500ms, 1.5s or 1m30s",
    )
}

/// Reads a whole number: `500`, `10k`, `1e6`, `1,000`.
pub(super) fn count<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    read_count(text, &(0..=u64::MAX))
}

/// As [`count`], within a range.
pub(super) fn count_within<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text: &str| read_count(text, &range)
}

/// As [`count`], from a minimum.
pub(super) fn count_from<T: TryFrom<u64>>(min: u64) -> impl Fn(&str) -> Result<T, String> + Clone {
    count_within(min..=u64::MAX)
}

fn read_count<T: TryFrom<u64>>(text: &str, range: &RangeInclusive<u64>) -> Result<T, String> {
    const FORMS: &str = "write a whole number, such as 500, 10k or 1.5M";
    let number = parse_count(text).ok_or_else(|| match parse_number(text) {
        Some(number) if number < 1e9 => {
            refusal(format_args!("`{text}` is not a whole number"), FORMS)
        }
        Some(_) => refusal(format_args!("`{text}` is too large"), FORMS),
        None => refusal(format_args!("`{text}` is not a number"), FORMS),
    })?;
    if !range.contains(&number) {
        let (min, max) = (range.start(), range.end());
        return Err(match *max {
            _ if (number, *min) == (0, 1) => refusal("it must not be zero", "give 1 or more"),
            u64::MAX => refusal(
                format_args!("{number} is too small"),
                format_args!("give {min} or more"),
            ),
            max => refusal(
                format_args!("{number} is not in {min}..={max}"),
                format_args!("give a number from {min} to {max}"),
            ),
        });
    }
    T::try_from(number).map_err(|_| refusal(format_args!("{number} is too large"), FORMS))
}

/// Length of an interval. What is too short is refused as soon as it is read: in an experiment,
/// before its first run.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        length if length < ::load::plan::INTERVAL_MIN => {
            Err("it is less than 1ms, give 1ms or more".to_owned())
        }
        length => Ok(length),
    }
}

pub(super) fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() && !value.trim().is_empty() => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(refusal(
            format_args!("`{text}` is not of the form cpu=2"),
            "write KEY=VALUE",
        )),
    }
}

pub(super) fn delay(text: &str) -> Result<::responder::Delay, String> {
    ::responder::behaviour::parse_delay(text).map_err(|error| error.to_string())
}

pub(super) fn stall(text: &str) -> Result<::responder::Stall, String> {
    ::responder::behaviour::parse_stall(text).map_err(|error| error.to_string())
}
