//! Commands and flags that have defaults.

use std::ffi::OsString;

use clap::{Arg, Command};

/// Commands that have none: those with the flags of another program, agents, and the one that shows
/// defaults.
const WITHOUT: [&[&str]; 5] = [
    &["dnsperf"],
    &["resperf"],
    &["queryperf"],
    &["fleet", "agent"],
    &["config"],
];

/// The commands that have defaults.
pub(super) struct Tree<'a> {
    all: &'a Command,
    pub(super) leaves: Vec<Leaf<'a>>,
}

/// A command without commands of its own.
pub(super) struct Leaf<'a> {
    /// Its name, such as `experiment`, `run`.
    pub(super) path: Vec<&'a str>,
    command: &'a Command,
}

impl<'a> Tree<'a> {
    pub(super) fn new(all: &'a Command) -> Self {
        let mut leaves = Vec::new();
        collect(all, &mut Vec::new(), &mut leaves);
        Tree { all, leaves }
    }

    /// The command of a command line, if it has defaults.
    pub(super) fn leaf_of(&self, arguments: &[OsString]) -> Option<&Leaf<'a>> {
        let mut command = self.all;
        let mut words = arguments.iter().skip(1);
        let mut path = Vec::new();
        while command.has_subcommands() {
            command = command.find_subcommand(words.next()?.to_str()?)?;
            path.push(command.get_name());
        }
        self.leaves.iter().find(|leaf| leaf.path == path)
    }

    /// True if a command has that flag.
    pub(super) fn has(&self, flag: &str) -> bool {
        self.leaves.iter().any(|leaf| leaf.flag(flag).is_some())
    }

    /// True if a command has a flag of that name, which is not an alias.
    pub(super) fn has_named(&self, name: &str) -> bool {
        let mut flags = self.leaves.iter().flat_map(Leaf::flags);
        flags.any(|flag| flag.get_long() == Some(name))
    }

    /// The commands whose names begin like that.
    pub(super) fn below(&self, path: &[String]) -> impl Iterator<Item = &Leaf<'a>> {
        self.leaves.iter().filter(move |leaf| leaf.is_below(path))
    }
}

fn collect<'a>(command: &'a Command, path: &mut Vec<&'a str>, leaves: &mut Vec<Leaf<'a>>) {
    if command.is_hide_set() || WITHOUT.contains(&path.as_slice()) {
        return;
    }
    if !command.has_subcommands() {
        let path = path.clone();
        leaves.push(Leaf { path, command });
    }
    for each in command.get_subcommands() {
        path.push(each.get_name());
        collect(each, path, leaves);
        path.pop();
    }
}

impl<'a> Leaf<'a> {
    /// True if its name begins like that.
    pub(super) fn is_below(&self, path: &[String]) -> bool {
        path.len() <= self.path.len() && path.iter().zip(&self.path).all(|(one, own)| one == own)
    }

    /// The flags that may have a default.
    pub(super) fn flags(&self) -> impl Iterator<Item = &'a Arg> + use<'a> {
        let arguments = self.command.get_arguments();
        arguments.filter(|flag| {
            // No default can trust a scenario.
            let is_own = matches!(flag.get_id().as_str(), "help" | "version" | "trust");
            flag.get_long().is_some() && !flag.is_hide_set() && !is_own
        })
    }

    /// The flag of that long name, or with that alias.
    pub(super) fn flag(&self, name: &str) -> Option<&'a Arg> {
        self.flags().find(|flag| names(flag).any(|it| it == name))
    }

    /// The command that a flag is looked for in by its meaning.
    pub(super) fn command(&self) -> &'a Command {
        self.command
    }
}

/// All long names of a flag.
pub(super) fn names(flag: &Arg) -> impl Iterator<Item = &str> {
    let aliases = flag.get_all_aliases().unwrap_or_default();
    flag.get_long().into_iter().chain(aliases)
}
