//! The reports on comparisons: of transports, and of two sides.

use measure::comparison::{Contender, Figures};
use measure::notation::{counted, latency, per_second};
use measure::{AbComparison, Comparison};

use super::{blank, section};
use crate::chart::{Axis, Chart, Form, Point, Scale, Series, Unit};
use crate::comparison::{ROWS, limits, servers};
use crate::document::{Block, Column, Document, Section, Sheet};
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
    let charts: Vec<Chart> = DRAWN.iter().filter_map(|it| bars(comparison, it)).collect();
    if !charts.is_empty() {
        let blocks = charts.into_iter().map(Block::from).collect();
        document.sections.push(Section::new("Charts", blocks));
    }
    document.sections.push(section("Transports", sheet));
    if !comparison.costs.is_empty() {
        let mut costs = Sheet::facts("costs", "Costs");
        for cost in &comparison.costs {
            let (from, to) = (cost.from.to_string(), cost.to.to_string());
            let step = format!("{} to {}", transport(&from), transport(&to));
            costs.fact(step, servers(cost));
        }
        document.sections.push(section("Costs", costs));
    }
    document
}

/// A figure that is drawn.
struct Drawn {
    id: &'static str,
    title: &'static str,
    unit: Unit,
    of: fn(&Figures) -> Option<f64>,
    words: fn(f64) -> String,
}

const DRAWN: [Drawn; 2] = [
    Drawn {
        id: "throughput",
        title: "Queries answered a second",
        unit: Unit::Number,
        of: |it| Some(it.achieved_qps),
        words: per_second,
    },
    Drawn {
        id: "p99",
        title: "p99 latency",
        unit: Unit::Nanoseconds,
        of: |it| it.latency_p99_ns,
        words: latency,
    },
];

/// Bars of a figure, one a transport, with the least and the greatest of its runs.
fn bars(comparison: &Comparison, drawn: &Drawn) -> Option<Chart> {
    let heads = ["transport", "median", "least", "greatest"].map(Column::figures);
    let id = format!("{}-figures", drawn.id);
    let mut sheet = Sheet::new(&id, "", heads.into());
    let (mut names, mut points) = (Vec::new(), Vec::new());
    for Contender {
        transport: of,
        runs,
        median,
        min,
        max,
        ..
    } in &comparison.transports
    {
        let figures = [median, min, max].map(drawn.of);
        let [Some(value), Some(least), Some(greatest)] = figures else {
            continue;
        };
        let name = transport(&of.to_string()).to_owned();
        let at = names.len() as f64;
        points.push(Point {
            x: at - 0.3,
            x_end: Some(at + 0.3),
            y: Some(value),
            band: (runs.len() > 1).then_some((least, greatest)),
        });
        let words = [value, least, greatest].map(drawn.words);
        sheet.rows.push([vec![name.clone()], words.into()].concat());
        names.push(name);
    }
    let described = sheet
        .rows
        .iter()
        .map(|row| format!("{} {}", row[0], row[1]));
    let description = format!("{}.", described.collect::<Vec<_>>().join("; "));
    (points.len() > 1).then(|| Chart {
        id: drawn.id.into(),
        title: drawn.title.into(),
        description,
        x: Axis::new("", Scale::Names(names), Unit::Number),
        y: Axis::new(drawn.title, Scale::FromZero, drawn.unit),
        series: vec![Series {
            name: drawn.title.into(),
            look: 0,
            form: Form::Bars,
            points,
        }],
        marks: Vec::new(),
        sheet,
        notes: vec!["medians of the runs; the lines go from least to greatest".into()],
    })
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
