//! What all views have in common.

use measure::Histogram;
use measure::notation::latency;

use crate::canvas::{Canvas, DIM};
use crate::watched::Watched;

/// What views are drawn from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<'a> {
    pub(crate) watched: &'a Watched,
    pub(crate) has_chart: bool,
    /// Rows of a list that are above the screen.
    pub(crate) skipped: usize,
}

/// `12.34 ms`, or `-` without values.
pub(crate) fn percentile(histogram: &Histogram, p: f64) -> String {
    let value = histogram.percentile(p);
    value.map_or_else(|| "-".to_owned(), |ns| latency(ns as f64))
}

/// Draws as many rows of a list as fit, and says how many there are below.
pub(crate) fn draw_list<T>(
    rows: &[T],
    skipped: usize,
    canvas: &mut Canvas<'_>,
    draw: impl Fn(&T, &mut Canvas<'_>),
) {
    let room = usize::from(canvas.rows_left());
    // The end of the list stays on the screen.
    let skipped = skipped.min(rows.len().saturating_sub(room.saturating_sub(1).max(1)));
    let rows = &rows[skipped..];
    let fits = rows.len() <= room;
    let drawn = if fits {
        rows.len()
    } else {
        room.saturating_sub(1)
    };
    rows[..drawn].iter().for_each(|row| draw(row, canvas));
    if !fits {
        let below = format!("{} more below (Down)", rows.len() - drawn);
        canvas.line(&[(&below, DIM)]);
    }
}
