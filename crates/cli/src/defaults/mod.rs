//! Defaults for flags, from files and environment variables: what a command line does not say.
//!
//! `sources` reads them, `commands` knows which commands and flags have them, `choice` decides
//! which of them a command line gets, `safe` what the working directory's file may say, and `show`
//! prints them (`throng config`). They become words of the command line before it is parsed, so
//! that each has the checks and the errors of a flag.
//!
//! Agents, runs in processes of their own, sides of a comparison, cells of an experiment and what a
//! fleet runs have none: their command lines are complete, and the same on every host.

mod choice;
mod commands;
mod safe;
mod show;
mod sources;
#[cfg(test)]
mod tests;

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::ErrorKind;

use crate::args::Arguments;
use crate::failure::Failure;
use crate::{child, command_line};
use choice::Choice;
use commands::Tree;
use sources::Sources;

pub(crate) use show::execute;

/// The first word of a command line that gets no defaults.
const NONE: &str = "--no-defaults";

/// A command line with its defaults.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// All of its words.
    pub(crate) arguments: Vec<OsString>,
    choice: Choice,
}

impl Applied {
    /// As it was given.
    pub(crate) fn none(arguments: Vec<OsString>) -> Self {
        Applied {
            arguments,
            choice: Choice::default(),
        }
    }

    /// True if that flag was not typed.
    pub(crate) fn has(&self, flag: &str) -> bool {
        let mut used = self.choice.used.iter();
        used.any(|it| it.given.name == flag)
    }

    /// Which flags were not typed, for a command that was refused.
    pub(crate) fn note(&self) -> Option<String> {
        let used = self.choice.used.iter();
        let used: Vec<String> = used
            .map(|it| format!("--{} ({})", it.given.name, it.origin))
            .collect();
        (!used.is_empty()).then(|| format!("note: defaults in force: {}", used.join(", ")))
    }
}

/// Removes the word that refuses defaults; true if it was there.
pub(crate) fn are_refused(arguments: &mut Vec<OsString>) -> bool {
    let are_refused = arguments.get(1).is_some_and(|word| word == NONE);
    if are_refused {
        arguments.remove(1);
    }
    are_refused
}

/// Adds to a command line what it does not say; the program's name is its first word.
///
/// # Errors
/// A file or variable cannot be understood.
pub(crate) fn apply(arguments: Vec<OsString>) -> Result<Applied, Failure> {
    let sources = Sources::find();
    if child::is_child() || sources.are_empty() {
        return Ok(Applied::none(arguments));
    }
    let all = Arguments::command();
    let tree = Tree::new(&all);
    let Some(leaf) = tree.leaf_of(&arguments) else {
        return Ok(Applied::none(arguments));
    };
    // What is wrong with what was typed is reported as without defaults.
    let is_complete = match command_line::parse(arguments.clone()) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => false,
        Err(_) => return Ok(Applied::none(arguments)),
    };
    let settings = sources.read(&tree)?;
    let choice = Choice::new(&tree, leaf, &arguments, is_complete, &settings)?;
    let refused: Vec<String> = choice.refused().collect();
    if !refused.is_empty() {
        tell!(
            "warning: {}: a file in the working directory may not set {}: left out (see `throng \
             help configuration`)",
            sources::FILE,
            refused.join(", ")
        );
    }
    let after = 1 + leaf.path.len();
    let mut words = arguments;
    words.splice(after..after, choice.words());
    Ok(Applied {
        arguments: words,
        choice,
    })
}
