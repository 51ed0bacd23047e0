//! `docs/coming-from.md`: each flag of Throng in its tables is one of the command it stands with.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::call::throng;

/// A flag of a table of the page, with the line that it is on.
struct Named {
    command: String,
    flag: String,
    line: String,
}

/// The text between backticks.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The flags in the third column of each table, and in the text between the tables.
fn named(page: &str) -> Vec<Named> {
    let mut all = Vec::new();
    for line in page.lines() {
        let ours = match line.strip_prefix("| ") {
            Some(row) => row.split(" | ").nth(2).unwrap_or_default(),
            None => line,
        };
        for span in code_spans(ours) {
            let command = span.strip_prefix("throng ").map_or("run", |rest| {
                let end = rest.find(" --").unwrap_or(rest.len());
                let words = rest[..end].split(' ');
                let is_command = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase());
                let words: Vec<&str> = words.take_while(is_command).collect();
                &rest[..words.join(" ").len()]
            });
            let flags = span.split(' ').filter(|word| word.starts_with("--"));
            all.extend(flags.map(|flag| Named {
                command: command.to_owned(),
                flag: flag.to_owned(),
                line: line.to_owned(),
            }));
        }
    }
    all
}

fn flags_of(command: &str) -> BTreeSet<String> {
    let help = throng(&format!("{command} --help")).succeeded();
    let words = help.split(|c: char| c.is_whitespace() || c == ',');
    let flags = words.filter(|word| word.starts_with("--"));
    flags.map(str::to_owned).collect()
}

#[test]
fn flags_of_the_tables_exist() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/coming-from.md");
    let named = named(&fs::read_to_string(page).unwrap());
    assert!(named.len() > 80, "only {} flags are found", named.len());
    let mut known: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for it in &named {
        let flags = known
            .entry(it.command.clone())
            .or_insert_with(|| flags_of(&it.command));
        let (command, flag, line) = (&it.command, &it.flag, &it.line);
        assert!(
            flags.contains(flag),
            "`throng {command}` has no {flag}: {line}"
        );
    }
    assert!(known.len() > 5, "{:?}", known.keys());
}

#[test]
fn flags_are_found_with_their_commands() {
    let page = "| `--theirs` | is | `--rate QPS` or `throng fleet run --agents N` |\n\
                before `throng report FILE --output page.html`\n";
    let found: Vec<String> = named(page)
        .iter()
        .map(|it| format!("{} {}", it.command, it.flag))
        .collect();
    assert_eq!(
        found,
        ["run --rate", "fleet run --agents", "report --output"]
    );
}
