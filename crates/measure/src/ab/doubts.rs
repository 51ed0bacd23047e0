//! Whether two sides may be compared at all.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Side;
use crate::limit::Limit;
use crate::notation::counted;
use crate::record::RunRecord;

/// Objections to a comparison, one sentence each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// Differences that make a comparison meaningless.
    pub refusals: Vec<String>,
    /// Differences that make it doubtful.
    pub warnings: Vec<String>,
}

/// Keys of the scenario in which sides may differ: the compared setting, or irrelevant ones.
const OF_THE_TARGET: [&str; 5] = ["target", "server_name", "seed", "cpus", "labels"];

/// Looks for what speaks against comparing the two sides.
pub fn doubts(a: &Side<'_>, b: &Side<'_>) -> Doubts {
    let mut doubts = Doubts::default();
    let Some((_, first)) = a.runs.first() else {
        return doubts;
    };
    for (name, side) in [("A", a), ("B", b)] {
        doubts.of_generator(name, side);
        for (file, record) in &side.runs {
            doubts.of_records(first, record, &format!("{name} ({file})"));
            if !record.merged_by_force.is_empty() {
                doubts.warnings.push(format!(
                    "{name} ({file}) was merged by force from runs that were not one concurrent \
                        load on one target: its rates never existed"
                ));
            }
        }
    }
    let limits = |side: &Side<'_>| -> BTreeSet<&str> {
        let runs = side.runs.iter();
        runs.map(|(_, record)| record.verdict.limit.name())
            .collect()
    };
    let (of_a, of_b) = (limits(a), limits(b));
    if of_a != of_b {
        doubts.warnings.push(format!(
            "what limited the runs differs: {} in A, {} in B",
            listed(&of_a),
            listed(&of_b)
        ));
    }
    for list in [&mut doubts.refusals, &mut doubts.warnings] {
        let mut seen = BTreeSet::new();
        list.retain(|line| seen.insert(line.clone()));
    }
    doubts
}

fn listed(names: &BTreeSet<&str>) -> String {
    let names: Vec<&str> = names.iter().copied().collect();
    names.join(" and ")
}

impl Doubts {
    fn of_generator(&mut self, name: &str, side: &Side<'_>) {
        let of_generator = side
            .runs
            .iter()
            .filter(|(_, record)| record.verdict.limit == Limit::Generator);
        let number = of_generator.count();
        if number > 0 {
            self.warnings.push(format!(
                "{name} measured the generator, not the target, in {number} of {}",
                counted(side.runs.len() as u64, "run")
            ));
        }
    }

    fn of_records(&mut self, first: &RunRecord, other: &RunRecord, whose: &str) {
        let keys = differing_keys(first, other);
        if !keys.is_empty() {
            self.refusals.push(format!(
                "the scenario of {whose} differs from that of A's first run: {}",
                keys.join(", ")
            ));
        }
        let host = |record: &RunRecord| {
            let hosts = record.hosts.iter();
            hosts
                .map(|host| (host.cpu_model.clone(), host.cores, host.memory_octets))
                .collect::<Vec<_>>()
        };
        if host(first) != host(other) {
            self.refusals.push(format!(
                "{whose} ran on another host than A's first run (CPU, cores or memory differ)"
            ));
        }
        let kinds = |record: &RunRecord| (record.driver, record.self_test, record.generators);
        if kinds(first) != kinds(other) {
            self.refusals.push(format!(
                "{whose} is another kind of run than A's first (driver, self-test or generators)"
            ));
        }
        let system = |record: &RunRecord| {
            let hosts = record.hosts.iter();
            hosts
                .map(|host| {
                    (
                        host.kernel.clone(),
                        host.governor.clone(),
                        host.sysctls.clone(),
                    )
                })
                .collect::<Vec<_>>()
        };
        if system(first) != system(other) {
            self.warnings.push(
                "kernel, CPU governor or kernel parameters of the host were not the same".into(),
            );
        }
        self.of_servers(first, other);
        if first.throng_version != other.throng_version {
            self.warnings.push(format!(
                "generators differ: throng {} and {}",
                first.throng_version, other.throng_version
            ));
        }
    }
}

impl Doubts {
    /// Servers that were observed, each beside the one in its place.
    fn of_servers(&mut self, first: &RunRecord, other: &RunRecord) {
        for (one, two) in first.observations.iter().zip(&other.observations) {
            if one.profile != two.profile {
                continue;
            }
            let differing = one.facts.differing(&two.facts);
            if !differing.is_empty() {
                self.warnings.push(format!(
                    "what {} is was not the same: {}",
                    one.name(),
                    differing.join(", ")
                ));
            }
        }
    }
}

/// Keys of the scenario that differ and may not.
fn differing_keys(one: &RunRecord, other: &RunRecord) -> Vec<String> {
    let keys = |record: &RunRecord| match serde_json::to_value(&record.scenario) {
        Ok(Value::Object(keys)) => keys,
        _ => serde_json::Map::new(),
    };
    let (one, other) = (keys(one), keys(other));
    let all: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let mut differing = Vec::new();
    for key in all {
        if OF_THE_TARGET.contains(&key.as_str()) || one.get(key) == other.get(key) {
            continue;
        }
        let text = |value: Option<&Value>| value.map_or_else(|| "none".into(), short);
        differing.push(format!(
            "{key} {} and {}",
            text(one.get(key)),
            text(other.get(key))
        ));
    }
    differing
}

/// A value as text that fits into a sentence.
fn short(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
