//! Tables of several runs: a row for each cell, for each run, for each host.

use measure::notation::{count, decimal, fraction, latency, per_second, percent};
use measure::{HostFacts, Metric, OverRuns, RunRecord};

use crate::collection::{Cell, Collection};
use crate::document::{Block, Column, Section, Sheet};
use crate::text::figures;
use crate::{run, text};

/// RCODEs that have a column of their own.
const RCODES_MAX: usize = 5;

/// Columns of what varies.
fn columns(collection: &Collection) -> Vec<Column> {
    let each = collection
        .varies
        .iter()
        .map(|dimension| match dimension.is_numeric() {
            true => Column::figures(dimension.name.clone()),
            false => Column::words(dimension.name.clone()),
        });
    each.collect()
}

fn values(collection: &Collection, cell: &Cell) -> Vec<String> {
    let each = collection.varies.iter().zip(&cell.values);
    each.map(|(dimension, value)| dimension.cell(value))
        .collect()
}

/// Rate and latency of every cell.
pub(super) fn results(collection: &Collection) -> Section {
    let has_repeats = collection.has_repeats();
    let mut heads = columns(collection);
    if has_repeats {
        heads.push(Column::figures("runs"));
    }
    heads.push(Column::figures("qps"));
    if has_repeats {
        heads.push(Column::figures("least to greatest"));
    }
    let names = [
        "of the first",
        "lost",
        "mean latency",
        "p50",
        "p95",
        "p99",
        "in flight",
    ];
    heads.extend(names.map(Column::figures));
    heads.push(Column::words("limit"));
    let mut sheet = Sheet::new("results", "Rate and latency", heads);
    let first = collection.cells.first();
    let first = first.and_then(|cell| collection.achieved(cell));
    for cell in &collection.cells {
        let mut row = values(collection, cell);
        row.extend(result(collection, cell, first));
        sheet.rows.push(row);
    }
    if has_repeats {
        sheet
            .notes
            .push("medians of the runs of each row; lost: of all of their queries".into());
    }
    for (file, why) in collection.left_out() {
        sheet.notes.push(format!("left out: {file}: {why}"));
    }
    Section::new("Results", vec![Block::Sheet(sheet)])
}

/// Rate and latency of a cell, the rate also as a share of `first`.
fn result(collection: &Collection, cell: &Cell, first: Option<f64>) -> Vec<String> {
    let has_repeats = collection.has_repeats();
    let mut row = Vec::new();
    let metric = |metric| collection.metric(cell, metric);
    let achieved = metric(Metric::Qps);
    if has_repeats {
        row.push(count(cell.runs.len() as u64));
    }
    row.push(match collection.rate_at_least(cell) {
        Some(qps) => format!("at least {}", per_second(qps)),
        None => words_of(achieved, per_second),
    });
    if has_repeats {
        let range = |it: OverRuns| format!("{} to {}", per_second(it.min), per_second(it.max));
        row.push(achieved.map_or_else(|| "-".into(), range));
    }
    let share = collection.achieved(cell).zip(first);
    let share = share.map(|(qps, first)| qps / first);
    let share = share.filter(|share| share.is_finite());
    row.push(share.map_or_else(|| "-".into(), percent));
    row.push(words_of(metric(Metric::Loss), fraction));
    for each in [Metric::Mean, Metric::P50, Metric::P95, Metric::P99] {
        row.push(words_of(metric(each), latency));
    }
    row.push(in_flight(collection, cell));
    row.push(limits(collection, cell));
    row
}

fn words_of(figure: Option<OverRuns>, words: impl Fn(f64) -> String) -> String {
    figure.map_or_else(|| "-".into(), |it| words(it.value))
}

/// `350.2 of 1,000`.
fn in_flight(collection: &Collection, cell: &Cell) -> String {
    let mean = words_of(
        collection.figure(cell, |it| Some(it.mean_in_flight())),
        |number| decimal(number, 1),
    );
    let places = collection.records(cell).find_map(RunRecord::outstanding);
    places.map_or(mean.clone(), |places| {
        format!("{mean} of {}", count(places))
    })
}

/// `server`, or `2 server, 1 generator` where the runs differ.
fn limits(collection: &Collection, cell: &Cell) -> String {
    let mut found: Vec<(&str, u64)> = Vec::new();
    for record in collection.records(cell) {
        let name = record.verdict.limit.name();
        match found.iter_mut().find(|it| it.0 == name) {
            Some(it) => it.1 += 1,
            None => found.push((name, 1)),
        }
    }
    match found.as_slice() {
        [(only, _)] => (*only).to_owned(),
        several => {
            let each = several
                .iter()
                .map(|(name, number)| format!("{} {name}", count(*number)));
            each.collect::<Vec<String>>().join(", ")
        }
    }
}

