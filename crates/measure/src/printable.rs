//! Text of others, made visible: what a measured server, a file or a program wrote can neither
//! control a terminal nor show something else than it is.

use std::borrow::Cow;

/// The text with each invisible or formatting character escaped as in JSON, `\u202e`. Line feeds,
/// also after a carriage return, and tabs are kept.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_kept = |at: usize, it: char| match it {
        '\r' => text[at + 1..].starts_with('\n'),
        _ => !is_hidden(it),
    };
    if text.char_indices().all(|(at, it)| is_kept(at, it)) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for (at, letter) in text.char_indices() {
        match is_kept(at, letter) {
            true => shown.push(letter),
            false => {
                let units = letter.encode_utf16(&mut [0; 2]).to_owned();
                shown.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
            }
        }
    }
    shown.into()
}

/// The text on one line, line feeds as JSON writes them: its writer adds no lines to a report.
pub(crate) fn on_one_line(text: &str) -> String {
    text.replace('\n', "\\n")
}

/// True for a character that a reader does not see: one that controls a terminal or the direction
/// of text, ends a line, has no width, or is no character.
fn is_hidden(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        // C0, DEL and C1.
        _ if letter.is_control() => true,
        // Separators of lines and paragraphs.
        '\u{2028}' | '\u{2029}' => true,
        // Controls of direction (UAX #9), of joining and of invisible operators.
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' => true,
        // All else that is ignored where it is not supported (Default_Ignorable_Code_Point of
        // Unicode's DerivedCoreProperties.txt): fillers, selectors of variants, tags.
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' => true,
        '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' => true,
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        // Noncharacters, such as the last two of each plane; XML cannot represent them.
        '\u{fdd0}'..='\u{fdef}' => true,
        _ => u32::from(letter) & 0xfffe == 0xfffe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every character that the terminal, the layout of text or a reader could mistake.
    fn hidden() -> impl Iterator<Item = char> {
        let ranges = [
            ('\0', '\u{1f}'),
            ('\u{7f}', '\u{9f}'),
            ('\u{ad}', '\u{ad}'),
            ('\u{61c}', '\u{61c}'),
            ('\u{200b}', '\u{200f}'),
            ('\u{2028}', '\u{202e}'),
            ('\u{2060}', '\u{206f}'),
            ('\u{feff}', '\u{feff}'),
            ('\u{fff9}', '\u{fffb}'),
            ('\u{fffe}', '\u{ffff}'),
            ('\u{e0000}', '\u{e007f}'),
            ('\u{e0100}', '\u{e01ef}'),
        ];
        let all = ranges.into_iter().flat_map(|(first, last)| first..=last);
        all.filter(|it| !matches!(it, '\n' | '\t'))
    }

    #[test]
    fn characters_that_hide_or_turn_text_are_written_as_in_json() {
        for letter in hidden() {
            let text = format!("a{letter}b");
            let shown = printable(&text);
            assert!(!shown.contains(letter), "{letter:?}");
            let read: String = serde_json::from_str(&format!("\"{shown}\"")).unwrap();
            assert_eq!(read, text);
        }
        assert_eq!(printable("\u{1b}[2J"), "\\u001b[2J");
        assert_eq!(printable("\u{e0041}"), "\\udb40\\udc41");
    }

    #[test]
    fn text_of_any_language_is_left_as_it_is() {
        for text in ["", "a\tb\nc\r\n", "\"zürich\" µs ≥ 1", "日本語 עברית 😀"] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
        }
        assert_eq!(printable("done\rfailed"), "done\\u000dfailed");
        assert_eq!(printable("a\r\r\n"), "a\\u000d\r\n");
        assert_eq!(printable("a\r"), "a\\u000d");
    }
}
