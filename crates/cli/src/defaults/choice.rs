//! Which defaults a command line gets: those that contradict nothing in it.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches};
use settings::DriverKind;

use super::commands::{Leaf, Tree, names};
use super::safe::is_safe;
use super::sources::{Rank, Setting, Source};
use crate::args::{Arguments, Command, Given, RunArguments};
use crate::command_line;
use crate::failure::Failure;
use crate::help;
use crate::run::unused::idle;
use crate::scenario;
use crate::scenario::keys::has_optional_value;

/// The defaults of one command line.
#[derive(Debug, Default)]
pub(super) struct Choice {
    pub(super) used: Vec<Used>,
    pub(super) left_out: Vec<LeftOut>,
}

/// A default in force.
#[derive(Clone, Debug)]
pub(super) struct Used {
    pub(super) given: Given,
    pub(super) origin: String,
}

/// A default that is not in force.
#[derive(Clone, Debug)]
pub(super) struct LeftOut {
    pub(super) flag: String,
    pub(super) origin: String,
    pub(super) why: String,
    /// The working directory's file may not set it.
    is_refused: bool,
}

/// A default that may be in force, and why it was not until now.
struct Candidate {
    used: Used,
    /// Of two that contradict each other, the greater is in force.
    rank: (bool, Rank),
    why_not: String,
}

/// What became of a candidate.
enum Judged {
    Fits,
    /// Another default may change that.
    Waits(String),
    Contradicts(String),
}

impl Choice {
    /// Chooses for a command line; `is_complete` is whether it is one without defaults.
    ///
    /// # Errors
    /// A default has a wrong value.
    pub(super) fn new(
        tree: &Tree<'_>,
        leaf: &Leaf<'_>,
        arguments: &[OsString],
        is_complete: bool,
        settings: &[Setting],
    ) -> Result<Self, Failure> {
        let mut line = Line::new(leaf, arguments, is_complete);
        let mut choice = Choice::default();
        let mut waiting = Vec::new();
        for flag in leaf.flags().filter(|flag| !line.says(flag)) {
            if let Some((used, rank)) = choice.candidate(tree, leaf, flag, settings)? {
                waiting.push(Candidate {
                    used,
                    // The parser does not see the rest where one is missing.
                    rank: (flag.is_required_set(), rank),
                    why_not: String::new(),
                });
            }
        }
        waiting.sort_by_key(|candidate| Reverse(candidate.rank));
        loop {
            let before = waiting.len();
            let mut left = Vec::new();
            for mut candidate in waiting {
                match line.judge(&candidate.used.given) {
                    Judged::Fits => {
                        line.add(&candidate.used.given);
                        choice.used.push(candidate.used);
                    }
                    Judged::Waits(why) => {
                        candidate.why_not = why;
                        left.push(candidate);
                    }
                    Judged::Contradicts(why) => choice.leave_out(candidate.used, why),
                }
            }
            waiting = left;
            if waiting.is_empty() || waiting.len() == before {
                break;
            }
        }
        for candidate in waiting {
            choice.leave_out(candidate.used, candidate.why_not);
        }
        Ok(choice)
    }

    fn leave_out(&mut self, used: Used, why: String) {
        self.left_out.push(LeftOut {
            flag: used.given.name,
            origin: used.origin,
            why,
            is_refused: false,
        });
    }

