//! What is observed beside the run: the newest value of each series, and how fast counters grow.

use lab::live::{NewestSample, NewestScrape};
use measure::notation::decimal;
use measure::observation::{Sample, SeriesKind};
use ratatui_core::style::Style;

use crate::canvas::{BOLD, Canvas, DIM, PLAIN, WARNING};
use crate::shown::{Shown, draw_list};
use crate::watched::Scrapes;

pub(crate) fn draw(shown: &Shown<'_>, canvas: &mut Canvas<'_>) {
    let scrapes = &shown.watched.scrapes;
    if scrapes.is_empty() {
        canvas.line(&[("nothing is observed (--observe)", DIM)]);
        return;
    }
    let rows: Vec<(String, Style)> = scrapes.values().flat_map(rows).collect();
    draw_list(&rows, shown.skipped, canvas, |(text, style), canvas| {
        canvas.line(&[(text, *style)]);
    });
}

fn rows(scrapes: &Scrapes) -> Vec<(String, Style)> {
    let newest = &scrapes.newest;
    let (profile, source) = (&newest.profile, &newest.source);
    let title = match newest.has_failed {
        true => (
            format!("{profile} {source}: the newest scrape failed"),
            WARNING,
        ),
        false => (format!("{profile} {source}"), BOLD),
    };
    let samples = newest.samples.iter().enumerate();
    let samples = samples.map(|(at, sample)| {
        let former = scrapes.former.as_deref();
        (line(sample, growth(at, newest, former)), PLAIN)
    });
    [title].into_iter().chain(samples).collect()
}

/// `  cpu  12.5 seconds  0.98 a second`.
fn line(sample: &NewestSample, growth: Option<f64>) -> String {
    let series = &sample.series;
    let value = match sample.sample {
        Sample::Value(value) | Sample::Reset { reset: value } => number(value),
        Sample::Without(_) => "-".to_owned(),
    };
    let growth = growth.map_or_else(String::new, |it| format!("  {} a second", number(it)));
    format!("  {:<28} {value:>16} {}{growth}", series.name, series.unit)
}

/// How much a counter has grown a second since the former scrape; none where it began again, or a
/// scrape has no value.
fn growth(at: usize, newest: &NewestScrape, former: Option<&NewestScrape>) -> Option<f64> {
    let (former, sample) = (former?, newest.samples.get(at)?);
    let before = former.samples.get(at)?;
    let is_counter = sample.series.kind == SeriesKind::Counter;
    let seconds = newest.at.checked_sub(former.at)?.as_secs_f64();
    match (sample.sample, before.sample) {
        (Sample::Value(now), Sample::Value(then) | Sample::Reset { reset: then })
            if is_counter && before.series == sample.series && seconds > 0.0 =>
        {
            Some((now - then) / seconds)
        }
        _ => None,
    }
}

fn number(value: f64) -> String {
    match value.fract() == 0.0 || value.abs() >= 1e6 {
        true => decimal(value, 0),
        false => decimal(value, 3),
    }
}
