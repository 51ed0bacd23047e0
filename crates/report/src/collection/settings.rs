//! What was asked of a run, as one flat map: every field of the scenario by its path.

use std::collections::BTreeMap;

use measure::ScenarioRecord;
use serde_json::Value;

/// Settings by path, such as `connections.reconnect_delay_ns`.
pub(super) type Settings = BTreeMap<String, Value>;

/// What repeats of a run may differ in: nothing else is asked of the target by it, or it is what
/// came of it. Labels, target and rates are looked at by themselves.
const OF_NO_CONCERN: [&str; 14] = [
    "seed",
    "cpus",
    "labels",
    "target",
    "server_name",
    "interval_ns",
    "local_addresses",
    "local_port",
    "goodput_rcodes",
    "tls.name",
    "tls.version",
    "tls.cipher_suite",
    "tls.group",
    "tls.alpn",
];

/// The label that says what a server of the lab has, instead of where the questions about it are.
pub(super) const DATA: &str = "data";

/// What differs with each start of such a server.
const OF_EACH_START: [&str; 2] = ["questions.source", "http.authority"];

/// The settings of a scenario.
pub(super) fn of(scenario: &ScenarioRecord) -> Settings {
    let mut all = Settings::new();
    let is_of_lab = scenario.labels.contains_key(DATA);
    if let Ok(value) = serde_json::to_value(scenario) {
        flatten("", value, &mut all);
    }
    if is_of_lab {
        all.retain(|name, _| !OF_EACH_START.contains(&name.as_str()));
    }
    all
}

fn flatten(path: &str, value: Value, all: &mut Settings) {
    if OF_NO_CONCERN.contains(&path) {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(&format!("{path}{dot}{name}"), value, all);
            }
        }
        Value::Null => {}
        value => {
            all.insert(path.to_owned(), value);
        }
    }
}

/// The paths at which two runs differ.
pub(super) fn differing(first: &Settings, second: &Settings) -> Vec<String> {
    let paths = first.keys().chain(second.keys());
    let differ = |path: &&String| first.get(*path) != second.get(*path);
    paths.filter(differ).cloned().collect()
}

/// A path as a name for people: `connections, reconnect delay, ns`.
pub(super) fn name(path: &str) -> String {
    let spaced = path.replace('.', ", ").replace('_', " ");
    match spaced.strip_suffix(" ns") {
        Some(time) => format!("{time}, ns"),
        None => spaced,
    }
}
