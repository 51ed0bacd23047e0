//! Sentences that follow from several runs.

use measure::doctor::{self, Cure};
use measure::notation::{count, counted, decimal, per_second, percent, rate};
use measure::{HostFacts, Limit, Metric, RunRecord};

use super::transports::comparison_of;
use super::{is_full, merge_alike};
use crate::collection::{CLIENTS, Cell, Collection, Value};
use crate::document::{Remark, Subject};
use crate::run::transport;
use crate::sweep::Sweep;

/// Up to this number of cells, the limit of each is stated.
const CELLS_TOLD_MAX: usize = 6;
/// Up to this number of lines of a chart, each is described.
const LINES_TOLD_MAX: usize = 4;
/// Advice beyond that many sentences is not read.
const ADVICE_MAX: usize = 5;
/// Rates closer than that are the same.
const SAME: f64 = 0.02;

/// What the runs show together.
pub(crate) fn remarks(collection: &Collection) -> Vec<Remark> {
    let mut remarks = costs(collection);
    remarks.extend(over_axis(collection));
    remarks.extend(shares(collection));
    remarks.extend(alike(collection));
    remarks.extend(losses(collection));
    remarks.extend(littles_law(collection));
    remarks.extend(limits(collection));
    remarks.extend(left_out(collection));
    remarks.extend(cautions(collection));
    remarks.extend(found_together(collection));
    remarks.extend(advice(collection));
    merge_alike(&mut remarks);
    remarks
}

fn shows(text: String, source: &str) -> Remark {
    Remark::new(Subject::Shows, text, source)
}

fn limit(text: String, source: &str) -> Remark {
    Remark::new(Subject::Limits, text, source)
}

/// What each transport costs against the one before.
fn costs(collection: &Collection) -> Vec<Remark> {
    let Some(comparison) = comparison_of(collection) else {
        return Vec::new();
    };
    let mut remarks = Vec::new();
    for cost in &comparison.costs {
        let (from, to) = (cost.from.to_string(), cost.to.to_string());
        let (from, to) = (transport(&from), transport(&to));
        let Some(change) = &cost.achieved_qps else {
            continue;
        };
        if cost.ranges_overlap == Some(true) {
            let text = format!("the rates of {to} and {from} overlap: no difference is shown");
            remarks.push(shows(text, "costs"));
            continue;
        }
        let direction = if change.difference < 0.0 {
            "fewer"
        } else {
            "more"
        };
        let mut text = format!(
            "{to} answered {} queries a second {direction} than {from}",
            per_second(change.difference.abs())
        );
        if let Some(share) = change.percent {
            text.push_str(&format!(" ({:.1} %)", share.abs()));
        }
        if let Some(servers) = cost.servers.filter(|_| cost.doubt.is_none()) {
            let words = decimal(servers, 2);
            text.push_str(&format!(": the same rate takes {words} times the servers"));
        }
        remarks.push(shows(text, "costs"));
    }
    remarks
}

