//! The reports on comparisons: of transports, and of two sides.

use measure::notation::counted;
use measure::{AbComparison, Comparison};

use super::{blank, section};
use crate::comparison::{ROWS, limits, servers};
use crate::document::{Column, Document, Sheet};
use crate::html::sentence;
use crate::run::transport;

pub(super) fn of_transports(comparison: &Comparison) -> Document {
    let names = comparison.transports.iter();
    let names: Vec<String> = names.map(|it| it.transport.to_string()).collect();
    let names: Vec<&str> = names.iter().map(|name| transport(name)).collect();
    let title = format!("{} compared", names.join(", "));
    let runs = comparison.transports.iter().map(|it| it.runs.len() as u64);
    let subtitle = format!(
        "{} each in turn \u{b7} {}",
        counted(runs.max().unwrap_or(0), "run"),
        crate::text::load(&comparison.scenario.arrival)
    );
    let mut document = blank(title, subtitle, &comparison.notes);
    let mut columns = vec![Column::words("metric")];
    columns.extend(names.iter().map(|name| Column::figures(*name)));
    let mut sheet = Sheet::new("transports", "Transports", columns);
    let contenders = &comparison.transports;
    for (name, value, _) in ROWS {
        let cells = contenders.iter().map(|it| value(&it.median));
        let cells: Vec<Option<String>> = cells.collect();
        if cells.iter().any(Option::is_some) {
            let mut row = vec![name.to_owned()];
            row.extend(cells.into_iter().map(|it| it.unwrap_or_else(|| "-".into())));
            sheet.rows.push(row);
        }
    }
    let mut row = vec!["limit".to_owned()];
    row.extend(contenders.iter().map(limits));
    sheet.rows.push(row);
    sheet.notes.push("figures are medians of the runs".into());
    document.sections.push(section("Transports", sheet));
    if !comparison.costs.is_empty() {
        let mut costs = Sheet::facts("costs", "Costs");
        for cost in &comparison.costs {
            costs.fact(format!("{} to {}", cost.from, cost.to), servers(cost));
        }
        document.sections.push(section("Costs", costs));
    }
    document
}

pub(super) fn of_sides(comparison: &AbComparison) -> Document {
    let subtitle = format!("A: {} \u{b7} B: {}", comparison.a.label, comparison.b.label);
    let mut document = blank(
        sentence(&comparison.headline()),
        subtitle,
        &comparison.notes,
    );
    let mut rows = crate::ab::rows(comparison).into_iter();
    let heads = rows.next().unwrap_or_default();
    let columns = heads.into_iter().enumerate();
    let columns = columns.map(|(index, name)| match index {
        0 => Column::words("metric"),
        7 => Column::words(name),
        _ => Column::figures(name),
    });
    let mut sheet = Sheet::new("metrics", "Metrics", columns.collect());
    sheet.rows.extend(rows.map(Vec::from));
    let reasons = crate::ab::reasons(comparison);
    let reasons = reasons.into_iter();
    sheet.notes = reasons
        .map(|(metric, why)| format!("{metric}: {why}"))
        .collect();
    document.sections.push(section("Metrics", sheet));
    document
}
