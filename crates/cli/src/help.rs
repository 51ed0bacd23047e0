//! Help: the first screen of each command (`-h`), all of its flags (`--help`), and topics.
//!
//! What a command does and what its flags mean is said in `args`; `pages` adds examples, what most
//! people need first, and topics.

use std::ffi::OsString;

use clap::{Arg, Command, CommandFactory};

use crate::args::Arguments;

mod pages;
mod reference;
#[cfg(test)]
mod tests;

pub(crate) use reference::reference;

use pages::{EXAMPLES, FIRST, FLAG_TOPICS, GROUPS, TOPICS};

/// Columns of the names of commands, topics and kinds of flags.
const NAME_COLUMNS: usize = 20;
const KIND_COLUMNS: usize = 9;

/// All commands with their examples, for the parser and the manual.
pub(crate) fn commands() -> Command {
    let mut all = Arguments::command();
    for (name, examples) in EXAMPLES {
        let text = format!("Examples:\n{}", indented(examples));
        all = all.mut_subcommand(name, |command| command.after_help(text));
    }
    all
}

/// The page that a command line asks for, if it is one that the parser does not print.
pub(crate) fn asked(arguments: &[OsString]) -> Option<String> {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    match words.get(1..)? {
        ["-h" | "--help" | "help"] => Some(overview()),
        ["help", topic] => of_topic(topic),
        [command, rest @ ..] if rest.contains(&"-h") => first_screen(command),
        _ => None,
    }
}

/// All commands and topics.
pub(crate) fn overview() -> String {
    let all = Arguments::command();
    let about = |name: &str| {
        let command = all.find_subcommand(name);
        let about = command.and_then(Command::get_about);
        about.map(ToString::to_string).unwrap_or_default()
    };
    let mut page = all.get_about().map(ToString::to_string).unwrap_or_default();
    page.push_str("\n\nUsage: throng COMMAND [FLAGS]\n\n");
    page.push_str(&indented(pages::OVERVIEW));
    for (heading, commands) in GROUPS {
        page.push_str(&format!("\n{heading}\n"));
        for name in *commands {
            page.push_str(&row(name, &about(name)));
        }
    }
    page.push_str(
        "\nFlags of a command: throng COMMAND -h, all of them with --help. Version: throng \
         --version\n",
    );
    page.push_str(&format!("Topics: throng help {}\n", topics().join("|")));
    wrapped(&page)
}

/// Names of all topics.
pub(crate) fn topics() -> Vec<&'static str> {
    let flags = FLAG_TOPICS.iter().map(|(topic, _)| *topic);
    TOPICS
        .iter()
        .map(|(topic, _)| *topic)
        .chain(flags)
        .collect()
}

/// A topic; none for what is a command.
fn of_topic(topic: &str) -> Option<String> {
    if let Some((_, text)) = TOPICS.iter().find(|(name, _)| *name == topic) {
        return Some((*text).to_owned());
    }
    let (_, heading) = FLAG_TOPICS.iter().find(|(name, _)| *name == topic)?;
    let all = Arguments::command();
    let run = all.find_subcommand("run")?.clone();
    let mut page = run
        .mut_args(|flag| flag_of(heading, flag))
        .disable_help_flag(true)
        .max_term_width(100)
        .help_template("Flags of `throng run`, and of the commands that make runs\n\n{all-args}\n");
    Some(page.render_long_help().to_string())
}

/// The flag, hidden where it has another heading.
fn flag_of(heading: &str, flag: Arg) -> Arg {
    let is_other = flag.get_help_heading() != Some(heading);
    match is_other {
        true => flag.hide(true),
        false => flag,
    }
}

/// What most people need first of a command with many flags.
fn first_screen(name: &str) -> Option<String> {
    let (_, kinds) = FIRST.iter().find(|(command, _)| *command == name)?;
    let mut all = Arguments::command();
    all.build();
    let command = all.find_subcommand_mut(name)?;
    let (_, examples) = EXAMPLES.iter().find(|(command, _)| *command == name)?;
    let about = command.get_about().map(ToString::to_string);
    let usage = command.render_usage().to_string();
    let mut page = format!(
        "{}\n\n{usage}\n\n{}\n",
        about.unwrap_or_default(),
        indented(examples)
    );
    for (kind, flags) in *kinds {
        page.push_str(&format!("{kind:<KIND_COLUMNS$}{flags}\n"));
    }
    let has_topics = ["transport", "listen"];
    let visible = command.get_arguments().filter(|it| !it.is_hide_set());
    let mut flags = visible.filter_map(Arg::get_long);
    let by_topic = match flags.any(|flag| has_topics.contains(&flag)) {
        true => format!(", or by topic: throng help {}", topics().join("|")),
        false => String::new(),
    };
    page.push_str(&format!("\nAll flags: throng {name} --help{by_topic}\n"));
    Some(wrapped(&page))
}

fn row(name: &str, about: &str) -> String {
    format!("  {name:<NAME_COLUMNS$}{about}\n")
}

fn indented(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

/// Long lines go on below their second column.
fn wrapped(page: &str) -> String {
    page.lines().map(wrapped_line).collect()
}

fn wrapped_line(line: &str) -> String {
    const COLUMNS: usize = 100;
    let is_list = line.starts_with("All") || line.starts_with("Topics");
    let indent = match line.starts_with("  ") {
        true => 2 + NAME_COLUMNS,
        false if is_list => 2,
        false => KIND_COLUMNS,
    };
    let (mut text, mut column) = (String::new(), 0);
    // A list of topics has no blanks.
    for word in line.split_inclusive(|it| it == ' ' || is_list && it == '|') {
        if column + word.trim_end().len() > COLUMNS {
            text.truncate(text.trim_end().len());
            text.push_str(&format!("\n{:indent$}", ""));
            column = indent;
        }
        text.push_str(word);
        column += word.len();
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}
