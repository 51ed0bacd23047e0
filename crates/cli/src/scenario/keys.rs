//! The keys of a scenario file: the flags of `throng run`, and a few of its own.

use std::any::TypeId;
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory};

use crate::args::flags::{self, Scope};
use crate::args::{Arguments, Given};

/// The flag by which the user lets a scenario decide everything: no file may have it.
pub(super) const TRUST: &str = "trust";

/// The flags of `throng run`.
pub(crate) struct Keys {
    run: Command,
}

impl Keys {
    pub(crate) fn new() -> Self {
        Keys::of("run")
    }

    /// The flags of a command.
    fn of(command: &str) -> Self {
        let all = Arguments::command();
        let run = all.find_subcommand(command).cloned();
        Keys {
            run: run.expect("callers name one of the commands"),
        }
    }

    /// All flags that a scenario may set.
    pub(crate) fn flags(&self) -> impl Iterator<Item = &Arg> {
        let arguments = self.run.get_arguments();
        arguments.filter(|argument| {
            let is_own = matches!(argument.get_id().as_str(), "help" | "version" | TRUST);
            argument.get_long().is_some() && !is_own
        })
    }

    /// The flag of that name.
    pub(crate) fn flag(&self, name: &str) -> Option<&Arg> {
        self.flags().find(|flag| {
            let aliases = flag.get_all_aliases().unwrap_or_default();
            flag.get_long() == Some(name) || aliases.contains(&name)
        })
    }

    /// The known name that is most like `name`, if one is.
    pub(crate) fn nearest(&self, name: &str, further: &[&str]) -> Option<String> {
        let flags = self.flags().filter_map(Arg::get_long);
        let known = flags.chain(further.iter().copied());
        nearest(name, known).map(str::to_owned)
    }
}

/// The known name that is most like `name`, if one is.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let likeness = known.map(|known| (strsim::jaro_winkler(name, known), known));
    let (most, nearest) = likeness.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (most > 0.75).then_some(nearest)
}

/// True if the flag takes no value.
pub(crate) fn is_switch(flag: &Arg) -> bool {
    matches!(flag.get_action(), ArgAction::SetTrue)
}

/// True if the flag may be given several times, or with several values.
pub(crate) fn is_list(flag: &Arg) -> bool {
    matches!(flag.get_action(), ArgAction::Append)
}

/// True if the flag may be given without its value.
pub(crate) fn has_optional_value(flag: &Arg) -> bool {
    let range = flag.get_num_args();
    range.is_some_and(|range| range.min_values() == 0 && range.max_values() > 0)
}

/// True if the flag names a file.
pub(crate) fn is_path(flag: &Arg) -> bool {
    flag.get_value_parser().type_id() == TypeId::of::<PathBuf>()
}

/// True if no group of clients may set it for itself.
pub(crate) fn is_of_run(flag: &Arg) -> bool {
    let row = flag.get_long().and_then(flags::find);
    row.is_some_and(|row| row.scope == Scope::Run)
}

/// What the flag does that is the user's decision, if it is.
pub(super) fn reserved_for_user(flag: &Arg) -> Option<&'static str> {
    let row = flag.get_long().and_then(flags::find);
    row.and_then(flags::Flag::reserved_for_user)
}

/// The flags that were given on the command line of `command`.
pub(crate) fn given(command: &str, matches: &ArgMatches) -> Vec<Given> {
    let keys = Keys::of(command);
    let from_command_line = |flag: &&Arg| {
        let source = matches.value_source(flag.get_id().as_str());
        source == Some(clap::parser::ValueSource::CommandLine)
    };
    let given = |flag: &Arg| Given {
        name: flag.get_long().unwrap_or_default().to_owned(),
        values: match is_switch(flag) {
            true => Vec::new(),
            false => (matches
                .get_raw(flag.get_id().as_str())
                .into_iter()
                .flatten())
            .map(|value| value.to_string_lossy().into_owned())
            .collect(),
        },
    };
    keys.flags().filter(from_command_line).map(given).collect()
}

/// A file named in a scenario: beside it, if it is there.
pub(crate) fn beside(scenario: &Path, named: &str) -> String {
    let folder = scenario.parent().unwrap_or(Path::new(""));
    let path = folder.join(named);
    match named != "-" && path.exists() {
        true => path.to_string_lossy().into_owned(),
        false => named.to_owned(),
    }
}
