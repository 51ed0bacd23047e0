//! A figure over the versions of something.

use history::TrendGroup;
use measure::metric::{Better, Metric, Unit};
use measure::statistics::{mann_whitney, median};
use report::table::{Align, Table};
use schemars::JsonSchema;
use serde::Serialize;

use super::{csv_line, csv_name};
use crate::args::Format;

/// Runs in a group from which on a test of ranks can find anything.
const RUNS_MIN: usize = 4;
/// What chance makes more often than that between equals is no difference.
const P_MAX: f64 = 0.05;

/// A group beside the first of all and the one before it.
struct Step {
    value: String,
    runs: usize,
    median: f64,
    least: f64,
    most: f64,
    /// From the group before, as a share; in points for shares.
    change: Option<f64>,
    /// How likely chance alone makes such a difference.
    p_value: Option<f64>,
    finding: &'static str,
}

fn steps(metric: Metric, groups: &[TrendGroup]) -> Vec<Step> {
    let before = std::iter::once(None).chain(groups.iter().map(Some));
    let each = groups.iter().zip(before);
    each.map(|(group, before)| step(metric, group, before))
        .collect()
}

fn step(metric: Metric, group: &TrendGroup, before: Option<&TrendGroup>) -> Step {
    let median_of = |group: &TrendGroup| median(&group.values).unwrap_or(f64::NAN);
    let own = median_of(group);
    let change = before.map(|before| match metric.unit() {
        Unit::Share => own - median_of(before),
        _ => own / median_of(before) - 1.0,
    });
    let has_enough = |it: &TrendGroup| it.values.len() >= RUNS_MIN;
    let p_value = before
        .filter(|before| has_enough(before) && has_enough(group))
        .and_then(|before| mann_whitney(&before.values, &group.values))
        .map(|test| test.p_value);
    let finding = match (before, p_value, change) {
        (None, ..) => "",
        (Some(_), None, _) => "too few runs",
        (_, Some(p), _) if p >= P_MAX => "no difference seen",
        (_, _, change) => direction(metric, change),
    };
    let values = group.values.iter().copied();
    Step {
        value: group.value.clone(),
        runs: group.values.len(),
        median: own,
        least: values.clone().fold(f64::INFINITY, f64::min),
        most: values.fold(f64::NEG_INFINITY, f64::max),
        change: change.filter(|change| change.is_finite()),
        p_value,
        finding,
    }
}

/// What a change that is no chance means.
fn direction(metric: Metric, change: Option<f64>) -> &'static str {
    let is_more = change.is_some_and(|change| change > 0.0);
    match (metric.better(), is_more) {
        (Better::Higher, true) | (Better::Lower, false) => "better",
        (Better::Higher, false) | (Better::Lower, true) => "worse",
        (Better::Neither, true) => "more",
        (Better::Neither, false) => "less",
    }
}

pub(super) fn render(metric: Metric, by: &str, groups: &[TrendGroup], format: Format) -> String {
    let steps = steps(metric, groups);
    match format {
        Format::Json => json(metric, by, (&steps, groups)),
        Format::Csv => csv(metric, by, &steps),
        // Not offered for lists.
        Format::Text | Format::Markdown => text(metric, by, &steps),
    }
}

/// What `throng history trend --format json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Trend<'a> {
    /// The metric.
    metric: &'a str,
    /// The fact or label whose values are compared.
    by: &'a str,
    /// Its values, in the order of their first runs.
    groups: Vec<Group<'a>>,
}

/// The runs with one value.
#[derive(Serialize, JsonSchema)]
struct Group<'a> {
    /// The value.
    value: &'a str,
    /// When the first of these runs started, RFC 3339.
    first_started: &'a str,
    /// Numbers of the runs.
    runs: &'a [i64],
    /// The metric of each run.
    values: &'a [f64],
    /// Their median.
    median: f64,
    /// Change from the value before: a share of that, or percentage points of shares.
    change_from_previous: Option<f64>,
    /// Probability that chance alone makes such a difference; none with fewer than four runs.
    p_value: Option<f64>,
    /// What follows from that; empty for the first value.
    finding: &'a str,
}

fn json(metric: Metric, by: &str, (steps, groups): (&[Step], &[TrendGroup])) -> String {
    let each = steps.iter().zip(groups).map(|(step, group)| Group {
        value: &step.value,
        first_started: &group.first_started,
        runs: &group.runs,
        values: &group.values,
        median: step.median,
        change_from_previous: step.change,
        p_value: step.p_value,
        finding: step.finding,
    });
    let trend = Trend {
        metric: metric.name(),
        by,
        groups: each.collect(),
    };
    report::json::pretty(&serde_json::to_value(trend).unwrap_or_default())
}

fn csv(metric: Metric, by: &str, steps: &[Step]) -> String {
    let name = csv_name(metric);
    let figures = ["median", "least", "most"].map(|which| format!("{name}_{which}"));
    let mut head = vec![by.to_owned(), "runs".to_owned()];
    head.extend(figures);
    head.extend(["change", "p_value", "finding"].map(str::to_owned));
    let mut text = csv_line(&head);
    let optional = |value: Option<f64>| value.map_or_else(String::new, |it| it.to_string());
    for step in steps {
        text.push_str(&csv_line(&[
            step.value.clone(),
            step.runs.to_string(),
            step.median.to_string(),
            step.least.to_string(),
            step.most.to_string(),
            optional(step.change),
            optional(step.p_value),
            step.finding.to_owned(),
        ]));
    }
    text
}

fn text(metric: Metric, by: &str, steps: &[Step]) -> String {
    use Align::{Left, Right};
    let mut table = Table::new([Left, Right, Right, Right, Right, Right, Left]);
    let head = [
        by,
        "runs",
        "median",
        "least",
        "most",
        "change",
        "from the one above",
    ];
    table.row(head.map(str::to_owned));
    for step in steps {
        let finding = match step.p_value {
            Some(p) => format!("{} (p = {p:.3})", step.finding),
            None => step.finding.to_owned(),
        };
        table.row([
            step.value.clone(),
            step.runs.to_string(),
            metric.show(step.median),
            metric.show(step.least),
            metric.show(step.most),
            step.change
                .map(|it| metric.show_change(it))
                .unwrap_or_default(),
            finding,
        ]);
    }
    let mut text = format!("{} by {by}\n", metric.name());
    table.write_to(&mut text);
    text
}
