//! Values that flags of several commands have.

use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::{Deserialize, Serialize};
use settings::Named;

/// What `auto` is among the drivers.
pub(super) const FASTER: &str = "The faster one for the load, of those that the kernel allows";

/// Form of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Format {
    /// Human-readable
    #[default]
    Text,
    /// The run record
    Json,
    /// One row per interval, and a total
    Csv,
}

/// Form of a result that is one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DocumentFormat {
    /// Human-readable
    Text,
    /// One object
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

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    ::responder::behaviour::parse_duration(text).map_err(|error| error.to_string())
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
        _ => Err(format!("`{text}` is not of the form cpu=2")),
    }
}

pub(super) fn delay(text: &str) -> Result<::responder::Delay, String> {
    ::responder::behaviour::parse_delay(text).map_err(|error| error.to_string())
}

pub(super) fn stall(text: &str) -> Result<::responder::Stall, String> {
    ::responder::behaviour::parse_stall(text).map_err(|error| error.to_string())
}
