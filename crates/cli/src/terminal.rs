//! Words for people, on standard error and standard output, and the owner of the terminal.
//!
//! A closed terminal, a pipe whose reader has gone or a full disk loses the words, and never the
//! run. `eprintln!` panics there, and a panic ends a run without its record; so clippy refuses it
//! in this crate.
//!
//! One owner knows what is drawn on the terminal. Other output goes through it: it erases the
//! progress line, writes, and draws the line again. [`restore`] ends the drawing: at the end of the
//! command, after a panic, and before a second signal ends the process.

mod raw;
mod result;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use measure::notation::counted;
use measure::printable;

use crate::streams;
use crate::views::{ENTER, LEAVE};
pub(crate) use result::colored;

/// Writes a line as `eprintln!` does; a line that cannot be written is lost.
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
    let _ = octets(printable(words).as_bytes());
}

/// Writes to standard error.
///
/// # Errors
/// It cannot be written to.
pub(crate) fn octets(octets: &[u8]) -> io::Result<()> {
    let mut owner = owner();
    streams::write_error(&owner.write(octets))
}

/// Writes to standard output, which may be the terminal too, and flushes it.
///
/// # Errors
/// It cannot be written to.
pub(crate) fn output(octets: &[u8]) -> io::Result<()> {
    end_line();
    // Without the owner: who reads standard output may take its time.
    streams::write_output(octets)
}

/// Columns of a terminal that does not say how many it has.
const COLUMNS: u16 = 80;

/// How a part of the progress line looks where the terminal has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Plain,
    Good,
    Warning,
    Dim,
}

impl Look {
    /// The escape sequence that begins it; none for plain text.
    fn escape(self) -> &'static str {
        match self {
            Look::Plain => "",
            Look::Good => "\x1b[32m",
            Look::Warning => "\x1b[33m",
            Look::Dim => "\x1b[2m",
        }
    }
}

/// A part of the progress line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) text: String,
    pub(crate) look: Look,
}

impl Part {
    pub(crate) fn new(text: impl Into<String>, look: Look) -> Part {
        let text = text.into();
        Part { text, look }
    }

    pub(crate) fn plain(text: impl Into<String>) -> Part {
        Part::new(text, Look::Plain)
    }
}

/// Columns of the terminal that standard error is.
pub(crate) fn columns() -> u16 {
    let columns = streams::columns_of_error().filter(|columns| *columns != 0);
    columns.unwrap_or(COLUMNS)
}

/// Replaces the line of the terminal that standard error is, as far as it fits.
pub(crate) fn replace_line(parts: &[Part]) {
    let (columns, has_colors) = (columns(), streams::error_has_colors());
    let mut owner = owner();
    let _ = streams::write_error(&owner.draw(parts, columns, has_colors));
}

/// Erases the line that [`replace_line`] has drawn, or ends the screen, if one of them is there.
pub(crate) fn end_line() {
    raw::leave();
    let mut owner = owner();
    if owner.has_drawn() {
        let _ = streams::write_error(&owner.restore());
    }
}

/// Takes the whole terminal for a screen, and sets it so that keys come one by one. Other output is
/// held until [`leave_screen`].
///
/// # Errors
/// The terminal cannot be set or written to, or this process is about to end.
pub(crate) fn take_screen(keyboard: OwnedFd) -> io::Result<()> {
    let mut owner = owner();
    let entered = owner.enter();
    if entered.is_empty() {
        return Err(io::ErrorKind::Other.into());
    }
    let written = raw::enter(keyboard)
        .map_err(io::Error::from)
        .and_then(|()| streams::write_error(&entered));
    if written.is_err() {
        raw::leave();
        let _ = streams::write_error(&owner.restore());
    }
    written
}

/// Writes a frame of the screen; false if there is none any more.
pub(crate) fn draw_screen(frame: &[u8]) -> bool {
    let owner = owner();
    owner.held.is_some() && streams::write_error(frame).is_ok()
}

/// True while there is a screen.
pub(crate) fn has_screen() -> bool {
    owner().held.is_some()
}

/// The newest line that is held for the end of the screen; empty without one.
pub(crate) fn newest_note() -> String {
    let owner = owner();
    owner.held.as_ref().map_or_else(String::new, Held::newest)
}

/// Ends the screen if there is one, and writes what was held meanwhile.
pub(crate) fn leave_screen() {
    if has_screen() {
        end_line();
    }
}

/// How long the end of the process waits for a terminal that takes no more octets.
const PATIENCE: Duration = Duration::from_millis(250);

