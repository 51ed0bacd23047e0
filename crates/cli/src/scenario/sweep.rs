//! Sweeps: the same scenario once for each value of a flag, or of several.

use std::fmt;
use std::path::{Path, PathBuf};

use lab::experiment;

use super::file::{ScenarioFile, Table};
use crate::args::Given;
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
    let Some(sweep) = &file.sweep else {
        return Ok(vec![Point::default()]);
    };
    let of_each = sweep.flags.iter().map(|given| values(sweep, given));
    let of_each = of_each.collect::<Result<Vec<_>, _>>()?;
    let levels: Vec<usize> = of_each.iter().map(Vec::len).collect();
    let all = experiment::combinations(&levels, POINTS_MAX).map_err(|_| {
        let what = format!("more than {POINTS_MAX} points");
        sweep.fault(what, "vary fewer flags, or by larger steps")
    })?;
    let point = |positions: Vec<usize>| {
        let each = sweep.flags.iter().zip(&of_each).zip(positions);
        let flags = each.map(|((given, values), position)| Given {
            name: given.name.clone(),
            values: vec![values[position].clone()],
        });
        Point {
            flags: flags.collect(),
        }
    };
    Ok(all.into_iter().map(point).collect())
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
    match experiment::range(text, POINTS_MAX) {
        Some(values) => Ok(values),
        None if text.contains("..") => Err(sweep.fault(
            format!("`{text}` is not a range"),
            "write FIRST..LAST+STEP or FIRST..LAST*FACTOR, such as \"1..24000*2\"",
        )),
        None => Ok(vec![text.clone()]),
    }
}
