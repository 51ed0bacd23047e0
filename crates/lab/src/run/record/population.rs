//! What several groups of clients were together.

use std::net::SocketAddr;
use std::time::Duration;

use engine::Outcome;
use measure::RunRecord;
use measure::ScriptRecord;
use measure::experience::{ClientExperience, GroupRecord};
use measure::interval::Interval;
use measure::scenario::{Arrival, ConnectionPolicy, Presence, ScenarioRecord, Transports};
use measure::target::{TargetRecord, merge_targets};

use crate::run::RunRequest;

/// The scenario of the whole run: that of its only group, or what the groups have in common. Where
/// they differ, the groups of the record tell.
pub(super) fn scenario(groups: &[RunRequest], outcome: &Outcome) -> ScenarioRecord {
    let each = groups.iter().enumerate();
    let each = each.map(|(group, request)| super::scenario(request, group, outcome));
    let each: Vec<ScenarioRecord> = each.collect();
    let (first, others) = each.split_first().expect("a run has a group of clients");
    let mut whole = first.clone();
    if others.is_empty() {
        return whole;
    }
    for other in others {
        join(&mut whole, other);
    }
    whole.presence = Presence::default();
    whole.clients = present_max(&each);
    whole.arrival = Arrival::Clients {
        rate_qps: rate_qps(&each),
    };
    whole
}

/// Most clients that were there at a time.
fn present_max(groups: &[ScenarioRecord]) -> u64 {
    let there_at = |at: Duration| {
        let present = groups.iter().filter(|group| {
            let presence = &group.presence;
            presence.joins_after <= at && presence.leaves_after.is_none_or(|left| at < left)
        });
        present.map(|group| group.clients).sum::<u64>()
    };
    let joins = groups.iter().map(|group| group.presence.joins_after);
    joins.map(there_at).max().unwrap_or(0)
}

/// Mean queries a second that the clients wanted to ask while they were there; none if responses
/// set it.
fn rate_qps(groups: &[ScenarioRecord]) -> Option<f64> {
    let each = groups.iter().map(|group| {
        let rate = match group.arrival {
            Arrival::Open { rate_qps, .. } => rate_qps,
            Arrival::Clients { rate_qps } => rate_qps?,
            Arrival::Closed { .. } => return None,
        };
        let Some(length_ns) = group.duration_ns else {
            return Some(rate);
        };
        let end = Duration::from_nanos(length_ns + group.warmup_ns);
        let left = group.presence.leaves_after.unwrap_or(end).min(end);
        let there = left.saturating_sub(group.presence.joins_after);
        Some(rate * there.as_nanos() as f64 / end.as_nanos() as f64)
    });
    each.sum()
}

/// Each group with what it measured.
pub(super) fn groups(groups: &[RunRequest], outcome: &Outcome) -> Vec<GroupRecord> {
    let record = |(group, request): (usize, &RunRequest)| GroupRecord {
        name: request.group.clone(),
        clients: super::clients(&request.plan, group, outcome),
        scenario: super::scenario(request, group, outcome),
        total: total(outcome, group),
        timeline: match groups.len() {
            1 => None,
            _ => super::timeline(outcome, outcome.of_group(group)),
        },
        experience: experience(outcome, group),
        script: script(outcome, group),
    };
    unite(groups.iter().enumerate().map(record))
}

/// What the clients of one group measured.
fn total(outcome: &Outcome, group: usize) -> Interval {
    let mut total = outcome.totals[group].clone();
    total.shrink_to_fit();
    total
}

/// Each target with what was measured of it; none if there is only one.
pub(super) fn targets(groups: &[RunRequest], outcome: &Outcome) -> Vec<TargetRecord> {
    let mut targets = Vec::new();
    for (group, request) in groups.iter().enumerate() {
        let goodput_rcodes = &request.asked.goodput_rcodes;
        let of_group = targets_of(group, request, outcome);
        merge_targets(&mut targets, of_group, goodput_rcodes);
    }
    if targets.len() == 1 {
        targets.clear();
    }
    targets
}