/// Sent, completed and lost of a run with rate and latency, all of them means over the runs of
/// each row, with success and failure of all of them.
pub(super) fn outcomes(collection: &Collection) -> Sheet {
    let rcodes = common_rcodes(collection);
    let mut heads = columns(collection);
    let names = [
        "sent",
        "completed",
        "lost",
        "mean qps",
        "mean of mean latencies",
        "success",
        "failure",
    ];
    heads.extend(names.map(Column::figures));
    heads.extend(rcodes.iter().map(|name| Column::figures(*name)));
    let mut sheet = Sheet::new("outcomes", "Queries, success and failure", heads);
    let has_repeats = collection.has_repeats();
    for cell in &collection.cells {
        let mut row = values(collection, cell);
        let mean = |figure: fn(&RunRecord) -> f64| {
            let sum: f64 = collection.records(cell).map(figure).sum();
            sum / cell.runs.len() as f64
        };
        let sent = mean(|it| it.total.counts.sent as f64);
        let completed = mean(|it| it.total.counts.responses as f64);
        let lost = mean(|it| it.total.counts.lost() as f64);
        let places = usize::from(has_repeats && lost.fract() != 0.0);
        row.push(decimal(sent.floor(), 0));
        row.push(decimal(completed.floor(), 0));
        row.push(decimal(lost, places));
        let mean_of = |metric: Metric, words: fn(f64) -> String| {
            let each = collection.counted(cell).filter_map(|it| metric.of(it));
            let each: Vec<f64> = each.collect();
            let sum: f64 = each.iter().sum();
            match each.is_empty() {
                true => "-".to_owned(),
                false => words(sum / each.len() as f64),
            }
        };
        row.push(mean_of(Metric::Qps, per_second));
        row.push(mean_of(Metric::Mean, latency));
        let offered = mean(|it| it.total.counts.offered as f64);
        row.push(success(completed, offered));
        row.push(failure(lost, offered));
        row.extend(
            rcodes
                .iter()
                .map(|name| rcode_share(collection, cell, name)),
        );
        sheet.rows.push(row);
    }
    sheet.notes.push(
        "success: queries that got a response, whatever its RCODE, rounded down; failure: those \
         that got none"
            .into(),
    );
    if has_repeats {
        sheet.notes.push(
            "means over the runs of each row, counts rounded down except those lost; single runs \
             are in the table of runs"
                .into(),
        );
    }
    sheet
}

/// Success in percent, rounded down: what is not everything never reads as 100.
fn success(completed: f64, offered: f64) -> String {
    match offered > 0.0 {
        true => format!("{:.4} %", (1e6 * completed / offered + 1e-6).floor() / 1e4),
        false => "-".into(),
    }
}

/// Failure in percent; what is not nothing never reads as nothing.
fn failure(lost: f64, offered: f64) -> String {
    let percent = 100.0 * lost / offered;
    match percent {
        _ if offered <= 0.0 => "-".into(),
        _ if lost > 0.0 && percent < 0.000_05 => "<0.0001 %".into(),
        _ => format!("{percent:.4} %"),
    }
}

/// The RCODEs that most responses had.
fn common_rcodes(collection: &Collection) -> Vec<&'static str> {
    let mut all = measure::counts::Rcodes::default();
    let each = collection.runs.iter();
    each.for_each(|source| all.add(&source.record.total.counts.rcodes));
    let mut named: Vec<(&'static str, u64)> = all.named().collect();
    named.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    named.into_iter().take(RCODES_MAX).map(|it| it.0).collect()
}

fn rcode_share(collection: &Collection, cell: &Cell, name: &str) -> String {
    let mut all = measure::counts::Rcodes::default();
    collection
        .records(cell)
        .for_each(|record| all.add(&record.total.counts.rcodes));
    let number = all.named().find(|it| it.0 == name).map_or(0, |it| it.1);
    measure::notation::share(number, all.total())
}

/// Every run with its verdict.
pub(super) fn runs(collection: &Collection) -> Sheet {
    let mut heads = vec![Column::words("file")];
    heads.extend(columns(collection));
    heads.extend([
        Column::figures("qps"),
        Column::figures("lost"),
        Column::figures("p99"),
    ]);
    heads.extend([Column::words("limit"), Column::words("decisive evidence")]);
    let mut sheet = Sheet::new("runs", "Single runs", heads);
    for cell in &collection.cells {
        for run in &cell.runs {
            let source = &collection.runs[*run];
            let record = &source.record;
            let mut row = vec![source.file.clone()];
            row.extend(values(collection, cell));
            row.push(per_second(record.achieved_qps()));
            row.push(count(record.total.counts.lost()));
            row.push(figures::or_dash(
                record.total.distributions.latency.percentile(0.99),
            ));
            row.push(record.verdict.limit.name().to_owned());
            row.push(record.verdict.evidence.first().cloned().unwrap_or_default());
            sheet.rows.push(row);
        }
    }
    sheet
}

/// The hosts, each different one once, and what all scenarios have in common.
pub(super) fn hosts(collection: &Collection) -> Sheet {
    let mut sheet = Sheet::facts("hosts", "Hosts and scenario");
    let mut scenarios: Vec<(&str, String)> = text::scenario_facts(&collection.runs[0].record);
    for source in &collection.runs {
        let of_run = text::scenario_facts(&source.record);
        scenarios.retain(|fact| of_run.contains(fact));
    }
    for (name, value) in scenarios {
        sheet.fact(name, value);
    }
    let mut seen = Vec::new();
    for host in collection.runs.iter().flat_map(|it| &it.record.hosts) {
        if !seen.iter().any(|other: &&HostFacts| other.is_like(host)) {
            seen.push(host);
        }
    }
    for (at, host) in seen.iter().enumerate() {
        for (name, value) in run::host_facts(host) {
            let name = match seen.len() {
                1 => name,
                _ => format!("host {}: {name}", at + 1),
            };
            sheet.fact(name, value);
        }
    }
    sheet
}
