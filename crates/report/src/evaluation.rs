//! Servers side by side, as text, Markdown, CSV and JSON.

use std::fmt::Write;

use measure::Evaluation;
use measure::evaluation::{Row, Versus};
use measure::notation::{count, fraction, latency};
use measure::probe::Times;

use crate::csv::field;
use crate::markup::literal;
use crate::table::{Align, Table};

const HEADS: [&str; 10] = [
    "server",
    "sent",
    "lost",
    "min",
    "mean",
    "median",
    "p95",
    "max",
    "RCODEs",
    "versus fastest",
];

/// The table for people, ending in a line break.
pub fn text(evaluation: &Evaluation) -> String {
    let mut text = format!("{}\n\n", headline(evaluation));
    let mut align = [Align::Right; 10];
    (align[0], align[8], align[9]) = (Align::Left, Align::Left, Align::Left);
    let mut table = Table::new(align);
    table.row(HEADS.map(str::to_owned));
    for row in &evaluation.rows {
        table.row(cells(row));
    }
    table.write_to(&mut text);
    let problems = problems(evaluation);
    if !problems.is_empty() || !evaluation.notes.is_empty() {
        text.push('\n');
    }
    for problem in problems {
        let _ = writeln!(text, "{problem}");
    }
    for note in &evaluation.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// The table in GitHub-flavoured Markdown, ending in a line break.
pub fn markdown(evaluation: &Evaluation) -> String {
    let mut text = format!(
        "{}\n\n| {} |\n",
        literal(&headline(evaluation)),
        HEADS.join(" | ")
    );
    text.push_str("|:--|--:|--:|--:|--:|--:|--:|--:|:--|:--|\n");
    for row in &evaluation.rows {
        let cells = cells(row).map(|cell| literal(&cell));
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text.push('\n');
    for problem in problems(evaluation) {
        let _ = writeln!(text, "* {}", literal(&problem));
    }
    for note in &evaluation.notes {
        let _ = writeln!(text, "* **note:** {}", literal(note));
    }
    text
}

/// Name and meaning of every column of [`csv`], in order.
pub const CSV_COLUMNS: [(&str, &str); 17] = [
    ("server", "as it was given"),
    ("address", "its address and port; empty if it has none"),
    ("problem", "why it was not asked; empty if it was"),
    ("sent", "queries sent"),
    ("received", "responses"),
    ("lost", "queries without response"),
    ("loss_percent", "share of the queries without response"),
    ("min_us", "least time from sending to response"),
    ("mean_us", "its mean"),
    ("median_us", "its median"),
    ("p95_us", "its 95th percentile"),
    ("max_us", "its greatest"),
    ("rcodes", "RCODEs with their counts, separated by blanks"),
    ("finding", "fastest, slower, cannot_tell or no_response"),
    ("difference_us", "median less that of the fastest"),
    ("difference_low_us", "lower end of its interval of 95 %"),
    ("difference_high_us", "upper end"),
];

/// The table as CSV (RFC 4180) with a header line.
pub fn csv(evaluation: &Evaluation) -> String {
    let mut csv = format!("{}\r\n", CSV_COLUMNS.map(|(name, _)| name).join(","));
    let us = |ns: Option<f64>| ns.map_or_else(String::new, |ns| format!("{:.3}", ns / 1e3));
    for row in &evaluation.rows {
        let statistics = row.statistics.as_ref();
        let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        let time =
            |part: fn(&Times) -> f64| us(statistics.and_then(|it| it.time.as_ref().map(part)));
        let (finding, difference) = finding(&row.versus);
        let [middle, low, high] = difference;
        let cells: [String; CSV_COLUMNS.len()] = [
            field(&row.server),
            field(row.address.as_deref().unwrap_or_default()),
            field(row.problem.as_deref().unwrap_or_default()),
            number(statistics.map(|it| it.sent)),
            number(statistics.map(|it| it.received)),
            number(statistics.map(|it| it.lost)),
            statistics.map_or_else(String::new, |it| format!("{:.4}", 100.0 * it.loss())),
            time(|times| times.min_ns as f64),
            time(|times| times.mean_ns),
            time(|times| times.median_ns as f64),
            time(|times| times.p95_ns as f64),
            time(|times| times.max_ns as f64),
            field(&rcodes(row)),
            finding.to_owned(),
            us(middle),
            us(low),
            us(high),
        ];
        let _ = write!(csv, "{}\r\n", cells.join(","));
    }
    csv
}

fn headline(evaluation: &Evaluation) -> String {
    let questions = evaluation.questions.join(", ");
    let servers = measure::notation::counted(evaluation.rows.len() as u64, "server");
    format!(
        "{questions} over {} from {servers}, asked in turn",
        evaluation.transport
    )
}

fn problems(evaluation: &Evaluation) -> Vec<String> {
    let rows = evaluation.rows.iter();
    let problem = |row: &Row| Some(format!("{}: {}", row.server, row.problem.as_ref()?));
    rows.filter_map(problem).collect()
}

fn cells(row: &Row) -> [String; 10] {
    let Some(statistics) = &row.statistics else {
        let mut cells = ["-"; 10].map(str::to_owned);
        cells[0].clone_from(&row.server);
        cells[9] = "not asked".into();
        return cells;
    };
    let time = |part: fn(&Times) -> f64| {
        let times = statistics.time.as_ref();
        times.map_or_else(|| "-".to_owned(), |times| latency(part(times)))
    };
    [
        row.server.clone(),
        count(statistics.sent),
        fraction(statistics.loss()),
        time(|times| times.min_ns as f64),
        time(|times| times.mean_ns),
        time(|times| times.median_ns as f64),
        time(|times| times.p95_ns as f64),
        time(|times| times.max_ns as f64),
        match rcodes(row) {
            none if none.is_empty() => "-".into(),
            some => some,
        },
        words(&row.versus),
    ]
}

fn rcodes(row: &Row) -> String {
    let all = row
        .statistics
        .iter()
        .flat_map(|statistics| &statistics.rcodes);
    let words: Vec<String> = all.map(|(name, times)| format!("{name} {times}")).collect();
    words.join(" ")
}

fn words(versus: &Versus) -> String {
    match versus {
        Versus::Fastest => "fastest".into(),
        Versus::Slower {
            difference_ns,
            low_ns,
            high_ns,
        } => format!(
            "slower by {} ({} to {})",
            latency(*difference_ns),
            latency(*low_ns),
            latency(*high_ns)
        ),
        Versus::CannotTell { difference_ns } => {
            format!("cannot tell (+{})", latency(*difference_ns))
        }
        Versus::NoResponse => "no response".into(),
    }
}

fn finding(versus: &Versus) -> (&'static str, [Option<f64>; 3]) {
    match versus {
        Versus::Fastest => ("fastest", [Some(0.0), None, None]),
        Versus::Slower {
            difference_ns,
            low_ns,
            high_ns,
        } => (
            "slower",
            [Some(*difference_ns), Some(*low_ns), Some(*high_ns)],
        ),
        Versus::CannotTell { difference_ns } => ("cannot_tell", [Some(*difference_ns), None, None]),
        Versus::NoResponse => ("no_response", [None; 3]),
    }
}

#[cfg(test)]
mod tests {
    use measure::evaluation::Asked;
    use measure::{ConnectionTimes, Interval, ProbeStatistics};

    use super::*;

    fn asked(server: &str, ms: u64) -> Asked {
        let mut total = Interval::default();
        (
            total.counts.offered,
            total.counts.sent,
            total.counts.responses,
        ) = (20, 20, 20);
        let mut times = Vec::new();
        for number in 0..20 {
            let ns = ms * 1_000_000 + number * 1_000;
            total.distributions.service.record(ns);
            total.counts.rcodes.record(0);
            times.push(ns as f64);
        }
        let statistics = ProbeStatistics::new(&total, &ConnectionTimes::default());
        Asked {
            server: server.into(),
            address: Some("192.0.2.1:53".into()),
            outcome: Ok((statistics, times)),
        }
    }

    fn example() -> Evaluation {
        let gone = Asked {
            server: "gone".into(),
            address: None,
            outcome: Err("cannot resolve, \"gone\"".into()),
        };
        let asked = vec![asked("slow|er", 5), asked("fast", 1), gone];
        Evaluation::new(vec!["a.example A".into()], "udp".into(), asked, 1)
    }

    #[test]
    fn each_server_is_a_row_and_what_could_not_be_asked_says_why() {
        let mut evaluation = example();
        evaluation.sort();
        let text = text(&evaluation);
        let rows: Vec<&str> = text.lines().skip(3).take(3).collect();
        assert!(
            rows[0].starts_with("  fast ") && rows[0].ends_with("fastest"),
            "{text}"
        );
        assert!(rows[1].contains("slower by 4.000 ms ("), "{text}");
        assert!(
            rows[2].starts_with("  gone ") && rows[2].ends_with("not asked"),
            "{text}"
        );
        assert!(text.contains("\ngone: cannot resolve"), "{text}");
    }

    #[test]
    fn markdown_and_csv_escape_what_would_end_a_cell() {
        let (markdown, csv) = (markdown(&example()), csv(&example()));
        assert!(markdown.contains("| slow\\|er | 20 |"), "{markdown}");
        assert!(
            csv.contains("gone,,\"cannot resolve, \"\"gone\"\"\","),
            "{csv}"
        );
        let columns = csv.lines().next().unwrap().split(',').count();
        assert_eq!(columns, CSV_COLUMNS.len());
    }
}
