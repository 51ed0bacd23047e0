//! Finds the concatenations in a script, and wraps them so that their results are counted.
//!
//! `..` is one instruction however long the strings are, so a loop of a few of them could take
//! minutes. Each chain `a .. b .. c` becomes `(weigh(a .. b .. c))`: the chain itself is unchanged,
//! with Lua's own errors and metamethods, and the prelude counts the bytes of its result. Nothing
//! else changes, line numbers included.

/// The role of a token in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A name, not a keyword.
    Name,
    /// A number, `nil`, `true`, `false` or `...`.
    Constant,
    /// A string, which is an argument where it follows a function.
    Text,
    /// `(`, `[` or `{`, with the octet.
    Open(u8),
    /// `)`, `]` or `}`.
    Close,
    /// `..`
    Concatenation,
    /// `.` or `:` before a name.
    Field,
    /// `not` or `#`.
    Unary,
    /// `-`, which has one operand or two.
    Minus,
    /// `+`, `*`, `/`, `%` or `^`.
    Binary,
    /// Ends an expression, or is not part of one.
    Other,
}

#[derive(Clone, Copy, Debug)]
struct Token {
    kind: Kind,
    start: usize,
    end: usize,
    /// For a bracket, the token of its counterpart.
    other: usize,
}

/// Keywords that are neither an operand nor an operator with a higher precedence than `..`; `goto`
/// can be a name.
const KEYWORDS: [&[u8]; 17] = [
    b"and",
    b"break",
    b"do",
    b"else",
    b"elseif",
    b"end",
    b"for",
    b"function",
    b"if",
    b"in",
    b"local",
    b"or",
    b"repeat",
    b"return",
    b"then",
    b"until",
    b"while",
];

/// The text of a function that returns the script as a function, each of its chains within a call
/// of the first argument. `text` must compile.
pub(crate) fn weighed(text: &str) -> String {
    let mut weigh = "weigh".to_owned();
    // Choose a name that the script does not use.
    while text.contains(&weigh) {
        weigh.push('_');
    }
    let mut whole = format!("local {weigh} = ... return function(...) ");
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.starts_with('#') {
        // Lua skips such a line only if it is the first.
        whole.push_str("--");
    }
    let mut written = 0;
    for (at, insertion) in insertions(text.as_bytes(), &weigh) {
        whole.push_str(&text[written..at]);
        whole.push_str(&insertion);
        written = at;
    }
    whole.push_str(&text[written..]);
    // A comment may be the last line.
    whole.push_str("\nend");
    whole
}

/// Insertions into the text, by offset.
fn insertions(text: &[u8], weigh: &str) -> Vec<(usize, String)> {
    let tokens = tokens(text);
    let mut insertions = Vec::new();
    let mut is_done = vec![false; tokens.len()];
    for at in 0..tokens.len() {
        if tokens[at].kind != Kind::Concatenation || is_done[at] {
            continue;
        }
        let mut last = at;
        // `function() end .. a .. b` fails when it runs, after `a .. b`.
        let first = operand_before(&tokens, at).unwrap_or(at + 1);
        let end = loop {
            is_done[last] = true;
            let Some(end) = operand_after(&tokens, last) else {
                break None;
            };
            match tokens.get(end + 1) {
                Some(next) if next.kind == Kind::Concatenation => last = end + 1,
                _ => break Some(end),
            }
        };
        // `a .. b .. function() end` fails before `a .. b`.
        let Some(last) = end else {
            continue;
        };
        // A statement may begin with a bracket, which must not become arguments.
        let begins_statement = |next: &Token| matches!(next.kind, Kind::Open(b'('));
        let close = match tokens.get(last + 1).is_some_and(begins_statement) {
            true => "));",
            false => "))",
        };
        // Brackets prevent a tail call, so that errors name the line.
        insertions.push((tokens[first].start, format!(" ({weigh}(")));
        insertions.push((tokens[last].end, close.to_owned()));
    }
    insertions.sort_by_key(|(at, _)| *at);
    insertions
}

/// The first token of the operand that ends before `at`, arithmetic included.
fn operand_before(tokens: &[Token], at: usize) -> Option<usize> {
    let kind = |index: usize| tokens.get(index).map_or(Kind::Other, |it| it.kind);
    let is_suffixed = |kind| matches!(kind, Kind::Name | Kind::Text | Kind::Close);
    let mut first = at;
    loop {
        first = first.checked_sub(1)?;
        // A primary with its fields, indices and arguments, from the last to the first.
        loop {
            let before = |index: usize| kind(index.wrapping_sub(1));
            match kind(first) {
                Kind::Close => {
                    first = tokens[first].other;
                    if !is_suffixed(before(first)) {
                        break;
                    }
                }
                Kind::Text if !is_suffixed(before(first)) => break,
                Kind::Text => {}
                Kind::Name if before(first) != Kind::Field => break,
                Kind::Name => first -= 1,
                Kind::Constant => break,
                _ => return None,
            }
            first = first.checked_sub(1)?;
        }
        loop {
            let before = first.checked_sub(1);
            match before.map_or(Kind::Other, kind) {
                Kind::Unary => first -= 1,
                Kind::Minus => {
                    let left = kind(first.wrapping_sub(2));
                    let is_binary = is_suffixed(left) || left == Kind::Constant;
                    first -= 1;
                    if is_binary {
                        break;
                    }
                }
                Kind::Binary => {
                    first -= 1;
                    break;
                }
                _ => return Some(first),
            }
        }
    }
}

