//! The report on several runs.

use measure::notation::{count, counted, latency, rate};
use measure::{Arrival, Metric, OverRuns, RunRecord};

use crate::collection::{Cell, Collection};
use crate::document::{Block, Document, Remark, Section, Tile};
use crate::plain;
use crate::run;
use crate::sweep::{self, Sweep};
use crate::text;

mod conclusions;
mod tables;
#[cfg(test)]
mod tests;
mod transports;
mod words;

pub(crate) use words::remarks;

/// Runs up to this number are shown one by one with their charts.
const SINGLE_MAX: usize = 12;
/// Runs up to this number have their charts in sight.
const OPEN_MAX: usize = 3;

/// The report on one run as Markdown, which `file` keeps.
pub fn markdown_of_run(record: &RunRecord, file: &str) -> String {
    plain::markdown(&run::document(record, file))
}

/// The report on several runs, or on the only one.
pub fn document(collection: &Collection) -> Document {
    if let Some(only) = collection.only() {
        return run::document(&only.record, &only.file);
    }
    let mut sections = Vec::from_iter(transports::section(collection));
    sections.extend(charts(collection));
    sections.push(tables::results(collection));
    sections.push(Section::new(
        "Success and failure",
        vec![Block::Sheet(tables::outcomes(collection))],
    ));
    sections.push(Section::new(
        "Runs",
        vec![Block::Sheet(tables::runs(collection))],
    ));
    sections.push(Section::new(
        "Hosts and scenario",
        vec![Block::Sheet(tables::hosts(collection))],
    ));
    sections.extend(singles(collection));
    Document {
        title: match &collection.experiment {
            Some(name) => format!("{name}: {}", title(collection)),
            None => title(collection),
        },
        subtitle: subtitle(collection),
        conclusions: conclusions::of(collection),
        tiles: tiles(collection),
        verdict: None,
        remarks: remarks(collection),
        sections,
        colophon: format!(
            "Made by throng {} from {}, measured from {} to {}.",
            env!("CARGO_PKG_VERSION"),
            counted(collection.runs.len() as u64, "run record"),
            collection.runs[0].record.started_at,
            collection.runs[collection.runs.len() - 1].record.started_at,
        ),
    }
}

fn title(collection: &Collection) -> String {
    let names: Vec<&str> = collection
        .varies
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    let by = match names.as_slice() {
        [] => "repeated runs".to_owned(),
        [only] => format!("by {only}"),
        [most @ .., last] => format!("by {} and {last}", most.join(", ")),
    };
    let first = &collection.runs[0].record;
    let server = |record: &RunRecord| record.scenario.server_name.clone();
    let is_one = collection
        .runs
        .iter()
        .all(|it| server(&it.record) == server(first));
    match (server(first), first.self_test) {
        (_, true) => format!("Load on the built-in responder, {by}"),
        (Some(name), _) if is_one => format!("Load on {name}, {by}"),
        _ => format!("Load, {by}"),
    }
}

fn subtitle(collection: &Collection) -> String {
    let first = &collection.runs[0].record;
    let cells = collection.cells.len() as u64;
    let each = OverRuns::median(collection.cells.iter().map(|cell| cell.runs.len() as f64));
    let repeats = match each {
        Some(each) if each.max > 1.0 && each.min == each.max => {
            format!(", {} each", counted(each.max as u64, "run"))
        }
        Some(each) if each.max > 1.0 => {
            format!(", {} to {} each", each.min, counted(each.max as u64, "run"))
        }
        _ => String::new(),
    };
    let mut parts = vec![
        first.started_at.clone(),
        format!("{}{repeats}", counted(cells, "scenario")),
        measure::notation::seconds(first.measured_ns),
    ];
    let scenario = |record: &RunRecord| (record.scenario.arrival, record.scenario.clients);
    if collection
        .runs
        .iter()
        .all(|it| scenario(&it.record) == scenario(first))
    {
        parts.push(text::load(&first.scenario.arrival));
        parts.push(counted(first.scenario.clients, "client"));
    }
    parts.join(" \u{b7} ")
}

