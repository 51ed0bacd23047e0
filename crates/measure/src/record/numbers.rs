//! Whole numbers of a record that is read are no larger than a run makes them: then neither their
//! sums nor what is reckoned from them overflows.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The most: what every reader of JSON keeps exactly, and 104 days in nanoseconds.
const NUMBER_MAX: u64 = 1 << 53;
/// What was asked for rather than measured: seeds, limits and times that may be any number.
const ASKED_FOR: [&str; 3] = ["asked", "scenario", "simulation"];

/// Looks at all whole numbers but those that were asked for.
///
/// # Errors
/// A message for the user, with line and column of the first that is too large.
pub(super) fn check(json: &str) -> Result<(), String> {
    let checked = serde_json::from_str::<Checked>(json);
    let checked = checked.map_err(|error| format!("not a valid run record: {error}"));
    checked.map(|Checked| ())
}

/// A value in which every number was looked at.
struct Checked;

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Checked)
    }
}

impl<'de> Visitor<'de> for Checked {
    type Value = Checked;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Checked, E> {
        match number <= NUMBER_MAX {
            true => Ok(Checked),
            false => Err(E::custom(format!(
                "{number} is more than any run counts or times, which is at most {NUMBER_MAX}"
            ))),
        }
    }

    fn visit_i64<E>(self, _: i64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_str<E>(self, _: &str) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_unit<E>(self) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Checked, A::Error> {
        while items.next_element::<Checked>()?.is_some() {}
        Ok(Checked)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Checked, A::Error> {
        while let Some(key) = fields.next_key::<Cow<'de, str>>()? {
            if ASKED_FOR.contains(&&*key) {
                fields.next_value::<IgnoredAny>()?;
            } else {
                fields.next_value::<Checked>()?;
            }
        }
        Ok(Checked)
    }
}
