//! Rust source text, taken apart just far enough: code, comments, functions, test items.
//!
//! Knows nothing of the grammar but comments, literals and brackets. The parts keep their places:
//! what does not belong to a part is blank there, so offsets and lines are those of the file.

use std::ops::Range;

/// The three parts of a source text.
pub(crate) struct Source {
    /// Without comments and without the contents of literals.
    pub(crate) code: String,
    /// Comments only.
    pub(crate) comments: String,
    /// Literals only.
    pub(crate) literals: String,
}

/// One function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Line of its `fn`, counted from 1.
    pub(crate) line: usize,
    /// From `fn` to the closing brace.
    pub(crate) lines: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Comment,
    Literal,
}

impl Source {
    pub(crate) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let (mut code, mut comments, mut literals) = (Vec::new(), Vec::new(), Vec::new());
        let mut at = 0;
        while at < bytes.len() {
            let (part, end) = part_at(bytes, at);
            for &byte in &bytes[at..end] {
                let blank = if byte == b'\n' { b'\n' } else { b' ' };
                code.push(if part == Part::Code { byte } else { blank });
                comments.push(if part == Part::Comment { byte } else { blank });
                literals.push(if part == Part::Literal { byte } else { blank });
            }
            at = end;
        }
        // Parts begin and end at ASCII octets, so no character is cut.
        let text = |octets| String::from_utf8(octets).expect("parts consist of whole characters");
        Source {
            code: text(code),
            comments: text(comments),
            literals: text(literals),
        }
    }
}

/// What begins at `at`, and where it ends; code is taken octet by octet.
fn part_at(bytes: &[u8], at: usize) -> (Part, usize) {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        return (Part::Comment, end_of_line(bytes, at));
    }
    if rest.starts_with(b"/*") {
        return (Part::Comment, end_of_block_comment(bytes, at));
    }
    let literal_end = match rest[0] {
        b'"' => Some(end_of_string(bytes, at + 1)),
        b'\'' => end_of_char(bytes, at),
        b'r' => end_of_raw_string(bytes, at),
        _ => None,
    };
    match literal_end {
        Some(end) => (Part::Literal, end),
        None => (Part::Code, at + 1),
    }
}

fn end_of_line(bytes: &[u8], at: usize) -> usize {
    let length = bytes[at..].iter().position(|&byte| byte == b'\n');
    length.map_or(bytes.len(), |length| at + length)
}

/// Block comments nest.
fn end_of_block_comment(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            (at, depth) = (at + 2, depth + 1);
        } else if bytes[at..].starts_with(b"*/") {
            (at, depth) = (at + 2, depth - 1);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// `at` is behind the opening quote.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// None for a lifetime or a label.
fn end_of_char(bytes: &[u8], quote: usize) -> Option<usize> {
    let first = *bytes.get(quote + 1)?;
    if first == b'\\' {
        let closing = bytes[quote + 3..].iter().position(|&byte| byte == b'\'')?;
        return Some(quote + 3 + closing + 1);
    }
    let octets = match first {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    };
    let closing = quote + 1 + octets;
    (bytes.get(closing) == Some(&b'\'')).then_some(closing + 1)
}

/// None if this `r` is part of a name.
fn end_of_raw_string(bytes: &[u8], at: usize) -> Option<usize> {
    let before = if at == 0 { b' ' } else { bytes[at - 1] };
    if is_word(before) && !matches!(before, b'b' | b'c') {
        return None;
    }
    let hashes = bytes[at + 1..].iter().take_while(|&&byte| byte == b'#');
    let hashes = hashes.count();
    let quote = at + 1 + hashes;
    if bytes.get(quote) != Some(&b'"') {
        return None;
    }
    let mut closing = vec![b'"'];
    closing.resize(1 + hashes, b'#');
    let body = &bytes[quote + 1..];
    let found = body.windows(closing.len()).position(|each| each == closing);
    Some(found.map_or(bytes.len(), |found| quote + 1 + found + closing.len()))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The line of an offset, counted from 1.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
}

/// Offsets at which `word` stands by itself, not as part of a longer name.
pub(crate) fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = text.as_bytes();
    let stands_alone = move |&(offset, _): &(usize, &str)| {
        let before = offset.checked_sub(1).map(|at| bytes[at]);
        let after = bytes.get(offset + word.len()).copied();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    };
    let found = text.match_indices(word).filter(stands_alone);
    found.map(|(offset, _)| offset)
}

/// All functions with a body, nested ones too.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    let mut functions = Vec::new();
    for offset in words(code, "fn") {
        let after = code[offset + 2..].trim_start();
        let name: String = after
            .chars()
            .take_while(|&c| c.is_alphanumeric() || c == '_')
            .collect();
        // A function pointer has no name.
        if name.is_empty() {
            continue;
        }
        let end = end_of_item(code, offset);
        if code.as_bytes().get(end - 1) == Some(&b'}') {
            let line = line_of(code, offset);
            functions.push(Function {
                name,
                line,
                lines: line_of(code, end - 1) - line + 1,
            });
        }
    }
    functions
}

