//! Words for people on standard error.
//!
//! Nobody has to listen: a closed terminal, a pipe whose reader has gone or a full disk loses the
//! words, and never the run. `tell!` panics there, and a panic ends a run without its record;
//! so clippy refuses it in this crate.

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
    let _ = std::io::stderr().lock().write_all(words.as_bytes());
}