/// The last token of the operand that begins after `at`, arithmetic included.
fn operand_after(tokens: &[Token], at: usize) -> Option<usize> {
    let kind = |index: usize| tokens.get(index).map_or(Kind::Other, |it| it.kind);
    let mut last = at;
    loop {
        last += 1;
        while matches!(kind(last), Kind::Unary | Kind::Minus) {
            last += 1;
        }
        let can_be_suffixed = match kind(last) {
            Kind::Name => true,
            Kind::Open(bracket) => {
                last = tokens[last].other;
                bracket == b'('
            }
            Kind::Constant | Kind::Text => false,
            _ => return None,
        };
        loop {
            match kind(last + 1) {
                _ if !can_be_suffixed => break,
                Kind::Open(_) => last = tokens[last + 1].other,
                Kind::Text => last += 1,
                Kind::Field => last += 2,
                _ => break,
            }
        }
        match kind(last + 1) {
            Kind::Binary | Kind::Minus => last += 1,
            _ => return Some(last),
        }
    }
}

/// The tokens of a text that compiles.
fn tokens(text: &[u8]) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut open = Vec::new();
    let mut at = match text.first() {
        Some(b'#') => line_octets(text),
        _ => 0,
    };
    while at < text.len() {
        let start = at;
        let kind = next(text, &mut at);
        let Some(kind) = kind else { continue };
        let index = tokens.len();
        let mut other = index;
        match kind {
            Kind::Open(_) => open.push(index),
            Kind::Close => {
                if let Some(opening) = open.pop() {
                    other = opening;
                    tokens[opening].other = index;
                }
            }
            _ => {}
        }
        tokens.push(Token {
            kind,
            start,
            end: at,
            other,
        });
    }
    tokens
}

/// Skips a token, or the space between tokens.
fn next(text: &[u8], at: &mut usize) -> Option<Kind> {
    let start = *at;
    let rest = &text[start..];
    let is_name = |octet: &u8| octet.is_ascii_alphanumeric() || *octet == b'_' || *octet >= 0x80;
    let has_digit = rest.get(1).is_some_and(u8::is_ascii_digit);
    let (kind, octets) = match rest[0] {
        b'-' if rest.starts_with(b"--") => (None, comment_octets(rest)),
        b'"' | b'\'' => (Some(Kind::Text), text_octets(rest)),
        b'0'..=b'9' => (Some(Kind::Constant), number_octets(rest)),
        b'.' if has_digit => (Some(Kind::Constant), number_octets(rest)),
        b'.' if rest.starts_with(b"...") => (Some(Kind::Constant), 3),
        b'.' if rest.starts_with(b"..") => (Some(Kind::Concatenation), 2),
        b':' if rest.starts_with(b"::") => (Some(Kind::Other), 2),
        b'.' | b':' => (Some(Kind::Field), 1),
        b'[' => match long_octets(rest) {
            Some(octets) => (Some(Kind::Text), octets),
            None => (Some(Kind::Open(b'[')), 1),
        },
        bracket @ (b'(' | b'{') => (Some(Kind::Open(bracket)), 1),
        b')' | b']' | b'}' => (Some(Kind::Close), 1),
        b'#' => (Some(Kind::Unary), 1),
        b'-' => (Some(Kind::Minus), 1),
        b'+' | b'*' | b'/' | b'%' | b'^' => (Some(Kind::Binary), 1),
        octet if octet.is_ascii_whitespace() || octet == 0x0b => (None, 1),
        octet if is_name(&octet) => {
            let octets = rest.iter().take_while(|it| is_name(it)).count();
            (Some(word(&rest[..octets])), octets)
        }
        _ => (Some(Kind::Other), 1),
    };
    *at = (start + octets).min(text.len());
    kind
}

fn word(word: &[u8]) -> Kind {
    match word {
        b"nil" | b"true" | b"false" => Kind::Constant,
        b"not" => Kind::Unary,
        word if KEYWORDS.contains(&word) => Kind::Other,
        _ => Kind::Name,
    }
}

/// Octets of a comment at the start of `rest`.
fn comment_octets(rest: &[u8]) -> usize {
    match long_octets(&rest[2..]) {
        Some(octets) => 2 + octets,
        None => line_octets(rest),
    }
}

/// Octets up to the end of the line.
fn line_octets(rest: &[u8]) -> usize {
    let is_end = |octet: &u8| matches!(octet, b'\n' | b'\r');
    rest.iter().position(is_end).unwrap_or(rest.len())
}

