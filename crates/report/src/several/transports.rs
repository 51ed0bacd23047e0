//! Transports side by side, and what each costs.

use measure::comparison::{Cell as Run, Comparison, Contender, Figures};
use measure::metric::Metric;
use measure::notation::{decimal, latency, per_second, percent};
use measure::{OverRuns, RunRecord};

use crate::collection::{Collection, Source, TRANSPORT, server_cpu};
use crate::comparison;
use crate::document::{Block, Column, Section, Sheet};
use crate::run::transport;

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

/// The table of transports with what each costs.
pub(super) fn section(collection: &Collection) -> Option<Section> {
    let comparison = comparison_of(collection)?;
    let sheet = figures(collection, &comparison);
    let blocks = vec![Block::Sheet(sheet), Block::Sheet(costs(&comparison))];
    Some(Section::new("Transports", blocks))
}

/// The figures of each transport.
fn figures(collection: &Collection, comparison: &Comparison) -> Sheet {
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
    row(
        "queries a second",
        &|it| match it.median.achieved_is_at_least {
            true => Some(format!("at least {}", thousands(it.median.achieved_qps))),
            false => some_range(it, |f| Some(f.achieved_qps), thousands),
        },
    );
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
    row("lost", &|it| comparison::lost(&it.median));
    row("full handshake, p50", &|it| {
        some_range(it, |f| f.handshake_p50_ns, latency)
    });
    let median = |contender: &Contender, figure: fn(&RunRecord) -> Option<f64>| {
        let of = |run: &&Source| run.record.scenario.transport == contender.transport;
        let all = collection.runs.iter().filter(of);
        let all = all.filter(|run| run.left_out.is_none());
        let spread = OverRuns::median(all.filter_map(|run| figure(&run.record)))?;
        Some(spread.value)
    };
    row("CPU of the target", &|it| {
        median(it, server_cpu).map(|share| percent(share / 100.0))
    });
    let of_target = |it: &Contender| median(it, |run| Metric::ServerCpuPerQuery.of(run));
    row("CPU of the target, each query", &|it| {
        of_target(it).map(latency)
    });
    row("CPU of the generator, each query", &|it| {
        of_target(it)?;
        median(it, |run| Metric::Cpu.of(run)).map(latency)
    });
    sheet
}

/// What each step from one transport to another costs.
fn costs(comparison: &Comparison) -> Sheet {
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
    let mut costs = Sheet::new("costs", "What each step costs", heads);
    for cost in &comparison.costs {
        let from = cost.from.to_string();
        let to = cost.to.to_string();
        let mut line = vec![format!("{} \u{2192} {}", transport(&from), transport(&to))];
        let change = cost.achieved_qps;
        let difference =
            |it: measure::comparison::Change| comparison::signed(it.difference, thousands);
        line.push(change.map_or_else(|| "-".into(), difference));
        line.push(change.map_or_else(|| "-".into(), |it| comparison::percent_of(&it)));
        line.push(cost.servers.map_or_else(|| "-".into(), |it| decimal(it, 2)));
        for change in [cost.latency_p50_ns, cost.latency_p99_ns] {
            let none = String::new;
            line.push(change.map_or_else(none, |it| comparison::signed(it.difference, latency)));
            line.push(change.map_or_else(none, |it| comparison::percent_of(&it)));
        }
        costs.rows.push(line);
    }
    for doubt in comparison
        .costs
        .iter()
        .filter_map(|cost| cost.doubt.as_ref())
    {
        let note = format!("the factor is in doubt: {doubt}");
        if !costs.notes.contains(&note) {
            costs.notes.push(note);
        }
    }
    costs
}

fn thousands(qps: f64) -> String {
    per_second(qps)
}

/// A median with its range where there are several runs.
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
