//! Columns of text, aligned by the widest cell.

/// On which side of its column a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// On the left.
    Left,
    /// On the right, as numbers.
    Right,
}

/// Rows of cells; one [`Align`] for each column, two spaces between columns.
#[derive(Debug)]
pub struct Table<const COLUMNS: usize> {
    align: [Align; COLUMNS],
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    /// Without rows.
    pub fn new(align: [Align; COLUMNS]) -> Self {
        Table {
            align,
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells);
    }

    /// All rows, as [`Table::write_to`] has them.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write_to(&mut text);
        text
    }

    /// Appends all rows to `text`, indented by two spaces, without spaces at their ends.
    pub fn write_to(&self, text: &mut String) {
        write_columns(text, &self.align, &self.rows);
    }
}

/// Appends rows of as many cells as `align` has, as [`Table::write_to`] does.
pub(crate) fn write_columns(text: &mut String, align: &[Align], rows: &[impl AsRef<[String]>]) {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.as_ref().get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..align.len()).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for ((cell, align), width) in row.as_ref().iter().zip(align).zip(&widths) {
            line.push_str("  ");
            line.push_str(&match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            });
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_aligned_by_the_widest() {
        let mut table = Table::new([Align::Left, Align::Right, Align::Left]);
        table.row(["sent".into(), "1,000".into(), "queries".into()]);
        table.row(["lost".into(), "7".into(), String::new()]);
        let mut text = String::new();
        table.write_to(&mut text);
        assert_eq!(text, "  sent  1,000  queries\n  lost      7\n");
    }
}
