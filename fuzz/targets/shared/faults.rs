//! Errors for people: they say what, and the place is within the file.

/// It says something. Whoever prints it escapes what would upset a terminal.
pub(crate) fn check_words(words: &str) {
    assert!(!words.trim().is_empty(), "an error says something");
}

/// Lines are counted from 1; the last one may be empty.
pub(crate) fn check_line(line: usize, text: &[u8]) {
    let lines = text.split(|&octet| octet == b'\n').count();
    assert!((1..=lines).contains(&line), "line {line} of {lines}");
}

/// The number behind the first `line ` in an error, if there is one.
pub(crate) fn line_in(words: &str) -> Option<usize> {
    let (_, rest) = words.split_once("line ")?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}
