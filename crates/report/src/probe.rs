//! What a few queries to one server showed, as text and as JSON.

use std::fmt::Write;

use measure::ProbeStatistics;
use measure::notation::{count, counted, fraction, latency};
use measure::probe::Times;

use crate::table::{Align, Table};

/// The figures for people, ending in a line break.
pub fn text(statistics: &ProbeStatistics) -> String {
    let received = counted(statistics.received, "response");
    let mut text = format!(
        "{} sent, {received}, {} lost ({})\n",
        counted(statistics.sent, "query"),
        count(statistics.lost),
        fraction(statistics.loss())
    );
    let mut notes = Vec::new();
    for (what, times) in &statistics.remarks {
        notes.push(format!("{what} {}", count(*times)));
    }
    if statistics.truncated > 0 {
        notes.push(format!("truncated {}", count(statistics.truncated)));
    }
    let mut rcodes = Vec::new();
    for (name, times) in &statistics.rcodes {
        rcodes.push(format!("{name} {}", count(*times)));
    }
    for (name, words) in [("RCODEs", rcodes), ("of note", notes)] {
        if !words.is_empty() {
            let _ = writeln!(text, "{name}: {}", words.join(", "));
        }
    }
    write_times(statistics, &mut text);
    text
}

fn write_times(statistics: &ProbeStatistics, text: &mut String) {
    let response = statistics.time.map(|times| ("response".to_owned(), times));
    let rows: Vec<(String, Times)> = (response.into_iter())
        .chain(statistics.set_up.iter().cloned())
        .collect();
    if rows.is_empty() {
        return;
    }
    let mut align = [Align::Right; 8];
    align[0] = Align::Left;
    let mut table = Table::new(align);
    table.row(
        [
            "time", "min", "mean", "median", "p95", "max", "stddev", "of",
        ]
        .map(str::to_owned),
    );
    for (name, times) in rows {
        table.row([
            name,
            latency(times.min_ns as f64),
            latency(times.mean_ns),
            latency(times.median_ns as f64),
            latency(times.p95_ns as f64),
            latency(times.max_ns as f64),
            latency(times.stddev_ns),
            count(times.count),
        ]);
    }
    text.push('\n');
    table.write_to(text);
}

#[cfg(test)]
mod tests {
    use measure::{ConnectionTimes, Interval};

    use super::*;

    #[test]
    fn losses_and_times_are_in_the_text() {
        let mut total = Interval::default();
        (total.counts.offered, total.counts.sent) = (2, 2);
        (total.counts.responses, total.counts.timeouts) = (1, 1);
        total.counts.rcodes.record(0);
        total.distributions.service.record(2_000_000);
        let mut connections = ConnectionTimes::default();
        connections.tcp_connect.record(1_000_000);
        let text = text(&ProbeStatistics::new(&total, &connections));
        let first = "2 queries sent, 1 response, 1 lost (50.00 %)\n";
        assert!(text.starts_with(first), "{text}");
        assert!(
            text.contains("RCODEs: NOERROR 1\nof note: timed out 1\n"),
            "{text}"
        );
        assert!(text.contains("  response     2.000 ms  "), "{text}");
        assert!(text.contains("  TCP connect  1.000 ms  "), "{text}");
    }

    #[test]
    fn nothing_measured_is_a_line() {
        let nothing = ProbeStatistics::new(&Interval::default(), &ConnectionTimes::default());
        assert_eq!(
            text(&nothing),
            "0 queries sent, 0 responses, 0 lost (0 %)\n"
        );
    }
}
