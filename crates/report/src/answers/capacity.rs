//! The report on a search for a capacity: rate against latency with the objective as lines.

use measure::Capacity;
use measure::capacity::{Purpose, Quantiles, Sought, Trial, TrialOutcome};
use measure::notation::{chosen_fraction, fraction, latency, seconds};

use super::{blank, section};
use crate::capacity::{answer_rows, cells, limited_by};
use crate::chart::{Axis, Chart, Form, Point, Scale, Series, Unit};
use crate::document::{Banner, Block, Column, Document, Remark, Section, Sheet, Subject, Tile};
use crate::run::transport;

pub(super) fn document(capacity: &Capacity) -> Document {
    let (scenario, answer) = (&capacity.scenario, &capacity.answer);
    let target = scenario.server_name.as_ref().unwrap_or(&scenario.target);
    let over = scenario.transport.to_string();
    let title = format!("Capacity of {target} over {}", transport(&over));
    let subtitle = format!(
        "{} \u{b7} sustained means {} \u{b7} {} trials of {}",
        capacity.started_at,
        capacity.objective.text(),
        capacity.trials.len(),
        seconds(capacity.search.trial_ns)
    );
    let mut document = blank(title, subtitle, &capacity.notes);
    let rows = answer_rows(capacity);
    document.tiles = tiles(capacity, &rows);
    document.verdict = Some(Banner {
        limit: answer.limit.name(),
        meaning: answer.limit.meaning(),
        evidence: answer.evidence.clone(),
    });
    let advice = answer.advice.iter();
    let advice = advice.map(|line| Remark::new(Subject::Advice, line, ""));
    document.remarks.extend(advice);
    let mut facts = Sheet::facts("capacity", "Capacity");
    for [name, value] in rows {
        facts.fact(name, value);
    }
    document.sections.push(section("Capacity", facts));
    let charts = [latency_chart(capacity), loss_chart(capacity)];
    let charts = charts.into_iter().filter(Chart::is_worthwhile);
    document.sections.push(Section::new(
        "What each load meant",
        charts.map(Block::from).collect(),
    ));
    document.sections.push(section("Trials", trials(capacity)));
    document.sections.retain(|it| !it.blocks.is_empty());
    document
}

fn tiles(capacity: &Capacity, rows: &[[String; 2]]) -> Vec<Tile> {
    let sustained = rows.first().map(|[_, value]| value.clone());
    let mut tiles = vec![Tile {
        label: "Sustained",
        value: sustained.unwrap_or_default(),
        note: limited_by(capacity),
    }];
    if let Some(row) = capacity.latency.last() {
        let index = usize::try_from(row.trial).unwrap_or(usize::MAX);
        let trial = capacity.trials.get(index.wrapping_sub(1));
        let p99 = trial.and_then(|trial| trial.latency.as_ref());
        tiles.extend(p99.map(|it| Tile {
            label: "p99 latency below the limit",
            value: latency(it.p99_ns as f64),
            note: format!("at {} of the limit", chosen_fraction(row.share)),
        }));
    }
    tiles
}

fn x_axis(capacity: &Capacity) -> Axis {
    let label = match capacity.search.sought {
        Sought::Rate => "queries a second (log scale)",
        Sought::Clients => "clients (log scale)",
    };
    Axis::new(label, Scale::Log, Unit::Number)
}

/// Trials in the order of their loads, those that decide nothing left out.
fn by_load(capacity: &Capacity) -> Vec<&Trial> {
    let mut trials: Vec<&Trial> = capacity.trials.iter().collect();
    trials.retain(|trial| !trial.is_undecided());
    trials.sort_by(|a, b| a.value.total_cmp(&b.value));
    trials
}

/// A line across the loads that there are.
fn guide(name: &str, trials: &[&Trial], y: f64) -> Series {
    let ends = trials.first().into_iter().chain(trials.last());
    Series {
        name: name.into(),
        form: Form::Guide,
        look: 0,
        points: ends.map(|trial| Point::new(trial.value, y)).collect(),
    }
}

/// What was sustained as a line from the bottom of the chart to its top.
fn limit(capacity: &Capacity, (low, high): (f64, f64)) -> Option<Series> {
    let value = capacity.answer.value?;
    Some(Series {
        name: "sustained".into(),
        form: Form::Guide,
        look: 1,
        points: [low, high].map(|y| Point::new(value, y)).into(),
    })
}