/// The values of what else varies, and the cells that have them, each with its rate.
type Line<'a> = (Vec<&'a Value>, Vec<(&'a Cell, f64)>);

/// How the rate changes along the axis, line by line; nothing of more lines than can be told.
fn over_axis(collection: &Collection) -> Vec<Remark> {
    let Some(axis) = collection.axis() else {
        return Vec::new();
    };
    let dimension = &collection.varies[axis];
    let mut lines: Vec<Line<'_>> = Vec::new();
    for cell in &collection.cells {
        let Some(qps) = collection.achieved(cell) else {
            continue;
        };
        let others = cell.values.iter().enumerate().filter(|(at, _)| *at != axis);
        let others: Vec<&Value> = others.map(|it| it.1).collect();
        match lines.iter_mut().find(|line| line.0 == others) {
            Some(line) => line.1.push((cell, qps)),
            None => lines.push((others, vec![(cell, qps)])),
        }
    }
    if lines.len() > LINES_TOLD_MAX {
        return Vec::new();
    }
    let mut remarks = Vec::new();
    for (_, mut cells) in lines {
        cells.sort_by_key(|(cell, _)| dimension.rank(&cell.values[axis]));
        if let [(first, _), .., (last, qps)] = cells.as_slice() {
            let name = line_name(collection, axis, first);
            let text = format!("{name}{}", along(collection, axis, &cells));
            remarks.push(shows(text, "throughput"));
            if dimension.name == CLIENTS
                && let Value::Number(clients) = last.values[axis]
            {
                let each = rate(qps / clients.max(1.0));
                let at = dimension.words(&last.values[axis]);
                remarks.push(shows(
                    format!("{name}at {at} each client had {each}"),
                    "per-client",
                ));
            }
        }
    }
    remarks
}

/// From the first to the last of the cells of a line, and the highest on the way.
fn along(collection: &Collection, axis: usize, cells: &[(&Cell, f64)]) -> String {
    let rates: Vec<f64> = cells.iter().map(|(_, qps)| *qps).collect();
    let at = |place: usize| collection.varies[axis].words(&cells[place].0.values[axis]);
    let last = cells.len() - 1;
    let (low, high) = rates
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), qps| {
            (low.min(*qps), high.max(*qps))
        });
    let ends = format!("from {} to {} the rate", at(0), at(last));
    if high <= low * (1.0 + SAME) {
        return format!("{ends} stayed at {}", rate(rates[last]));
    }
    let range = |place: usize| {
        let over = collection.metric(cells[place].0, Metric::Qps)?;
        (cells[place].0.runs.len() > 1).then_some((over.min, over.max))
    };
    let ranges = range(0).zip(range(last));
    let with_range = |place: usize| match range(place) {
        Some((min, max)) => format!("{} ({} to {})", rate(rates[place]), rate(min), rate(max)),
        None => rate(rates[place]),
    };
    let (from, to) = (with_range(0), with_range(last));
    let mut text = match ranges {
        Some((first, last)) if first.0 <= last.1 && last.0 <= first.1 => {
            format!("{ends} shows no change beyond the spread of the runs: {from} and {to}")
        }
        _ => {
            let times = decimal(rates[last] / rates[0], 2);
            format!("{ends} went from {from} to {to} ({times} times)")
        }
    };
    let best = rates.iter().position(|qps| *qps == high).unwrap_or(0);
    if high > rates[last] * (1.0 + SAME) && best > 0 {
        text.push_str(&format!("; it was highest at {}: {}", at(best), rate(high)));
    }
    text
}

/// `TCP: `, or nothing where there is only one line.
fn line_name(collection: &Collection, axis: usize, cell: &Cell) -> String {
    let words = collection.words(cell, Some(axis));
    match words.is_empty() {
        true => String::new(),
        false => format!("{}: ", words.join(", ")),
    }
}

/// Transports as a share of UDP at the far end of a sweep.
fn shares(collection: &Collection) -> Vec<Remark> {
    let Some(sweep) = Sweep::of(collection) else {
        return Vec::new();
    };
    let shares = sweep.last_shares();
    let Some((_, at, _)) = shares.first() else {
        return Vec::new();
    };
    let each = shares
        .iter()
        .map(|(name, _, share)| format!("{name} {}", percent(*share)));
    let each: Vec<String> = each.collect();
    let text = format!("at {at}, of the rate over UDP: {}", each.join("; "));
    vec![shows(text, "share")]
}

/// Cells whose rates are the same: then what they differ in is not what limits them.
fn alike(collection: &Collection) -> Vec<Remark> {
    let cells: Vec<&Cell> = collection.cells.iter().collect();
    let is_told = collection.axis().is_some() || comparison_of(collection).is_some();
    if cells.len() < 2 || cells.len() > CELLS_TOLD_MAX || is_told {
        return Vec::new();
    }
    let mut remarks = Vec::new();
    for pair in cells.windows(2) {
        let rates = collection
            .achieved(pair[0])
            .zip(collection.achieved(pair[1]));
        let Some((first, second)) = rates else {
            continue;
        };
        let apart = (first - second).abs() / first.max(second).max(1.0);
        if apart > SAME {
            continue;
        }
        let (a, b) = (collection.name(pair[0]), collection.name(pair[1]));
        remarks.push(shows(
            format!(
                "{a} and {b} reached the same rate ({} and {}, {} apart)",
                rate(first),
                rate(second),
                percent(apart)
            ),
            "results",
        ));
        let both = [pair[0], pair[1]];
        let mut records = both.into_iter().flat_map(|cell| collection.records(cell));
        if records.all(|record| record.verdict.limit == Limit::Unknown) {
            remarks.push(limit(
                format!(
                    "these runs do not show the limit of {a} and {b}: the verdict on each is \
                        unknown, so what they differ in was not tested"
                ),
                "results",
            ));
        }
    }
    remarks
}

fn losses(collection: &Collection) -> Option<Remark> {
    let is_counted = |cell: &&Cell| collection.counted(cell).next().is_some();
    let cells = collection.cells.iter().filter(is_counted).count();
    if cells == 0 {
        return None;
    }
    let lossy = collection.cells.iter().filter(|cell| {
        let mut records = collection.counted(cell);
        records.any(|record| record.total.counts.lost() > 0)
    });
    let lossy: Vec<String> = lossy.map(|cell| collection.name(cell)).collect();
    let text = match lossy.len() {
        0 => "no query was lost in any run".to_owned(),
        few if few <= CELLS_TOLD_MAX && few < cells => {
            format!("queries were lost with {} only", lossy.join("; "))
        }
        many => format!(
            "queries were lost in {} of {}",
            count(many as u64),
            counted(cells as u64, "scenario")
        ),
    };
    Some(shows(text, "outcomes"))
}

