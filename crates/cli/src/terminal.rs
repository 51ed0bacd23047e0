//! Words for people, on standard error and standard output.
//!
//! Nobody has to listen: a closed terminal, a pipe whose reader has gone or a full disk loses the
//! words, and never the run. `tell!` panics there, and a panic ends a run without its record;
//! so clippy refuses it in this crate.

use measure::printable;

use crate::streams;

/// As `tell!`, where nobody needs to listen.
macro_rules! tell {
    ($($argument:tt)*) => {
        $crate::terminal::line(format_args!($($argument)*))
    };
}
/// Writes a line to standard error, if that can be written to.
pub(crate) fn line(words: std::fmt::Arguments<'_>) {
    text(&format!("{words}\n"));
}

/// Writes to standard error, if that can be written to.
pub(crate) fn text(words: &str) {
    let _ = streams::write_error(printable(words).as_bytes());
}

/// Columns of a terminal that does not say how many it has.
const COLUMNS: u16 = 80;

/// Replaces the line of the terminal that standard error is, as far as it fits.
pub(crate) fn replace_line(words: &str) {
    let columns = streams::columns_of_error().filter(|columns| *columns != 0);
    let columns = columns.unwrap_or(COLUMNS);
    // The last column is left free: some terminals wrap there.
    let fitting = usize::from(columns).saturating_sub(1);
    let cut: String = printable(words).chars().take(fitting).collect();
    let _ = streams::write_error(format!("\r\x1b[2K{cut}").as_bytes());
}
