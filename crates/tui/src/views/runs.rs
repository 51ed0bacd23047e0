//! The runs of a command that makes several: the one that goes on, and those before it.

use lab::live::{Place, RunFigures, Runs};
use measure::notation::{count, counted, latency, rate, share};
use ratatui_core::style::Style;

use crate::canvas::{BOLD, Canvas, DIM, PLAIN, WARNING};
use crate::shown::{Shown, draw_list};

/// Columns of everything but the name.
const FIGURES: u16 = 50;

/// A run in a row.
struct Row<'a> {
    place: &'a Place,
    figures: RunFigures,
    style: Style,
}

pub(crate) fn draw(shown: &Shown<'_>, canvas: &mut Canvas<'_>) {
    let runs = &shown.watched.runs;
    if !runs.are_several() {
        canvas.line(&[("the command makes one run", DIM)]);
        return;
    }
    let now = runs.newest().map(|_| Row {
        place: &runs.place,
        figures: runs.figures(),
        style: BOLD,
    });
    let rows: Vec<Row<'_>> = now.into_iter().chain(finished(runs)).collect();
    let ended = runs.unlisted + runs.finished.len() as u64;
    let of = runs.place.of.map(|of| format!(" of {}", count(of)));
    let summary = format!("{ended}{} ended", of.unwrap_or_default());
    canvas.line(&[(&summary, PLAIN)]);
    heading(canvas);
    draw_list(&rows, shown.skipped, canvas, |row, canvas| row.draw(canvas));
    if runs.unlisted > 0 {
        let unlisted = counted(runs.unlisted, "earlier run");
        canvas.line(&[(&format!("{unlisted} not listed"), DIM)]);
    }
}

/// The newest of the runs that have ended, below the figures of the one that goes on.
pub(super) fn draw_newest(runs: &Runs, most: usize, canvas: &mut Canvas<'_>) {
    if runs.finished.is_empty() {
        return;
    }
    canvas.blank();
    heading(canvas);
    finished(runs).take(most).for_each(|row| row.draw(canvas));
}

fn finished(runs: &Runs) -> impl Iterator<Item = Row<'_>> {
    runs.finished.iter().rev().map(|it| Row {
        place: &it.place,
        figures: it.figures,
        style: if it.figures.lost > 0 { WARNING } else { PLAIN },
    })
}

fn heading(canvas: &mut Canvas<'_>) {
    let words = ["run", "responses", "p99", "lost", "limit"];
    let line = columns(words.map(str::to_owned), canvas);
    canvas.line(&[(&line, DIM)]);
}

impl Row<'_> {
    fn draw(&self, canvas: &mut Canvas<'_>) {
        let (place, figures) = (self.place, self.figures);
        let measured = |text: String| match figures.offered {
            0 => "-".to_owned(),
            _ => text,
        };
        let p99 = figures.p99_ns.map(|ns| latency(ns as f64));
        let cells = [
            place.title(),
            measured(rate(figures.responses_qps)),
            p99.unwrap_or_else(|| "-".to_owned()),
            measured(share(figures.lost, figures.offered)),
            figures.limit.unwrap_or("-").to_owned(),
        ];
        let line = columns(cells, canvas);
        canvas.line(&[(&line, self.style)]);
    }
}

fn columns([name, rate, p99, lost, limit]: [String; 5], canvas: &Canvas<'_>) -> String {
    let room = usize::from(canvas.columns().saturating_sub(FIGURES).clamp(10, 48));
    let name: String = name.chars().take(room).collect();
    format!("{name:<room$} {rate:>14} {p99:>10} {lost:>9} {limit}")
}
