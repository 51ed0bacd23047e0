//! How the run goes: rate, losses, latency, RCODEs, and charts of the newest intervals.

use measure::Interval;
use measure::notation::{count, decimal, latency, rate, share};
use ratatui_core::style::Style;

use crate::canvas::{BAD, CHART, Canvas, DIM, GOOD, PLAIN, WARNING};
use crate::shown::{Shown, percentile};
use crate::views::runs;
use crate::watched::Watched;

/// Most RCODEs that are shown: the most frequent ones.
const RCODES_MAX: usize = 8;
/// Most runs before this one that are shown here; the view of runs has all of them.
const RUNS_MAX: usize = 3;
/// Rows of a chart.
const CHART_ROWS: u16 = 5;

pub(crate) fn draw(shown: &Shown<'_>, canvas: &mut Canvas<'_>) {
    let watched = shown.watched;
    bars(watched, canvas);
    match (&watched.interval, watched.total()) {
        (Some(newest), Some(total)) => {
            figures(newest, total, canvas);
            rcodes(total, canvas);
        }
        _ => canvas.line(&[("no interval has ended yet", DIM)]),
    }
    runs::draw_newest(&watched.runs, RUNS_MAX, canvas);
    if shown.has_chart {
        charts(shown, canvas);
    }
}

/// How far all runs are, if it is known how many there will be, and how far this one is.
fn bars(watched: &Watched, canvas: &mut Canvas<'_>) {
    let runs = &watched.runs;
    let all = runs.share_of_all().filter(|_| runs.are_several());
    let name = match runs.are_several() {
        true => "this run",
        false => "",
    };
    for (name, share) in [("all runs", all), (name, runs.share())] {
        if let Some(share) = share {
            canvas.bar(name, share, GOOD);
        }
    }
}

fn figures(newest: &Interval, total: &Interval, canvas: &mut Canvas<'_>) {
    canvas.figure("", &["newest interval", "whole run"], DIM);
    let rates = |interval: &Interval, value| rate(interval.per_second(value));
    canvas.figure(
        "responses",
        &[
            &rates(newest, newest.counts.responses),
            &rates(total, total.counts.responses),
            &count(total.counts.responses),
        ],
        PLAIN,
    );
    canvas.figure(
        "sent",
        &[
            &rates(newest, newest.counts.sent),
            &rates(total, total.counts.sent),
            &count(total.counts.sent),
        ],
        PLAIN,
    );
    let answered = share(total.counts.responses, total.counts.offered);
    // Responses of an interval may be to queries of the one before.
    canvas.figure("answered", &["", &answered], PLAIN);
    let lost = total.counts.lost();
    canvas.figure(
        "lost",
        &[
            &count(newest.counts.lost()),
            &count(lost),
            &share(lost, total.counts.offered),
        ],
        of_losses(lost, total),
    );
    for (name, p) in [("latency p50", 0.5), ("latency p99", 0.99)] {
        let of = |it: &Interval| percentile(&it.distributions.latency, p);
        canvas.figure(name, &[&of(newest), &of(total)], PLAIN);
    }
    let late = |it: &Interval| percentile(&it.distributions.send_lateness, 0.99);
    canvas.figure("sent late p99", &[&late(newest), &late(total)], PLAIN);
    let in_flight = |it: &Interval| decimal(it.mean_in_flight(), 1);
    canvas.figure("in flight", &[&in_flight(newest), &in_flight(total)], PLAIN);
    if newest.connections_open > 0 {
        let open = count(newest.connections_open);
        canvas.figure("connections", &[&open], PLAIN);
    }
}

fn of_losses(lost: u64, total: &Interval) -> Style {
    match lost {
        0 => PLAIN,
        _ if total.counts.responses == 0 => BAD,
        _ => WARNING,
    }
}

fn rcodes(total: &Interval, canvas: &mut Canvas<'_>) {
    let responses = total.counts.responses;
    let mut all: Vec<(&str, u64)> = total.counts.rcodes.named().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words = all.iter().take(RCODES_MAX);
    let words = words.map(|(name, count)| format!("{name} {}", share(*count, responses)));
    let words: Vec<String> = words.collect();
    if !words.is_empty() {
        canvas.figure("RCODEs", &[&words.join("  ")], PLAIN);
    }
}

fn charts(shown: &Shown<'_>, canvas: &mut Canvas<'_>) {
    let points = &shown.watched.points;
    let rates: Vec<f64> = points.iter().map(|it| it.rate).collect();
    let p99s = points.iter().map(|it| it.p99_ns.unwrap_or(0) as f64);
    let p99s: Vec<f64> = p99s.collect();
    let losses: Vec<f64> = points.iter().map(|it| it.lost as f64).collect();
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let all = [
        (
            format!("responses, at most {}", rate(most(&rates))),
            rates,
            CHART,
        ),
        (
            format!("latency p99, at most {}", latency(most(&p99s))),
            p99s,
            CHART,
        ),
        (
            format!("lost, at most {}", count(most(&losses) as u64)),
            losses,
            WARNING,
        ),
    ];
    for (title, values, style) in all {
        // A title without its chart would say nothing.
        if canvas.rows_left() >= 4 && values.iter().any(|value| *value > 0.0) {
            canvas.blank();
            canvas.line(&[(&title, DIM)]);
            canvas.chart(&values, CHART_ROWS, style);
        }
    }
}
