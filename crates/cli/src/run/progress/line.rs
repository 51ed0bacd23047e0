//! The progress line of a terminal: a bar, the time left and figures, as far as they fit.

use std::time::Duration;

use lab::live::Place;
use measure::notation;

use crate::terminal::{Look, Part};

/// Most cells of the bar.
const BAR_CELLS_MAX: usize = 30;
/// A shorter bar shows nothing that the percentage does not.
const BAR_CELLS_MIN: usize = 10;
/// What takes as long has its time left in plain lines.
const LONG_NS: u64 = 60_000_000_000;
/// Between two pieces.
const GAP: &str = "  ";

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Extent {
    /// Its end is known.
    Known { share: f64, left_ns: Option<u64> },
    /// A signal ends it.
    Endless { elapsed_ns: u64 },
}

impl Extent {
    /// Of a run that lasts until `end_ns`.
    pub(super) fn of_time(elapsed_ns: u64, end_ns: u64) -> Extent {
        Extent::Known {
            share: elapsed_ns.min(end_ns) as f64 / end_ns.max(1) as f64,
            left_ns: Some(end_ns.saturating_sub(elapsed_ns)),
        }
    }

    /// Of a run that ends with its last query; the time left is that of its mean rate so far.
    pub(super) fn of_queries(done: u64, most: u64, elapsed_ns: u64) -> Extent {
        let left = most.saturating_sub(done);
        let left_ns = (done > 0).then(|| left as f64 * (elapsed_ns as f64 / done as f64));
        Extent::Known {
            share: done.min(most) as f64 / most.max(1) as f64,
            left_ns: left_ns.map(|ns| ns as u64),
        }
    }

    /// What a plain line of a long run ends with: `  (12 min left)`.
    pub(super) fn left(self, elapsed_ns: u64) -> String {
        match self {
            Extent::Known {
                left_ns: Some(left),
                ..
            } if left > 0 && elapsed_ns.saturating_add(left) >= LONG_NS => {
                format!("  ({} left)", notation::about(Duration::from_nanos(left)))
            }
            Extent::Known { .. } | Extent::Endless { .. } => String::new(),
        }
    }

    /// Of all runs of a command instead, if the number of them is known: each takes about as long.
    pub(super) fn of_all(self, elapsed_ns: u64, place: &Place) -> Extent {
        match (self, place.of) {
            (Extent::Known { share, left_ns }, Some(of)) if of > 1 => {
                let further = of.saturating_sub(place.run);
                let left_ns = left_ns.map(|left| {
                    let each = elapsed_ns.saturating_add(left);
                    left.saturating_add(each.saturating_mul(further))
                });
                let done = place.run.saturating_sub(1) as f64 + share;
                let share = (done / of as f64).min(1.0);
                Extent::Known { share, left_ns }
            }
            (alone, _) => alone,
        }
    }
}

/// What is left out first where the line is too short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Always,
    Failures,
    Left,
    Position,
    Percentile,
    Bar,
    Remark,
}

/// A piece of the line.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    rank: Rank,
    part: Part,
}

impl Piece {
    fn new(rank: Rank, text: String, look: Look) -> Piece {
        let part = Part::new(text, look);
        Piece { rank, part }
    }

    /// What the line is about.
    pub(super) fn first(text: String) -> Piece {
        Piece::new(Rank::Always, text, Look::Plain)
    }

    pub(super) fn percentile(text: String) -> Piece {
        Piece::new(Rank::Percentile, text, Look::Plain)
    }

    /// `lost 3`.
    pub(super) fn failures(word: &str, count: u64) -> Piece {
        let look = match count {
            0 => Look::Plain,
            _ => Look::Warning,
        };
        let text = format!("{word} {}", notation::count(count));
        Piece::new(Rank::Failures, text, look)
    }

    /// Which run of a command it is, where the command makes several: `run 2/7`, or `run 2` where
    /// it is not known how many.
    pub(super) fn position(place: &Place) -> Vec<Piece> {
        let text = match place.of {
            Some(of) if of > 1 => Some(format!("run {}/{of}", place.run)),
            None if place.run > 0 => Some(format!("run {}", place.run)),
            _ => None,
        };
        let piece = text.map(|text| Piece::new(Rank::Position, text, Look::Plain));
        Vec::from_iter(piece)
    }

    /// What the figures mean so far.
    pub(super) fn remark(text: String) -> Piece {
        Piece::new(Rank::Remark, text, Look::Warning)
    }

    fn columns(&self) -> usize {
        self.part.text.chars().count()
    }
}

/// The line for a terminal of that width: what matters least is left out until the rest fits.
pub(super) fn fitted(extent: &Extent, pieces: Vec<Piece>, columns: u16) -> Vec<Part> {
    // The last column is left free: some terminals wrap there.
    let room = usize::from(columns).saturating_sub(1);
    let mut all = begin(extent);
    all.extend(pieces);
    let mut bar_cells = match extent {
        Extent::Known { .. } => BAR_CELLS_MIN,
        Extent::Endless { .. } => 0,
    };
    let width = |all: &[Piece], cells: usize| {
        let texts: usize = all.iter().map(|piece| piece.columns() + GAP.len()).sum();
        let bar = if cells == 0 { 0 } else { cells + 1 };
        (texts + bar).saturating_sub(GAP.len())
    };
    while width(&all, bar_cells) > room {
        let least = all.iter().map(|piece| piece.rank).max();
        match least.filter(|rank| *rank > Rank::Always) {
            Some(rank) if rank > Rank::Bar || bar_cells == 0 => {
                all.retain(|piece| piece.rank != rank);
            }
            _ if bar_cells > 0 => bar_cells = 0,
            _ => break,
        }
    }
    if bar_cells > 0 {
        let free = room - width(&all, bar_cells);
        bar_cells = (bar_cells + free).min(BAR_CELLS_MAX);
    }
    let mut parts = bar(extent, bar_cells);
    for (number, piece) in all.into_iter().enumerate() {
        if number > 0 {
            parts.push(Part::plain(GAP));
        }
        parts.push(piece.part);
    }
    parts
}

