//! The result of a run that opened connections and asked nothing.

use measure::notation::{chosen, count, counted, decimal, per_second, seconds, share};
use measure::{Interval, RunRecord};

use super::figures::{list, or_dash};
use crate::table::{Align, Table};

/// What set the pace, in words.
pub(super) fn load(record: &RunRecord) -> String {
    match record.scenario.connections.rate_max {
        Some(rate) => format!("{} connections a second, no queries", chosen(rate)),
        None => "one connection after the other, no queries".to_owned(),
    }
}

/// Asked, attempted, opened, failed; then the rate within the window.
pub(super) fn result(record: &RunRecord) -> String {
    let connections = &record.total.counts.connections;
    let attempted = connections.attempted;
    let [left, right] = [Align::Left, Align::Right];
    let mut table = Table::new([left, right, left, right, left]);
    let mut row = |label: &str, number: String, unit: &str, share: String, note: String| {
        table.row([label.into(), number, unit.into(), share, note]);
    };
    let none = String::new;
    let a_second = |rate: f64| format!("{} a second", per_second(rate));
    let of_attempted = |number: u64| share(number, attempted);
    let unit = "connections";
    if let Some(rate) = record.scenario.connections.rate_max {
        row("asked", chosen(rate), "a second", none(), none());
    }
    let attempts = a_second(record.attempts_per_second());
    row("attempted", count(attempted), unit, none(), attempts);
    let opened = record.connections_opened();
    let of = "of attempted".to_owned();
    row("opened", count(opened), unit, of_attempted(opened), of);
    let failed = connections.failed.total();
    let causes = list(connections.failed.by_cause(record.scenario.transport));
    row("failed", count(failed), unit, of_attempted(failed), causes);
    let window = format!("opened within the {} of load", seconds(record.measured_ns));
    let achieved = per_second(record.opened_per_second());
    row("achieved", achieved, "a second", none(), window);
    let clients = format!("of {}", counted(record.scenario.clients, "client"));
    let setting_up = decimal(record.setting_up_mean(), 1);
    row("in set-up, mean", setting_up, unit, none(), clients);
    let mut text = String::new();
    table.write_to(&mut text);
    text
}

/// One line on one interval, without a line break: connections attempted, opened and failed in it,
/// and how long the last step of their set-up took. `has_handshakes` is the scenario's.
pub fn connections_line(interval: &Interval, has_handshakes: bool) -> String {
    let connections = &interval.counts.connections;
    let opened = connections.usable(has_handshakes);
    let steps = interval.distributions.connections.steps();
    let last = steps.into_iter().rfind(|(_, times)| !times.is_empty());
    let times = match last {
        Some((step, times)) => format!(
            "  {step} p50 {:>8}  p99 {:>8}",
            or_dash(times.percentile(0.5)),
            or_dash(times.percentile(0.99))
        ),
        None => String::new(),
    };
    format!(
        "{:>8}  attempted {:>9}  opened {:>9}  {:>10} a second  failed {:>6}{times}",
        seconds(interval.end_ns),
        count(connections.attempted),
        count(opened),
        per_second(interval.per_second(opened)),
        count(connections.failed.total()),
    )
}
