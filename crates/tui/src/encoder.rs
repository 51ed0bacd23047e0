//! A buffer as escape sequences of ECMA-48, which every terminal since the VT100 reads.

use std::fmt::Write;

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::style::{Color, Modifier};
use ratatui_core::text::Span;

/// Shows the alternate screen, without cursor.
pub const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// Shows the former screen and its cursor.
pub const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";
/// Erases the screen.
const CLEAR: &str = "\x1b[0m\x1b[2J";

/// Knows what the terminal shows, and writes what is different.
#[derive(Debug)]
pub struct Encoder {
    drawn: Option<Buffer>,
    has_colors: bool,
}

impl Encoder {
    /// Of a terminal that shows nothing yet.
    pub fn new(has_colors: bool) -> Encoder {
        Encoder {
            drawn: None,
            has_colors,
        }
    }

    /// What makes the terminal show this buffer; empty if it does.
    pub fn encode(&mut self, next: Buffer) -> Vec<u8> {
        let mut text = String::new();
        let before = match self.drawn.take().filter(|it| it.area == next.area) {
            Some(before) => before,
            None => {
                text.push_str(CLEAR);
                Buffer::empty(next.area)
            }
        };
        let mut style = String::new();
        let mut at = None;
        for (x, y, cell) in before.diff(&next) {
            if at != Some((x, y)) {
                let _ = write!(text, "\x1b[{};{}H", y + 1, x + 1);
            }
            let needed = self.style(cell);
            if needed != style {
                text.push_str(&needed);
                style = needed;
            }
            text.push_str(cell.symbol());
            let width = Span::raw(cell.symbol()).width();
            // A terminal may take a wide symbol for another width.
            at = (width == 1).then_some((x + 1, y));
        }
        if !style.is_empty() {
            text.push_str("\x1b[0m");
        }
        self.drawn = Some(next);
        text.into_bytes()
    }

    fn style(&self, cell: &Cell) -> String {
        let mut codes = String::from("\x1b[0");
        let modifiers = [
            (Modifier::BOLD, ";1"),
            (Modifier::DIM, ";2"),
            (Modifier::REVERSED, ";7"),
        ];
        for (modifier, code) in modifiers {
            if cell.modifier.contains(modifier) {
                codes.push_str(code);
            }
        }
        let color = match cell.fg {
            Color::Red => ";31",
            Color::Green => ";32",
            Color::Yellow => ";33",
            Color::Cyan => ";36",
            _ => "",
        };
        if self.has_colors {
            codes.push_str(color);
        }
        codes.push('m');
        codes
    }
}

#[cfg(test)]
mod tests {
    use ratatui_core::layout::Rect;
    use ratatui_core::style::Style;

    use super::*;

    fn buffer(text: &str, width: u16) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, 1));
        buffer.set_string(0, 0, text, Style::new().fg(Color::Green));
        buffer
    }

    fn encode(encoder: &mut Encoder, buffer: Buffer) -> String {
        String::from_utf8(encoder.encode(buffer)).unwrap()
    }

    #[test]
    fn only_what_has_changed_is_written() {
        let mut encoder = Encoder::new(true);
        let first = encode(&mut encoder, buffer("1000", 8));
        assert!(first.starts_with(CLEAR), "{first:?}");
        assert!(first.contains("\x1b[1;1H\x1b[0;32m1000"), "{first:?}");
        assert_eq!(encode(&mut encoder, buffer("1000", 8)), "");
        let third = encode(&mut encoder, buffer("1007", 8));
        assert_eq!(third, "\x1b[1;4H\x1b[0;32m7\x1b[0m");
    }

    #[test]
    fn resized_terminal_is_drawn_anew() {
        let mut encoder = Encoder::new(false);
        encode(&mut encoder, buffer("1000", 8));
        let resized = encode(&mut encoder, buffer("1000", 6));
        assert!(resized.starts_with(CLEAR) && resized.contains("1000"));
        assert!(!resized.contains(";32"), "{resized:?}");
    }
}
