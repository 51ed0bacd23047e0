//! What the scripts of clients did and measured.

use std::fmt::Write;

use measure::notation::{count, counted, decimal};
use measure::script::OBSERVED_PER_UNIT;
use measure::{GroupRecord, Histogram, RunRecord};

use crate::table::{Align, Table};

/// Nothing without scripts.
pub(super) fn section(record: &RunRecord) -> String {
    let mut text = String::new();
    for group in &record.groups {
        write_group(group, record.groups.len() > 1, &mut text);
    }
    text
}

/// A sentence for each group in which the scripts of clients failed.
pub(crate) fn failures(record: &RunRecord) -> Vec<String> {
    let line = |group: &GroupRecord| {
        let failures = &group.script.as_ref()?.failures;
        let first = failures.messages.first()?;
        let clients = counted(group.clients, "client");
        Some(format!(
            "{}: the script of {} of {clients} failed: {}",
            group.name,
            count(failures.total),
            first.message
        ))
    };
    record.groups.iter().filter_map(line).collect()
}

fn write_group(group: &GroupRecord, is_one_of_several: bool, text: &mut String) {
    let Some(script) = &group.script else {
        return;
    };
    let whose = match is_one_of_several {
        true => format!("{}: ", group.name),
        false => String::new(),
    };
    let file = group.scenario.script.as_deref().unwrap_or("script");
    let _ = writeln!(
        text,
        "  {whose}{file}, {}: {} returned, {} failed",
        counted(group.clients, "client"),
        count(script.finished),
        count(script.failures.total)
    );
    for failure in &script.failures.messages {
        let _ = writeln!(text, "  {} x {}", count(failure.clients), failure.message);
    }
    let mut table = Table::new([Align::Left, Align::Right, Align::Left]);
    for (name, number) in &script.metrics.counters {
        let number = match number.fract() == 0.0 && *number >= 0.0 && *number < 1e15 {
            true => count(*number as u64),
            false => number.to_string(),
        };
        table.row([name.clone(), number, String::new()]);
    }
    for (name, values) in &script.metrics.observed {
        table.row([name.clone(), count(values.count()), quantiles(values)]);
    }
    table.write_to(text);
}

fn quantiles(values: &Histogram) -> String {
    let value = |thousandths: u64| decimal(thousandths as f64 / OBSERVED_PER_UNIT, 3);
    let at = |p| value(values.percentile(p).unwrap_or(0));
    format!(
        "min {}  p50 {}  p90 {}  p99 {}  max {}",
        value(values.min_ns().unwrap_or(0)),
        at(0.5),
        at(0.9),
        at(0.99),
        value(values.max_ns().unwrap_or(0))
    )
}
