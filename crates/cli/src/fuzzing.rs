//! Files that are read before a run, for fuzz targets: from text to all that would be run, without
//! running it.

use std::path::Path;

use crate::failure::Failure;
use crate::{experiment, scenario};

/// Reads a scenario that lies at `path`, to the flags of each group in each of its runs; tells how
/// many groups there are.
///
/// # Errors
/// What `throng run` says of it.
pub fn scenario(path: &Path, text: &str) -> Result<usize, String> {
    scenario::groups_in(path, text).map_err(words)
}

/// Reads an experiment that lies at `path`, to the arguments of each of its runs; tells what
/// `throng experiment plan` prints of it.
///
/// # Errors
/// What `throng experiment` says of it.
pub fn experiment(path: &Path, text: &str) -> Result<String, String> {
    experiment::plan_of(path, text).map_err(words)
}

fn words(failure: Failure) -> String {
    failure.what().to_owned()
}
