//! The working directory's file grants nothing, and faults of files are named with their lines.

use std::ffi::OsString;
use std::path::Path;

use clap::CommandFactory;

use super::choice::Choice;
use super::commands::Tree;
use super::safe;
use super::sources::{self, Setting, Source};
use crate::args::{Arguments, flags};
use crate::failure::Failure;
use crate::scenario::keys::is_path;

const FILE: &str = "throng.toml";

fn parse(text: &str, source: Source) -> Result<Vec<Setting>, Failure> {
    sources::parse(
        Path::new(FILE),
        text,
        source,
        &Tree::new(&Arguments::command()),
    )
}

/// The flags that a command line gets, and those that it does not.
fn chosen(line: &str, settings: &[Setting]) -> (Vec<String>, Vec<String>) {
    let all = Arguments::command();
    let tree = Tree::new(&all);
    let words: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
    let leaf = tree.leaf_of(&words).unwrap();
    let choice = Choice::new(&tree, leaf, &words, true, settings).unwrap();
    let words = choice.words().map(|it| it.into_string().unwrap());
    (words.collect(), choice.refused().collect())
}

#[test]
fn flags_of_the_working_directorys_file_exist_and_are_harmless() {
    let all = Arguments::command();
    let tree = Tree::new(&all);
    for name in safe::flags() {
        let mut has_it = tree.leaves.iter().filter_map(|leaf| leaf.flag(name));
        assert!(has_it.next().is_some(), "{name}");
        assert!(!has_it.any(is_path), "{name} names a file");
        let row = flags::find(name).and_then(flags::Flag::reserved_for_user);
        assert_eq!(row, None, "{name}");
    }
}

#[test]
fn working_directory_cannot_grant_start_open_read_or_write() {
    for line in [
        "allow-public = true",
        "names = \"/etc/passwd\"",
        "record = \"x\"",
        "web = \"0.0.0.0:80\"",
        "metrics = \"0.0.0.0:80\"",
        "hosts = \"a\"",
        "ssh = \"sh\"",
        "listen = \"0.0.0.0:80\"",
        "keys = \"x\"",
        "tls-ca = \"x\"",
        "script = \"x\"",
        "force = true",
        "doh-header = \"@x\"",
        "observe = \"auto\"",
        "agents = 2",
    ] {
        let text = format!("[run]\nserver = \"192.0.2.1\"\n{line}\n");
        let flag = format!("--{}", line.split(' ').next().unwrap());
        let settings = parse(&text, Source::Folder).unwrap();
        let (used, refused) = chosen("throng run", &settings);
        assert_eq!(
            (used, refused),
            (vec!["--server=192.0.2.1".into()], vec![flag])
        );
    }
    let settings = parse("[run]\nallow-public = true\n", Source::User).unwrap();
    let (used, refused) = chosen("throng run", &settings);
    assert_eq!((used, refused), (vec!["--allow-public".into()], vec![]));
}

#[test]
fn later_sources_win_and_a_command_wins_over_all() {
    let user = parse(
        "[all]\ntimeout = \"1s\"\nseed = 1\n[run]\nseed = 2\n",
        Source::User,
    );
    let folder = parse("[all]\ntimeout = \"2s\"\nquiet = true\n", Source::Folder);
    let settings = [user.unwrap(), folder.unwrap()].concat();
    let expected = ["--quiet", "--seed=2", "--timeout=2s"];
    let (mut used, _) = chosen("throng run", &settings);
    used.sort();
    assert_eq!(used, expected);
    let (used, _) = chosen("throng experiment run x.toml", &settings);
    assert_eq!(used, Vec::<String>::new());
}

#[test]
fn optional_values_do_not_take_the_word_that_follows() {
    let settings = parse("[run]\nedns-padding = true\n", Source::User).unwrap();
    let (used, _) = chosen("throng run scenario.toml", &settings);
    assert_eq!(used, ["--edns-padding=128"]);
}

#[test]
fn agents_and_commands_of_other_programs_have_no_defaults() {
    let all = Arguments::command();
    let tree = Tree::new(&all);
    for line in [
        "throng fleet lead -- run",
        "throng dnsperf",
        "throng fleet agent x",
        "throng",
    ] {
        let words: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        assert!(tree.leaf_of(&words).is_none(), "{line}");
    }
}