fn tiles(collection: &Collection) -> Vec<Tile> {
    let known = |of: &dyn Fn(&Cell) -> Option<f64>| -> Vec<(&Cell, f64)> {
        let cells = collection.cells.iter();
        cells.filter_map(|cell| Some((cell, of(cell)?))).collect()
    };
    let by_figure = |a: &&(&Cell, f64), b: &&(&Cell, f64)| a.1.total_cmp(&b.1);
    let rates = known(&|cell| collection.achieved(cell));
    let bounds = known(&|cell| collection.rate_at_least(cell));
    let tile = |label, value, note| Tile { label, value, note };
    let mut tiles = Vec::new();
    let best = rates.iter().max_by(by_figure);
    let bound = bounds.iter().max_by(by_figure);
    match (best, bound) {
        (Some((cell, qps)), None) => {
            tiles.push(tile("Highest rate", rate(*qps), collection.name(cell)));
        }
        // Some cell may have a higher one than all of those that are known.
        (best, Some(bound)) => {
            let highest = best.filter(|best| best.1 > bound.1);
            let (cell, qps, whose) = match highest {
                Some((cell, qps)) => (cell, qps, String::new()),
                None => (&bound.0, &bound.1, " (the generator's limit)".to_owned()),
            };
            let note = format!("{}{whose}", collection.name(cell));
            tiles.push(tile("At least", rate(*qps), note));
        }
        (None, None) => {}
    }
    if let Some((cell, qps)) = rates.iter().min_by(by_figure) {
        tiles.push(tile("Lowest rate", rate(*qps), collection.name(cell)));
    }
    let tails = known(&|cell| Some(collection.metric(cell, Metric::P99)?.value));
    if let Some((cell, p99)) = tails.iter().min_by(by_figure) {
        tiles.push(tile("Shortest p99", latency(*p99), collection.name(cell)));
    }
    if let Some((cell, p99)) = tails.iter().max_by(by_figure) {
        tiles.push(tile("Longest p99", latency(*p99), collection.name(cell)));
    }
    let cells = collection.cells.iter();
    let counted = cells.flat_map(|cell| collection.counted(cell));
    let counts: Vec<_> = counted.map(|record| &record.total.counts).collect();
    let lost: u64 = counts.iter().map(|it| it.lost()).sum();
    let offered: u64 = counts.iter().map(|it| it.offered).sum();
    if offered == 0 {
        return tiles;
    }
    tiles.push(tile(
        "Lost in all",
        measure::notation::share(lost, offered),
        format!("{} of {} queries", count(lost), count(offered)),
    ));
    tiles
}

fn charts(collection: &Collection) -> Option<Section> {
    let mut blocks = Vec::new();
    if let Some(sweep) = Sweep::of(collection) {
        let charts = sweep.charts();
        blocks.extend(charts.into_iter().map(Block::from));
        blocks.extend(sweep::distributions(collection).map(Block::from));
        blocks.extend(sweep::cpu(collection).map(Block::from));
        blocks.extend(sweep.sheet().map(Block::Sheet));
    } else {
        blocks.extend(sweep::bars(collection).map(Block::from));
        blocks.extend(sweep::distributions(collection).map(Block::from));
        blocks.extend(sweep::cpu(collection).map(Block::from));
    }
    (!blocks.is_empty()).then(|| Section::new("Charts", blocks))
}

/// The charts of each run over time.
fn singles(collection: &Collection) -> Vec<Section> {
    if collection.runs.len() > SINGLE_MAX {
        return Vec::new();
    }
    let mut sections = Vec::new();
    for cell in &collection.cells {
        for (round, run) in cell.runs.iter().enumerate() {
            let record = &collection.runs[*run].record;
            let Some(mut section) = run::charts(record, &format!("run-{run}-")) else {
                continue;
            };
            let name = collection.name(cell);
            section.heading = match cell.runs.len() {
                1 => name,
                _ => format!("{name}, run {}", round + 1),
            };
            section.is_folded = collection.runs.len() > OPEN_MAX;
            let banner = run::banner(record);
            let words = format!("Limit: {}. {}.", banner.limit, banner.meaning);
            section.blocks.insert(0, Block::Note(words));
            sections.push(section);
        }
    }
    sections
}

/// True if the places of a closed loop were all in use, by queries that were answered.
pub(crate) fn is_full(record: &RunRecord) -> bool {
    match record.scenario.arrival {
        Arrival::Closed { outstanding, .. } => {
            let mean_s = record.total.distributions.latency.mean_ns().unwrap_or(0.0) / 1e9;
            mean_s * record.achieved_qps() >= 0.9 * outstanding as f64
        }
        Arrival::Open { .. } | Arrival::Clients { .. } => false,
    }
}

/// Makes remarks of the same words one, with how many runs they hold for.
pub(crate) fn merge_alike(remarks: &mut Vec<Remark>) {
    let mut seen: Vec<Remark> = Vec::new();
    for remark in remarks.drain(..) {
        if !seen.contains(&remark) {
            seen.push(remark);
        }
    }
    *remarks = seen;
}
