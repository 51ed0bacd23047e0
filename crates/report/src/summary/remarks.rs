//! What is remarkable in a record, the most important first. All of it was concluded by `measure`.

use measure::doctor::{self, State};
use measure::notation::{count, counted, latency};
use measure::record::EndedBy;
use measure::{Interval, RunRecord, SteadyState, TargetRecord};

use crate::events;
use crate::text::figures::or_dash;
use crate::text::scripts;
use crate::text::sections::anomalies;

/// Groups and targets that have a line before all remarks.
const COMPARED_MAX: usize = 4;

/// How important a remark is, the most important first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Why the run ended early.
    End,
    /// What a reader of several groups or targets compares.
    Compared,
    Problem,
    Warning,
    Evidence,
    Change,
    Anomaly,
    Event,
    /// Evidence without a rule: it repeats figures.
    Context,
}

/// The remarks, a sentence each without full stop.
pub(super) fn remarks(record: &RunRecord) -> Vec<String> {
    let mut ranked = of_verdict(record);
    let mut add = |rank, texts: Vec<String>| {
        ranked.extend(texts.into_iter().map(|text| (rank, text)));
    };
    add(Rank::Problem, scripts::failures(record));
    let (ends, warnings) = (record.warnings.iter().cloned())
        .partition(|it| record.ended_by == EndedBy::Aborted && it.starts_with("--abort-if"));
    add(Rank::End, ends);
    add(Rank::Warning, warnings);
    for mut compared in [groups(record), targets(record)] {
        let rest = compared.split_off(compared.len().min(COMPARED_MAX));
        add(Rank::Compared, compared);
        add(Rank::Context, rest);
    }
    add(Rank::Evidence, agents(record));
    add(Rank::Change, slow_clients(record).into_iter().collect());
    let course = SteadyState::in_record(record);
    add(
        Rank::Change,
        course.map_or_else(Vec::new, |it| it.changes()),
    );
    add(Rank::Anomaly, odd(record).into_iter().collect());
    add(Rank::Event, events::lines(record));
    ranked.sort_by_key(|(rank, _)| *rank);
    let decisive = record.verdict.evidence.first();
    let mut remarks: Vec<String> = Vec::new();
    for (_, text) in ranked {
        if Some(&text) != decisive && !text.is_empty() && !remarks.contains(&text) {
            remarks.push(text);
        }
    }
    remarks
}

/// The verdict's other evidence, and what else the run met that is no good.
fn of_verdict(record: &RunRecord) -> Vec<(Rank, String)> {
    let diagnoses = doctor::of_run(record);
    // Of a run without a response the verdict has all that is known.
    let is_answered = record.asks_nothing() || record.total.counts.responses > 0;
    let met = diagnoses.iter().skip(1).filter(|_| is_answered);
    let met = met.filter_map(|it| Some((rank(it.state)?, it.seen.clone())));
    let rank_of = |text: &String| {
        let diagnosis = diagnoses.iter().find(|it| it.seen == *text);
        diagnosis.map_or(Rank::Context, |it| rank(it.state).unwrap_or(Rank::Evidence))
    };
    let evidence = record.verdict.evidence.iter().skip(1);
    let evidence = evidence.map(|text| (rank_of(text), text.clone()));
    evidence.chain(met).collect()
}

fn rank(state: State) -> Option<Rank> {
    match state {
        State::Problem => Some(Rank::Problem),
        State::Warning => Some(Rank::Warning),
        State::Ok | State::Unknown => None,
    }
}

/// A line for each of several groups of clients.
fn groups(record: &RunRecord) -> Vec<String> {
    match record.groups.len() {
        0 | 1 => Vec::new(),
        _ => {
            let groups = record.groups.iter();
            groups.map(|it| compared(&it.name, &it.total)).collect()
        }
    }
}

/// A line for each of several targets.
fn targets(record: &RunRecord) -> Vec<String> {
    let line =
        |it: &TargetRecord| compared(it.server_name.as_ref().unwrap_or(&it.target), &it.total);
    record.targets.iter().map(line).collect()
}

/// What became of the queries of a group, or to a target.
fn compared(name: &str, total: &Interval) -> String {
    let (counts, latencies) = (&total.counts, &total.distributions.latency);
    format!(
        "{name}: {} of {} answered, p50 {}, p99 {}",
        count(counts.responses),
        counted(counts.offered, "query"),
        or_dash(latencies.percentile(0.5)),
        or_dash(latencies.percentile(0.99))
    )
}

/// Agents that a rule names.
fn agents(record: &RunRecord) -> Vec<String> {
    let named = record.agents.iter().enumerate();
    let named = named.filter_map(|(position, agent)| {
        let rule = agent.limited_by.as_ref()?;
        (record.agents.len() > 1).then(|| format!("{}: {rule}", record.agent_name(position)))
    });
    named.collect()
}

fn slow_clients(record: &RunRecord) -> Option<String> {
    let (median, worst) = record.experience()?.slow_clients()?;
    Some(format!(
        "clients differ: p99 {} or more of the worst 1 %, {} of the median client",
        latency(worst as f64),
        latency(median as f64)
    ))
}

/// `3 late, 1 duplicate`
fn odd(record: &RunRecord) -> Option<String> {
    let each = anomalies(record).map(|(what, number, _)| format!("{} {what}", count(number)));
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("anomalies: {}", each.join(", ")))
}
