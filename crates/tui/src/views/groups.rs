//! Groups of clients: each with what its newest interval had, and what it lost in all.

use measure::Interval;
use measure::notation::{count, rate, share};

use crate::canvas::{Canvas, DIM, PLAIN, WARNING};
use crate::shown::{Shown, draw_list, percentile};

/// A group: its name, its newest interval and all of them.
struct Row<'a> {
    name: &'a str,
    newest: Option<&'a Interval>,
    total: &'a Interval,
}

pub(crate) fn draw(shown: &Shown<'_>, canvas: &mut Canvas<'_>) {
    let sums = &shown.watched.runs.sums;
    if sums.groups.is_empty() {
        canvas.line(&[(
            "the run has one group of clients, or none has ended an interval",
            DIM,
        )]);
        return;
    }
    let newest = |name: &str| {
        let groups = shown.watched.newest().map(|it| &it.shown.groups);
        let found = groups.and_then(|all| all.iter().find(|group| group.name == name));
        found.map(|group| &*group.interval)
    };
    let rows = sums.groups.iter().map(|(name, total)| Row {
        name,
        newest: newest(name),
        total,
    });
    let rows: Vec<Row<'_>> = rows.collect();
    canvas.line(&[(
        &columns(["group", "responses", "p99", "lost", "share"]),
        DIM,
    )]);
    draw_list(&rows, shown.skipped, canvas, |row, canvas| {
        let (counts, lost) = (&row.total.counts, row.total.counts.lost());
        let now = row.newest.map(|it| it.per_second(it.counts.responses));
        let line = columns([
            row.name,
            &now.map_or_else(|| "-".to_owned(), rate),
            &percentile(&row.total.distributions.latency, 0.99),
            &count(lost),
            &share(lost, counts.offered),
        ]);
        canvas.line(&[(&line, if lost > 0 { WARNING } else { PLAIN })]);
    });
    if sums.group_intervals_dropped > 0 {
        canvas.line(&[("there are more groups than are shown", WARNING)]);
    }
}

fn columns([name, rate, p99, lost, share]: [&str; 5]) -> String {
    let name: String = name.chars().take(16).collect();
    format!("{name:<16} {rate:>15} {p99:>10} {lost:>9} {share:>9}")
}
