//! Lines and charts in a part of a buffer. What is outside of it is left out.

use std::borrow::Cow;

use measure::printable;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};

/// How text looks.
pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(crate) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(crate) const BAR: Style = Style::new().add_modifier(Modifier::REVERSED);
pub(crate) const GOOD: Style = Style::new().fg(Color::Green);
pub(crate) const WARNING: Style = Style::new().fg(Color::Yellow);
pub(crate) const BAD: Style = Style::new().fg(Color::Red);
pub(crate) const CHART: Style = Style::new().fg(Color::Cyan);

/// Eighths of a cell, from below.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// A part of a buffer, filled from its top.
#[derive(Debug)]
pub(crate) struct Canvas<'a> {
    buffer: &'a mut Buffer,
    area: Rect,
    /// The next free row.
    row: u16,
}

impl<'a> Canvas<'a> {
    pub(crate) fn new(buffer: &'a mut Buffer, area: Rect) -> Canvas<'a> {
        let area = area.intersection(buffer.area);
        let row = area.y;
        Canvas { buffer, area, row }
    }

    /// Rows that are free.
    pub(crate) fn rows_left(&self) -> u16 {
        self.area.bottom().saturating_sub(self.row)
    }

    pub(crate) fn columns(&self) -> u16 {
        self.area.width
    }

    /// Writes texts beside each other in the next row.
    pub(crate) fn line(&mut self, parts: &[(&str, Style)]) {
        if self.rows_left() == 0 {
            return;
        }
        let mut x = self.area.x;
        for (text, style) in parts {
            let room = self.area.right().saturating_sub(x);
            let text = on_one_line(text);
            (x, _) = (self.buffer).set_stringn(x, self.row, text, room.into(), *style);
        }
        self.row += 1;
    }

    pub(crate) fn blank(&mut self) {
        self.line(&[]);
    }

    /// A name and its value, which has several parts in columns.
    pub(crate) fn figure(&mut self, name: &str, values: &[&str], style: Style) {
        let name = format!("{name:<14}");
        let values: String = values.iter().map(|it| format!("{it:<17}")).collect();
        self.line(&[(&name, DIM), (values.trim_end(), style)]);
    }

    /// Text in as many rows as it needs, each but the first indented.
    pub(crate) fn wrapped(&mut self, text: &str, style: Style) {
        let room = usize::from(self.columns());
        let (mut row, mut count) = (String::new(), 0);
        for word in on_one_line(text).split(' ') {
            let letters = word.chars().count();
            if count > 0 && count + 1 + letters > room {
                self.line(&[(&row, style)]);
                (row, count) = ("  ".to_owned(), 2);
            } else if count > 0 {
                row.push(' ');
                count += 1;
            }
            row.push_str(word);
            count += letters;
        }
        self.line(&[(&row, style)]);
    }

    /// The newest values as columns in the next `rows` rows, the newest at the right, the highest
    /// as high as the chart.
    pub(crate) fn chart(&mut self, values: &[f64], rows: u16, style: Style) {
        let rows = rows.min(self.rows_left());
        let columns = usize::from(self.columns());
        let values = &values[values.len().saturating_sub(columns)..];
        let most = values.iter().copied().fold(0.0, f64::max);
        let steps = f64::from(rows) * 8.0;
        for (x, value) in (self.area.x..).zip(values) {
            let share = if most > 0.0 { value / most } else { 0.0 };
            // What is not nothing is seen.
            let least = if *value > 0.0 { 1.0 } else { 0.0 };
            let height = (share * steps).round().clamp(least, steps.max(least)) as u16;
            for row in 0..rows {
                let below = 8 * (rows - 1 - row);
                let eighths = usize::from(height.saturating_sub(below).min(8));
                let cell = &mut self.buffer[(x, self.row + row)];
                cell.set_symbol(EIGHTHS[eighths]).set_style(style);
            }
        }
        self.row += rows;
    }

    /// How far something is, over the rest of the row after its name.
    pub(crate) fn bar(&mut self, name: &str, share: f64, style: Style) {
        let share = share.clamp(0.0, 1.0);
        let name = match name {
            "" => String::new(),
            name => format!("{name} {:>3.0} % ", (100.0 * share).floor()),
        };
        let cells = usize::from(self.columns()).saturating_sub(name.chars().count());
        let filled = ((share * cells as f64) as usize).min(cells);
        let (full, empty) = ("█".repeat(filled), "░".repeat(cells - filled));
        self.line(&[(&name, DIM), (&full, style), (&empty, DIM)]);
    }
}

/// Text from elsewhere as a terminal may show it.
fn on_one_line(text: &str) -> Cow<'_, str> {
    match printable(text) {
        text if text.contains(['\n', '\t']) => text.replace(['\n', '\t'], " ").into(),
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(draw: impl FnOnce(&mut Canvas<'_>), width: u16, height: u16) -> Vec<String> {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        draw(&mut Canvas::new(
            &mut buffer,
            Rect::new(0, 0, width, height),
        ));
        let cells = buffer.content().chunks(width.into());
        let rows = cells.map(|row| row.iter().map(|cell| cell.symbol()).collect());
        rows.collect()
    }

    #[test]
    fn chart_is_as_high_as_its_highest_value_and_shows_the_newest() {
        let rows = drawn(|it| it.chart(&[9.0, 0.0, 1.0, 8.0], 2, CHART), 3, 2);
        assert_eq!(rows, ["  █", " ▂█"]);
        let flat = drawn(|it| it.chart(&[0.0, 0.0], 1, CHART), 3, 1);
        assert_eq!(flat, ["   "]);
    }

    #[test]
    fn text_is_wrapped_at_blanks_and_cut_at_the_last_row() {
        let rows = drawn(|it| it.wrapped("one two three four", PLAIN), 8, 2);
        assert_eq!(rows, ["one two ", "  three "]);
    }

    #[test]
    fn control_characters_of_others_are_shown_and_not_sent() {
        let rows = drawn(|it| it.line(&[("a\x1b[2Jb\nc", PLAIN)]), 16, 1);
        assert_eq!(rows, ["a\\u001b[2Jb c   "]);
    }
}
