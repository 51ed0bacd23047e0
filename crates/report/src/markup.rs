//! Text within markup: as XML and HTML take it, and as Markdown shows it.

use measure::printable;

/// Text as it stands in elements and in attributes in double quotes, made visible by
/// [`printable`], which leaves nothing that XML cannot hold.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in printable(text).chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // Before a line feed, which is enough.
            '\r' => {}
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// Text that Markdown shows as it is, also within a table, made visible by [`printable`].
pub(crate) fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len());
    for letter in printable(text).chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                literal.push('\\');
                literal.push(letter);
            }
            '<' => literal.push_str("&lt;"),
            '>' => literal.push_str("&gt;"),
            '&' => literal.push_str("&amp;"),
            '\n' | '\r' | '\t' => literal.push(' '),
            _ => literal.push(letter),
        }
    }
    literal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_turns_or_hides_is_visible_in_markup() {
        let text = "a\u{202e}<\u{1b}\u{85}\r\n\u{e0041}";
        let shown = escape(text);
        assert_eq!(shown, "a\\u202e&lt;\\u001b\\u0085\n\\udb40\\udc41");
        let shown = literal(text);
        assert_eq!(
            shown,
            "a\\\\u202e&lt;\\\\u001b\\\\u0085  \\\\udb40\\\\udc41"
        );
    }
}
