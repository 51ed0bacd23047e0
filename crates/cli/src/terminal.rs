//! Words for people, on standard error and standard output.
//!
//! Nobody has to listen: a closed terminal, a pipe whose reader has gone or a full disk loses the
//! words, and never the run. `tell!` panics there, and a panic ends a run without its record;
//! so clippy refuses it in this crate.

use std::borrow::Cow;

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
    use std::io::Write;
    // One write for all of it: lines of several processes stay whole.
    let _ = std::io::stderr()
        .lock()
        .write_all(printable(words).as_bytes());
}

/// Columns of a terminal that does not say how many it has.
const COLUMNS: u16 = 80;

/// Replaces the line of the terminal that standard error is, as far as it fits.
pub(crate) fn replace_line(words: &str) {
    use std::io::Write;
    let mut stderr = std::io::stderr().lock();
    let size = rustix::termios::tcgetwinsize(&stderr);
    let columns = size.map_or(0, |it| it.ws_col);
    let columns = if columns == 0 { COLUMNS } else { columns };
    // The last column is left free: some terminals wrap there.
    let fitting = usize::from(columns).saturating_sub(1);
    let cut: String = printable(words).chars().take(fitting).collect();
    let _ = write!(stderr, "\r\x1b[2K{cut}").and_then(|()| stderr.flush());
}

/// The text without characters that control a terminal: they may come from a record or a file of
/// somebody else. They are written as JSON writes them, `\u001b`.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let controls = |it: char| it.is_control() && !matches!(it, '\n' | '\r' | '\t');
    if !text.contains(controls) {
        return text.into();
    }
    let each = text.chars().map(|it| match controls(it) {
        true => format!("\\u{:04x}", u32::from(it)),
        false => it.to_string(),
    });
    each.collect()
}
