//! What a key changes, and the frame around a view.

use lab::live::{Next, Phase};
use measure::notation;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

use crate::canvas::{BAR, BOLD, Canvas, DIM, PLAIN, WARNING};
use crate::keys::{Key, Keys};
use crate::shown::Shown;
use crate::views::View;
use crate::watched::Watched;

/// What a key asks of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// To end the run in order, as Ctrl-C does.
    EndRun,
}

/// The screen of one command.
#[derive(Debug)]
pub struct Screen {
    command: String,
    watched: Watched,
    keys: Keys,
    view: View,
    shows_help: bool,
    hides_chart: bool,
    is_frozen: bool,
    has_ended_run: bool,
    /// Rows of the view that are above the screen.
    skipped: usize,
}

/// What the keys do, in the order of the help.
const HELP: [(&str, &str); 8] = [
    ("?", "show or hide this help"),
    ("1 ... 6", "show a view"),
    ("Tab", "show the next view"),
    ("c", "show or hide charts"),
    ("Ctrl-F", "freeze the screen; the run goes on"),
    ("Up, Down", "scroll, as k and j do"),
    ("q", "end the run in order and print its result"),
    ("Ctrl-C", "the same; a second time ends the command at once"),
];

/// Longest list that is scrolled through.
const SKIPPED_MAX: usize = 100_000;

impl Screen {
    /// Of a command, such as `run`, that has shown nothing yet.
    pub fn new(command: &str) -> Screen {
        Screen {
            command: command.to_owned(),
            watched: Watched::default(),
            keys: Keys::default(),
            view: View::Run,
            shows_help: false,
            hides_chart: false,
            is_frozen: false,
            has_ended_run: false,
            skipped: 0,
        }
    }

    /// Adds what a reader of snapshots was given.
    pub fn read(&mut self, next: &Next) {
        self.watched.read(next);
    }

    /// Takes bytes of the keyboard; what they ask for.
    pub fn press(&mut self, bytes: &[u8]) -> Option<Action> {
        let keys = bytes.iter().filter_map(|byte| self.keys.read(*byte));
        let keys: Vec<Key> = keys.collect();
        let mut action = None;
        for key in keys {
            action = action.or(self.apply(key));
        }
        action
    }

    fn apply(&mut self, key: Key) -> Option<Action> {
        match key {
            Key::Help => self.shows_help = !self.shows_help,
            Key::Freeze => self.is_frozen = !self.is_frozen,
            Key::Chart => self.hides_chart = !self.hides_chart,
            Key::NextView => self.show(self.view.next()),
            Key::View(number) => {
                if let Some(view) = View::numbered(number) {
                    self.show(view);
                }
            }
            Key::Up => self.skipped = self.skipped.saturating_sub(1),
            Key::Down => self.skipped = (self.skipped + 1).min(SKIPPED_MAX),
            // A second signal would end the command at once.
            Key::Quit if self.has_ended_run => {}
            Key::Quit => {
                self.has_ended_run = true;
                return Some(Action::EndRun);
            }
        }
        None
    }

    fn show(&mut self, view: View) {
        (self.view, self.skipped, self.shows_help) = (view, 0, false);
    }

    /// True if nothing is to be read until a key ends that.
    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }

    /// Draws it, with the newest line that the command has printed meanwhile.
    pub fn draw(&self, (columns, rows): (u16, u16), note: &str) -> Buffer {
        let area = Rect::new(0, 0, columns, rows);
        let mut buffer = Buffer::empty(area);
        let row = |y: u16| Rect::new(0, y, columns, 1);
        let below = rows.saturating_sub(1);
        self.draw_title(&mut buffer, row(0));
        if rows > 2 {
            let view = Rect::new(0, 1, columns, rows - 3);
            self.draw_view(&mut buffer, view);
            Canvas::new(&mut buffer, row(below - 1)).line(&[(note, WARNING)]);
        }
        if rows > 1 {
            self.draw_keys(&mut buffer, row(below));
        }
        buffer
    }

    fn draw_view(&self, buffer: &mut Buffer, area: Rect) {
        let mut canvas = Canvas::new(buffer, area);
        if self.shows_help {
            for (key, what) in HELP {
                canvas.line(&[(&format!("{key:<10}"), BOLD), (what, PLAIN)]);
            }
            return;
        }
        let shown = Shown {
            watched: &self.watched,
            has_chart: !self.hides_chart,
            skipped: self.skipped,
        };
        self.view.draw(&shown, &mut canvas);
    }

    /// `throng run  2/7 trial 2  udp  load  12.0 s left`.
    fn draw_title(&self, buffer: &mut Buffer, area: Rect) {
        let mut words = vec![format!("throng {}", self.command)];
        match self.watched.newest() {
            None => words.push("waiting for the run".to_owned()),
            Some(newest) => {
                let (place, shown) = (&newest.place, &newest.shown);
                match place.of {
                    Some(of) if of > 1 => words.push(format!("{}/{of}", place.run)),
                    None if place.run > 0 => words.push(format!("run {}", place.run)),
                    _ => {}
                }
                words.push(place.name.clone());
                words.push(newest.transport_name().to_owned());
                words.push(phase(shown.phase).to_owned());
                if let Some(left) = shown.left {
                    let ns = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
                    words.push(format!("{} left", notation::seconds(ns)));
                }
            }
        }
        if self.is_frozen {
            words.insert(1, "FROZEN".to_owned());
        }
        words.retain(|word| !word.is_empty());
        buffer.set_style(area, BAR);
        Canvas::new(buffer, area).line(&[(&words.join("  "), BAR)]);
    }

    fn draw_keys(&self, buffer: &mut Buffer, area: Rect) {
        let mut parts: Vec<(String, Style)> = Vec::new();
        for view in View::ALL {
            let style = match view == self.view && !self.shows_help {
                true => BAR,
                false => PLAIN,
            };
            parts.push((format!("{} {}", view.number(), view.name()), style));
            parts.push((" ".to_owned(), PLAIN));
        }
        parts.push((" q end".to_owned(), DIM));
        parts.insert(0, ("? help  ".to_owned(), DIM));
        if self.watched.missed > 0 {
            let missed = notation::counted(self.watched.missed, "snapshot");
            // Before the rest: a narrow terminal has to show it.
            parts.insert(0, (format!("missed {missed}  "), WARNING));
        }
        let parts: Vec<(&str, Style)> = parts.iter().map(|it| (&*it.0, it.1)).collect();
        Canvas::new(buffer, area).line(&parts);
    }
}

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Before => "connecting or warming up",
        Phase::Load => "load",
        Phase::Drain => "waiting for responses",
        Phase::Ended => "ended",
    }
}

#[cfg(test)]
mod tests;
