//! Words that have a plainer or more usual one: not in help, output, messages and documents.

use crate::repository::{File, Offence};
use crate::source::{Source, line_of, product_literals};

/// What is not written, with what is.
const WORDS: [(&str, &str); 17] = [
    (
        "octet",
        "say `byte`: octets are those of protocols, in code",
    ),
    (
        "octets",
        "say `bytes`: octets are those of protocols, in code",
    ),
    ("time-out", "say `timeout`"),
    ("time-outs", "say `timeouts`"),
    ("again and again", "say `repeatedly`, or `may be repeated`"),
    ("gives in", "say `fails`, or `is reached`"),
    ("nobody listens", "say `nothing is listening`"),
    ("not let run", "say `was not scheduled`"),
    ("not get to run", "say `was not scheduled`"),
    ("cannot be told", "say `cannot be distinguished`"),
    ("in vain", "say `without a response`, or `failed`"),
    ("as fast as usual", "say `at normal latency`"),
    ("stood still", "say `was stopped`, or `stalled`"),
    ("passed over", "say `skipped`"),
    ("for want of", "say `for lack of`"),
    ("what became of", "say how it ended"),
    ("how many it were", "say how many there were"),
];

/// Names of columns, and words that records keep: they stay as they are.
const KEPT_IN: [&str; 4] = [
    "crates/lab/src/run/record.rs",
    "crates/history/src/index.rs",
    "crates/measure/src/example.rs",
    "crates/report/src/example.rs",
];

/// Documents about code, where octets are in their place.
const ABOUT_CODE: &str = "docs/decisions/";

/// None of [`WORDS`] in what people read: literals of product code, and the help of flags.
pub(crate) fn in_output(file: &File) -> Vec<Offence> {
    let is_ours = file.crate_name().is_some() && !KEPT_IN.contains(&file.path.as_str());
    if !is_ours {
        return Vec::new();
    }
    let source = Source::of(&file.text);
    let mut offences = found(file, &product_literals(&source));
    if file.path.starts_with("crates/cli/src/args") {
        offences.extend(found(file, &source.comments));
    }
    offences
}

/// None of [`WORDS`] in documents for users.
pub(crate) fn in_documents(file: &File) -> Vec<Offence> {
    let is_guide = file.path.starts_with("docs/") && !file.path.starts_with(ABOUT_CODE);
    let is_document = is_guide || ["README.md", "CHANGELOG.md"].contains(&file.path.as_str());
    match is_document && file.path.ends_with(".md") {
        true => found(file, &file.text),
        false => Vec::new(),
    }
}

fn found(file: &File, text: &str) -> Vec<Offence> {
    let tokens: Vec<(usize, String)> = tokens(text).collect();
    let mut offences = Vec::new();
    for (phrase, cure) in WORDS {
        let words: Vec<&str> = phrase.split(' ').collect();
        for at in tokens.windows(words.len()) {
            if at.iter().map(|(_, token)| token).eq(words.iter()) {
                let what = format!("`{phrase}`");
                offences.push(file.offence(line_of(text, at[0].0), what, cure));
            }
        }
    }
    offences
}

/// The words of a text with their offsets, without punctuation and in lower case. Names in braces
/// or backticks, and literals of one word, are names and not words; what is counted by the word is
/// no name.
fn tokens(text: &str) -> impl Iterator<Item = (usize, String)> {
    let is_mark = |c: char| "'(),.;:!?*_[]".contains(c);
    let split = text.split(|c: char| c.is_whitespace() || c == '\\');
    split.filter_map(move |token| {
        let offset = token.as_ptr() as usize - text.as_ptr() as usize;
        let token = token.trim_matches(is_mark);
        let is_one_word = token.len() > 1 && token.starts_with('"') && token.ends_with('"');
        let is_name = is_one_word && token != "\"octet\"";
        let word = token.trim_matches('"').trim_matches(is_mark);
        let is_line_of_comment = ["//", "///", "//!"].contains(&word);
        let is_word = !word.is_empty() && !is_name && !is_line_of_comment;
        is_word.then(|| (offset, word.to_ascii_lowercase()))
    })
}

#[test]
fn words_that_have_a_better_one_are_offences_in_output() {
    let check = |path: &str, text: &str| in_output(&File::new(path, text)).len();
    for text in [
        "f(\"{} octets, time-out {}\");",
        "f(\"asked again \\\n    and again, {octets} octets\");",
        "f(\"passed over: nobody listens\");",
    ] {
        assert_eq!(check("crates/report/src/a.rs", text), 2, "{text}");
        assert_eq!(check("crates/history/src/index.rs", text), 0, "{text}");
    }
    for text in [
        "// octets again and again\nlet octets = row(\"octets\");",
        "f(\"{octets} bytes, {{\\\"sent_octets\\\": 1}}, `octets`\");",
        "f(\"again\"); f(\"and\"); f(\"again\");",
        "#[cfg(test)]\nmod tests {\n    const A: &str = \"two octets\";\n}\n",
    ] {
        assert_eq!(check("crates/report/src/a.rs", text), 0, "{text}");
    }
}

#[test]
fn words_that_have_a_better_one_are_offences_in_help_and_documents() {
    let flag = "/// Pad to so many\n    /// octets, again and\n    /// again\n";
    let check = |path: &str| in_output(&File::new(path, flag)).len();
    assert_eq!(check("crates/cli/src/args/questions.rs"), 2);
    assert_eq!(check("crates/proto/src/pending.rs"), 0);
    let offences = in_documents(&File::new("docs/a.md", "one\nthe time-out\nof `octets`"));
    assert_eq!(offences.len(), 1);
    assert_eq!(offences[0].line, 2);
    for path in ["docs/decisions/0001-a.md", "CONTRIBUTING.md", "docs/a.json"] {
        assert_eq!(in_documents(&File::new(path, "octets")), [], "{path}");
    }
}
