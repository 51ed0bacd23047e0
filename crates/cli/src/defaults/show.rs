//! `throng config`: the defaults in force, and where they come from.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use report::table::{Align, Table};

use super::choice::Choice;
use super::commands::Tree;
use super::sources::Sources;
use crate::args::{Arguments, ConfigArguments};
use crate::failure::{Failure, print};
use crate::secrets;

/// Commands that are named in a row; more are counted.
const NAMED_MAX: usize = 2;
/// What stands between a file and its line.
const LINE: &str = ", line ";

/// The commands of each place, flag and value or reason: what one line says is one row.
type Rows = BTreeMap<((String, u32), String, String), Vec<String>>;

/// Prints the defaults in force.
///
/// # Errors
/// A file or variable cannot be understood, or there is no such command.
pub(crate) fn execute(arguments: &ConfigArguments) -> Result<ExitCode, Failure> {
    let all = Arguments::command();
    let tree = Tree::new(&all);
    let sources = Sources::find();
    let settings = sources.read(&tree)?;
    if tree.below(&arguments.command).next().is_none() {
        let what = format!(
            "`{}` is not a command with defaults",
            arguments.command.join(" ")
        );
        return Err(Failure::usage(what, "see `throng help` for all commands"));
    }
    let mut used = Rows::new();
    let mut left_out = used.clone();
    for leaf in tree.below(&arguments.command) {
        let name = leaf.path.join(" ");
        let choice = Choice::new(&tree, leaf, &leaf.start(), false, &settings)?;
        for it in choice.used {
            let value = shown(&it.given.arguments());
            let row = (place(&it.origin), format!("--{}", it.given.name), value);
            used.entry(row).or_default().push(name.clone());
        }
        for it in choice.left_out {
            let row = (place(&it.origin), format!("--{}", it.flag), it.why);
            left_out.entry(row).or_default().push(name.clone());
        }
    }
    let mut text = table(
        "Defaults in force",
        &["flag", "value", "from", "command"],
        &used,
    );
    if !left_out.is_empty() {
        text.push('\n');
        text.push_str(&table(
            "Left out of a command line without flags",
            &["flag", "reason", "from", "command"],
            &left_out,
        ));
    }
    text.push_str(&looked_for(&sources));
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// File and line, or a variable and 0.
fn place(origin: &str) -> (String, u32) {
    let parts = origin.rsplit_once(LINE);
    let parts = parts.and_then(|(file, line)| Some((file.to_owned(), line.parse().ok()?)));
    parts.unwrap_or_else(|| (origin.to_owned(), 0))
}

/// The values of a flag, but for secrets.
fn shown(words: &[std::ffi::OsString]) -> String {
    let words: Vec<String> = words
        .iter()
        .map(|it| it.to_string_lossy().into_owned())
        .collect();
    let shown = secrets::shown(words.iter().map(String::as_str));
    let values = shown.iter().map(|word| match word.split_once('=') {
        Some((_, value)) => value.to_owned(),
        None => "true".to_owned(),
    });
    values.collect::<Vec<_>>().join(", ")
}

fn table(heading: &str, columns: &[&str; 4], rows: &Rows) -> String {
    let mut text = format!("{heading}\n");
    if rows.is_empty() {
        text.push_str("  none\n");
        return text;
    }
    let mut table = Table::new([Align::Left; 4]);
    table.row(columns.map(str::to_owned));
    for (((file, line), flag, value), commands) in rows {
        let origin = match line {
            0 => file.clone(),
            line => format!("{file}{LINE}{line}"),
        };
        let commands = match commands.len() {
            0..=NAMED_MAX => commands.join(", "),
            more => format!("{} and {} more", commands[0], more - 1),
        };
        table.row([flag.clone(), value.clone(), origin, commands]);
    }
    table.write_to(&mut text);
    text
}

fn looked_for(sources: &Sources) -> String {
    let mut text = "\nFiles, the later one wins; variables THRONG_FLAG win over both\n".to_owned();
    let mut table = Table::new([Align::Left; 2]);
    for file in &sources.files {
        let state = if file.is_there { "read" } else { "not there" };
        let path: &Path = &file.path;
        table.row([path.display().to_string(), state.to_owned()]);
    }
    match sources.files.is_empty() {
        true => text.push_str("  none: THRONG_CONFIG=none\n"),
        false => table.write_to(&mut text),
    }
    text
}