/// How far the run is, in words.
fn begin(extent: &Extent) -> Vec<Piece> {
    match *extent {
        Extent::Known { share, left_ns } => {
            let percent = format!("{:>3} %", (share * 100.0) as u64);
            let left =
                left_ns.map(|ns| format!("{} left", notation::about(Duration::from_nanos(ns))));
            let left = left.map(|text| Piece::new(Rank::Left, text, Look::Dim));
            let percent = Piece::new(Rank::Always, percent, Look::Plain);
            [percent].into_iter().chain(left).collect()
        }
        Extent::Endless { elapsed_ns } => {
            vec![Piece::new(
                Rank::Left,
                notation::about(Duration::from_nanos(elapsed_ns)),
                Look::Dim,
            )]
        }
    }
}

fn bar(extent: &Extent, cells: usize) -> Vec<Part> {
    let share = match *extent {
        Extent::Known { share, .. } if cells > 0 => share,
        _ => return Vec::new(),
    };
    let filled = ((share * cells as f64) as usize).min(cells);
    vec![
        Part::new("█".repeat(filled), Look::Good),
        Part::new("░".repeat(cells - filled), Look::Dim),
        Part::plain(" "),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn pieces() -> Vec<Piece> {
        vec![
            Piece::first("15,325 qps".to_owned()),
            Piece::percentile("p99 12.34 ms".to_owned()),
            Piece::failures("lost", 1_234),
            Piece::remark("limit so far: server".to_owned()),
        ]
    }

    fn text(extent: Extent, columns: u16) -> String {
        let parts = fitted(&extent, pieces(), columns);
        parts.into_iter().map(|part| part.text).collect()
    }

    #[test]
    fn line_fits_terminals_of_any_width_and_keeps_what_matters() {
        let half = Extent::of_time(30 * SECOND, 60 * SECOND);
        for columns in 30..=200 {
            let line = text(half, columns);
            assert!(line.chars().count() < usize::from(columns), "{line:?}");
            assert!(line.contains(" 50 %  "), "{line:?}");
            assert!(line.contains("15,325 qps"), "{line:?}");
        }
        assert_eq!(text(half, 40), " 50 %  15,325 qps  lost 1,234");
        let wide = "███████████████░░░░░░░░░░░░░░░  50 %  30 s left  15,325 qps  p99 12.34 ms  \
                    lost 1,234  limit so far: server";
        assert_eq!(text(half, 120), wide);
        let usual = text(half, 80);
        assert!(usual.contains('█') && usual.contains("p99"), "{usual}");
        assert!(!usual.contains("limit"), "{usual}");
    }

    #[test]
    fn run_without_an_end_has_its_time_and_no_bar() {
        let line = text(
            Extent::Endless {
                elapsed_ns: 7_500 * SECOND,
            },
            120,
        );
        assert!(line.starts_with("2 h 5 min  15,325 qps"), "{line}");
    }

    #[test]
    fn time_left_of_a_number_of_queries_is_that_of_the_mean_rate() {
        let extent = Extent::of_queries(100, 1_000, 10 * SECOND);
        let line = text(extent, 120);
        assert!(line.contains(" 10 %  90 s left"), "{line}");
        let none = Extent::of_queries(0, 1_000, SECOND);
        assert_eq!(
            none,
            Extent::Known {
                share: 0.0,
                left_ns: None
            }
        );
    }

    #[test]
    fn several_runs_are_numbered() {
        let place = |run, of| Place::new("", run, of);
        assert!(Piece::position(&place(1, Some(1))).is_empty());
        assert!(Piece::position(&place(0, None)).is_empty());
        for (of, expected) in [(Some(7), "run 2/7"), (None, "run 2")] {
            let [piece] = &Piece::position(&place(2, of))[..] else {
                panic!("no position")
            };
            assert_eq!(piece.part.text, expected);
        }
    }

    #[test]
    fn plain_line_of_a_long_run_has_its_time_left() {
        let left = |elapsed, all| Extent::of_time(elapsed * SECOND, all * SECOND);
        let left = |elapsed, all| left(elapsed, all).left(elapsed * SECOND);
        assert_eq!(left(60, 600), "  (9 min left)");
        assert_eq!(left(600, 600), "");
        assert_eq!(left(5, 10), "");
    }

    #[test]
    fn time_left_of_several_runs_is_that_of_all() {
        let place = Place::new("", 2, Some(4));
        let run = Extent::of_time(5 * SECOND, 10 * SECOND);
        let line = text(run.of_all(5 * SECOND, &place), 120);
        assert!(line.contains(" 37 %  25 s left"), "{line}");
        assert_eq!(run.of_all(5 * SECOND, &Place::default()), run);
    }
}
