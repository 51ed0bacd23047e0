//! Whether the runs of several records were one concurrent load on one target.

use std::collections::BTreeSet;

use crate::notation::{percent, seconds};
use crate::record::{Agent, RunRecord};
use crate::scenario::{Arrival, ScenarioRecord};
use crate::scope::CounterScope;

/// Shared part of the windows of two runs, of what both cover together: generators that are started
/// by hand are not there in the same instant, and with less in common a sum of their rates is one
/// that never was.
const SHARED_MIN: f64 = 0.9;

/// Something that speaks against merging records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// What, and of which records by their positions from 1.
    pub reason: String,
    /// Insisting does not help: the merged figures would have no meaning.
    pub is_final: bool,
}

impl Misfit {
    pub(super) fn nothing() -> Misfit {
        Misfit {
            reason: "there is no record to merge".to_owned(),
            is_final: true,
        }
    }

    pub(super) fn too_much(reason: String) -> Vec<Misfit> {
        vec![Misfit {
            reason: format!("together they are {reason}"),
            is_final: true,
        }]
    }
}

/// All that speaks against merging these records.
pub(super) fn misfits(records: &[RunRecord]) -> Vec<Misfit> {
    let mut found = Vec::new();
    for (index, record) in records.iter().enumerate().skip(1) {
        let (first, before) = (&records[0], &records[..index]);
        let position = index + 1;
        let is_final = |reason| Misfit {
            reason,
            is_final: true,
        };
        found.extend(unlike(first, record, position).into_iter().map(is_final));
        let others = different_load(first, record, position).into_iter();
        let others = others.chain(repeated(before, record, position));
        let others = others.chain(not_concurrent(first, record, position));
        found.extend(others.map(|reason| Misfit {
            reason,
            is_final: false,
        }));
    }
    found
}

