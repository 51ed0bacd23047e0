//! `throng turn`: a process that makes runs of an experiment or a comparison, so that what one run
//! leaves behind cannot touch the next. Only those commands start it.
//!
//! What a run is to do goes as types to its standard input, a socket, and what it shows comes back
//! over it: everybody on the host may read the command line of a process. Its record it writes
//! itself.

mod maker;
mod process;

use std::path::PathBuf;

use lab::live::Shown;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::run::group::Group;
pub(crate) use maker::{Made, Maker, Places};
pub(crate) use process::execute;

/// The subcommand, which has no help of its own.
pub(crate) const NAME: &str = "turn";

/// A run that is to be made; each is a line.
#[derive(Serialize, Deserialize)]
struct Setup {
    groups: Vec<Group>,
    /// What cannot be read a second time.
    inputs: Value,
    /// Where what it prints is added; without one, only errors are shown.
    log: Option<PathBuf>,
    /// Readers of its snapshots show verdicts, and groups.
    wants_verdicts: bool,
    wants_groups: bool,
    /// The process makes no further run.
    is_last: bool,
}

/// What the process says of a run; each is a line.
#[derive(Serialize, Deserialize)]
enum Said {
    /// For the person who waits for it.
    Note(String),
    /// Its load has begun.
    Begun,
    /// What it shows now.
    Shows(Box<Shown>),
    /// It is over, with this failure.
    Over(Option<String>),
}
