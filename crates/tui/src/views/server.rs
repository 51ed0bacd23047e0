//! What is observed beside the run: the newest value of each series, and how fast counters grow.

use lab::live::{Scrape, ShownSeries};
use measure::notation::figure;
use ratatui_core::style::Style;

use crate::canvas::{BOLD, Canvas, DIM, PLAIN, WARNING};
use crate::shown::{Shown, draw_list};

pub(crate) fn draw(shown: &Shown<'_>, canvas: &mut Canvas<'_>) {
    let sources = shown.watched.runs.sums.scrapes.sources();
    if sources.len() == 0 {
        canvas.line(&[("nothing is observed (--observe)", DIM)]);
        return;
    }
    let rows: Vec<(String, Style)> = sources.flat_map(rows).collect();
    draw_list(&rows, shown.skipped, canvas, |(text, style), canvas| {
        canvas.line(&[(text, *style)]);
    });
}

fn rows(scrape: &Scrape) -> Vec<(String, Style)> {
    let newest = &scrape.newest;
    let (profile, source) = (&newest.profile, &newest.source);
    let title = match newest.has_failed {
        true => (
            format!("{profile} {source}: the newest scrape failed"),
            WARNING,
        ),
        false => (format!("{profile} {source}"), BOLD),
    };
    let series = scrape.series().map(|it| (line(it), PLAIN));
    [title].into_iter().chain(series).collect()
}

/// `  cpu  12.5 seconds  0.98 a second`.
fn line(series: ShownSeries<'_>) -> String {
    let value = series.value.map_or_else(|| "-".to_owned(), figure);
    let growth = series.per_second;
    let growth = growth.map_or_else(String::new, |it| format!("  {} a second", figure(it)));
    format!("  {:<28} {value:>16} {}{growth}", series.name, series.unit)
}
