//! Sides as they are recorded, their values on the scale of a metric, and whether they alternate.

use super::{Metric, Side, SideRecord, SideRun, Values, scaled};
use crate::notation::{counted, seconds};
use crate::record::RunRecord;
use crate::statistics::{
    ConfidenceInterval, Events, interval_of_difference, interval_of_share, median, quantile,
};

pub(super) fn record(side: &Side<'_>) -> SideRecord {
    let runs = side.runs.iter().map(|(file, record)| SideRun {
        record: file.clone(),
        started_at: record.started_at.clone(),
        limit: record.verdict.limit,
    });
    SideRecord {
        label: side.label.clone(),
        what: what(side),
        runs: runs.collect(),
    }
}

/// `10 runs of 3.0 s over udp to 127.0.0.1:53`.
fn what(side: &Side<'_>) -> String {
    let number = counted(side.runs.len() as u64, "run");
    let Some((_, first)) = side.runs.first() else {
        return number;
    };
    let target = match (&first.scenario.server_name, first.self_test) {
        (_, true) => "the built-in responder".to_owned(),
        (Some(name), false) => name.clone(),
        (None, false) => first.scenario.target.clone(),
    };
    format!(
        "{number} of {} over {} to {target}",
        seconds(first.measured_ns),
        first.scenario.transport,
    )
}

/// The values of a metric in the runs of a side.
pub(super) fn values(side: &Side<'_>, metric: Metric) -> Values {
    let runs = side.runs.iter().map(|(_, record)| metric.of(record));
    let runs: Vec<Option<f64>> = runs.collect();
    let known: Vec<f64> = runs.iter().copied().flatten().collect();
    Values {
        median: median(&known),
        min: quantile(&known, 0.0),
        max: quantile(&known, 1.0),
        runs,
    }
}

/// The values on the scale of the metric; none if a run did not measure it, or measured nothing.
pub(super) fn on_scale(metric: Metric, values: &Values) -> Option<Vec<f64>> {
    let each = values.runs.iter();
    each.map(|value| value.and_then(|value| scaled(metric, value)))
        .collect()
}

/// Where a share lies on a side, as far as that is known: between the runs, and what the events of
/// all of them leave open.
pub(super) fn share_within(
    side: &Side<'_>,
    (metric, values): (Metric, &Values),
    level: f64,
) -> Option<(f64, ConfidenceInterval)> {
    let share = values.median?;
    let of_runs = ConfidenceInterval {
        low: values.min?,
        high: values.max?,
        level,
    };
    let exact = events(side, metric).and_then(|events| interval_of_share(events, level));
    Some((share, exact.map_or(of_runs, |exact| of_runs.joined(&exact))))
}

/// The change of a share that the events alone leave open; none where they are not counted.
pub(super) fn change_by_events(
    (a, b): (&Side<'_>, &Side<'_>),
    metric: Metric,
    level: f64,
) -> Option<ConfidenceInterval> {
    let of = |side: &Side<'_>| {
        let events = events(side, metric)?;
        let share = events.some as f64 / events.all as f64;
        Some((share, interval_of_share(events, level)?))
    };
    Some(interval_of_difference(of(a)?, of(b)?))
}

/// The events of all runs; none if one of them does not count them.
fn events(side: &Side<'_>, metric: Metric) -> Option<Events> {
    let each = side.runs.iter().map(|(_, record)| metric.events(record));
    each.reduce(|sum, run| {
        let (sum, run) = (sum?, run?);
        Some(Events {
            some: sum.some + run.some,
            all: sum.all + run.all,
        })
    })?
}

/// The values on the scale of the metric in runs of A compared with A; those without it are left
/// out.
pub(super) fn noise_on_scale(metric: Metric, noise: &[&RunRecord]) -> Vec<f64> {
    let values = noise.iter().filter_map(|record| metric.of(record));
    values.filter_map(|value| scaled(metric, value)).collect()
}

/// Pairs of runs, by position, if in the order of time each two successive runs are one of either
/// side: then what changes on the host changes both.
pub(super) fn pairs(a: &Side<'_>, b: &Side<'_>) -> Option<Vec<(usize, usize)>> {
    if a.runs.len() != b.runs.len() || a.runs.len() < 2 {
        return None;
    }
    let of = |side: &Side<'_>, is_b: bool| -> Vec<(String, bool, usize)> {
        let runs = side.runs.iter().enumerate();
        runs.map(|(index, (_, record))| (record.started_at.clone(), is_b, index))
            .collect()
    };
    let mut all = [of(a, false), of(b, true)].concat();
    // RFC 3339 in UTC sorts as text.
    all.sort();
    let pair = |two: &[(String, bool, usize)]| match (&two[0], &two[1]) {
        ((_, false, a), (_, true, b)) | ((_, true, b), (_, false, a)) => Some((*a, *b)),
        _ => None,
    };
    all.chunks_exact(2).map(pair).collect()
}

/// True if all runs of one side were made before all of the other.
pub(super) fn are_successive(a: &Side<'_>, b: &Side<'_>) -> bool {
    let start = |side: &Side<'_>| {
        side.runs
            .iter()
            .map(|(_, run)| run.started_at.clone())
            .min()
    };
    let end = |side: &Side<'_>| {
        side.runs
            .iter()
            .map(|(_, run)| run.started_at.clone())
            .max()
    };
    end(a) < start(b) || end(b) < start(a)
}
