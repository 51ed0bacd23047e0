//! What a record says of its run, as texts by name.

use std::collections::BTreeMap;

use measure::observation::ServerFacts;
use measure::record::EndedBy;
use measure::scenario::Arrival;
use measure::{HostFacts, RunRecord};

/// Names of facts that every run has; all others are labels of the user.
pub const FIXED_FACTS: [&str; 10] = [
    "arrival",
    "clients",
    "driver",
    "ended",
    "host",
    "limit",
    "started",
    "target",
    "throng",
    "transport",
];

/// All facts of a run. A label that has the name of another fact is called `label.NAME`.
pub(crate) fn of(record: &RunRecord) -> BTreeMap<String, String> {
    let scenario = &record.scenario;
    let target = match (&scenario.server_name, record.self_test) {
        (_, true) => "self-test".to_owned(),
        (Some(name), _) => name.clone(),
        (None, _) => scenario.target.clone(),
    };
    let hosts: Vec<String> = record.hosts.iter().map(host).collect();
    let mut facts = BTreeMap::from([
        ("arrival".to_owned(), arrival(record)),
        ("clients".to_owned(), scenario.clients.to_string()),
        ("driver".to_owned(), json_word(&record.driver)),
        ("ended".to_owned(), ended(record.ended_by).to_owned()),
        ("host".to_owned(), hosts.join("; ")),
        ("limit".to_owned(), json_word(&record.verdict.limit)),
        ("started".to_owned(), record.started_at.clone()),
        ("target".to_owned(), target),
        ("throng".to_owned(), record.throng_version.clone()),
        ("transport".to_owned(), json_word(&scenario.transport)),
    ]);
    for (name, value) in &scenario.labels {
        let is_taken = FIXED_FACTS.contains(&name.as_str());
        let name = if is_taken {
            format!("label.{name}")
        } else {
            name.clone()
        };
        facts.insert(name, value.clone());
    }
    // A label says more than what was observed.
    for (name, value) in observed(record) {
        facts.entry(name.to_owned()).or_insert(value);
    }
    facts
}

/// What the observed server is: the product, and its version.
fn observed(record: &RunRecord) -> Vec<(&'static str, String)> {
    let servers = record.servers().into_iter().map(|it| it.observation());
    let programs = record.programs().into_iter().map(|it| it.observation());
    let all: Vec<_> = servers.take(1).chain(programs.take(1)).collect();
    let first = |fact: fn(&ServerFacts) -> &Option<String>| {
        all.iter().find_map(|it| fact(&it.facts).clone())
    };
    let facts = [
        ("server", first(|it| &it.product)),
        ("version", first(|it| &it.version)),
    ];
    let known = facts.into_iter();
    known
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

fn arrival(record: &RunRecord) -> String {
    let scenario = &record.scenario;
    match (&scenario.script, &scenario.per_client, scenario.arrival) {
        (Some(script), ..) => format!("script {script}"),
        (None, Some(each), _) => format!("each {each}"),
        (None, None, Arrival::Closed { outstanding, .. }) => format!("closed {outstanding}"),
        (None, None, Arrival::Open { rate_qps, .. }) => format!("open {rate_qps}"),
        (None, None, Arrival::Clients { .. }) => "each".to_owned(),
    }
}

/// The generating host, as far as records tell: its CPU, how many of them, its kernel.
fn host(facts: &HostFacts) -> String {
    let cores = facts.cores.map(|cores| format!("{cores} cores"));
    let words = [facts.cpu_model.clone(), cores, facts.kernel.clone()];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn ended(by: EndedBy) -> &'static str {
    match by {
        EndedBy::Duration => "duration",
        EndedBy::Queries => "queries",
        EndedBy::TargetGone => "target gone",
        EndedBy::Aborted => "aborted",
        EndedBy::Interrupted => "interrupted",
        EndedBy::AgentLost => "agent lost",
        EndedBy::Killed => "killed",
    }
}

/// The word that stands for a variant in the record's JSON.
fn json_word(variant: &impl serde::Serialize) -> String {
    let json = serde_json::to_value(variant).unwrap_or_default();
    json.as_str().unwrap_or_default().to_owned()
}
