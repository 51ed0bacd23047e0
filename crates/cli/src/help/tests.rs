//! Pages name what exists, and fit on a screen.

use std::collections::BTreeSet;

use clap::Command;

use super::pages::{EXAMPLES, FIRST, FLAG_TOPICS, GROUPS, TOPICS};
use super::{asked, commands, overview, topics};
use crate::command_line;

/// A terminal that nobody made larger.
const ROWS: usize = 24;

fn page(words: &str) -> String {
    let words = ["throng"].into_iter().chain(words.split_whitespace());
    asked(&words.map(Into::into).collect::<Vec<_>>()).unwrap()
}

#[track_caller]
fn assert_fits(text: &str, rows: usize) {
    let long = text.lines().find(|line| line.chars().count() > 100);
    assert_eq!(long, None);
    assert!(text.lines().count() <= rows, "{text}");
}

fn visible(command: &Command) -> BTreeSet<String> {
    let visible = command.get_subcommands().filter(|it| !it.is_hide_set());
    visible.map(|it| it.get_name().to_owned()).collect()
}

#[test]
fn each_command_is_in_one_group() {
    let all = commands();
    let grouped: Vec<&str> = GROUPS
        .iter()
        .flat_map(|(_, names)| names.iter().copied())
        .collect();
    let set: BTreeSet<String> = grouped.iter().map(|it| (*it).to_owned()).collect();
    assert_eq!(grouped.len(), set.len());
    assert_eq!(set, visible(&all));
    let text = overview();
    assert_fits(&text, 56);
    for name in set {
        assert!(text.contains(&format!("\n  {name} ")), "{name}");
    }
}

#[test]
fn first_screens_fit_and_name_flags_that_exist() {
    let all = commands();
    for (name, kinds) in FIRST {
        let text = page(&format!("{name} -h"));
        assert_fits(&text, ROWS);
        let command = all.find_subcommand(name).unwrap();
        for word in kinds.iter().flat_map(|(_, flags)| flags.split_whitespace()) {
            let word = word.trim_end_matches([',', '.']);
            let has = |is_it: &dyn Fn(&clap::Arg) -> bool| command.get_arguments().any(is_it);
            match (word.strip_prefix("--"), word.strip_prefix('-')) {
                (Some(long), _) => {
                    assert!(has(&|it| it.get_long() == Some(long)), "{word} of {name}");
                }
                (None, Some(short)) if !short.is_empty() => {
                    let letter = short.chars().next();
                    assert!(has(&|it| it.get_short() == letter), "{word} of {name}");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn examples_are_command_lines() {
    for (name, examples) in EXAMPLES {
        for example in *examples {
            // What it does stands beside it.
            let line = example.split("   ").next().unwrap();
            let line = line.split(" > ").next().unwrap();
            let words = shlex::split(line).unwrap();
            assert_eq!(words[..2], ["throng", name], "{example}");
            let parsed = command_line::parse(words.into_iter().map(Into::into).collect());
            if let Err(error) = parsed {
                panic!("{example}: {error}");
            }
        }
    }
    // All but those that take another program's flags, and one that has none.
    let with: BTreeSet<String> = EXAMPLES
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let mut without = visible(&commands());
    without.retain(|name| !with.contains(name));
    assert_eq!(
        without.into_iter().collect::<Vec<_>>(),
        ["dnsperf", "licenses", "queryperf", "resperf"]
    );
}

#[test]
fn topics_have_pages_and_no_commands_name() {
    let all = commands();
    for topic in topics() {
        let text = page(&format!("help {topic}"));
        assert_fits(&text, 400);
        assert!(all.find_subcommand(topic).is_none(), "{topic}");
    }
    for (topic, text) in TOPICS {
        assert_fits(text, ROWS);
        assert_eq!(page(&format!("help {topic}")), *text);
    }
    // Each kind of flags of a run.
    let run = all.find_subcommand("run").unwrap();
    let headings: BTreeSet<&str> = run
        .get_arguments()
        .filter_map(|it| it.get_help_heading())
        .collect();
    let known: BTreeSet<&str> = FLAG_TOPICS.iter().map(|(_, heading)| *heading).collect();
    assert_eq!(known, headings);
    assert!(
        page("help simulation").contains("--sim-"),
        "{}",
        page("help simulation")
    );
}

#[test]
fn what_is_no_page_is_left_to_the_parser() {
    for words in [
        "run --help",
        "help run",
        "lab -h",
        "run",
        "help nonsense",
        "run --names -h",
    ] {
        let words = ["throng"].into_iter().chain(words.split_whitespace());
        let words: Vec<_> = words.map(Into::into).collect();
        let is_page = asked(&words).is_some();
        assert_eq!(is_page, words[1] == "run" && words.last().unwrap() == "-h");
    }
}