/// The targets of one group: its own, or the servers that its clients choose from.
fn targets_of(group: usize, request: &RunRequest, outcome: &Outcome) -> Vec<TargetRecord> {
    let plan = &request.plan;
    let whole = total(outcome, group);
    let clients = super::clients(plan, group, outcome);
    let goodput_rcodes = &request.asked.goodput_rcodes;
    let typed = super::server_name(&request.asked);
    let typed = typed.as_deref();
    let target = |place: usize, address: SocketAddr, messages, total| {
        let name = typed.and_then(|names| names.split(", ").nth(place));
        let names = (address.to_string(), name.map(str::to_owned));
        TargetRecord::new(names, (clients, messages), total, goodput_rcodes)
    };
    let servers = plan.stub.as_ref().map(|stub| stub.servers.as_slice());
    let Some(servers) = servers.filter(|servers| servers.len() > 1) else {
        let messages = whole.counts.sent + whole.counts.stub.retransmitted;
        return vec![target(0, plan.target, messages, whole)];
    };
    let of_server = |(place, address): (usize, &SocketAddr)| {
        let mut own = Interval {
            start_ns: whole.start_ns,
            end_ns: whole.end_ns,
            ..Interval::default()
        };
        for worker in outcome.of_group(group) {
            if let Some(measured) = worker.summary.servers.get(place) {
                own.counts.add(&measured.counts);
                own.distributions.merge(&measured.distributions);
            }
        }
        own.shrink_to_fit();
        let sent = whole.counts.stub.sent_by_server.get(place);
        target(place, *address, sent.copied().unwrap_or_default(), own)
    };
    servers.iter().enumerate().map(of_server).collect()
}

/// Names the groups of a run in parts, which have had their positions for names, and looks at all
/// of them together.
pub(crate) fn finish(record: &mut RunRecord, requests: &[RunRequest]) {
    let position = |group: &GroupRecord| group.name.parse().unwrap_or(usize::MAX);
    record.groups.sort_by_key(position);
    let scenarios = record.groups.iter().map(|group| group.scenario.clone());
    let scenarios: Vec<ScenarioRecord> = scenarios.collect();
    record.scenario.clients = present_max(&scenarios);
    let named = std::mem::take(&mut record.groups)
        .into_iter()
        .map(|mut group| {
            if let Some(request) = requests.get(position(&group)) {
                group.name.clone_from(&request.group);
            }
            group
        });
    record.groups = unite(named);
}

/// The groups, each name once.
fn unite(groups: impl Iterator<Item = GroupRecord>) -> Vec<GroupRecord> {
    let mut records: Vec<GroupRecord> = Vec::new();
    for record in groups {
        // Parts of a group have its name: those that left on the way, or that asked another target.
        let known = records.iter_mut().find(|known| known.name == record.name);
        match known {
            None => records.push(record),
            Some(known) => {
                join_words(&mut known.scenario.target, &record.scenario.target);
                known.merge(&record);
                // What one part did tells a reader that they were not all alike.
                if known.scenario.presence == Presence::default() {
                    known.scenario.presence = record.scenario.presence;
                }
            }
        }
    }
    records
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

/// How the clients of a group fared, in the order of their numbers; none if that was not kept.
fn experience(outcome: &Outcome, group: usize) -> Option<ClientExperience> {
    let mut all = ClientExperience::default();
    for worker in outcome.of_group(group) {
        all.merge(worker.summary.experience.as_ref()?);
    }
    all.shrink_to_fit();
    Some(all)
}

fn join(whole: &mut ScenarioRecord, other: &ScenarioRecord) {
    if whole.transport != other.transport {
        whole.transport = Transports::Mixed;
    }
    join_words(&mut whole.target, &other.target);
    join_words(&mut whole.questions.source, &other.questions.source);
    whole.questions.count = whole.questions.count.max(other.questions.count);
    if whole.per_client != other.per_client {
        whole.per_client = None;
    }
    if whole.script != other.script {
        whole.script = None;
    }
    if whole.profile != other.profile {
        whole.profile = None;
    }
    if whole.replay != other.replay {
        whole.replay = None;
    }
    if whole.shape != other.shape {
        whole.shape = None;
    }
    whole.workers = whole.workers.max(other.workers);
    whole.timeout_ns = whole.timeout_ns.max(other.timeout_ns);
    let queries = whole.queries_max.zip(other.queries_max);
    whole.queries_max = queries.map(|(a, b)| a.saturating_add(b));
    for address in &other.local_addresses {
        if !whole.local_addresses.contains(address) {
            whole.local_addresses.push(address.clone());
        }
    }
    if whole.stub != other.stub {
        whole.stub = None;
    }
    if whole.connections != other.connections {
        whole.connections = ConnectionPolicy::default();
    }
    let (http, tls, edns) = (&other.http, &other.tls, &other.edns);
    whole.http = whole.http.take().or_else(|| http.clone());
    whole.tls = whole.tls.take().or_else(|| tls.clone());
    whole.edns = whole.edns.take().or_else(|| edns.clone());
    whole.tcp_fallback |= other.tcp_fallback;
}

fn join_words(whole: &mut String, other: &str) {
    if !whole.split(", ").any(|known| known == other) {
        whole.push_str(", ");
        whole.push_str(other);
    }
}
