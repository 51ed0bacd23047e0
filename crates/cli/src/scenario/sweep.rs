//! Sweeps: the same scenario once for each value of a flag, or of several.

use std::fmt;
use std::path::{Path, PathBuf};

use super::file::{ScenarioFile, Table};
use super::keys::Given;
use crate::failure::Failure;

/// Most points of a sweep.
const POINTS_MAX: usize = 1_000;

/// One run of a sweep: the flags that are varied, with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) flags: Vec<Given>,
}

impl Point {
    /// True if the scenario has no sweep.
    pub(crate) fn is_only(&self) -> bool {
        self.flags.is_empty()
    }

    /// The file for the record of this point: `r.json` becomes `r-clients=100.json`.
    pub(crate) fn file(&self, path: &Path) -> PathBuf {
        if self.is_only() {
            return path.to_owned();
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut name = stem.into_owned();
        for given in &self.flags {
            name.push_str(&format!("-{}={}", given.name, given.values.join(",")));
        }
        if let Some(extension) = path.extension() {
            name.push('.');
            name.push_str(&extension.to_string_lossy());
        }
        path.with_file_name(name.replace(['/', ':'], "_"))
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = self.flags.iter();
        let words: Vec<String> = each
            .map(|given| format!("{} {}", given.name, given.values.join(",")))
            .collect();
        f.write_str(&words.join(", "))
    }
}

/// The points of a scenario: every combination of the values in its `[sweep]`, or the only one.
pub(super) fn points(file: &ScenarioFile) -> Result<Vec<Point>, Failure> {
    let mut points = vec![Point::default()];
    let Some(sweep) = &file.sweep else {
        return Ok(points);
    };
    for given in &sweep.flags {
        let values = values(sweep, given)?;
        if points.len() * values.len() > POINTS_MAX {
            let what = format!("more than {POINTS_MAX} points");
            return Err(sweep.fault(what, "vary fewer flags, or by larger steps"));
        }
        let with = |point: &Point, value: &String| {
            let mut point = point.clone();
            point.flags.push(Given {
                name: given.name.clone(),
                values: vec![value.clone()],
            });
            point
        };
        let each = points.iter();
        points = each
            .flat_map(|point| {
                values
                    .iter()
                    .map(|value| with(point, value))
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    Ok(points)
}

/// A list as it is, or a range: `1..100+10` adds, `1..24000*2` multiplies.
fn values(sweep: &Table, given: &Given) -> Result<Vec<String>, Failure> {
    let [text] = given.values.as_slice() else {
        return match given.values.is_empty() {
            true => Err(sweep.fault(
                format!("`{}` has no values to vary", given.name),
                "write a list, or a range such as \"1..24000*2\"",
            )),
            false => Ok(given.values.clone()),
        };
    };
    match range(text) {
        Some(values) => Ok(values),
        None if text.contains("..") => Err(sweep.fault(
            format!("`{text}` is no range"),
            "write FIRST..LAST+STEP or FIRST..LAST*FACTOR, such as \"1..24000*2\"",
        )),
        None => Ok(vec![text.clone()]),
    }
}

/// The values of a range; its last one is always among them.
fn range(text: &str) -> Option<Vec<String>> {
    let (first, rest) = text.split_once("..")?;
    let at = rest.find(['+', '*'])?;
    let (last, step) = rest.split_at(at);
    let (first, last): (f64, f64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let by: f64 = step[1..].trim().parse().ok()?;
    let grows = match &step[..1] {
        "+" => by > 0.0,
        _ => by > 1.0 && first > 0.0,
    };
    if !grows || last < first {
        return None;
    }
    let mut values = Vec::new();
    let mut next = first;
    while next < last && values.len() <= POINTS_MAX {
        values.push(next);
        next = if step.starts_with('+') {
            next + by
        } else {
            next * by
        };
    }
    values.push(last);
    let whole = first.fract() == 0.0 && by.fract() == 0.0 && last.fract() == 0.0;
    let text = |value: f64| match whole {
        true => format!("{value:.0}"),
        false => value.to_string(),
    };
    Some(values.into_iter().map(text).collect())
}