    /// The default of a flag that comes before all others.
    fn candidate(
        &mut self,
        tree: &Tree<'_>,
        leaf: &Leaf<'_>,
        flag: &Arg,
        settings: &[Setting],
    ) -> Result<Option<(Used, Rank)>, Failure> {
        let name = flag.get_long().unwrap_or_default();
        let of_flag = settings.iter().filter(|it| it.is_of(tree, leaf, flag));
        let (refused, of_flag): (Vec<_>, Vec<_>) =
            of_flag.partition(|it| it.source == Source::Folder && !is_safe(name));
        self.left_out
            .extend(refused.into_iter().map(|setting| LeftOut {
                flag: name.to_owned(),
                origin: setting.origin.clone(),
                why: "a file in the working directory may not set it".to_owned(),
                is_refused: true,
            }));
        let best = of_flag.into_iter().max_by_key(|setting| setting.rank());
        let Some(setting) = best else {
            return Ok(None);
        };
        let error = match values(leaf, flag, setting) {
            Ok(None) => return Ok(None),
            Ok(Some(values)) => {
                let used = Used {
                    given: Given {
                        name: name.to_owned(),
                        values,
                    },
                    origin: setting.origin.clone(),
                };
                return Ok(Some((used, setting.rank())));
            }
            Err(error) => error,
        };
        let mut others = tree.leaves.iter().filter(|it| it.path != leaf.path);
        let is_of_others = setting.is_broad(leaf)
            && others.any(|other| {
                let flag = other.flag(&setting.flag);
                flag.is_some_and(|flag| values(other, flag, setting).is_ok())
            });
        if !is_of_others {
            return Err(error.of(&setting.origin));
        }
        self.left_out.push(LeftOut {
            flag: name.to_owned(),
            origin: setting.origin.clone(),
            why: format!("`throng {}` has other values", leaf.path.join(" ")),
            is_refused: false,
        });
        Ok(None)
    }

    /// The words to add to the command line.
    pub(super) fn words(&self) -> impl Iterator<Item = OsString> {
        self.used.iter().flat_map(|used| used.given.arguments())
    }

    /// Flags that the working directory's file may not set.
    pub(super) fn refused(&self) -> impl Iterator<Item = String> {
        let refused = self.left_out.iter().filter(|it| it.is_refused);
        refused.map(|it| format!("--{}", it.flag))
    }
}

/// The values of a default that a command understands; none if it is not to be given.
fn values(leaf: &Leaf<'_>, flag: &Arg, setting: &Setting) -> Result<Option<Vec<String>>, Failure> {
    let name = flag.get_long().unwrap_or_default();
    let values = setting.values(flag);
    let values = values.map_err(|(what, hint)| Failure::usage(format!("--{name} {what}"), hint))?;
    let Some(values) = values else {
        return Ok(None);
    };
    let mut given = Given {
        name: name.to_owned(),
        values,
    };
    let line = [leaf.start(), given.arguments()].concat();
    if has_optional_value(flag) && given.values.is_empty() {
        // Written out: what follows on the command line would be taken for it.
        let mut matches = lenient(&line);
        matches = below(matches, leaf);
        let raw = matches
            .as_ref()
            .and_then(|it| it.get_raw(flag.get_id().as_str()));
        let raw = raw.into_iter().flatten();
        given.values = raw.map(|it| it.to_string_lossy().into_owned()).collect();
    }
    match command_line::parse(line) {
        Err(error) if !is_of_rest(error.kind()) => Err(command_line::wrong(
            &error,
            leaf.path.first().unwrap_or(&""),
        )),
        _ => Ok(Some(given.values)),
    }
}

/// True for what other flags decide.
fn is_of_rest(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::MissingRequiredArgument | ErrorKind::ArgumentConflict
    )
}

/// What was typed, whether or not it is all that the command needs.
fn lenient(line: &[OsString]) -> Option<ArgMatches> {
    let command = help::commands().ignore_errors(true);
    command.try_get_matches_from(line).ok()
}

fn below(matches: Option<ArgMatches>, leaf: &Leaf<'_>) -> Option<ArgMatches> {
    let mut matches = matches?;
    for _ in &leaf.path {
        matches = matches.remove_subcommand()?.1;
    }
    Some(matches)
}

impl Leaf<'_> {
    /// The words before its flags.
    pub(super) fn start(&self) -> Vec<OsString> {
        let path = self.path.iter().map(OsString::from);
        [OsString::from("throng")].into_iter().chain(path).collect()
    }
}

/// A command line while defaults are added to it.
struct Line {
    typed: BTreeSet<String>,
    /// Flags of the scenario, which says more than a default.
    of_scenario: BTreeSet<String>,
    start: Vec<OsString>,
    added: Vec<OsString>,
    rest: Vec<OsString>,
    is_complete: bool,
    /// Flags without effect.
    idle: BTreeSet<String>,
}

