//! `docs/pitfalls.md`: its examples print what the page says.

use std::fs;
use std::path::Path;

use crate::call::throng;

/// Stands for lines that the page leaves out.
const LEFT_OUT: &str = "...";

/// A command of the page, with the lines below it.
#[derive(Debug, PartialEq)]
struct Example {
    /// Without `throng`.
    arguments: String,
    expected: Vec<String>,
}

/// The commands in fenced blocks, each with what follows until the next one.
fn examples(page: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut has_command = false;
    let mut is_fenced = false;
    for line in page.lines() {
        if line.starts_with("```") {
            is_fenced = !is_fenced;
            has_command = false;
        } else if is_fenced && let Some(arguments) = line.strip_prefix("throng ") {
            has_command = true;
            examples.push(Example {
                arguments: arguments.to_owned(),
                expected: Vec::new(),
            });
        } else if has_command && let Some(example) = examples.last_mut() {
            example.expected.push(line.to_owned());
        }
    }
    examples
}

/// Whether the lines are those expected, any number of them in the place of [`LEFT_OUT`].
fn is_as_expected(lines: &[&str], expected: &[String]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == LEFT_OUT => {
            (0..=lines.len()).any(|skipped| is_as_expected(&lines[skipped..], rest))
        }
        Some((first, rest)) => {
            let found = lines.split_first();
            found.is_some_and(|(line, lines)| line == first && is_as_expected(lines, rest))
        }
    }
}

#[test]
fn examples_print_what_the_page_says() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pitfalls.md");
    let examples = examples(&fs::read_to_string(page).unwrap());
    assert!(examples.len() > 10, "only {} are found", examples.len());
    for Example {
        arguments,
        expected,
    } in examples
    {
        assert!(!expected.is_empty(), "no output of {arguments}");
        let text = throng(&arguments).succeeded();
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            is_as_expected(&lines, &expected),
            "throng {arguments} prints\n{text}\nand not\n{}",
            expected.join("\n")
        );
    }
}

#[test]
fn examples_are_found_with_their_output() {
    let page = "throng outside\n```\nthrong run --a\nSIM\n...\nthrong run --b\nb\n```\nthrong\n\
                ```\n  - a remark\n```\n";
    let example = |arguments: &str, expected: &[&str]| Example {
        arguments: arguments.to_owned(),
        expected: expected.iter().map(|&it| it.to_owned()).collect(),
    };
    let expected = [
        example("run --a", &["SIM", "..."]),
        example("run --b", &["b"]),
    ];
    assert_eq!(examples(page), expected);
}

#[test]
fn lines_left_out_may_be_any_others_may_not() {
    let check = |lines: &[&str], expected: &[&str]| {
        let expected: Vec<String> = expected.iter().map(|&it| it.to_owned()).collect();
        is_as_expected(lines, &expected)
    };
    assert!(check(&["a", "b", "c", "d"], &["a", "...", "d"]));
    assert!(check(&["a"], &["a", "..."]));
    assert!(!check(&["a", "b"], &["a"]));
    assert!(!check(&["a", "b", "c"], &["a", "...", "d"]));
    assert!(!check(&["a"], &["...", "a", "b"]));
}