fn latency_chart(capacity: &Capacity) -> Chart {
    let trials = by_load(capacity);
    let line = |(look, name): (usize, &str), of: fn(&Quantiles) -> u64| Series {
        name: name.into(),
        form: Form::Marked,
        look,
        points: { trials.iter() }
            .filter_map(|it| Some(Point::new(it.value, of(it.latency.as_ref()?) as f64)))
            .collect(),
    };
    let lines = [
        line((0, "p50"), |it| it.p50_ns),
        line((1, "p99"), |it| it.p99_ns),
    ];
    let all = lines.iter().flat_map(|it| &it.points);
    let all: Vec<f64> = all.filter_map(|point| point.y).collect();
    let objective = capacity.objective.latency_p99_ns_max as f64;
    let low = all.iter().copied().fold(objective, f64::min);
    let high = all.iter().copied().fold(objective, f64::max);
    let mut series = Vec::from(lines);
    let name = format!("objective: p99 at most {}", latency(objective));
    series.push(guide(&name, &trials, objective));
    series.extend(limit(capacity, (low, high)));
    let mut columns = vec![Column::figures("load")];
    columns.extend(["p50", "p99"].map(Column::figures));
    let mut sheet = Sheet::new("latency-by-load-figures", "Latency by load", columns);
    for trial in &trials {
        let time = |ns: Option<u64>| ns.map_or_else(|| "-".into(), |ns| latency(ns as f64));
        let times = trial.latency.as_ref();
        sheet.rows.push(vec![
            capacity.search.sought.text(trial.value),
            time(times.map(|it| it.p50_ns)),
            time(times.map(|it| it.p99_ns)),
        ]);
    }
    Chart {
        id: "latency-by-load".into(),
        title: "Latency against load".into(),
        description: "Latency from the instant at which a query was due, trial by trial.".into(),
        x: x_axis(capacity),
        y: Axis::new("latency (log scale)", Scale::Log, Unit::Nanoseconds),
        series,
        marks: Vec::new(),
        sheet,
        notes: Vec::new(),
    }
}

fn loss_chart(capacity: &Capacity) -> Chart {
    let trials = by_load(capacity);
    let points = trials.iter();
    let points = points.map(|it| Point::new(it.value, 100.0 * it.lost_share));
    let most = capacity.objective.lost_share_max;
    let name = format!("objective: at most {} lost", chosen_fraction(most));
    let series = vec![
        Series {
            name: "lost".into(),
            form: Form::Marked,
            look: 0,
            points: points.collect(),
        },
        guide(&name, &trials, 100.0 * most),
    ];
    let columns = vec![Column::figures("load"), Column::figures("lost")];
    let mut sheet = Sheet::new("loss-by-load-figures", "Loss by load", columns);
    for trial in &trials {
        let load = capacity.search.sought.text(trial.value);
        sheet.rows.push(vec![load, fraction(trial.lost_share)]);
    }
    Chart {
        id: "loss-by-load".into(),
        title: "Loss against load".into(),
        description: "Share of the offered queries that got no response, trial by trial.".into(),
        x: x_axis(capacity),
        y: Axis::new("lost", Scale::FromZero, Unit::Percent),
        series,
        marks: Vec::new(),
        sheet,
        notes: Vec::new(),
    }
}

fn trials(capacity: &Capacity) -> Sheet {
    let figures = ["trial", "load"].map(Column::figures);
    let mut columns = Vec::from(figures);
    columns.push(Column::words("outcome"));
    columns.extend(["latency", "loss"].map(Column::figures));
    columns.push(Column::words("why"));
    let mut sheet = Sheet::new("trials", "Trials", columns);
    let sought = capacity.search.sought;
    for (trial, position) in capacity.trials.iter().zip(1..) {
        sheet.rows.push(cells(sought, position, trial).into());
    }
    let is_of_latency =
        |trial: &&Trial| trial.purpose == Purpose::Latency && trial.outcome == TrialOutcome::Passed;
    if capacity.trials.iter().any(|trial| is_of_latency(&trial)) {
        let note = "trials named latency are below what was sustained";
        sheet.notes.push(note.into());
    }
    sheet
}
