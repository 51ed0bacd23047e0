//! Two sides compared, as text, Markdown, JSON and CSV.

use std::fmt::Write;

use measure::AbComparison;
use measure::ab::{Method, MetricRecord, Noise, SideRecord};
use measure::notation::{counted, percent};

use crate::html::sentence;
use crate::markup::literal;
use crate::table::{Align, Table};

#[cfg(test)]
mod tests;

/// The comparison for people, ending in a line break.
pub fn text(comparison: &AbComparison) -> String {
    let mut text = format!("{}\n\n", sentence(&comparison.headline()));
    let mut sides = Table::new([Align::Left; 3]);
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        sides.row([name.into(), side.label.clone(), what(side)]);
    }
    sides.write_to(&mut text);
    text.push_str("\nMetrics\n");
    metrics(comparison).write_to(&mut text);
    for (metric, reason) in reasons(comparison) {
        let _ = writeln!(text, "  {metric}: {reason}");
    }
    text.push_str("\nMethod\n");
    for line in method(comparison) {
        let _ = writeln!(text, "  {line}");
    }
    if !comparison.notes.is_empty() {
        text.push('\n');
    }
    for note in &comparison.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// The comparison as JSON, ending in a line break.
pub fn json(comparison: &AbComparison) -> String {
    let mut json = comparison.to_json_pretty();
    json.push('\n');
    json
}

/// The comparison as GitHub-flavoured Markdown, ending in a line break: for the summary of a CI job
/// or a comment.
pub fn markdown(comparison: &AbComparison) -> String {
    let mut text = format!("### {}\n\n", literal(&sentence(&comparison.headline())));
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        let (label, what) = (literal(&side.label), literal(&what(side)));
        let _ = writeln!(text, "* **{name}**: {label} ({what})");
    }
    text.push('\n');
    for (index, row) in rows(comparison).iter().enumerate() {
        let cells: Vec<String> = row.iter().map(|cell| literal(cell)).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
        if index == 0 {
            text.push_str("|:--|--:|--:|--:|--:|--:|--:|:--|\n");
        }
    }
    text.push('\n');
    for (metric, reason) in reasons(comparison) {
        let _ = writeln!(text, "* {metric}: {}", literal(&reason));
    }
    for note in &comparison.notes {
        let _ = writeln!(text, "* **note:** {}", literal(note));
    }
    text.push_str("\n<details><summary>Method</summary>\n\n");
    for line in method(comparison) {
        let _ = writeln!(text, "* {}", literal(&line));
    }
    text.push_str("\n</details>\n");
    text
}

/// Name and meaning of every column of the CSV, in order.
pub const CSV_COLUMNS: [(&str, &str); 11] = [
    ("metric", "name of the metric"),
    (
        "a_median",
        "median of the runs of A; rates a second, shares 0 to 1, times in nanoseconds",
    ),
    ("b_median", "the same of B"),
    (
        "change",
        "by how much B lies above A, as a share of A; of shares their difference",
    ),
    ("change_low", "lower end of its interval of confidence"),
    ("change_high", "upper end"),
    ("p_value", "probability of such a change by chance"),
    (
        "p_value_corrected",
        "the same, corrected for the number of metrics",
    ),
    ("cliffs_delta", "effect size, -1 to 1"),
    (
        "noise_floor",
        "changes up to this size happen between runs of the same thing",
    ),
    ("finding", "slower, same, faster or cannot tell"),
];

/// The comparison as CSV (RFC 4180): one row a metric.
pub fn csv(comparison: &AbComparison) -> String {
    let names = CSV_COLUMNS.map(|(name, _)| name);
    let mut csv = format!("{}\r\n", names.join(","));
    for each in &comparison.metrics {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let row = [
            each.metric.name().into(),
            number(each.a.median),
            number(each.b.median),
            number(each.change),
            number(each.change_low),
            number(each.change_high),
            number(each.p_value),
            number(each.p_value_corrected),
            number(each.cliffs_delta),
            number(each.noise_floor),
            each.finding.words().into(),
        ];
        let _ = write!(csv, "{}\r\n", row.join(","));
    }
    csv
}