/// Puts the terminal back into its former state; nothing is drawn afterwards. A terminal that takes
/// no more octets, such as after Ctrl-S, delays this for [`PATIENCE`] at most.
pub(crate) fn restore() {
    if streams::are_substituted() {
        return;
    }
    raw::leave();
    if let Ok(mut owner) = OWNER.try_lock()
        && !owner.has_drawn()
    {
        owner.is_over = true;
        return;
    }
    let (ends, ended) = channel::<()>();
    // Without a further thread the process ends with what is drawn.
    let started = thread::Builder::new().spawn(move || {
        let mut owner = owner();
        let _ = streams::write_error(&owner.end());
        drop(ends);
    });
    if started.is_ok() {
        let _ = ended.recv_timeout(PATIENCE);
    }
}

/// As [`restore`], where the system may allow no further thread.
pub(crate) fn restore_here() {
    raw::leave();
    // Who holds it writes, and the terminal may take no more octets.
    if let Ok(mut owner) = OWNER.try_lock()
        && owner.has_drawn()
    {
        let _ = streams::write_error(&owner.end());
    }
}

static OWNER: Mutex<Owner> = Mutex::new(Owner::new());

fn owner() -> MutexGuard<'static, Owner> {
    // Nothing panics while it is held, and the value is whole at any time.
    OWNER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What puts the terminal back into its former state, and returns the octets to write for it.
type Restore = fn() -> Vec<u8>;

/// Moves to the beginning of the line and erases it, with the lines below: a terminal that has
/// become narrower may have wrapped it.
const ERASE: &[u8] = b"\r\x1b[J";
/// Ends the look of a part.
const RESET: &str = "\x1b[0m";

fn erase_line() -> Vec<u8> {
    ERASE.to_vec()
}

/// What is drawn on the terminal. Its methods return what is to be written to standard error.
#[derive(Debug)]
struct Owner {
    /// The line that is drawn.
    line: Option<String>,
    /// Set while something is drawn.
    restore: Option<Restore>,
    /// Other output; none unless a screen has the whole terminal.
    held: Option<Held>,
    /// Nothing is drawn any more.
    is_over: bool,
}

impl Owner {
    const fn new() -> Owner {
        Owner {
            line: None,
            restore: None,
            held: None,
            is_over: false,
        }
    }

    fn has_drawn(&self) -> bool {
        self.restore.is_some()
    }

    /// The line, or another one in its place.
    fn draw(&mut self, parts: &[Part], columns: u16, has_colors: bool) -> Vec<u8> {
        if self.is_over || self.held.is_some() {
            return Vec::new();
        }
        // The last column is left free: some terminals wrap there.
        let mut fitting = usize::from(columns).saturating_sub(1);
        let mut fitted = String::new();
        for part in parts {
            let text: String = printable(&part.text).chars().take(fitting).collect();
            fitting -= text.chars().count();
            match part.look.escape() {
                escape if has_colors && !escape.is_empty() && !text.is_empty() => {
                    fitted.extend([escape, &text, RESET]);
                }
                _ => fitted.push_str(&text),
            }
        }
        // The cursor stays at its first column, also where a narrower terminal wraps the line.
        fitted.push('\r');
        let drawn = [ERASE, fitted.as_bytes()].concat();
        self.note_line(fitted);
        drawn
    }

    /// A screen in place of the line; nothing if it cannot be there.
    fn enter(&mut self) -> Vec<u8> {
        if self.is_over || self.held.is_some() {
            return Vec::new();
        }
        let mut written = self.restore();
        written.extend_from_slice(ENTER.as_bytes());
        self.held = Some(Held::default());
        self.restore = Some(|| LEAVE.as_bytes().to_vec());
        written
    }

    /// Other output, in place of the line, which follows it.
    fn write(&mut self, octets: &[u8]) -> Vec<u8> {
        if let Some(held) = &mut self.held {
            held.add(octets);
            return Vec::new();
        }
        let Some(line) = self.line.clone() else {
            return octets.to_vec();
        };
        let mut written = self.restore();
        written.extend_from_slice(octets);
        // Beside the beginning of a line it would be taken for a part of it.
        if octets.ends_with(b"\n") {
            written.extend_from_slice(line.as_bytes());
            self.note_line(line);
        }
        written
    }

    fn note_line(&mut self, line: String) {
        self.line = Some(line);
        self.restore = Some(erase_line);
    }

