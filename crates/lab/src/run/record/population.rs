//! What several groups of clients were together.

use engine::Outcome;
use measure::ScriptRecord;
use measure::experience::GroupRecord;
use measure::interval::Interval;
use measure::scenario::{Arrival, ScenarioRecord, Transport};

use crate::run::RunRequest;

/// The scenario of the whole run: that of its only group, or what the groups have in common. Where
/// they differ, the groups of the record tell.
pub(super) fn scenario(groups: &[RunRequest], outcome: &Outcome) -> ScenarioRecord {
    let each = groups.iter().enumerate();
    let mut each = each.map(|(group, request)| super::scenario(request, group, outcome));
    let mut whole = each.next().expect("a run has a group of clients");
    for other in each {
        join(&mut whole, other);
    }
    whole
}

/// Each group with what it measured.
pub(super) fn groups(groups: &[RunRequest], outcome: &Outcome) -> Vec<GroupRecord> {
    let record = |(group, request): (usize, &RunRequest)| {
        let intervals = engine::merged(outcome.of_group(group).map(|worker| &worker.intervals));
        let mut total = Interval::total(&intervals);
        total.shrink_to_fit();
        GroupRecord {
            name: request.group.clone(),
            clients: request.plan.clients.into(),
            scenario: super::scenario(request, group, outcome),
            total,
            experience: None,
            script: script(outcome, group),
        }
    };
    groups.iter().enumerate().map(record).collect()
}

/// What the scripts of all workers of a group did.
fn script(outcome: &Outcome, group: usize) -> Option<ScriptRecord> {
    let each = outcome.of_group(group);
    let mut each = each.filter_map(|worker| worker.summary.script.clone());
    let first = each.next()?;
    Some(each.fold(first, |mut all, one| {
        all.merge(&one);
        all
    }))
}

fn join(whole: &mut ScenarioRecord, other: ScenarioRecord) {
    if whole.transport != other.transport {
        whole.transport = Transport::Mixed;
    }
    join_words(&mut whole.target, &other.target);
    join_words(&mut whole.questions.source, &other.questions.source);
    whole.questions.count = whole.questions.count.max(other.questions.count);
    whole.arrival = Arrival::Clients {
        rate_qps: rate_qps(whole).zip(rate_qps(&other)).map(|(a, b)| a + b),
    };
    if whole.per_client != other.per_client {
        whole.per_client = None;
    }
    if whole.script != other.script {
        whole.script = None;
    }
    if whole.shape != other.shape {
        whole.shape = None;
    }
    whole.clients += other.clients;
    whole.workers = whole.workers.max(other.workers);
    whole.timeout_ns = whole.timeout_ns.max(other.timeout_ns);
    let queries = whole.queries_max.zip(other.queries_max);
    whole.queries_max = queries.map(|(a, b)| a.saturating_add(b));
    for address in other.local_addresses {
        if !whole.local_addresses.contains(&address) {
            whole.local_addresses.push(address);
        }
    }
    if whole.connections != other.connections {
        whole.connections = measure::scenario::ConnectionPolicy::default();
    }
    whole.http = whole.http.take().or(other.http);
    whole.tls = whole.tls.take().or(other.tls);
    whole.edns = whole.edns.take().or(other.edns);
    whole.tcp_fallback |= other.tcp_fallback;
}

fn join_words(whole: &mut String, other: &str) {
    if !whole.split(", ").any(|known| known == other) {
        whole.push_str(", ");
        whole.push_str(other);
    }
}

/// Mean queries a second that the clients want to ask; none if responses set it.
fn rate_qps(scenario: &ScenarioRecord) -> Option<f64> {
    match scenario.arrival {
        Arrival::Open { rate_qps, .. } => Some(rate_qps),
        Arrival::Clients { rate_qps } => rate_qps,
        Arrival::Closed { .. } => None,
    }
}
