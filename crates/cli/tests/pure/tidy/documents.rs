//! The documents for people: their links lead somewhere, they are short, and guides are in the
//! contents of the site.

use crate::repository::{File, Offence, Repository};

/// Words at most of a document, by the beginning of its path; the first that fits counts.
const WORDS_MAX: [(&str, usize); 4] = [
    ("README.md", 1_500),
    ("CHANGELOG.md", 1_500),
    ("ARCHITECTURE.md", 2_000),
    ("docs/", 1_500),
];

/// The contents of the site.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Every link to a file of the repository leads to one, seen from the document's folder.
pub(crate) fn links(repository: &Repository) -> Vec<Offence> {
    let mut offences = Vec::new();
    for document in repository.files.iter().filter(|file| is_document(file)) {
        for (index, line) in document.text.lines().enumerate() {
            for target in linked(line).filter(|target| !is_elsewhere(target)) {
                if !repository.has(&resolved(&document.path, target)) {
                    let what = format!("the link to `{target}` leads nowhere");
                    let cure = "links are relative to the folder of the document";
                    offences.push(document.offence(index + 1, what, cure));
                }
            }
        }
    }
    offences
}

/// No document is longer than a reader's patience.
pub(crate) fn lengths(file: &File) -> Vec<Offence> {
    let limit = WORDS_MAX
        .iter()
        .find(|(path, _)| file.path.starts_with(path));
    let Some((_, words_max)) = limit.filter(|_| is_document(file)) else {
        return Vec::new();
    };
    let words = file.text.split_whitespace().count();
    if words <= *words_max {
        return Vec::new();
    }
    let what = format!("{words} words, at most {words_max}");
    vec![file.offence(1, what, "say less, or divide it by questions")]
}

/// Each guide is once in the contents of the site that mdBook makes.
pub(crate) fn contents(repository: &Repository) -> Vec<Offence> {
    let summary = repository.files.iter().find(|file| file.path == SUMMARY);
    let listed: Vec<String> = summary
        .into_iter()
        .flat_map(|file| file.text.lines().flat_map(linked))
        .map(|target| resolved(SUMMARY, target))
        .collect();
    let is_guide = |path: &str| {
        let name = path.strip_prefix("docs/");
        name.is_some_and(|name| !name.contains('/') && name.ends_with(".md")) && path != SUMMARY
    };
    let guides = repository.files.iter().filter(|file| is_guide(&file.path));
    let count = |file: &File| listed.iter().filter(|path| **path == file.path).count();
    let wrong = guides.filter(|file| count(file) != 1);
    let offence = |file: &File| {
        let what = format!("is {} times in {SUMMARY}, not once", count(file));
        file.offence(
            1,
            what,
            "each guide has one line in the contents of the site",
        )
    };
    wrong.map(offence).collect()
}

/// What the tool itself prints is looked up, not read.
fn is_document(file: &File) -> bool {
    file.path.ends_with(".md") && !file.text.contains("\nMade by `throng schema ")
}

/// Where the links on one line lead.
fn linked(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1);
    targets.filter_map(|rest| rest.split([')', '#']).next())
}

/// On the network, or in the document itself.
fn is_elsewhere(target: &str) -> bool {
    target.is_empty() || target.contains("://")
}

/// `target` as a path of the repository, as seen from the document at `path`.
fn resolved(path: &str, target: &str) -> String {
    let mut folders: Vec<&str> = path.split('/').collect();
    folders.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(folders.pop()),
            name => folders.push(name),
        }
    }
    folders.join("/")
}

#[test]
fn a_link_that_leads_nowhere_is_an_offence() {
    let check = |path: &str, text: &str| {
        let files = vec![
            File::new(path, text),
            File::new("docs/tls.md", ""),
            File::new("README.md", ""),
        ];
        links(&Repository { files }).len()
    };
    for (path, text) in [
        (
            "a.md",
            "[tls](docs/tls.md), [folder](docs), [elsewhere](https://example.org/x)",
        ),
        (
            "docs/a.md",
            "[tls](tls.md#pins), [here](#below), [up](../README.md)",
        ),
        ("docs/b/c.md", "[up](../tls.md)"),
        ("a.rs", "[gone](gone.md)"),
    ] {
        assert_eq!(check(path, text), 0, "{text}");
    }
    for (path, text) in [
        ("a.md", "[tls](tls.md)"),
        ("docs/a.md", "[tls](docs/tls.md)"),
    ] {
        assert_eq!(check(path, text), 1, "{text}");
    }
}

#[test]
fn a_guide_that_is_not_once_in_the_contents_is_an_offence() {
    let check = |summary: &str| {
        let files = vec![
            File::new(SUMMARY, summary),
            File::new("docs/README.md", ""),
            File::new("docs/tls.md", ""),
            File::new("docs/decisions/README.md", ""),
            File::new("README.md", ""),
        ];
        contents(&Repository { files }).len()
    };
    assert_eq!(check("[Guides](README.md)\n- [TLS](tls.md)"), 0);
    assert_eq!(check("[Guides](README.md)"), 1);
    assert_eq!(
        check("[Guides](README.md)\n- [TLS](tls.md)\n- [T](tls.md)"),
        1
    );
    assert_eq!(check(""), 2);
}

#[test]
fn a_long_document_is_an_offence() {
    let check = |path: &str, words: usize| lengths(&File::new(path, "word ".repeat(words))).len();
    assert_eq!(check("README.md", 1_500), 0);
    assert_eq!(check("README.md", 1_501), 1);
    assert_eq!(check("docs/decisions/0001-a.md", 1_501), 1);
    assert_eq!(check("docs/run-record.schema.json", 9_999), 0);
    assert_eq!(check("CHANGELOG.md", 1_501), 1);
    let printed = "# A\n\nMade by `throng schema a`.\n".to_owned() + &"word ".repeat(9_999);
    assert_eq!(lengths(&File::new("docs/a.md", printed)).len(), 0);
}
