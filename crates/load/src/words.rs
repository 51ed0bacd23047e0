//! Lines of the text formats as words.
//!
//! Words are separated by blanks and tabs; a backslash takes the next octet into the word; `;`
//! where a word would start begins a comment.

use crate::names_error::Fault;

/// One word of a line, escapes still in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    /// The text, without the quotes around it.
    pub(crate) text: &'a str,
    /// The octet of the line at which it starts, from 1.
    pub(crate) column: usize,
}

impl Word<'_> {
    /// A fault at this word.
    pub(crate) fn fault(&self, what: impl Into<String>, hint: impl Into<String>) -> Fault {
        Fault::new(self.column, what, hint)
    }
}

/// Whether `"two words"` is one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quotes {
    /// A quote is a character like any other, as in names.
    Plain,
    /// Quotes hold a word together, as in RDATA.
    Group,
}

/// One line of a text as UTF-8, without its line end; `None` if nothing but a comment is in it.
pub(crate) fn line_text(line: &[u8]) -> Result<Option<&str>, Fault> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let first = line.iter().find(|octet| !matches!(octet, b' ' | b'\t'));
    if matches!(first, None | Some(b';' | b'#')) {
        return Ok(None);
    }
    std::str::from_utf8(line).map(Some).map_err(|error| {
        let at = error.valid_up_to();
        Fault::new(
            at + 1,
            format!("byte 0x{:02x} is not UTF-8", line[at]),
            "save the file as UTF-8, and write other bytes of names as `\\DDD` in decimal",
        )
    })
}

/// Replaces `words` by the words of `line`.
pub(crate) fn split<'a>(
    line: &'a str,
    quotes: Quotes,
    words: &mut Vec<Word<'a>>,
) -> Result<(), Fault> {
    words.clear();
    let octets = line.as_bytes();
    let mut at = 0;
    loop {
        while matches!(octets.get(at), Some(b' ' | b'\t')) {
            at += 1;
        }
        let start = at;
        match octets.get(at) {
            None | Some(b';') => return Ok(()),
            Some(b'"') if quotes == Quotes::Group => {
                at = quoted_end(octets, start)?;
                words.push(Word {
                    text: &line[start + 1..at],
                    column: start + 1,
                });
                at += 1;
                if !matches!(octets.get(at), None | Some(b' ' | b'\t')) {
                    let what = "text directly after a closing quote";
                    return Err(Fault::new(at + 1, what, "put a blank after the quote"));
                }
            }
            Some(_) => {
                at = bare_end(octets, start)?;
                words.push(Word {
                    text: &line[start..at],
                    column: start + 1,
                });
            }
        }
    }
}

/// Where the unquoted word that starts at `start` ends.
fn bare_end(octets: &[u8], start: usize) -> Result<usize, Fault> {
    let mut at = start;
    while at < octets.len() && !matches!(octets[at], b' ' | b'\t') {
        if octets[at] == b'\\' && at + 1 < octets.len() {
            at += 1;
        }
        refuse_control(octets, at)?;
        at += 1;
    }
    Ok(at)
}

/// Where the closing quote is of the quoted word that starts at `start`.
fn quoted_end(octets: &[u8], start: usize) -> Result<usize, Fault> {
    let mut at = start + 1;
    while at < octets.len() {
        match octets[at] {
            b'"' => return Ok(at),
            b'\\' => at += 2,
            _ => {
                refuse_control(octets, at)?;
                at += 1;
            }
        }
    }
    let hint = "close it on the same line; a quote within is written `\\\"`";
    Err(Fault::new(start + 1, "a quote that is not closed", hint))
}

/// Control characters are a sign of another file format, never of a name.
fn refuse_control(octets: &[u8], at: usize) -> Result<(), Fault> {
    if !octets[at].is_ascii_control() || octets[at] == b'\t' {
        return Ok(());
    }
    Err(Fault::new(
        at + 1,
        format!("control character 0x{:02x}", octets[at]),
        "write it as `\\DDD`; a file of binary messages is read with the stream format",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str, quotes: Quotes) -> Vec<&str> {
        let mut words = Vec::new();
        split(line, quotes, &mut words).unwrap();
        words.iter().map(|word| word.text).collect()
    }

    #[test]
    fn blanks_and_tabs_separate_words_and_a_semicolon_ends_them() {
        let line = " a.example\t A  +do ; the rest";
        assert_eq!(texts(line, Quotes::Plain), ["a.example", "A", "+do"]);
        assert_eq!(texts("a;b A", Quotes::Plain), ["a;b", "A"]);
    }

    #[test]
    fn a_backslash_takes_the_next_octet_into_the_word() {
        assert_eq!(
            texts(r"a\ b.example A", Quotes::Plain),
            [r"a\ b.example", "A"]
        );
        assert_eq!(texts(r"a\", Quotes::Plain), [r"a\"]);
        assert_eq!(texts("a\\\u{e9} A", Quotes::Plain), ["a\\\u{e9}", "A"]);
    }

    #[test]
    fn quotes_hold_a_word_together_only_where_asked() {
        assert_eq!(texts(r#"t "a ; b" """#, Quotes::Group), ["t", "a ; b", ""]);
        assert_eq!(texts(r#""a b""#, Quotes::Plain), ["\"a", "b\""]);
        assert_eq!(texts(r#""a\"b""#, Quotes::Group), [r#"a\"b"#]);
    }

    #[test]
    fn columns_count_octets_from_one() {
        let mut words = Vec::new();
        split("ab  \"c\"", Quotes::Group, &mut words).unwrap();
        assert_eq!((words[0].column, words[1].column), (1, 5));
        let fault = split("ab \"c", Quotes::Group, &mut words).unwrap_err();
        assert_eq!(fault.column, 4);
        assert_eq!(
            split("a\u{0}", Quotes::Plain, &mut words)
                .unwrap_err()
                .column,
            2
        );
        assert_eq!(
            split("\"a\"b", Quotes::Group, &mut words)
                .unwrap_err()
                .column,
            4
        );
    }
}