/// Closed loops with all places in use: latency times rate is the number of places.
fn littles_law(collection: &Collection) -> Option<Remark> {
    let is_full_cell = |cell: &&Cell| {
        let mut counted = collection.counted(cell).peekable();
        counted.peek().is_some() && counted.all(is_full)
    };
    let full: Vec<&Cell> = collection.cells.iter().filter(is_full_cell).collect();
    if full.is_empty() || full.len() > CELLS_TOLD_MAX {
        return None;
    }
    let places = collection
        .counted(full[0])
        .find_map(RunRecord::outstanding)?;
    let same = |cell: &&Cell| {
        collection
            .counted(cell)
            .all(|it| it.outstanding() == Some(places))
    };
    if !full.iter().all(same) {
        return None;
    }
    let each = full.iter().filter_map(|cell| {
        let mean_s = collection.metric(cell, Metric::Mean)?.value / 1e9;
        let qps = collection.achieved(cell)?;
        // Medians of runs that differ may have a product that none of them has.
        let in_flight = mean_s * qps;
        let is_possible = in_flight <= places as f64 * (1.0 + SAME);
        is_possible.then(|| format!("{} ({})", decimal(in_flight, 1), collection.name(cell)))
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() {
        return None;
    }
    Some(limit(
        format!(
            "mean latency times rate is {} queries in flight, of the {} allowed: latency was set \
             by the number outstanding and says no more than the rate",
            each.join(", "),
            count(places)
        ),
        "results",
    ))
}

/// The decisive evidence of each cell, where there are few, and how often each limit came up.
fn limits(collection: &Collection) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if collection.cells.len() <= CELLS_TOLD_MAX {
        let told = collection.cells.iter().filter_map(|cell| {
            let verdict = &collection.records(cell).next()?.verdict;
            let evidence = verdict.evidence.first()?;
            let words = format!("{} \u{2013} {evidence}", verdict.limit.name());
            Some((collection.name(cell), words))
        });
        let told = alike_in_words(told).into_iter();
        remarks.extend(told.map(|(text, names)| limit(with_names(text, &names), "runs")));
        return remarks;
    }
    let all = [
        (Limit::Server, "the target was the limit"),
        (
            Limit::Policy,
            "a rule or a limit was met, of the target or before it",
        ),
        (
            Limit::Generator,
            "the generator was the limit, so they say nothing about the target",
        ),
        (Limit::Network, "drops on the path were the limit"),
        (
            Limit::Outstanding,
            "the number of queries allowed in flight was the limit",
        ),
        (Limit::Rate, "the rate asked for was held"),
        (Limit::Unknown, "the figures do not show what the limit was"),
    ];
    let runs = collection.runs.len() as u64;
    for (each, words) in all {
        let of = collection
            .runs
            .iter()
            .filter(|it| it.record.verdict.limit == each)
            .count();
        if of > 0 {
            let of = count(of as u64);
            remarks.push(limit(
                format!("in {of} of {} {words}", counted(runs, "run")),
                "runs",
            ));
        }
    }
    remarks
}

/// That some runs say nothing about the target; which they are, and why, is beside the results.
fn left_out(collection: &Collection) -> Option<Remark> {
    let number = collection.left_out().count() as u64;
    let text = format!(
        "{} of {} measured the generator or its host and are left out of figures and charts",
        count(number),
        counted(collection.runs.len() as u64, "run")
    );
    (number > 0).then(|| limit(text, "results"))
}

/// True if the hosts are alike one by one; the same ones or not.
fn are_like(hosts: &[HostFacts], others: &[HostFacts]) -> bool {
    let mut pairs = hosts.iter().zip(others);
    hosts.len() == others.len() && pairs.all(|(one, other)| one.is_like(other))
}

/// What a reader must know before comparing the runs.
fn cautions(collection: &Collection) -> Vec<Remark> {
    let mut remarks = Vec::new();
    let records = || collection.runs.iter().map(|source| &source.record);
    let first = &collection.runs[0].record;
    let mut caution = |is_so: bool, text: &str| {
        if is_so {
            remarks.push(limit(text.to_owned(), ""));
        }
    };
    caution(
        records().any(|it| !are_like(&it.hosts, &first.hosts)),
        "the generating hosts differ between the runs, which alone may change the rates",
    );
    caution(
        records().any(|it| it.throng_version != first.throng_version),
        "the runs were made by different versions of throng",
    );
    caution(
        records().any(|it| it.scenario.duration_ns != first.scenario.duration_ns),
        "the runs are of different lengths",
    );
    caution(
        collection.cells.iter().any(|cell| cell.runs.len() == 1) && collection.cells.len() > 1,
        "one run of a scenario shows no spread: a small difference may be noise",
    );
    caution(
        records().any(|it| it.self_test),
        "the target was the responder built into this tool: the figures are those of both",
    );
    caution(
        records().any(|it| it.simulation.is_some()),
        "some runs are simulations: none of their figures was measured on a network or a server",
    );
    let share = |it: &RunRecord| Metric::GeneratorCpu.of(it).unwrap_or(0.0);
    let busy = records().filter(|it| share(it) >= 0.9).count();
    if busy > 0 {
        let text = format!(
            "in {} of {} the generator used 90 % or more of a CPU",
            count(busy as u64),
            counted(collection.runs.len() as u64, "run")
        );
        remarks.push(limit(text, "cpu"));
    }
    remarks
}

/// What `throng doctor` finds in the runs together, as evidence and cures.
fn found_together(collection: &Collection) -> Vec<Remark> {
    let records: Vec<&RunRecord> = collection.runs.iter().map(|it| &it.record).collect();
    let mut remarks = Vec::new();
    for diagnosis in doctor::of_runs(&records) {
        let cures = diagnosis.cures.iter().map(Cure::sentence);
        let cures = cures.map(|text| Remark::new(Subject::Advice, text, ""));
        let text = format!("{}: {}", diagnosis.topic, diagnosis.seen);
        remarks.push(limit(text, "runs"));
        remarks.extend(cures);
    }
    remarks
}

/// The cures of a run that matter beside those of others: the first one of its limit, and those of
/// problems.
fn cures_of(record: &RunRecord) -> Vec<String> {
    let diagnoses = doctor::of_run(record);
    let mut cures = Vec::new();
    for (at, diagnosis) in diagnoses.iter().enumerate() {
        let is_problem = diagnosis.state == doctor::State::Problem;
        let number = match (at, is_problem) {
            (_, true) => diagnosis.cures.len(),
            (0, false) => 1,
            _ => 0,
        };
        cures.extend(diagnosis.cures.iter().take(number).map(Cure::sentence));
    }
    cures
}

/// The advice of the verdicts. What most scenarios have in common comes first.
fn advice(collection: &Collection) -> Vec<Remark> {
    let each = collection.cells.iter().flat_map(|cell| {
        let advice = collection.records(cell).next().map(cures_of);
        let name = collection.name(cell);
        let advice = advice.unwrap_or_default().into_iter();
        advice.map(move |text| (name.clone(), text))
    });
    let mut found = alike_in_words(each);
    found.sort_by_key(|(_, names)| std::cmp::Reverse(names.len()));
    let all = collection.cells.len();
    let each = found.into_iter().take(ADVICE_MAX).map(|(text, names)| {
        let is_general = !text.contains(|letter: char| letter.is_ascii_digit());
        let text = match names.len() == all && is_general {
            true => text,
            false => with_names(text, &names),
        };
        Remark::new(Subject::Advice, text, "")
    });
    each.collect()
}

/// Sentences by name, each once: those that differ in their figures alone are the same, and told
/// with the figures of the first.
fn alike_in_words(each: impl Iterator<Item = (String, String)>) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, String, Vec<String>)> = Vec::new();
    for (name, text) in each {
        let words = |part: &str| {
            let is_figure = part.starts_with(|letter: char| letter.is_ascii_digit());
            let is_unit = matches!(
                part.trim_end_matches(&[')', ':', ','][..]),
                "us" | "ms" | "s"
            );
            (!is_figure && !is_unit).then(|| part.to_owned())
        };
        let key: Vec<String> = text.split(' ').filter_map(words).collect();
        let key = key.join(" ");
        match found.iter_mut().find(|it| it.0 == key) {
            Some((_, _, names)) => names.push(name),
            None => found.push((key, text, vec![name])),
        }
    }
    found
        .into_iter()
        .map(|(_, text, names)| (text, names))
        .collect()
}

fn with_names(text: String, names: &[String]) -> String {
    match names {
        [only] => format!("{only}: {text}"),
        [first, others @ ..] => {
            let others = counted(others.len() as u64, "further scenario");
            let text = text.trim_end_matches(';');
            format!("{first}: {text}; likewise for {others}")
        }
        [] => text,
    }
}
