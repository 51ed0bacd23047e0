//! What a search for a target's capacity has found, as text, JSON and CSV.

use std::fmt::Write;

use measure::Capacity;
use measure::capacity::{Purpose, Quantiles, Sought, Trial, TrialOutcome};
use measure::notation::{chosen_fraction, counted, fraction, latency, percent, rate, seconds};
use measure::scenario::DriverKind;

use crate::table::{Align, Table};
use crate::text::questions;

/// The result for people, its answer first, ending in a line break.
pub fn text(capacity: &Capacity) -> String {
    text_with(capacity, &format!("\nTrials\n{}", trials(capacity)))
}

/// The same where the trials are on the screen already.
pub fn text_below_trials(capacity: &Capacity) -> String {
    text_with(capacity, "")
}

fn text_with(capacity: &Capacity, trials: &str) -> String {
    let mut text = what_was_sought(capacity);
    let _ = write!(text, "\nCapacity\n{}", answer(capacity));
    if !capacity.latency.is_empty() {
        let _ = write!(text, "\nLatency below the limit\n{}", latencies(capacity));
    }
    let _ = write!(text, "\nSearch\n{}", search(capacity));
    text.push_str(trials);
    if !capacity.notes.is_empty() {
        text.push('\n');
    }
    for note in &capacity.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

/// The result as JSON, ending in a line break.
pub fn json(capacity: &Capacity) -> String {
    let mut json = capacity.to_json_pretty();
    json.push('\n');
    json
}

/// In a line.
fn what_was_sought(capacity: &Capacity) -> String {
    let scenario = &capacity.scenario;
    let kind = match (capacity.driver, capacity.self_test) {
        (DriverKind::Sim, _) => "SIMULATION in virtual time, ",
        (_, true) => "self-test, ",
        _ => "",
    };
    let target = scenario.server_name.as_ref().unwrap_or(&scenario.target);
    format!(
        "throng {}: {kind}capacity of {target} over {}\n",
        capacity.throng_version, scenario.transport
    )
}

/// What the trials were made of.
fn search(capacity: &Capacity) -> String {
    let scenario = &capacity.scenario;
    let mut table = Table::new([Align::Left, Align::Left]);
    let facts = &capacity.search;
    let load = match (facts.sought, facts.rate_per_client_qps) {
        (Sought::Clients, Some(each)) => format!("clients that ask {} each", rate(each)),
        _ => format!(
            "open loop; {}, {}",
            counted(scenario.clients, "client"),
            counted(scenario.workers, "worker")
        ),
    };
    table.row(["load".into(), load]);
    table.row(["questions".into(), questions::questions(scenario)]);
    table.row(["sustained means".into(), capacity.objective.text()]);
    table.row([
        "trials".into(),
        format!(
            "{} of {}, {} in all",
            capacity.trials.len(),
            seconds(facts.trial_ns),
            seconds(capacity.elapsed_ns)
        ),
    ]);
    table.text()
}

/// What was sustained, where the limit is, and what it is.
pub(crate) fn answer_rows(capacity: &Capacity) -> Vec<[String; 2]> {
    let (answer, sought) = (&capacity.answer, capacity.search.sought);
    let mut rows = Vec::new();
    let long = answer.confirmation.as_ref();
    let length = seconds(capacity.search.length_ns(Purpose::Confirmation));
    let failed = long.and_then(|it| it.failed);
    let what = match (answer.value, answer.is_lower_bound) {
        (None, _) if failed.is_some() => format!(
            "unknown; {} was not, for {length}",
            sought.text(failed.unwrap_or_default())
        ),
        (None, _) => format!(
            "nothing from {} on was sustained",
            sought.text(lowest(capacity))
        ),
        (Some(value), true) => format!("at least {}", sought.text(value)),
        (Some(value), false) => sought.text(value),
    };
    rows.push(["sustained".into(), what]);
    if let (Some(low), Some(high)) = (answer.low, answer.high) {
        let sure = match answer.confidence {
            Some(confidence) => format!(
                "{} confidence, {}",
                percent(confidence),
                counted(capacity.rounds.len() as u64, "round")
            ),
            None if long.is_some_and(|it| it.rate_limit.is_some()) => {
                "what passed and what was admitted all the time".into()
            }
            None => "what passed and what failed".into(),
        };
        let interval = format!("{} to {}  ({sure})", sought.text(low), sought.text(high));
        rows.push(["limit between".into(), interval]);
    }
    if let Some(passed) = long.and_then(|it| it.passed) {
        let at = sought.text(passed);
        rows.push([
            "confirmed by".into(),
            format!("a trial of {length} at {at}"),
        ]);
    }
    rows.push(["limited by".into(), limited_by(capacity)]);
    rows
}

fn answer(capacity: &Capacity) -> String {
    let answer = &capacity.answer;
    let mut table = Table::new([Align::Left, Align::Left]);
    let rows = answer_rows(capacity);
    rows.into_iter().for_each(|row| table.row(row));
    let mut text = String::new();
    table.write_to(&mut text);
    for line in &answer.evidence {
        let _ = writeln!(text, "  - {line}");
    }
    for line in &answer.advice {
        let _ = writeln!(text, "  advice: {line}");
    }
    text
}

/// The lowest value that was tried.
fn lowest(capacity: &Capacity) -> f64 {
    let values = capacity.trials.iter().map(|trial| trial.value);
    values.fold(f64::INFINITY, f64::min)
}

/// What the limit is, in words.
pub(crate) fn limited_by(capacity: &Capacity) -> String {
    use measure::Limit;
    let because = &capacity.answer.cannot_tell;
    if !because.is_empty() {
        return format!("cannot tell: {}", because.join("; "));
    }
    let confirmation = capacity.answer.confirmation.as_ref();
    let is_bucket = confirmation.is_some_and(|it| it.rate_limit.is_some());
    let words = match capacity.answer.limit {
        Limit::Policy if is_bucket => {
            "a limit on the rate (token bucket), not what a server can do"
        }
        Limit::Policy => "a rule or a limit, not what a server can do",
        Limit::Server => "the server",
        Limit::Generator => "the generator: the target may do more",
        Limit::Network => "the network, as this host sees it",
        Limit::Rate => "what was asked for: the target may do more",
        Limit::Outstanding | Limit::Unknown => "unknown",
    };
    words.into()
}

fn latencies(capacity: &Capacity) -> String {
    let mut table = Table::new([Align::Right; 9]);
    table.row(
        [
            "of it", "load", "offered", "p50", "p95", "p99", "p99.9", "max", "lost",
        ]
        .map(str::to_owned),
    );
    for row in &capacity.latency {
        let index = usize::try_from(row.trial.saturating_sub(1)).unwrap_or(usize::MAX);
        let Some(trial) = capacity.trials.get(index) else {
            continue;
        };
        let quantile = |of: fn(&Quantiles) -> u64| {
            let ns = trial.latency.as_ref().map(of);
            ns.map_or_else(|| "-".into(), |ns| latency(ns as f64))
        };
        table.row([
            chosen_fraction(row.share),
            capacity.search.sought.text(trial.value),
            rate(trial.offered_qps),
            quantile(|it| it.p50_ns),
            quantile(|it| it.p95_ns),
            quantile(|it| it.p99_ns),
            quantile(|it| it.p999_ns),
            quantile(|it| it.max_ns),
            fraction(trial.lost_share),
        ]);
    }
    let mut text = String::new();
    table.write_to(&mut text);
    text.push_str(
        "  from the instant at which each query was due: an open loop hides no \
        waiting\n",
    );
    text
}

fn trials(capacity: &Capacity) -> String {
    let align = [
        Align::Right,
        Align::Right,
        Align::Left,
        Align::Right,
        Align::Right,
        Align::Left,
    ];
    let mut table = Table::new(align);
    for (trial, position) in capacity.trials.iter().zip(1..) {
        table.row(cells(capacity.search.sought, position, trial));
    }
    let mut text = String::new();
    table.write_to(&mut text);
    text
}

/// A row of the table of trials.
pub(crate) fn cells(sought: Sought, position: usize, trial: &Trial) -> [String; 6] {
    let p99 = trial.latency.as_ref().map(|it| latency(it.p99_ns as f64));
    [
        position.to_string(),
        sought.text(trial.value),
        match (trial.purpose, trial.outcome) {
            (Purpose::Confirmation, TrialOutcome::Passed) => "confirmed",
            (_, TrialOutcome::Generator) => "generator",
            (_, TrialOutcome::Host) => "host",
            (_, TrialOutcome::Outage) => "outage",
            (_, TrialOutcome::Failed) => "failed",
            (Purpose::Search, TrialOutcome::Passed) => "passed",
            (Purpose::Latency, TrialOutcome::Passed) => "latency",
        }
        .into(),
        format!("p99 {}", p99.as_deref().unwrap_or("-")),
        format!("lost {}", fraction(trial.lost_share)),
        match trial.outcome {
            TrialOutcome::Passed => String::new(),
            TrialOutcome::Failed => trial.breaches.join("; "),
            TrialOutcome::Generator | TrialOutcome::Host | TrialOutcome::Outage => {
                trial.excuse.as_ref().unwrap_or(&trial.evidence).clone()
            }
        },
    ]
}

/// One line on a trial as it ends, without a line break.
pub fn trial_line(sought: Sought, position: usize, trial: &Trial) -> String {
    let [position, value, outcome, p99, lost, why] = cells(sought, position, trial);
    let line = format!("trial {position:>2}  {value:>15}  {outcome:<9}  {p99:<14}  {lost}  {why}");
    line.trim_end().to_owned()
}

/// Name and meaning of every column of [`csv`], in order.
pub const CSV_COLUMNS: [(&str, &str); 14] = [
    ("trial", "position from 1"),
    ("purpose", "search, confirmation or latency"),
    ("value", "rate in queries a second, or number of clients"),
    (
        "outcome",
        "passed, failed, or generator or host: says nothing",
    ),
    ("offered_qps", "queries scheduled a second"),
    ("achieved_qps", "responses a second"),
    (
        "lost_percent",
        "share of the offered queries without response",
    ),
    (
        "goodput_percent",
        "share of responses with an RCODE of the goodput set",
    ),
    (
        "latency_p50_us",
        "median latency from the scheduled instant",
    ),
    ("latency_p95_us", "its 95th percentile"),
    ("latency_p99_us", "its 99th percentile"),
    ("latency_p999_us", "its 99.9th percentile"),
    ("latency_max_us", "the longest"),
    ("limit", "what limited the trial"),
];

/// The trials as CSV with a header line; lines end in CR LF as RFC 4180 says.
pub fn csv(capacity: &Capacity) -> String {
    let names = CSV_COLUMNS.map(|(name, _)| name);
    let mut csv = format!("{}\r\n", names.join(","));
    for (trial, position) in capacity.trials.iter().zip(1..) {
        let _ = write!(csv, "{}\r\n", csv_cells(trial, position).join(","));
    }
    csv
}

fn csv_cells(trial: &Trial, position: u64) -> [String; CSV_COLUMNS.len()] {
    let quantile = |of: fn(&Quantiles) -> u64| {
        let us = trial.latency.as_ref().map(|it| of(it) as f64 / 1e3);
        us.map_or_else(String::new, |us| format!("{us:.3}"))
    };
    [
        position.to_string(),
        match trial.purpose {
            Purpose::Search => "search",
            Purpose::Confirmation => "confirmation",
            Purpose::Latency => "latency",
        }
        .into(),
        format!("{:.3}", trial.value),
        match trial.outcome {
            TrialOutcome::Passed => "passed",
            TrialOutcome::Failed => "failed",
            TrialOutcome::Generator => "generator",
            TrialOutcome::Host => "host",
            TrialOutcome::Outage => "outage",
        }
        .into(),
        format!("{:.3}", trial.offered_qps),
        format!("{:.3}", trial.achieved_qps),
        format!("{:.4}", 100.0 * trial.lost_share),
        format!("{:.4}", 100.0 * trial.goodput_share),
        quantile(|it| it.p50_ns),
        quantile(|it| it.p95_ns),
        quantile(|it| it.p99_ns),
        quantile(|it| it.p999_ns),
        quantile(|it| it.max_ns),
        trial.limit.name().into(),
    ]
}
