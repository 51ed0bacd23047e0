//! Text within markup: as XML and HTML take it, and as Markdown shows it.

/// Text as it stands in elements and in attributes in double quotes. What no text may hold, such as
/// a control character, becomes U+FFFD.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' | '\t' => escaped.push(letter),
            _ if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Text that Markdown shows as it is, also within a table.
pub(crate) fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                literal.push('\\');
                literal.push(letter);
            }
            '<' => literal.push_str("&lt;"),
            '>' => literal.push_str("&gt;"),
            '&' => literal.push_str("&amp;"),
            _ if letter.is_control() => literal.push(' '),
            _ => literal.push(letter),
        }
    }
    literal
}