/// Fields of which each means something: its name, and its value in both records.
type Field = (&'static str, String, String);

fn differing(fields: impl IntoIterator<Item = Field>, position: usize) -> Vec<String> {
    let differing = fields
        .into_iter()
        .filter(|(_, of_first, of_record)| of_first != of_record);
    let words = differing.map(|(field, of_first, of_record)| {
        format!("{field} of record {position} is {of_record}, of record 1 {of_first}")
    });
    words.collect()
}

/// Figures that mean something else.
fn unlike(first: &RunRecord, record: &RunRecord, position: usize) -> Vec<String> {
    let (a, b) = (&first.scenario, &record.scenario);
    let kind = |scenario: &ScenarioRecord| match scenario.arrival {
        Arrival::Closed { .. } => "closed loop".to_string(),
        Arrival::Open { process, burst, .. } => match burst {
            1 => format!("open loop, {process:?}"),
            _ => format!("open loop, {process:?}, bursts of {burst}"),
        },
        Arrival::Clients { .. } => "each client by itself".to_string(),
    };
    let schema = |it: &RunRecord| it.schema_version.clone();
    let goodput = |it: &ScenarioRecord| format!("{:?}", it.goodput_rcodes);
    let transport = |it: &ScenarioRecord| it.transport.to_string();
    let fields = [
        ("schema_version", schema(first), schema(record)),
        ("scenario.transport", transport(a), transport(b)),
        (
            "scenario.interval_ns",
            a.interval_ns.to_string(),
            b.interval_ns.to_string(),
        ),
        ("scenario.arrival", kind(a), kind(b)),
        ("scenario.goodput_rcodes", goodput(a), goodput(b)),
    ];
    differing(fields, position)
}

/// Another target, or a load that is not a part of the same.
fn different_load(first: &RunRecord, record: &RunRecord, position: usize) -> Vec<String> {
    let (a, b) = (&first.scenario, &record.scenario);
    let target = |it: &ScenarioRecord| it.server_name.clone().unwrap_or_else(|| it.target.clone());
    let questions = |it: &ScenarioRecord| match a.questions.are_like(&b.questions) {
        true => String::new(),
        false => format!("{} of {}", it.questions.count, it.questions.source),
    };
    let kind = |it: &RunRecord| match (&it.simulation, it.self_test) {
        (Some(_), _) => "simulated".to_owned(),
        (None, true) => "a self-test".to_owned(),
        (None, false) => "against a server".to_owned(),
    };
    let length = |it: &ScenarioRecord| it.duration_ns.map_or("none".to_owned(), seconds);
    let fields = [
        ("the kind", kind(first), kind(record)),
        ("scenario.questions", questions(a), questions(b)),
        ("scenario.duration_ns", length(a), length(b)),
        (
            "scenario.warmup_ns",
            seconds(a.warmup_ns),
            seconds(b.warmup_ns),
        ),
        (
            "scenario.timeout_ns",
            seconds(a.timeout_ns),
            seconds(b.timeout_ns),
        ),
    ];
    let mut reasons = Vec::new();
    // One name can lead two generators to two addresses of one service.
    if a.target != b.target && target(a) != target(b) {
        let (of_first, of_record) = (&a.target, &b.target);
        reasons.push(format!(
            "the target of record {position} is {of_record}, of record 1 {of_first}"
        ));
    }
    let network = CounterScope::NetworkNamespace;
    let is_same_host = record
        .hosts
        .iter()
        .all(|host| first.hosts.iter().any(|it| network.is_shared(it, host)));
    if a.target == b.target && is_loopback(&a.target) && !is_same_host {
        let target = &a.target;
        reasons.push(format!(
            "the target {target} of record {position} is its own host, and not that of record 1"
        ));
    }
    reasons.extend(differing(fields, position));
    reasons
}

fn is_loopback(target: &str) -> bool {
    let address = target.parse::<std::net::SocketAddr>();
    address.is_ok_and(|address| address.ip().is_loopback())
}

/// A run that is there already.
fn repeated(before: &[RunRecord], record: &RunRecord, position: usize) -> Option<String> {
    let ids = |record: &RunRecord| -> BTreeSet<String> {
        record.agents.iter().map(|run| run.id.clone()).collect()
    };
    let own = ids(record);
    let is_there = |other: &RunRecord| !ids(other).is_disjoint(&own) || other == record;
    let other = before.iter().position(is_there)? + 1;
    Some(format!(
        "record {position} has a run that is in record {other} already"
    ))
}

/// Runs whose windows are not the same span of time.
fn not_concurrent(first: &RunRecord, record: &RunRecord, position: usize) -> Option<String> {
    let (Some(one), false) = (first.agents.first(), record.agents.is_empty()) else {
        return Some(format!(
            "when record {position} or record 1 measured is not known: of a simulation, or of an \
             older version"
        ));
    };
    let apart = |other: &&Agent| shared(one, other) < SHARED_MIN;
    let other = record.agents.iter().find(apart)?;
    let micros = |us: u64| seconds(us.saturating_mul(1_000));
    let when = match other.began_us >= one.began_us {
        true => format!("{} after", micros(other.began_us - one.began_us)),
        false => format!("{} before", micros(one.began_us - other.began_us)),
    };
    Some(format!(
        "record {position} measured for {}, from {when} record 1, which measured for {}: they \
         share {} of their time",
        micros(other.window_us),
        micros(one.window_us),
        percent(shared(one, other))
    ))
}

/// Share of what two windows cover together that is in both, 0 to 1; as much as the errors of their
/// clocks allow.
fn shared(one: &Agent, other: &Agent) -> f64 {
    let error = |agent: &Agent| agent.clock_error_us.unwrap_or(0) as f64;
    let errors = error(one) + error(other);
    let (one_us, other_us) = (one.window_us as f64, other.window_us as f64);
    let offset = (one.began_us.abs_diff(other.began_us) as f64 - errors).max(0.0);
    let (earlier, later) = match one.began_us <= other.began_us {
        true => (one_us, other_us),
        false => (other_us, one_us),
    };
    let both = (earlier.min(offset + later) - offset).max(0.0);
    let either = earlier.max(offset + later);
    if either > 0.0 { both / either } else { 1.0 }
}

/// A warning where clocks of different hosts tell when the runs were, and one is not kept.
pub(super) fn clocks(merged: &RunRecord) -> Option<String> {
    let is_unkept = |agent: &Agent| agent.clock_error_us.is_none();
    (merged.hosts.len() > 1 && merged.agents.iter().any(is_unkept)).then(|| {
        "the clock of a generating host is not synchronised: how concurrent the runs were is not \
         known"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(began_us: u64, window_us: u64, clock_error_us: Option<u64>) -> Agent {
        Agent {
            id: String::new(),
            host: 0,
            began_us,
            window_us,
            clock_error_us,
            ..Agent::default()
        }
    }

    #[test]
    fn windows_share_what_both_cover_of_what_either_does() {
        let cases = [
            ((0, 10, None), (0, 10, None), 1.0),
            ((0, 10, None), (5, 10, None), 5.0 / 15.0),
            ((5, 10, None), (0, 10, None), 5.0 / 15.0),
            ((0, 10, None), (10, 10, None), 0.0),
            ((0, 10, None), (50, 10, None), 0.0),
            ((0, 10, None), (2, 4, None), 0.4),
            ((0, 3, None), (0, 1, None), 1.0 / 3.0),
            ((0, 10, Some(2)), (5, 10, Some(3)), 1.0),
            ((0, 0, None), (0, 0, None), 1.0),
        ];
        for ((a, la, ea), (b, lb, eb), expected) in cases {
            let found = shared(&window(a, la, ea), &window(b, lb, eb));
            assert!(
                (found - expected).abs() < 1e-9,
                "{a} {la} {b} {lb}: {found}"
            );
        }
    }
}