/// Octets of a string in long brackets at the start of `rest`, if there is one.
fn long_octets(rest: &[u8]) -> Option<usize> {
    let level = rest.iter().skip(1).take_while(|it| **it == b'=').count();
    let has_brackets = rest.first() == Some(&b'[') && rest.get(level + 1) == Some(&b'[');
    if !has_brackets {
        return None;
    }
    let mut end = vec![b'='; level + 2];
    (end[0], end[level + 1]) = (b']', b']');
    let found = rest.windows(end.len()).position(|it| it == end);
    Some(found.map_or(rest.len(), |at| at + end.len()))
}

/// Octets of a string in quotes at the start of `rest`.
fn text_octets(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != rest[0] {
        at += match rest[at] {
            b'\\' => 2,
            _ => 1,
        };
    }
    at + 1
}

/// Octets of a number at the start of `rest`, as LuaJIT delimits them.
fn number_octets(rest: &[u8]) -> usize {
    let is_hexadecimal = rest.starts_with(b"0x") || rest.starts_with(b"0X");
    let exponent = if is_hexadecimal { b'p' } else { b'e' };
    let mut before = 0;
    let is_part = |octet: &&u8| {
        let is_sign = matches!(octet, b'+' | b'-') && before == exponent;
        before = octet.to_ascii_lowercase();
        is_sign || octet.is_ascii_alphanumeric() || matches!(octet, b'_' | b'.') || **octet >= 0x80
    };
    rest.iter().take_while(is_part).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The script within the result of [`weighed`].
    fn inner(text: &str) -> String {
        let whole = weighed(text);
        let inner = whole.strip_prefix("local weigh = ... return function(...) ");
        inner
            .and_then(|it| it.strip_suffix("\nend"))
            .unwrap()
            .to_owned()
    }

    #[test]
    fn each_chain_is_weighed_as_a_whole() {
        for (text, expected) in [
            ("x = a .. b", "x =  (weigh(a .. b))"),
            ("x=a..b..c", "x= (weigh(a..b..c))"),
            ("return'a'..'b'", "return (weigh('a'..'b'))"),
            ("x = 1 + 2 .. -3 ^ -y", "x =  (weigh(1 + 2 .. -3 ^ -y))"),
            ("x = not a .. #b", "x =  (weigh(not a .. #b))"),
            ("x = a - b - -c .. d", "x =  (weigh(a - b - -c .. d))"),
            ("x = a == b .. c and d", "x = a ==  (weigh(b .. c)) and d"),
            (
                "f(a.b:c(1)[2]{3}'x' .. d.e 'y', 2)",
                "f( (weigh(a.b:c(1)[2]{3}'x' .. d.e 'y')), 2)",
            ),
            ("x = (a .. b) .. c", "x =  (weigh(( (weigh(a .. b))) .. c))"),
            (
                "x = a[b .. c] .. d",
                "x =  (weigh(a[ (weigh(b .. c))] .. d))",
            ),
            (
                "x = a .. [==[ ]] .. ]==] y = 2",
                "x =  (weigh(a .. [==[ ]] .. ]==])) y = 2",
            ),
            ("x = 1 .. 'b' (f)(y)", "x =  (weigh(1 .. 'b')); (f)(y)"),
            ("x = 0xp+1 .. 1e-3", "x =  (weigh(0xp+1 .. 1e-3))"),
            ("x = ... .. nil", "x =  (weigh(... .. nil))"),
            ("x = a -- .. b\n .. c", "x =  (weigh(a -- .. b\n .. c))"),
            (
                "x = '\\'..' --[[ .. ]] y = '..'",
                "x = '\\'..' --[[ .. ]] y = '..'",
            ),
            ("x = {} .. {1, 2}", "x =  (weigh({} .. {1, 2}))"),
            ("x = a .. function() end", "x = a .. function() end"),
            (
                "x = function() end .. a .. b",
                "x = function() end ..  (weigh(a .. b))",
            ),
            ("x = goto .. t.goto", "x =  (weigh(goto .. t.goto))"),
            ("#!lua ..\nx = a .. b", "--#!lua ..\nx =  (weigh(a .. b))"),
            ("\u{feff}x = a .. b", "x =  (weigh(a .. b))"),
        ] {
            assert_eq!(inner(text), expected, "{text}");
        }
    }

    #[test]
    fn no_name_of_the_script_hides_the_weighing() {
        let whole = weighed("local weigh, weigh_ = 1, 2");
        assert!(whole.starts_with("local weigh__ = ..."), "{whole}");
    }

    #[test]
    fn a_text_that_does_not_compile_is_read_to_its_end() {
        for text in [
            "..",
            "a ..",
            ")..(",
            "'",
            "[[",
            "--[[",
            "\\",
            "x = a .. (",
            "]",
            "0x",
            "'\\",
        ] {
            assert!(weighed(text).ends_with("\nend"));
        }
    }
}