/// Where an item that starts at `start` ends: behind its `;` or its closing brace.
fn end_of_item(code: &str, start: usize) -> usize {
    let (mut braces, mut others) = (0, 0);
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => others += 1,
            b')' | b']' => others -= 1,
            b'{' => braces += 1,
            b'}' => braces -= 1,
            _ => {}
        }
        let ends = byte == b'}' || byte == b';';
        if ends && braces <= 0 && others <= 0 {
            return at + 1;
        }
    }
    code.len()
}

const TEST_ONLY: &str = "#[cfg(test)]";

/// Where the items are that only tests compile.
fn items_of_tests(code: &str) -> impl Iterator<Item = Range<usize>> {
    let found = code.match_indices(TEST_ONLY);
    found.map(|(offset, _)| offset..end_of_item(code, offset))
}

/// The text with these parts made blank; its lines stay.
fn without(text: &str, parts: impl Iterator<Item = Range<usize>>) -> String {
    let mut rest = text.to_owned();
    for part in parts {
        let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
        let blanks: String = text[part.clone()]
            .bytes()
            .map(|b| blank(b.into()))
            .collect();
        rest.replace_range(part, &blanks);
    }
    rest
}

/// The code with all items that only tests compile made blank.
pub(crate) fn without_tests(code: &str) -> String {
    without(code, items_of_tests(code))
}

/// The literals outside of items that only tests compile.
pub(crate) fn product_literals(source: &Source) -> String {
    without(&source.literals, items_of_tests(&source.code))
}

/// Names of the modules that only tests compile and that are in files of their own.
pub(crate) fn modules_of_tests(code: &str) -> Vec<&str> {
    let name = |(offset, _)| {
        let item = &code[offset + TEST_ONLY.len()..end_of_item(code, offset)];
        let (_, name) = item.trim_end().strip_suffix(';')?.rsplit_once("mod ")?;
        Some(name.trim())
    };
    code.match_indices(TEST_ONLY).filter_map(name).collect()
}

#[test]
fn comments_and_literals_are_not_code() {
    let cases: [(&str, &[&str]); 9] = [
        ("a // {\nb", &["// {"]),
        ("a /* { /* } */ */ b", &["/* { /* } */ */"]),
        (r#"f("{ \" {", x)"#, &[r#""{ \" {""#]),
        (r##"f(r#"{ " {"#, x)"##, &[r##"r#"{ " {"#"##]),
        (r#"f(br"\", x)"#, &[r#"r"\""#]),
        (
            r"f('{', '\'', '\u{7b}', b'}')",
            &["'{'", r"'\''", r"'\u{7b}'", "'}'"],
        ),
        ("f('é', x)", &["'é'"]),
        ("impl<'a> F<'a> for r#fn {}", &[]),
        ("\"never closed {", &["\"never closed {"]),
    ];
    for (text, not_code) in cases {
        let blank = |code: String, part: &&str| code.replace(part, &" ".repeat(part.len()));
        let code = not_code.iter().fold(text.to_owned(), blank);
        assert_eq!(Source::of(text).code, code, "{text}");
    }
}

#[test]
fn comments_keep_their_places() {
    let source = Source::of("let s = \"// no\"; // yes\n/* and\nthis */ x");
    let comments = "                 // yes\n/* and\nthis */  ";
    assert_eq!(source.comments, comments);
}

#[test]
fn functions_are_found_with_their_lengths() {
    let text = "\
trait T {
    fn declared(&self);
}
fn long(a: [u8; 2], f: fn(u8) -> u8) -> [u8; 2]
where
    u8: Copy,
{
    if true {
        fn nested() {}
    }
    '}';
    a
}
";
    let found: Vec<(String, usize, usize)> = functions(&Source::of(text).code)
        .into_iter()
        .map(|function| (function.name, function.line, function.lines))
        .collect();
    let expected = [("long".to_owned(), 4, 10), ("nested".to_owned(), 9, 1)];
    assert_eq!(found, expected);
}

#[test]
fn words_are_not_found_in_longer_names() {
    let found: Vec<usize> = words("sleep asleep sleepy x::sleep()", "sleep").collect();
    assert_eq!(found, [0, 23]);
}

#[test]
fn items_of_tests_are_blanked_and_what_follows_stays() {
    let code = "a();\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n    b();\n}\nc();\n";
    let product = without_tests(code);
    assert_eq!(product.len(), code.len());
    assert!(product.contains("a();") && product.contains("c();") && !product.contains("b();"));
    assert_eq!(
        modules_of_tests("#[cfg(test)]\npub(crate) mod oracle;\n"),
        ["oracle"]
    );
    assert!(modules_of_tests(code).is_empty());
}
