//! The result of a run in at most [`LINES_MAX`] lines, the verdict first: what a person reads who
//! wants the answer. `text` has all of it.
//!
//! What is as expected is left out. The report concludes nothing: limit, evidence, advice and
//! remarks are those of `measure`.

use measure::notation::{count, counted, latency, per_second, rate, share};
use measure::record::EndedBy;
use measure::scenario::DriverKind;
use measure::{Histogram, RunRecord};

use crate::table::{Align, write_columns};
use crate::text::figures::{list, or_dash};
use crate::text::{scenario_facts, what_was_run};

mod remarks;
mod sparkline;
#[cfg(test)]
mod tests;

/// Lines of a result.
pub const LINES_MAX: usize = 25;
/// Columns of a line.
pub const COLUMNS_MAX: usize = 100;
/// Characters of a path in the first line.
const PATH_MAX: usize = 30;
/// Columns before what a label is about.
const INDENT: usize = 13;
/// Lines for the note of a figure.
const NOTE_LINES_MAX: usize = 2;
/// Lines for one sentence of the remarks.
const REMARK_LINES_MAX: usize = 2;

/// The result, ending in a line break. `file` is where the record is, as a shell takes it.
pub fn render(record: &RunRecord, file: Option<&str>) -> String {
    let mut lines = vec![first_line(record), String::new()];
    let verdict = &record.verdict;
    let rows = [
        ("why", verdict.evidence.first(), 3),
        ("try", verdict.advice.first(), 2),
    ];
    for (label, words, most) in rows {
        if let Some(words) = words {
            lines.extend(labelled(label, words, most));
        }
    }
    lines.extend(labelled("run", &what_was_run(record), 2));
    lines.extend(labelled("", &how(record), 2));
    lines.push(String::new());
    lines.extend(match record.asks_nothing() {
        true => connections(record),
        false => queries(record),
    });
    let last = where_the_rest_is(file);
    // Two blank lines and the last one.
    let left = LINES_MAX.saturating_sub(lines.len() + 3);
    let remarks = remarks(record, left);
    if !remarks.is_empty() {
        lines.push(String::new());
        lines.extend(remarks);
    }
    lines.extend([String::new(), last]);
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// The verdict, and the figures that go with it: a sentence to quote.
pub fn first_line(record: &RunRecord) -> String {
    let ended = match record.ended_by {
        EndedBy::Duration | EndedBy::Queries => "",
        EndedBy::Aborted => "Aborted. ",
        EndedBy::Interrupted => "Interrupted. ",
        EndedBy::TargetGone => "Target gone. ",
        EndedBy::AgentLost => "Agent lost. ",
        EndedBy::Killed => "Killed. ",
    };
    let kind = match (record.driver, record.self_test) {
        (DriverKind::Sim, _) => "SIMULATION. ",
        (_, true) => "Self-test. ",
        (_, false) => "",
    };
    let figures = match record.asks_nothing() {
        true => opened(record),
        false => answered(record),
    };
    let scenario = &record.scenario;
    let limit = record.verdict.limit.headline();
    let target = match (&scenario.server_name, record.targets.len()) {
        _ if record.self_test => "the built-in responder".to_owned(),
        (Some(name), 0) => name.clone(),
        (None, 0) => scenario.target.clone(),
        (_, several) => format!("{several} targets"),
    };
    // The more important, the longer it stays.
    let mut line = format!("{ended}{kind}{limit}");
    let parts = (0..).zip(figures);
    let separated = parts.map(|(number, it)| match number {
        0 => format!(". {it}"),
        _ => format!(", {it}"),
    });
    let target = format!("; {} to {target}", scenario.transport);
    for part in separated.chain([target]) {
        if line.chars().count() + part.chars().count() > COLUMNS_MAX {
            break;
        }
        line.push_str(&part);
    }
    line
}

fn answered(record: &RunRecord) -> Vec<String> {
    let counts = &record.total.counts;
    if let Some((status, number)) = counts.exchange_failures.status_of_most(counts.sent) {
        let request = record.scenario.http.as_ref();
        let path = request.map(|it| format!(" at {}", shortened(&it.path)));
        return vec![
            format!("HTTP {status}{}", path.unwrap_or_default()),
            format!("{} of {}", count(number), counted(counts.sent, "query")),
        ];
    }
    if counts.responses == 0 {
        return vec![format!(
            "No response to {}",
            counted(counts.offered, "query")
        )];
    }
    let p99 = record.total.distributions.latency.percentile(0.99);
    vec![
        format!("{} answered", rate(record.achieved_qps())),
        format!("{} lost", share(counts.lost(), counts.offered)),
        format!("p99 {}", or_dash(p99)),
    ]
}

/// A path that leaves room for the rest of a line.
fn shortened(path: &str) -> String {
    match path.char_indices().nth(PATH_MAX) {
        None => path.to_owned(),
        Some((end, _)) => format!("{}...", &path[..end]),
    }
}

fn opened(record: &RunRecord) -> Vec<String> {
    let connections = &record.total.counts.connections;
    let failed = share(connections.failed.total(), connections.attempted);
    vec![
        format!(
            "{} connections a second opened",
            per_second(record.opened_per_second())
        ),
        format!("{failed} failed"),
    ]
}

/// Load, questions and agents.
fn how(record: &RunRecord) -> String {
    let facts = scenario_facts(record);
    let facts = facts.into_iter().filter_map(|(name, words)| match name {
        "load" | "questions" => Some(words),
        "agents" => Some(format!("agents {words}")),
        _ => None,
    });
    facts.collect::<Vec<String>>().join("; ")
}

/// Offered, answered, lost; then the latency.
fn queries(record: &RunRecord) -> Vec<String> {
    let counts = &record.total.counts;
    let offered = counts.offered;
    let of_offered = |number| share(number, offered);
    let none = String::new;
    let queries = "queries".to_owned();
    let mut rows = vec![
        [
            "offered".into(),
            count(offered),
            queries,
            rate(record.offered_qps()),
            none(),
            none(),
        ],
        [
            "answered".into(),
            count(counts.responses),
            none(),
            rate(record.achieved_qps()),
            of_offered(counts.responses),
            rcodes(record),
        ],
    ];
    let lost = counts.lost();
    let ends = counts.ends().filter(|(end, _)| end.is_lost);
    let ends = ends.map(|(end, number)| (end.name.to_owned(), number));
    let ends = list(ends.collect());
    rows.push([
        "lost".into(),
        count(lost),
        none(),
        none(),
        of_offered(lost),
        ends,
    ]);
    let open = counts.interrupted;
    if open > 0 {
        let note = "no response when the run ended".to_owned();
        rows.push([
            "open".into(),
            count(open),
            none(),
            none(),
            of_offered(open),
            note,
        ]);
    }
    let mut lines = table(rows);
    lines.extend(latencies("latency", &record.total.distributions.latency));
    lines
}

/// The RCODEs that are none of NOERROR and NXDOMAIN, or else the shares of these.
fn rcodes(record: &RunRecord) -> String {
    let rcodes = &record.total.counts.rcodes;
    let usual = ["NOERROR", "NXDOMAIN"];
    let (expected, others): (Vec<_>, Vec<_>) =
        rcodes.named().partition(|(name, _)| usual.contains(name));
    let shown = match others.is_empty() {
        true => expected,
        false => others,
    };
    let each = shown.iter().map(|(name, number)| {
        let share = share(*number, rcodes.total());
        format!("{name} {share}")
    });
    each.collect::<Vec<String>>().join(", ")
}

/// Attempted, opened, failed; then the times of the last step of their set-up.
fn connections(record: &RunRecord) -> Vec<String> {
    let connections = &record.total.counts.connections;
    let attempted = connections.attempted;
    let a_second = |rate: f64| format!("{} a second", per_second(rate));
    let none = String::new;
    let (opened, failed) = (record.connections_opened(), connections.failed.total());
    let causes = list(connections.failed.by_cause(record.scenario.transport));
    let attempts = a_second(record.attempts_per_second());
    let unit = "connections".to_owned();
    let mut lines = table(vec![
        [
            "attempted".into(),
            count(attempted),
            unit,
            attempts,
            none(),
            none(),
        ],
        [
            "opened".into(),
            count(opened),
            none(),
            a_second(record.opened_per_second()),
            share(opened, attempted),
            none(),
        ],
        [
            "failed".into(),
            count(failed),
            none(),
            none(),
            share(failed, attempted),
            causes,
        ],
    ]);
    let times = record.connection_times();
    let steps = times.steps();
    if let Some((step, times)) = steps.into_iter().rfind(|(_, times)| !times.is_empty()) {
        lines.extend(latencies("set-up", times).into_iter().take(1));
        lines.extend(labelled("", &format!("the last step of it: {step}"), 1));
    }
    lines
}

/// Percentiles in a line, and a histogram below it; nothing if there is no value.
fn latencies(label: &str, histogram: &Histogram) -> Vec<String> {
    let Some((min, max)) = histogram.min_ns().zip(histogram.max_ns()) else {
        return Vec::new();
    };
    let time = |ns: u64| latency(ns as f64);
    let percentiles = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
    let each = percentiles.iter().filter_map(|(name, p)| {
        let ns = histogram.percentile(*p)?;
        Some(format!("{name} {}", time(ns)))
    });
    let mut each: Vec<String> = each.collect();
    each.push(format!("max {}", time(max)));
    let mut lines = labelled(label, &each.join("   "), 1);
    if let Some(bars) = sparkline::sparkline(histogram) {
        let (min, max) = (time(min), time(max));
        lines.push(format!("{:INDENT$}{min} [{bars}] {max}, log scale", ""));
    }
    lines
}

/// Rows of label, number, unit, rate, share and note; a long note goes on in a second line.
fn table(rows: Vec<[String; 6]>) -> Vec<String> {
    let mut notes = Vec::new();
    let cells = rows
        .into_iter()
        .map(|[label, number, unit, rate, share, note]| {
            notes.push(note);
            // As wide as the labels of the other lines.
            let label = format!("{label:<width$}", width = INDENT - 4);
            // Columns go on to the note.
            [label, number, unit, rate, share, "|".to_owned()]
        });
    let cells: Vec<[String; 6]> = cells.collect();
    let [left, right] = [Align::Left, Align::Right];
    let mut text = String::new();
    write_columns(&mut text, &[left, right, left, right, right, left], &cells);
    let starts = text.lines().map(|line| line.trim_end_matches('|'));
    let lines = starts
        .zip(&notes)
        .flat_map(|(start, note)| match note.is_empty() {
            true => vec![start.trim_end().to_owned()],
            false => indented(start, start.chars().count(), note, NOTE_LINES_MAX),
        });
    lines.collect()
}

/// The remarks in at most that many lines; the last of them counts those left out.
fn remarks(record: &RunRecord, most: usize) -> Vec<String> {
    let remarks = remarks::remarks(record);
    let wrapped = remarks
        .iter()
        .map(|text| indented("  - ", 4, text, REMARK_LINES_MAX));
    let wrapped: Vec<Vec<String>> = wrapped.collect();
    let total: usize = wrapped.iter().map(Vec::len).sum();
    let room = match total <= most {
        true => most,
        false => most.saturating_sub(1),
    };
    let (mut lines, mut shown) = (Vec::new(), 0);
    for remark in &wrapped {
        if lines.len() + remark.len() > room {
            break;
        }
        lines.extend(remark.iter().cloned());
        shown += 1;
    }
    match wrapped.len() - shown {
        0 => {}
        1 => lines.push("  1 more remark: --details".to_owned()),
        more => lines.push(format!("  {more} more remarks: --details")),
    }
    lines
}

/// Where everything else is.
fn where_the_rest_is(file: Option<&str>) -> String {
    let without = "Everything else: --details. To keep the record: --record FILE".to_owned();
    let Some(file) = file else {
        return without;
    };
    let details = format!("Everything else: throng report {file} --details");
    let page = format!("{details}. As a page: throng report {file} -o run.html");
    let fits = |line: &String| line.chars().count() <= COLUMNS_MAX;
    let shorter = "Everything else: throng report RECORD --details".to_owned();
    [page, details].into_iter().find(fits).unwrap_or(shorter)
}

/// Lines whose first begins with a label.
fn labelled(label: &str, words: &str, most: usize) -> Vec<String> {
    let first = format!("  {label:<width$}", width = INDENT - 2);
    indented(&first, INDENT, words, most)
}

/// Words in a number of lines at most: after `first`, then indented by a number of columns.
pub(crate) fn indented(first: &str, indent: usize, words: &str, most: usize) -> Vec<String> {
    let width = COLUMNS_MAX - indent;
    let mut lines: Vec<String> = Vec::new();
    let mut left = words.trim();
    while !left.is_empty() && lines.len() < most {
        let is_last = lines.len() + 1 == most;
        let (line, rest) = match is_last {
            true => (cut(left, width), ""),
            false => split(left, width),
        };
        let start = match lines.is_empty() {
            true => first.to_owned(),
            false => " ".repeat(indent),
        };
        lines.push(format!("{start}{line}"));
        left = rest;
    }
    lines
}

/// The words that fit in a number of columns, and the rest.
fn split(words: &str, width: usize) -> (String, &str) {
    let Some((end, _)) = words.char_indices().nth(width) else {
        return (words.to_owned(), "");
    };
    let at = match words.as_bytes()[end] {
        b' ' => end,
        _ => words[..end].rfind(' ').filter(|it| *it > 0).unwrap_or(end),
    };
    (words[..at].trim_end().to_owned(), words[at..].trim_start())
}

/// The words in a number of columns; an ellipsis ends what does not fit.
fn cut(words: &str, width: usize) -> String {
    match words.chars().count() <= width {
        true => words.to_owned(),
        false => format!("{} ...", split(words, width - 4).0),
    }
}
