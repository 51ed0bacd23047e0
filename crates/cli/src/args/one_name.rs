//! One meaning has one flag in all commands, and the former names of flags still work.

use clap::{Arg, Command};

use crate::args::CompletionArguments;
use crate::{command_line, completions, help};

/// A flag, and names that would be a second one of its meaning.
const ONE_NAME: [(&str, &[&str]); 8] = [
    // How often something is done.
    (
        "repeat",
        &[
            "rounds",
            "repetitions",
            "repeats",
            "runs",
            "iterations",
            "times",
        ],
    ),
    // The one record that is written.
    (
        "record",
        &["record-file", "json", "save", "result", "output-record"],
    ),
    // The folder of several records.
    (
        "records",
        &["in", "folder", "dir", "directory", "record-dir", "results"],
    ),
    // Any other file or folder that is written.
    ("output", &["out", "out-file", "output-file", "output-dir"]),
    // The form of what is printed.
    ("format", &["form", "output-format", "report-format"]),
    // The form of captures that are read.
    ("capture-format", &["input-format", "log-format"]),
    // The certificate of this end.
    (
        "tls-cert",
        &[
            "tls-certificate",
            "cert",
            "certificate",
            "tls-cert-file",
            "tls-certfile",
        ],
    ),
    (
        "tls-key",
        &["key", "private-key", "tls-key-file", "tls-keyfile"],
    ),
];

/// Command lines with the former name of a flag, and with its name.
const FORMER: [(&str, &str); 11] = [
    ("capacity --rounds 2", "capacity --repeat 2"),
    (
        "compare --a x --b y --rounds 2",
        "compare --a x --b y --repeat 2",
    ),
    (
        "experiment run x.toml --repetitions 2",
        "experiment run x.toml --repeat 2",
    ),
    (
        "experiment plan x.toml --repetitions 2",
        "experiment plan x.toml --repeat 2",
    ),
    ("history list --in x", "history list --records x"),
    ("merge a b --output c", "merge a b --record c"),
    ("merge a b -o c", "merge a b --record c"),
    ("names records --form zone", "names records --format zone"),
    ("names services --form zone", "names services --format zone"),
    ("fit a --format bind", "fit a --capture-format bind"),
    (
        "responder --listen dot:127.0.0.1:0 --tls-certificate a --tls-key b",
        "responder --listen dot:127.0.0.1:0 --tls-cert a --tls-key b",
    ),
];

/// All commands that users see, with those below them.
fn all_commands() -> Vec<Command> {
    let mut found = Vec::new();
    let mut open = vec![help::commands()];
    while let Some(command) = open.pop() {
        let below = command.get_subcommands().filter(|it| !it.is_hide_set());
        open.extend(below.cloned());
        found.push(command);
    }
    found
}

#[test]
fn no_command_has_a_second_name_for_a_flag() {
    let commands = all_commands();
    assert!(commands.len() > 40, "{}", commands.len());
    let mut met = 0;
    for command in &commands {
        for long in command.get_arguments().filter_map(Arg::get_long) {
            met += usize::from(ONE_NAME.iter().any(|(name, _)| *name == long));
            let mut rows = ONE_NAME.iter().filter(|(_, others)| others.contains(&long));
            let row = rows.next().map(|(name, _)| *name);
            assert_eq!(row, None, "{}: --{long}", command.get_name());
        }
    }
    assert!(met > 30, "{met}");
}

/// The name of the value says what a flag takes, and is the same in all commands.
#[test]
fn a_flag_takes_the_same_in_all_commands() {
    for command in all_commands() {
        for arg in command.get_arguments() {
            let value = arg.get_value_names().and_then(|names| names.first());
            let value = value.map_or("", |value| value.as_str());
            let suited: &[&str] = match arg.get_long() {
                Some("repeat") => &["N"],
                Some("record" | "tls-cert" | "tls-key" | "junit") => &["FILE"],
                Some("records") => &["FOLDER"],
                Some("output") => &["FILE", "FOLDER"],
                Some("format") => &["FORMAT"],
                _ => continue,
            };
            let name = command.get_name();
            assert!(
                suited.contains(&value),
                "{name} {:?}: {value}",
                arg.get_long()
            );
        }
    }
}

#[test]
fn former_names_work() {
    let parsed = |line: &str| {
        let words = ["throng"].into_iter().chain(line.split_whitespace());
        let parsed = command_line::parse(words.map(Into::into).collect());
        let parsed = parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
        format!("{:?}", parsed.command)
    };
    for (former, name) in FORMER {
        assert_eq!(parsed(former), parsed(name), "{former}");
    }
}

#[test]
fn former_names_are_in_no_help_and_no_completions() {
    let mut texts: Vec<String> = all_commands()
        .iter_mut()
        .map(|command| command.render_long_help().to_string())
        .collect();
    for shell in [
        clap_complete::Shell::Bash,
        clap_complete::Shell::Zsh,
        clap_complete::Shell::Fish,
    ] {
        let script = completions::script(&CompletionArguments { shell });
        texts.push(script);
    }
    let is_flag = |text: &str, flag: &str| {
        let mut words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        words.any(|word| word == flag)
    };
    for flag in [
        "--rounds",
        "--repetitions",
        "--in",
        "--form",
        "--tls-certificate",
    ] {
        let shown = texts.iter().find(|text| is_flag(text, flag));
        assert_eq!(shown, None, "{flag}");
    }
}
