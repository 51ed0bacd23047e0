//! The report on several runs.

use measure::comparison::{Cell as Run, Comparison, Contender, Figures};
use measure::notation::{count, counted, decimal, latency, percent, rate};
use measure::{Arrival, RunRecord};

use crate::collection::{Cell, Collection, Spread, TRANSPORT, server_cpu};
use crate::document::{Block, Column, Document, Remark, Section, Sheet, Tile};
use crate::run::{self, transport};
use crate::sweep::{self, Sweep};
use crate::{comparison, text};

mod words;

pub(crate) use words::remarks;

/// Runs up to this number are shown one by one with their charts.
const SINGLE_MAX: usize = 12;
/// Runs up to this number have their charts in sight.
const OPEN_MAX: usize = 3;
/// RCODEs that have a column of their own.
const RCODES_MAX: usize = 5;

/// The report on several runs, or on the only one.
pub fn document(collection: &Collection) -> Document {
    if let Some(only) = collection.only() {
        return run::document(&only.record, &only.file);
    }
    let mut sections = Vec::from_iter(compared(collection));
    sections.extend(charts(collection));
    sections.push(results(collection));
    sections.push(Section::new(
        "Success and failure",
        vec![Block::Sheet(outcomes(collection))],
    ));
    sections.push(Section::new("Runs", vec![Block::Sheet(runs(collection))]));
    sections.push(Section::new(
        "Hosts and scenario",
        vec![Block::Sheet(hosts(collection))],
    ));
    sections.extend(singles(collection));
    Document {
        title: title(collection),
        subtitle: subtitle(collection),
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
    let each = Spread::of(collection.cells.iter().map(|cell| cell.runs.len() as f64));
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
    let achieved = |cell: &&Cell| collection.achieved(cell);
    let by_rate = |a: &&Cell, b: &&Cell| achieved(a).total_cmp(&achieved(b));
    let tile = |label, value, note| Tile { label, value, note };
    let mut tiles = Vec::new();
    if let Some(best) = collection.cells.iter().max_by(by_rate) {
        tiles.push(tile(
            "Highest rate",
            rate(achieved(&best)),
            collection.name(best),
        ));
    }
    if let Some(least) = collection.cells.iter().min_by(by_rate) {
        tiles.push(tile(
            "Lowest rate",
            rate(achieved(&least)),
            collection.name(least),
        ));
    }
    let tail = |cell: &Cell| collection.latency(cell).percentile(0.99).unwrap_or(0);
    let with_tail: Vec<(&Cell, u64)> = collection
        .cells
        .iter()
        .map(|cell| (cell, tail(cell)))
        .filter(|it| it.1 > 0)
        .collect();
    if let Some((cell, p99)) = with_tail.iter().min_by_key(|it| it.1) {
        tiles.push(tile(
            "Shortest p99",
            latency(*p99 as f64),
            collection.name(cell),
        ));
    }
    if let Some((cell, p99)) = with_tail.iter().max_by_key(|it| it.1) {
        tiles.push(tile(
            "Longest p99",
            latency(*p99 as f64),
            collection.name(cell),
        ));
    }
    let lost: u64 = collection
        .runs
        .iter()
        .map(|it| it.record.total.counts.lost())
        .sum();
    let offered: u64 = collection
        .runs
        .iter()
        .map(|it| it.record.total.counts.offered)
        .sum();
    tiles.push(tile(
        "Lost in all",
        measure::notation::share(lost, offered),
        format!("{} of {} queries", count(lost), count(offered)),
    ));
    tiles
}

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
fn results(collection: &Collection) -> Section {
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
    let first = collection
        .cells
        .first()
        .map_or(0.0, |cell| collection.achieved(cell));
    for cell in &collection.cells {
        let mut row = values(collection, cell);
        let achieved = collection.spread(cell, |it| Some(it.achieved_qps()));
        if has_repeats {
            row.push(count(cell.runs.len() as u64));
        }
        row.push(words_of(achieved, |qps| decimal(qps, 1)));
        if has_repeats {
            let range = |it: Spread| format!("{} to {}", decimal(it.min, 1), decimal(it.max, 1));
            row.push(achieved.map_or_else(|| "-".into(), range));
        }
        let share = collection.achieved(cell) / first;
        row.push(if share.is_finite() {
            percent(share)
        } else {
            "-".into()
        });
        row.push(words_of(
            collection.spread(cell, |it| Some(it.lost_share())),
            comparison::lost,
        ));
        let mean = |it: &RunRecord| it.total.distributions.latency.mean_ns();
        row.push(words_of(collection.spread(cell, mean), latency));
        for share in [0.5, 0.95, 0.99] {
            let p = |it: &RunRecord| {
                let ns = it.total.distributions.latency.percentile(share)?;
                Some(ns as f64)
            };
            row.push(words_of(collection.spread(cell, p), latency));
        }
        row.push(in_flight(collection, cell));
        row.push(limits(collection, cell));
        sheet.rows.push(row);
    }
    if has_repeats {
        sheet
            .notes
            .push("medians of the runs of each row; of an even number the lower one".into());
    }
    Section::new("Results", vec![Block::Sheet(sheet)])
}

fn words_of(spread: Option<Spread>, words: impl Fn(f64) -> String) -> String {
    spread.map_or_else(|| "-".into(), |it| words(it.median))
}

/// `350.2 of 1,000`.
fn in_flight(collection: &Collection, cell: &Cell) -> String {
    let mean = words_of(
        collection.spread(cell, |it| Some(it.mean_in_flight())),
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

/// The comparison of transports, where they are all that varies.
pub(crate) fn comparison_of(collection: &Collection) -> Option<Comparison> {
    if collection.varies.len() != 1 || collection.dimension(TRANSPORT).is_none() {
        return None;
    }
    let mut runs = Vec::new();
    for cell in &collection.cells {
        runs.extend(cell.runs.iter().map(|run| {
            let source = &collection.runs[*run];
            Run {
                record: &source.record,
                file: Some(source.file.as_str()),
            }
        }));
    }
    Comparison::new(&runs)
}

/// The table of transports with what each costs (S30, S31).
fn compared(collection: &Collection) -> Option<Section> {
    let comparison = comparison_of(collection)?;
    let mut heads = vec![Column::words("metric")];
    let names = comparison
        .transports
        .iter()
        .map(|it| it.transport.to_string());
    heads.extend(names.map(|name| Column::figures(transport(&name))));
    let mut sheet = Sheet::new("transports", "Transports", heads);
    let mut row = |name: &str, cell: &dyn Fn(&Contender) -> Option<String>| {
        let cells: Vec<Option<String>> = comparison.transports.iter().map(cell).collect();
        if cells.iter().any(Option::is_some) {
            let mut line = vec![name.to_owned()];
            line.extend(cells.into_iter().map(|it| it.unwrap_or_else(|| "-".into())));
            sheet.rows.push(line);
        }
    };
    row("queries a second", &|it| {
        Some(range(it, |f| Some(f.achieved_qps), thousands))
    });
    row("mean latency", &|it| {
        some_range(it, |f| f.latency_mean_ns, latency)
    });
    row("median latency (p50)", &|it| {
        some_range(it, |f| f.latency_p50_ns, latency)
    });
    row("95 % within (p95)", &|it| {
        some_range(it, |f| f.latency_p95_ns, latency)
    });
    row("tail latency (p99)", &|it| {
        some_range(it, |f| f.latency_p99_ns, latency)
    });
    row("lost", &|it| Some(comparison::lost(it.median.lost_share)));
    row("full handshake, p50", &|it| {
        some_range(it, |f| f.handshake_p50_ns, latency)
    });
    let cpu = |contender: &Contender| {
        let of =
            |run: &&crate::collection::Source| run.record.scenario.transport == contender.transport;
        let all = collection.runs.iter().filter(of);
        let spread = Spread::of(all.filter_map(|run| server_cpu(&run.record)))?;
        Some(percent(spread.median / 100.0))
    };
    row("CPU of the target", &cpu);
    let mut costs = Sheet::new("costs", "What each step costs", {
        let mut heads = vec![Column::words("step")];
        let names = [
            "qps",
            "change",
            "servers for the same rate",
            "p50",
            "change",
            "p99",
            "change",
        ];
        heads.extend(names.map(Column::figures));
        heads
    });
    for cost in &comparison.costs {
        let from = cost.from.to_string();
        let to = cost.to.to_string();
        let mut line = vec![format!("{} \u{2192} {}", transport(&from), transport(&to))];
        line.push(comparison::signed(cost.achieved_qps.difference, thousands));
        line.push(comparison::percent_of(&cost.achieved_qps));
        line.push(cost.servers.map_or_else(|| "-".into(), |it| decimal(it, 2)));
        for change in [cost.latency_p50_ns, cost.latency_p99_ns] {
            let none = String::new;
            line.push(change.map_or_else(none, |it| comparison::signed(it.difference, latency)));
            line.push(change.map_or_else(none, |it| comparison::percent_of(&it)));
        }
        costs.rows.push(line);
    }
    let doubts = comparison.costs.iter().filter_map(|cost| {
        let doubt = cost.doubt.as_ref()?;
        let (from, to) = (cost.from.to_string(), cost.to.to_string());
        let step = format!("{} \u{2192} {}", transport(&from), transport(&to));
        Some(format!("{step}: the factor is in doubt, {doubt}"))
    });
    costs.notes.extend(doubts);
    let blocks = vec![Block::Sheet(sheet), Block::Sheet(costs)];
    Some(Section::new("Transports", blocks))
}

fn thousands(qps: f64) -> String {
    decimal(qps, 0)
}

/// A median with its range where there are several runs.
fn range(
    contender: &Contender,
    figure: impl Fn(&Figures) -> Option<f64>,
    words: impl Fn(f64) -> String,
) -> String {
    some_range(contender, figure, words).unwrap_or_else(|| "-".into())
}

fn some_range(
    contender: &Contender,
    figure: impl Fn(&Figures) -> Option<f64>,
    words: impl Fn(f64) -> String,
) -> Option<String> {
    let median = words(figure(&contender.median)?);
    if contender.runs.len() == 1 {
        return Some(median);
    }
    let (min, max) = (figure(&contender.min)?, figure(&contender.max)?);
    Some(format!("{median} ({} to {})", words(min), words(max)))
}

fn charts(collection: &Collection) -> Option<Section> {
    let mut blocks = Vec::new();
    if let Some(sweep) = Sweep::of(collection) {
        let charts = sweep.charts();
        blocks.extend(charts.into_iter().map(Block::Chart));
        blocks.extend(sweep::distributions(collection).map(Block::Chart));
        blocks.extend(sweep::cpu(collection).map(Block::Chart));
        blocks.extend(sweep.sheet().map(Block::Sheet));
    } else {
        blocks.extend(sweep::bars(collection).map(Block::Chart));
        blocks.extend(sweep::distributions(collection).map(Block::Chart));
        blocks.extend(sweep::cpu(collection).map(Block::Chart));
    }
    (!blocks.is_empty()).then(|| Section::new("Charts", blocks))
}

/// Sent, completed, lost, success and failure (S34), as means over the runs of each row.
fn outcomes(collection: &Collection) -> Sheet {
    let rcodes = common_rcodes(collection);
    let mut heads = columns(collection);
    let names = [
        "sent",
        "completed",
        "lost",
        "qps",
        "mean latency",
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
            let spread = collection.spread(cell, |it| Some(figure(it)));
            spread.map_or(0.0, |it| it.mean)
        };
        let sent = mean(|it| it.total.counts.sent as f64);
        let completed = mean(|it| it.total.counts.responses as f64);
        let lost = mean(|it| it.total.counts.lost() as f64);
        let places = usize::from(has_repeats && lost.fract() != 0.0);
        row.push(decimal(sent.floor(), 0));
        row.push(decimal(completed.floor(), 0));
        row.push(decimal(lost, places));
        row.push(decimal(mean(RunRecord::achieved_qps), 2));
        let all = collection.latency(cell);
        row.push(all.mean_ns().map_or_else(|| "-".into(), latency));
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
            "counts and rates are means over the runs of each row, those of queries rounded down; \
             their spread is in the table of rates, single runs in that of runs; mean latency is \
             that of all their responses"
                .into(),
        );
    }
    sheet
}

/// Success in percent, rounded down: what is not everything never reads as 100.
pub(crate) fn success(completed: f64, offered: f64) -> String {
    match offered > 0.0 {
        true => format!("{:.4} %", (1e6 * completed / offered + 1e-6).floor() / 1e4),
        false => "-".into(),
    }
}

/// Failure in percent; what is not nothing never reads as nothing.
pub(crate) fn failure(lost: f64, offered: f64) -> String {
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

/// Every run with its verdict (P22).
fn runs(collection: &Collection) -> Sheet {
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
            row.push(decimal(record.achieved_qps(), 1));
            row.push(count(record.total.counts.lost()));
            row.push(text::or_dash(
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
fn hosts(collection: &Collection) -> Sheet {
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
        if !seen.contains(&host) {
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
