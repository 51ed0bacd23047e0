//! All commands and their flags in Markdown.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command};

use super::{GROUPS, commands};

const HEAD: &str = "# Commands

Made by `throng schema commands`. `throng COMMAND --help` prints the same. Commands that make runs
have flags of `throng run`; they are described there.
";

/// The reference: each command in its group, its examples, its flags by topic.
pub(crate) fn reference() -> String {
    let mut all = commands().disable_help_subcommand(true);
    all.build();
    let mut text = HEAD.to_owned();
    for (group, names) in GROUPS {
        let _ = write!(text, "\n## {group}\n");
        for name in *names {
            if let Some(command) = all.find_subcommand(name) {
                describe(&mut text, &all, command);
            }
        }
    }
    text
}

/// Adds a command, then those that it has.
fn describe(text: &mut String, all: &Command, command: &Command) {
    let name = command.get_bin_name().unwrap_or_default();
    let _ = write!(text, "\n### {name}\n\n{}.\n", about(command));
    if command.get_subcommands().next().is_none() {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        let _ = write!(text, "\n```\n{usage}\n```\n");
    }
    if let Some(examples) = command.get_after_help() {
        let examples = examples.to_string();
        let lines = examples.lines().skip(1).map(|line| line.trim_start());
        let lines: Vec<&str> = lines.collect();
        let _ = write!(text, "\nExamples:\n\n```\n{}\n```\n", lines.join("\n"));
    }
    describe_flags(text, all, command);
    for subcommand in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        describe(text, all, subcommand);
    }
}

fn about(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string);
    escaped(&about.unwrap_or_default())
}

fn describe_flags(text: &mut String, all: &Command, command: &Command) {
    let run = all
        .find_subcommand("run")
        .filter(|it| it.get_name() != command.get_name());
    let is_of_run = |flag: &Arg| {
        let mut flags = run.into_iter().flat_map(Command::get_arguments);
        flag.get_long().is_some() && flags.any(|it| meaning(it) == meaning(flag))
    };
    let flags = command.get_arguments();
    let flags: Vec<&Arg> = flags
        .filter(|it| !it.is_hide_set() && !is_help(it))
        .collect();
    let (shared, own): (Vec<&Arg>, Vec<&Arg>) = flags.iter().partition(|it| is_of_run(it));
    let mut headings: Vec<&str> = own.iter().filter_map(|it| it.get_help_heading()).collect();
    headings.dedup();
    let mut seen = Vec::new();
    for heading in std::iter::once(None).chain(headings.into_iter().map(Some)) {
        if seen.contains(&heading) {
            continue;
        }
        seen.push(heading);
        let of_heading: Vec<&&Arg> = own
            .iter()
            .filter(|it| it.get_help_heading() == heading)
            .collect();
        if of_heading.is_empty() {
            continue;
        }
        let _ = write!(text, "\n{}:\n\n", heading.unwrap_or("Arguments and flags"));
        of_heading.iter().for_each(|flag| describe_flag(text, flag));
    }
    if !shared.is_empty() {
        let names = shared.iter().filter_map(|it| it.get_long());
        let names: Vec<String> = names.map(|it| format!("`--{it}`")).collect();
        let _ = write!(text, "\nFlags of `throng run`: {}.\n", names.join(", "));
    }
}

fn is_help(flag: &Arg) -> bool {
    let action = flag.get_action();
    matches!(
        action,
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    )
}

/// What a flag of the same name must have to be the same.
fn meaning(flag: &Arg) -> (Option<&str>, String, Vec<String>) {
    (flag.get_long(), help(flag), defaults(flag))
}

fn help(flag: &Arg) -> String {
    let help = flag.get_long_help().or(flag.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    help.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn defaults(flag: &Arg) -> Vec<String> {
    let values = flag.get_default_values().iter();
    values.map(|it| it.to_string_lossy().into_owned()).collect()
}

fn describe_flag(text: &mut String, flag: &Arg) {
    let names = flag.get_value_names().unwrap_or_default();
    let takes_value = flag.get_action().takes_values();
    let value: Vec<&str> = names.iter().map(|it| it.as_str()).collect();
    let value = match (takes_value, value.is_empty()) {
        (false, _) => String::new(),
        (true, true) => flag.get_id().to_string().to_uppercase(),
        (true, false) => value.join(" "),
    };
    let short = flag
        .get_short()
        .map(|it| format!("-{it}, "))
        .unwrap_or_default();
    let long = flag
        .get_long()
        .map(|it| format!("--{it} "))
        .unwrap_or_default();
    let name = format!("{short}{long}{value}");
    let _ = write!(text, "* `{}`: {}", name.trim_end(), escaped(&help(flag)));
    let values = flag.get_possible_values();
    let visible = values.iter().filter(|it| !it.is_hide_set());
    let values: Vec<String> = visible.map(|it| format!("`{}`", it.get_name())).collect();
    if takes_value && !values.is_empty() && flag.get_long().is_some() {
        let _ = write!(text, ". Values: {}", values.join(", "));
    }
    if takes_value && !defaults(flag).is_empty() {
        let _ = write!(text, ". Default: `{}`", defaults(flag).join(","));
    }
    text.push('\n');
}

/// Text in which Markdown finds no marks of its own.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if "*_<>[]`".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
