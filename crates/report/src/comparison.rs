//! Transports compared, as text, JSON and CSV: the conclusion, a table of the transports, the cost
//! of each step, and what limited each run.

use std::fmt::Write;

use measure::Comparison;
use measure::Limit;
use measure::comparison::{Change, ComparedRun, Contender, Cost, Figures};
use measure::notation::{count, counted, decimal, fraction, latency, per_second, percent, rate};

use crate::summary::indented;
use crate::table::{Align, Table, write_columns};
use crate::text;

mod conclusion;
mod csv;
#[cfg(test)]
mod tests;

pub use csv::COLUMNS as CSV_COLUMNS;

/// The comparison as CSV, ending in a line break.
pub fn csv(comparison: &Comparison) -> String {
    csv::render(comparison)
}

/// Transports that stand side by side; there are six.
const ACROSS: usize = 6;

/// The comparison for people, ending in a line break.
pub fn text(comparison: &Comparison) -> String {
    let mut text = String::new();
    for line in conclusion::lines(comparison) {
        let _ = writeln!(text, "{line}");
    }
    let _ = write!(text, "\n{}", header(comparison));
    let _ = write!(text, "\nTransports\n{}", transports(comparison));
    if !comparison.costs.is_empty() {
        let _ = write!(text, "\nCosts\n{}", costs(comparison));
    }
    let _ = write!(text, "\nVerdicts\n{}", verdicts(comparison));
    if !comparison.notes.is_empty() {
        text.push('\n');
    }
    for note in &comparison.notes {
        for line in indented("note: ", 6, note, usize::MAX) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// The comparison as JSON, ending in a line break.
pub fn json(comparison: &Comparison) -> String {
    let mut json = comparison.to_json_pretty();
    json.push('\n');
    json
}

fn header(comparison: &Comparison) -> String {
    let scenario = &comparison.scenario;
    let names: Vec<String> = comparison
        .transports
        .iter()
        .map(|each| each.transport.to_string())
        .collect();
    let each = comparison.transports.iter().map(|it| it.runs.len() as u64);
    let kind = match comparison.self_test {
        true => "self-test, ",
        false => "",
    };
    let mut text = format!(
        "throng {}: {kind}{} compared, {} each in turn\n",
        comparison.throng_version,
        names.join(", "),
        counted(each.max().unwrap_or(0), "run"),
    );
    let mut table = Table::new([Align::Left, Align::Left]);
    let clients = counted(scenario.clients, "client");
    let workers = counted(scenario.workers, "worker");
    let load = text::load(&scenario.arrival);
    table.row(["load".into(), format!("{load}; {clients}, {workers}")]);
    table.row(["questions".into(), text::questions::questions(scenario)]);
    table.write_to(&mut text);
    text
}

/// One value of a contender as a cell.
pub(crate) type Value = fn(&Figures) -> Option<String>;

/// The rows of the table: name, value, and whether runs of one transport may differ in it.
pub(crate) const ROWS: [(&str, Value, bool); 9] = [
    ("achieved", |it| Some(achieved(it)), true),
    ("lost", lost, false),
    ("mean latency", |it| it.latency_mean_ns.map(latency), true),
    ("p50 latency", |it| it.latency_p50_ns.map(latency), true),
    ("p95 latency", |it| it.latency_p95_ns.map(latency), true),
    ("p99 latency", |it| it.latency_p99_ns.map(latency), true),
    (
        "handshakes a second",
        |it| it.handshakes_per_second.map(per_second),
        false,
    ),
    (
        "TCP connect, p50",
        |it| it.tcp_connect_p50_ns.map(latency),
        false,
    ),
    (
        "full handshake, p50",
        |it| it.handshake_p50_ns.map(latency),
        false,
    ),
];

/// The rate; where all runs were left out, what the target can do at least.
pub(crate) fn achieved(figures: &Figures) -> String {
    let qps = rate(figures.achieved_qps);
    match figures.achieved_is_at_least {
        true => format!("at least {qps}"),
        false => qps,
    }
}

/// The share of queries without response; none where all runs were left out.
pub(crate) fn lost(figures: &Figures) -> Option<String> {
    (!figures.achieved_is_at_least).then(|| fraction(figures.lost_share))
}

fn transports(comparison: &Comparison) -> String {
    let contenders = &comparison.transports;
    let mut align = [Align::Right; ACROSS + 1];
    align[0] = Align::Left;
    let mut table = Table::new(align);
    table.row(across("", contenders, |it| it.transport.to_string()));
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".into());
    let has_spread = contenders.iter().any(|it| it.runs.len() > 1);
    for (name, value, may_differ) in ROWS {
        if !contenders.iter().any(|it| value(&it.median).is_some()) {
            continue;
        }
        table.row(across(name, contenders, |it| or_dash(value(&it.median))));
        if has_spread && may_differ {
            let of_runs = |it: &Figures| value(it).filter(|_| !it.achieved_is_at_least);
            table.row(across("  lowest", contenders, |it| {
                or_dash(of_runs(&it.min))
            }));
            table.row(across("  highest", contenders, |it| {
                or_dash(of_runs(&it.max))
            }));
        }
        if name == "achieved"
            && !comparison.has_rate()
            && let Some(first) = contenders.first()
        {
            let of_first = |it: &Contender| {
                let whole = first.median.achieved_qps;
                let share = it.median.achieved_qps / whole;
                let is_known = |it: &Contender| !it.median.achieved_is_at_least;
                if whole > 0.0 && is_known(first) && is_known(it) {
                    percent(share)
                } else {
                    "-".into()
                }
            };
            let name = format!("  of {}", first.transport);
            table.row(across(&name, contenders, of_first));
        }
    }
    table.row(across("limit", contenders, limits));
    let mut text = String::new();
    table.write_to(&mut text);
    if has_spread {
        text.push_str("  figures are medians of the runs; lost: of all of their queries\n");
    }
    text
}

/// A row with a cell for each transport.
fn across(
    name: &str,
    contenders: &[Contender],
    cell: impl Fn(&Contender) -> String,
) -> [String; ACROSS + 1] {
    let mut row: [String; ACROSS + 1] = Default::default();
    row[0] = name.into();
    for (place, contender) in row[1..].iter_mut().zip(contenders) {
        *place = cell(contender);
    }
    row
}

/// `server`, or `2 server, 1 generator` where the runs differ.
pub(crate) fn limits(contender: &Contender) -> String {
    let groups = by_limit(contender);
    match groups.as_slice() {
        [(run, _)] => run.limit.name().into(),
        several => {
            let each = several
                .iter()
                .map(|(run, number)| format!("{} {}", count(*number as u64), run.limit.name()));
            each.collect::<Vec<String>>().join(", ")
        }
    }
}

/// The first run of each limit with the number of such runs, in the order in which they came up.
fn by_limit(contender: &Contender) -> Vec<(&ComparedRun, usize)> {
    let mut seen: Vec<Limit> = Vec::new();
    let mut groups = Vec::new();
    for run in &contender.runs {
        if !seen.contains(&run.limit) {
            seen.push(run.limit);
            groups.push((run, contender.limited_by(run.limit)));
        }
    }
    groups
}

fn costs(comparison: &Comparison) -> String {
    let mut rows = Vec::new();
    for cost in &comparison.costs {
        let none = String::new;
        let step = format!("{} -> {}", cost.from, cost.to);
        rows.push([step, none(), none(), none()]);
        let change = cost.achieved_qps.as_ref();
        let qps = change.map_or_else(|| "-".into(), |it| signed(it.difference, rate));
        let share = change.map_or_else(none, percent_of);
        rows.push(["  achieved".into(), qps, share, servers(cost)]);
        for (name, change) in [
            ("  mean latency", cost.latency_mean_ns),
            ("  p50 latency", cost.latency_p50_ns),
            ("  p95 latency", cost.latency_p95_ns),
            ("  p99 latency", cost.latency_p99_ns),
        ] {
            if let Some(change) = change {
                let difference = signed(change.difference, latency);
                rows.push([name.into(), difference, percent_of(&change), none()]);
            }
        }
    }
    with_sentences(
        [Align::Left, Align::Right, Align::Right, Align::Left],
        &rows,
    )
}

/// Rows whose last cells are sentences: long ones go on in the next line, below their beginning.
fn with_sentences<const COLUMNS: usize>(
    align: [Align; COLUMNS],
    rows: &[[String; COLUMNS]],
) -> String {
    let marked = rows.iter().map(|row| {
        let mut row = row.clone();
        row[COLUMNS - 1] = "|".into();
        row
    });
    let mut starts = String::new();
    write_columns(&mut starts, &align, &marked.collect::<Vec<_>>());
    let mut text = String::new();
    for (start, row) in starts.lines().zip(rows) {
        let start = start.trim_end_matches('|');
        let sentence = &row[COLUMNS - 1];
        if sentence.is_empty() {
            let _ = writeln!(text, "{}", start.trim_end());
        }
        for line in indented(start, start.chars().count(), sentence, usize::MAX) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// The provisioning factor, with what makes it doubtful.
pub(crate) fn servers(cost: &Cost) -> String {
    let mut words = match cost.servers {
        Some(factor) => format!("{} times the servers for the same rate", decimal(factor, 2)),
        None => "no factor".into(),
    };
    if let Some(doubt) = &cost.doubt {
        let joint = if cost.servers.is_some() {
            ", in doubt"
        } else {
            ""
        };
        let _ = write!(words, "{joint}: {doubt}");
    }
    if cost.servers.is_some() && cost.ranges_overlap == Some(true) {
        words.push_str("; the runs do not tell them apart");
    }
    words
}

pub(crate) fn percent_of(change: &Change) -> String {
    change.percent.map_or_else(String::new, |percent| {
        signed(percent, |size| format!("{size:.1} %"))
    })
}

/// A difference with its sign, the size as `words` writes it.
pub(crate) fn signed(difference: f64, words: impl Fn(f64) -> String) -> String {
    let sign = match difference {
        less if less < 0.0 => "-",
        more if more > 0.0 => "+",
        _ => "",
    };
    format!("{sign}{}", words(difference.abs()))
}

fn verdicts(comparison: &Comparison) -> String {
    let mut rows = Vec::new();
    for contender in &comparison.transports {
        for (run, number) in by_limit(contender) {
            let all = counted(contender.runs.len() as u64, "run");
            rows.push([
                contender.transport.to_string(),
                run.limit.name().into(),
                format!("{number} of {all}"),
                run.evidence.clone(),
            ]);
        }
    }
    with_sentences([Align::Left; 4], &rows)
}