    /// Puts the terminal back into the state before something was drawn.
    fn restore(&mut self) -> Vec<u8> {
        self.line = None;
        let mut written = (self.restore.take()).map_or_else(Vec::new, |restore| restore());
        if let Some(held) = self.held.take() {
            written.extend(held.finish());
        }
        written
    }

    /// The same, for ever.
    fn end(&mut self) -> Vec<u8> {
        self.is_over = true;
        self.restore()
    }
}

/// Most bytes that are held: thousands of lines.
const HELD_MAX: usize = 1 << 20;

/// Output of the command while a screen has the terminal.
#[derive(Debug, Default)]
struct Held {
    text: Vec<u8>,
    /// Lines that were too many: the oldest ones.
    dropped: u64,
}

impl Held {
    fn add(&mut self, octets: &[u8]) {
        self.text.extend_from_slice(octets);
        if self.text.len() > HELD_MAX {
            // Half of them, so that it is rare.
            let half = self.text.len() / 2;
            let end = self.text[half..].iter().position(|octet| *octet == b'\n');
            let until = end.map_or(self.text.len(), |end| half + end + 1);
            let lines = self.text.drain(..until).filter(|octet| *octet == b'\n');
            self.dropped += lines.count() as u64;
        }
    }

    fn newest(&self) -> String {
        let lines = self.text.split(|octet| *octet == b'\n');
        let newest = lines.rev().find(|line| !line.is_empty());
        String::from_utf8_lossy(newest.unwrap_or_default()).into_owned()
    }