impl Line {
    fn new(leaf: &Leaf<'_>, arguments: &[OsString], is_complete: bool) -> Self {
        let matches = below(lenient(arguments), leaf);
        let is_typed = |flag: &&Arg| {
            let source = matches
                .as_ref()
                .and_then(|it| it.value_source(flag.get_id().as_str()));
            source == Some(clap::parser::ValueSource::CommandLine)
        };
        let typed = leaf.flags().filter(is_typed);
        let typed = typed.filter_map(Arg::get_long).map(str::to_owned);
        let mut line = Line {
            typed: typed.collect(),
            of_scenario: BTreeSet::new(),
            start: leaf.start(),
            added: Vec::new(),
            rest: arguments
                .iter()
                .skip(1 + leaf.path.len())
                .cloned()
                .collect(),
            is_complete,
            idle: BTreeSet::new(),
        };
        let parsed = line.parsed(&[]).ok();
        if let Some(Command::Run(run)) = parsed.map(|it| it.command) {
            line.take_scenario(&run);
        }
        line.idle = line
            .parsed(&[])
            .map(|mut it| idle_names(&mut it))
            .unwrap_or_default();
        line
    }

    /// What the scenario says is said; its flags for all groups decide what contradicts.
    fn take_scenario(&mut self, run: &crate::args::RunCommand) {
        let Some(stated) = run.scenario.as_deref().and_then(scenario::stated) else {
            return;
        };
        let top = stated
            .top
            .iter()
            .filter(|given| !self.typed.contains(&given.name));
        let words: Vec<OsString> = top.flat_map(Given::arguments).collect();
        if self.parsed(&words).is_ok() {
            self.added = words;
        }
        self.of_scenario = stated.names;
    }

    fn says(&self, flag: &Arg) -> bool {
        let name = flag.get_long().unwrap_or_default();
        self.typed.contains(name) || names(flag).any(|it| self.of_scenario.contains(it))
    }

    fn parsed(&self, further: &[OsString]) -> Result<Arguments, ErrorKind> {
        let words = [&self.start, &self.added, further, &self.rest].concat();
        command_line::parse(words).map_err(|error| error.kind())
    }

    fn judge(&self, given: &Given) -> Judged {
        let mut parsed = match self.parsed(&given.arguments()) {
            Ok(parsed) => parsed,
            Err(ErrorKind::MissingRequiredArgument) if !self.is_complete => return Judged::Fits,
            Err(ErrorKind::MissingRequiredArgument) => {
                return Judged::Waits("it needs another flag".to_owned());
            }
            Err(_) => {
                let why = "it contradicts what is typed, or another default";
                return Judged::Contradicts(why.to_owned());
            }
        };
        let Some(run) = judged_run(&mut parsed) else {
            return Judged::Fits;
        };
        if let Some((_, what, _)) = idle(run).find(|(name, ..)| *name == given.name) {
            return Judged::Waits(format!("it has no effect on {what}"));
        }
        let is_simulated = run.driver == Some(DriverKind::Sim);
        if is_simulated && !run.server.is_empty() {
            return Judged::Contradicts("a simulation has its own server".to_owned());
        }
        let other = idle(run).find(|(name, ..)| !self.idle.contains(*name));
        match other {
            Some((name, ..)) => Judged::Contradicts(format!("--{name} would have no effect")),
            None => Judged::Fits,
        }
    }

    fn add(&mut self, given: &Given) {
        self.added.extend(given.arguments());
        let parsed = self.parsed(&[]);
        self.is_complete |= parsed.is_ok();
        if let Ok(mut parsed) = parsed {
            self.idle = idle_names(&mut parsed);
        }
    }
}

fn idle_names(parsed: &mut Arguments) -> BTreeSet<String> {
    let run = judged_run(parsed);
    let idle = run.into_iter().flat_map(idle);
    idle.map(|(name, ..)| name.to_owned()).collect()
}

/// The run whose flags may be without effect; each of several transports has others.
fn judged_run(parsed: &mut Arguments) -> Option<&RunArguments> {
    match parsed.command {
        Command::CompareTransports(_) => None,
        _ => command_line::run_of(&mut parsed.command).map(|run| &*run),
    }
}