/// What a side is, with what limited it.
fn what(side: &SideRecord) -> String {
    let mut limits: Vec<(&str, usize)> = Vec::new();
    for run in &side.runs {
        let name = run.limit.name();
        match limits.iter_mut().find(|(known, _)| *known == name) {
            Some((_, number)) => *number += 1,
            None => limits.push((name, 1)),
        }
    }
    let limits: Vec<String> = match limits.as_slice() {
        [(name, _)] => vec![(*name).into()],
        several => several
            .iter()
            .map(|(name, number)| format!("{number} {name}"))
            .collect(),
    };
    format!("{}; limit: {}", side.what, limits.join(", "))
}

/// The heads of the columns, then a row for each metric.
pub(crate) fn rows(comparison: &AbComparison) -> Vec<[String; 8]> {
    let interval = format!("{} interval", percent(comparison.level).replace(".0", ""));
    let heads = ["", "A", "B", "change", &interval, "noise", "p", "B is"];
    let mut rows = vec![heads.map(str::to_owned)];
    rows.extend(comparison.metrics.iter().map(row));
    rows
}

fn row(each: &MetricRecord) -> [String; 8] {
    let dash = || "-".to_owned();
    let show = |value: Option<f64>| value.map_or_else(dash, |value| each.metric.show(value));
    let change = |value: Option<f64>| value.map(|value| each.metric.show_change(value));
    let interval = match (change(each.change_low), change(each.change_high)) {
        (Some(low), Some(high)) => format!("{} to {high}", without_unit(&low)),
        _ => dash(),
    };
    let noise = change(each.noise_floor).map(|noise| noise.replace('+', ""));
    let p = match each.p_value_corrected {
        None => dash(),
        Some(p) if p < 0.001 => "<0.001".into(),
        Some(p) => format!("{p:.3}"),
    };
    [
        each.metric.name().into(),
        show(each.a.median),
        show(each.b.median),
        change(each.change).unwrap_or_else(dash),
        interval,
        noise.unwrap_or_else(dash),
        p,
        each.words().into(),
    ]
}

fn without_unit(change: &str) -> &str {
    change.split(' ').next().unwrap_or(change)
}

fn metrics(comparison: &AbComparison) -> Table<8> {
    let mut align = [Align::Right; 8];
    (align[0], align[7]) = (Align::Left, Align::Left);
    let mut table = Table::new(align);
    rows(comparison).into_iter().for_each(|row| table.row(row));
    table
}

/// Why metrics are inconclusive: each reason once, with the names of its metrics.
pub(crate) fn reasons(comparison: &AbComparison) -> Vec<(String, String)> {
    let mut reasons: Vec<(String, String)> = Vec::new();
    for each in &comparison.metrics {
        let Some(reason) = &each.reason else {
            continue;
        };
        match reasons.iter_mut().find(|(_, known)| known == reason) {
            Some((metrics, _)) => {
                let _ = write!(metrics, ", {}", each.metric.name());
            }
            None => reasons.push((each.metric.name().into(), reason.clone())),
        }
    }
    reasons
}

/// How it was found out, one sentence each.
fn method(comparison: &AbComparison) -> Vec<String> {
    let level = percent(comparison.level).replace(".0", "");
    let ranks = "p by the rank test of Mann and Whitney";
    let first = match comparison.method {
        Method::PairedRuns => format!(
            "medians of runs that alternate; {level} interval by bootstrap of pairs; {ranks}"
        ),
        Method::Runs => format!("medians of runs; {level} interval by bootstrap; {ranks}"),
        Method::FewRuns => format!(
            "few runs: medians with Welch's {level} interval and test (6 runs a side or more: \
                bootstrap and ranks)"
        ),
        Method::Blocks(length) => format!(
            "one run a side: {level} interval by bootstrap of blocks of {}, widened by what runs \
             differ by",
            counted(length, "interval")
        ),
        Method::None => "nothing to estimate the noise from".into(),
    };
    let noise = match comparison.noise {
        Noise::Spread => {
            "noise floor: spread between identical runs, from that of the runs".to_owned()
        }
        Noise::Measured(runs) => format!(
            "noise floor: spread between {} of A compared with A",
            counted(runs, "run")
        ),
        Noise::Assumed => "noise floor: assumed to be high, because it was not measured".into(),
    };
    let rule = format!(
        "slower or faster: p below {:.2} after Holm's correction for all metrics, no change \
         outside the interval, and more than the noise",
        1.0 - comparison.level
    );
    let same = format!(
        "same: the whole interval is within {}",
        percent(comparison.same_within)
    );
    vec![first, noise, rule, same]
}