    fn finish(mut self) -> Vec<u8> {
        if self.dropped == 0 {
            return self.text;
        }
        let lines = counted(self.dropped, "earlier line");
        let mut all = format!("note: --tui did not keep {lines}\n").into_bytes();
        all.append(&mut self.text);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDE: u16 = 80;

    /// The lines that a terminal shows after these octets.
    fn shown(writes: &[Vec<u8>]) -> Vec<String> {
        let text = String::from_utf8(writes.concat()).unwrap();
        let mut lines = vec![String::new()];
        for part in text.replace("\x1b[J", "\u{0}").chars() {
            match part {
                '\n' => lines.push(String::new()),
                '\r' => {}
                '\u{0}' => lines.last_mut().unwrap().clear(),
                other => lines.last_mut().unwrap().push(other),
            }
        }
        lines
    }

    #[test]
    fn other_output_is_above_the_progress_line() {
        let mut owner = Owner::new();
        let mut writes = vec![
            owner.write(b"first\n"),
            owner.draw(&[Part::plain("10 %")], WIDE, false),
        ];
        writes.push(owner.write(b"a note\nof two lines\n"));
        assert_eq!(shown(&writes), ["first", "a note", "of two lines", "10 %"]);
        writes.push(owner.draw(&[Part::plain("9 %")], WIDE, false));
        assert_eq!(shown(&writes).last().unwrap(), "9 %");
        // The next text goes on in the same line.
        writes.extend([owner.write(b"a b"), owner.write(b"c\n")]);
        assert_eq!(shown(&writes)[3..], ["a bc", ""]);
    }

    #[test]
    fn output_without_a_progress_line_is_written_as_it_is() {
        let mut owner = Owner::new();
        assert_eq!(owner.write(b"a\rb"), b"a\rb");
        owner.draw(&[Part::plain("10 %")], WIDE, false);
        assert_eq!(owner.restore(), ERASE);
        assert!(owner.restore().is_empty());
        assert_eq!(owner.write(b"a\n"), b"a\n");
    }

    #[test]
    fn a_line_is_cut_where_the_terminal_would_wrap_it() {
        let mut owner = Owner::new();
        let writes = [
            owner.draw(&[Part::plain("0123456789")], 8, false),
            owner.write(b"note\n"),
        ];
        assert_eq!(shown(&writes), ["note", "0123456"]);
    }

    #[test]
    fn colours_take_no_columns_and_are_left_out_where_there_are_none() {
        let parts = [Part::new("0123", Look::Warning), Part::plain("4567")];
        let drawn = |has_colors| {
            let octets = Owner::new().draw(&parts, 7, has_colors);
            String::from_utf8(octets).unwrap()
        };
        assert_eq!(drawn(false), "\r\x1b[J012345\r");
        assert_eq!(drawn(true), "\r\x1b[J\x1b[33m0123\x1b[0m45\r");
    }

    #[test]
    fn output_is_held_while_a_screen_has_the_terminal_and_follows_it() {
        let mut owner = Owner::new();
        owner.draw(&[Part::plain("10 %")], WIDE, false);
        let entered = [ERASE, ENTER.as_bytes()].concat();
        assert_eq!(owner.enter(), entered);
        assert!(owner.enter().is_empty());
        assert!(owner.write(b"warning: first\n").is_empty());
        assert!(owner.write(b"ending the run\n").is_empty());
        assert!(owner.draw(&[Part::plain("20 %")], WIDE, true).is_empty());
        assert_eq!(owner.held.as_ref().unwrap().newest(), "ending the run");
        let left = String::from_utf8(owner.restore()).unwrap();
        let lines = "warning: first\nending the run\n";
        assert_eq!(left, format!("{}{lines}", LEAVE));
        assert!(owner.restore().is_empty());
        assert_eq!(owner.write(b"result\n"), b"result\n");
    }

    #[test]
    fn panic_and_second_signal_end_the_screen_for_ever() {
        let mut owner = Owner::new();
        owner.enter();
        owner.write(b"note\n");
        let ended = String::from_utf8(owner.end()).unwrap();
        assert_eq!(ended, format!("{}note\n", LEAVE));
        assert!(owner.enter().is_empty());
        assert_eq!(owner.write(b"panicked\n"), b"panicked\n");
    }

    #[test]
    fn oldest_of_too_many_held_lines_are_dropped_and_counted() {
        let mut held = Held::default();
        let line = [b"x".repeat(1_023), b"\n".to_vec()].concat();
        for _ in 0..1_500 {
            held.add(&line);
        }
        held.add(b"last\n");
        assert!(held.text.len() <= HELD_MAX);
        assert_eq!(held.newest(), "last");
        let kept = held.text.iter().filter(|it| **it == b'\n').count() as u64;
        assert_eq!(kept + held.dropped, 1_501);
        assert!(held.finish().starts_with(b"note: --tui did not keep "));
    }

    /// As a panic or a second signal ends the process while the display goes on.
    #[test]
    fn nothing_is_drawn_after_the_end() {
        let mut owner = Owner::new();
        let mut writes = vec![owner.draw(&[Part::plain("10 %")], WIDE, false), owner.end()];
        writes.push(owner.draw(&[Part::plain("20 %")], WIDE, false));
        writes.push(owner.write(b"thread 'main' panicked\n"));
        assert_eq!(shown(&writes), ["thread 'main' panicked", ""]);
    }

    /// Set in the process that panics.
    const PANICS: &str = "THRONG_TEST_PANICS";

    /// As the thread that draws the screen would.
    #[test]
    fn panic_of_any_thread_leaves_the_terminal_as_it_was() {
        if std::env::var_os(PANICS).is_some() {
            crate::abort_on_panic();
            take_screen(streams::keyboard().unwrap()).unwrap();
            let drawing = thread::spawn(|| panic!("as the test wants it"));
            let _ = drawing.join();
        }
        let folder = testing::folder::Folder::new("terminal-panic");
        let own = std::env::current_exe().unwrap();
        let own_name = "terminal::tests::panic_of_any_thread_leaves_the_terminal_as_it_was";
        let lines = format!(
            "cd {}; stty -a >before; {} --exact {own_name} --nocapture; stty -a >after",
            folder.path(""),
            own.display()
        );
        let ended = std::process::Command::new("script")
            .args(["--quiet", "--command", &lines, "/dev/null"])
            .env(PANICS, "1")
            .env("TERM", "xterm")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&ended.stdout);
        let places = [ENTER, LEAVE, "as the test wants it"].map(|it| text.find(it));
        assert!(places[0].is_some() && places.is_sorted(), "{text:?}");
        let set = |file| std::fs::read_to_string(folder.path(file)).unwrap();
        assert_eq!(set("before"), set("after"));
    }

    #[test]
    fn a_panic_erases_the_progress_line_before_its_message() {
        if std::env::var_os(PANICS).is_some() {
            crate::abort_on_panic();
            replace_line(&[Part::plain("10 %")]);
            panic!("as the test wants it");
        }
        let own_name = "terminal::tests::a_panic_erases_the_progress_line_before_its_message";
        let ended = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", own_name, "--nocapture"])
            .env(PANICS, "1")
            .output()
            .unwrap();
        assert!(!ended.status.success());
        assert!(String::from_utf8_lossy(&ended.stderr).contains("10 %"));
        let text = shown(&[ended.stderr]).join("\n");
        assert!(text.contains("panicked at"), "{text}");
        assert!(text.contains("as the test wants it"), "{text}");
        assert!(!text.contains("10 %"), "{text}");
    }
}
