//! Exact merging of the records of several generators that ran one scenario together.
//!
//! Counts add, histograms add bucket by bucket, intervals merge by position, groups of clients by
//! name, workers and hosts are listed, and a kernel's counters count once in their scope. Nothing
//! is averaged, so percentiles of the merged record are those of all responses. Records whose
//! figures have different meanings are refused. So are those of runs that were not one concurrent
//! load on one target, unless the caller insists; the record then notes it. Other differences are
//! kept from the first record and named in `warnings`.

mod fitness;

use std::collections::BTreeMap;

use crate::agent_counts::AgentCounts;
use crate::degraded::Degraded;
use crate::experience::{GroupRecord, merge_groups};
use crate::facts::{NetworkFacts, TcpFacts, XdpFacts};
use crate::instances::Instances;
use crate::interval::Interval;
use crate::losses_by_question::LossesByQuestion;
use crate::record::RunRecord;
use crate::scenario::{ConnectionPolicy, ScenarioRecord, TlsFacts};
use crate::scope;
use crate::target::{self, TargetRecord};
use crate::timeline::Timeline;

pub use fitness::Misfit;

#[cfg(test)]
mod tests;

/// How to treat runs that were not one concurrent load on one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfits {
    /// Refuse them.
    Refused,
    /// Merge them as far as their figures have the same meaning, and note it in the record.
    Forced,
}

/// Merges records in order. One record is returned as it is.
///
/// The window is the longest one. The verdict is judged anew from the merged figures.
///
/// # Errors
/// No record, or records that do not fit: everything that speaks against merging them. Records that
/// count more together than a record holds do not either.
pub fn merge(mut records: Vec<RunRecord>, misfits: Misfits) -> Result<RunRecord, Vec<Misfit>> {
    let mut found = fitness::misfits(&records);
    found.retain(|misfit| misfits == Misfits::Refused || misfit.is_final);
    if !found.is_empty() {
        return Err(found);
    }
    let reasons = fitness::misfits(&records).into_iter().map(|it| it.reason);
    let reasons: Vec<String> = reasons.collect();
    keep_own_counts(&mut records);
    let targets = targets(&records);
    let mut rest = records.into_iter();
    let mut merged = rest.next().ok_or_else(|| vec![Misfit::nothing()])?;
    let mut alone = true;
    for (index, record) in rest.enumerate() {
        add(&mut merged, record, index + 2);
        alone = false;
    }
    if !alone {
        count_hosts(&mut merged);
        merged.targets = targets;
        merged.merged_by_force.extend(reasons);
        merged.conclude();
        merged.check_numbers().map_err(Misfit::too_much)?;
    }
    Ok(merged)
}

/// Merges the records of one generator's agents on its host, each with a share of the clients. All
/// ran the same plan at the same time, so only clients, workers and figures add up. The host's
/// counters, `network.kernel`, are left to the caller.
///
/// None if there is no record.
pub fn merge_local_agents(mut records: Vec<RunRecord>) -> Option<RunRecord> {
    keep_own_counts(&mut records);
    let mut merged = divided(records, |merged, record| {
        let generators = merged.generators;
        add_figures(merged, record);
        merged.generators = generators;
    })?;
    share_window(&mut merged);
    Some(merged)
}

/// As [`merge_local_agents`], where each agent has a row and a host that counts for itself.
pub fn merge_remote_agents(mut records: Vec<RunRecord>) -> Option<RunRecord> {
    keep_own_counts(&mut records);
    divided(records, add_figures)
}

/// Records with each agent what it counted itself, before the sum over all hides whose it was.
fn keep_own_counts(records: &mut [RunRecord]) {
    if records.len() < 2 {
        return;
    }
    for record in records {
        let drops = record.network.received_but_dropped();
        let counts = count_own(record);
        if let [agent] = &mut record.agents[..] {
            agent.receive_drops.get_or_insert(drops);
            agent.counts.get_or_insert(counts);
        }
    }
}

/// The counts of a record's only agent.
fn count_own(record: &RunRecord) -> AgentCounts {
    let (counts, distributions) = (&record.total.counts, &record.total.distributions);
    let failed = record.connections().failed;
    let (tcp, xdp) = (record.network.tcp.as_ref(), record.network.xdp.as_ref());
    let path = &distributions.path;
    let [wait_to_send_us, network_us, wait_to_read_us] =
        [&path.generator, &path.network, &path.reader]
            .map(|part| u64::try_from(part.sum_ns() / 1_000).unwrap_or(u64::MAX));
    AgentCounts {
        offered: counts.offered,
        sent: counts.sent,
        unanswered: counts.timeouts + counts.connection_losses,
        responses_in_window: Some(record.responses_in_window),
        lost: Some(counts.lost()),
        send_failed: counts.not_sent.send_failed,
        send_failed_for: counts.not_sent.send_failed_for,
        send_lateness_p99_ns: distributions.send_lateness.percentile(0.99),
        no_resources: failed.no_resources,
        no_local_port: failed.no_local_port,
        segments_sent: tcp.map_or(0, |it| it.segments_sent),
        segments_lost: tcp.map_or(0, TcpFacts::segments_lost),
        frames_dropped: xdp.map_or(0, XdpFacts::dropped_by_peer),
        wait_to_send_us,
        network_us,
        wait_to_read_us,
    }
}

/// Merges the records of a divided run; `add` adds the figures of one more.
fn divided(
    records: Vec<RunRecord>,
    mut add: impl FnMut(&mut RunRecord, RunRecord),
) -> Option<RunRecord> {
    let targets = targets(&records);
    let mut rest = records.into_iter();
    let mut merged = rest.next()?;
    let mut is_alone = true;
    for record in rest {
        add_clients(&mut merged.scenario, &record.scenario);
        add_groups_of_agent(&mut merged.groups, &record.groups);
        add(&mut merged, record);
        is_alone = false;
    }
    if !is_alone {
        count_hosts(&mut merged);
    }
    merged.targets = targets;
    merged.conclude();
    Some(merged)
}

/// The targets of all records; none if they have the same one.
fn targets(records: &[RunRecord]) -> Vec<TargetRecord> {
    let mut targets = Vec::new();
    for record in records {
        let goodput_rcodes = &record.scenario.goodput_rcodes;
        let own = match record.targets.is_empty() {
            false => record.targets.clone(),
            true => vec![only_target(record)],
        };
        target::merge_targets(&mut targets, own, goodput_rcodes);
    }
    if targets.len() == 1 {
        targets.clear();
    }
    targets
}

/// The only target of a run, or all together in a record that does not distinguish them.
fn only_target(record: &RunRecord) -> TargetRecord {
    let (scenario, total) = (&record.scenario, &record.total);
    let messages = total.counts.sent + total.counts.stub.retransmitted;
    TargetRecord::new(
        (scenario.target.clone(), scenario.server_name.clone()),
        (scenario.clients, messages),
        total.clone(),
        &scenario.goodput_rcodes,
    )
}

/// The agents made one run by one clock: it began with the first and ended with the last of them.
fn share_window(merged: &mut RunRecord) {
    let began_us = merged.agents.iter().map(|it| it.began_us).min();
    let window_us = merged.agents.iter().map(|it| it.window_us).max();
    for agent in &mut merged.agents {
        agent.began_us = began_us.unwrap_or(agent.began_us);
        agent.window_us = window_us.unwrap_or(agent.window_us);
    }
}

/// Adds the groups of another agent by their names.
fn add_groups_of_agent(groups: &mut Vec<GroupRecord>, others: &[GroupRecord]) {
    for other in others {
        let Some(group) = groups.iter_mut().find(|group| group.name == other.name) else {
            groups.push(other.clone());
            continue;
        };
        let mut scenario = group.scenario.clone();
        add_clients(&mut scenario, &other.scenario);
        group.merge(other);
        group.scenario = scenario;
    }
}

/// Adds what an agent had of the clients to the scenario of all.
fn add_clients(merged: &mut ScenarioRecord, other: &ScenarioRecord) {
    merged.clients += other.clients;
    merged.workers += other.workers;
    // Negotiated with the first connection; an agent may have had none.
    let negotiated = |tls: &Option<TlsFacts>| tls.as_ref().is_some_and(|tls| tls.version.is_some());
    if !negotiated(&merged.tls) && other.tls.is_some() {
        merged.tls.clone_from(&other.tls);
    }
}

/// Adds `record` to `merged`; `total` and `verdict` are left to the caller.
fn add(merged: &mut RunRecord, record: RunRecord, position: usize) {
    let differing = differing_fields(merged, &record);
    merge_groups(&mut merged.groups, record.groups.clone());
    merged.scenario.merge(record.scenario.clone());
    add_new(&mut merged.merged_by_force, record.merged_by_force.clone());
    add_new(&mut merged.asked, record.asked.clone());
    add_figures(merged, record);
    let warnings = differing
        .into_iter()
        .map(|field| format!("{field} of record {position} differs from that of record 1"));
    add_new(&mut merged.warnings, warnings.collect());
    if let Some(warning) = fitness::clocks(merged) {
        add_new(&mut merged.warnings, vec![warning]);
    }
}

/// Adds the hosts that are not there yet, what each of them counted, and who was there: agents and
/// workers. `count_hosts` is left to the caller.
fn add_hosts(merged: &mut RunRecord, record: &mut RunRecord) {
    let mut kernels = take_kernels(&mut merged.network, merged.hosts.len());
    let others = take_kernels(&mut record.network, record.hosts.len());
    let mut positions = Vec::new();
    for (host, kernel) in record.hosts.drain(..).zip(others) {
        let known = merged.hosts.iter().position(|other| other.is(&host));
        let position = known.unwrap_or(merged.hosts.len());
        positions.push(position as u64);
        if known.is_none() {
            merged.hosts.push(host);
            kernels.push(kernel);
            continue;
        }
        // Runs on one host have seen the same growth, each as far as it overlapped.
        for (name, count) in kernel {
            let most = kernels[position].entry(name).or_default();
            *most = (*most).max(count);
        }
    }
    let place_of = |host: u64| positions.get(host as usize).copied().unwrap_or_default();
    let agents_before = merged.agents.len() as u64;
    for mut agent in record.agents.drain(..) {
        agent.host = place_of(agent.host);
        merged.agents.push(agent);
    }
    for mut worker in record.workers.drain(..) {
        worker.host = place_of(worker.host);
        worker.agent = worker.agent.map(|own| agents_before + own);
        merged.workers.push(worker);
    }
    merged.network.kernel_of_hosts = kernels;
}

/// The kernel counters of all hosts, each once in its scope.
fn count_hosts(merged: &mut RunRecord) {
    let RunRecord { network, hosts, .. } = merged;
    if !hosts.is_empty() {
        network.kernel = scope::count_once(hosts, &network.kernel_of_hosts);
    }
    if hosts.len() <= 1 {
        network.kernel_of_hosts.clear();
    }
}

/// The kernel counters of each host. Those that cannot be attributed count for the first.
fn take_kernels(network: &mut NetworkFacts, hosts: usize) -> Vec<BTreeMap<String, u64>> {
    let mut kernels = std::mem::take(&mut network.kernel_of_hosts);
    if kernels.is_empty() && hosts > 0 {
        kernels.push(std::mem::take(&mut network.kernel));
    }
    kernels.resize(hosts, BTreeMap::new());
    kernels
}

/// Adds everything that was measured, but for the groups.
fn add_figures(merged: &mut RunRecord, mut record: RunRecord) {
    join_outages(merged, &record);
    add_hosts(merged, &mut record);
    let width = merged.intervals_merged.max(record.intervals_merged);
    merged.widen_intervals(width);
    record.widen_intervals(width);
    merged.generators += record.generators;
    merged.agent_count += record.agent_count;
    merged.responses_in_window += record.responses_in_window;
    merged.measured_ns = merged.measured_ns.max(record.measured_ns);
    merged.started_at = merged.started_at.clone().min(record.started_at);
    merged.self_test |= record.self_test;
    merged.ended_by = merged.ended_by.max(record.ended_by);
    merged.aborted = merged.aborted.take().or(record.aborted.take());
    merged.conditions.clear();
    let phases = &mut merged.phases;
    phases.connect_ns = phases.connect_ns.max(record.phases.connect_ns);
    phases.warmup_ns = phases.warmup_ns.max(record.phases.warmup_ns);
    phases.run_ns = phases.run_ns.max(record.phases.run_ns);
    phases.drain_ns = phases.drain_ns.max(record.phases.drain_ns);
    merged.warmup.merge(&record.warmup);
    merged.network.add(&record.network);
    // Readings of one host at different times, or of several hosts, do not add up.
    merged.host_use = None;
    if let Some(responder) = &record.responder {
        merged.responder.get_or_insert_default().add(responder);
    }
    add_intervals(&mut merged.intervals, record.intervals);
    let losses = merged.losses_by_question.take();
    merged.losses_by_question = both(losses, record.losses_by_question, LossesByQuestion::merge);
    merged.instances = both(merged.instances.take(), record.instances, Instances::merge);
    merged.degraded = joined(merged.degraded.take(), record.degraded);
    Timeline::join(&mut merged.timeline, record.timeline.as_ref());
    merged.absent_agents.append(&mut record.absent_agents);
    merged.observations.append(&mut record.observations);
    merged.events.append(&mut record.events);
    add_new(&mut merged.warnings, record.warnings);
}

/// The sum of both counts; none if one of them is missing.
fn both<T>(own: Option<T>, other: Option<T>, merge: fn(&mut T, &T)) -> Option<T> {
    own.zip(other).map(|(mut own, other)| {
        merge(&mut own, &other);
        own
    })
}

/// The time after both results.
fn joined(merged: Option<Degraded>, other: Option<Degraded>) -> Option<Degraded> {
    match (merged, other) {
        (Some(mut merged), Some(other)) => {
            merged.lost.extend(other.lost);
            merged.survivors += other.survivors;
            add_intervals(&mut merged.intervals, other.intervals);
            merged.total = Interval::total(&merged.intervals);
            Some(merged)
        }
        (merged, other) => merged.or(other),
    }
}

/// Outages of both, unless both timelines show them.
fn join_outages(merged: &mut RunRecord, record: &RunRecord) {
    if merged.outages.is_some() || record.outages.is_some() {
        let each = merged.found_outages().zip(record.found_outages());
        merged.outages = each.map(|(own, other)| own.common(&other));
    }
}

/// Merges intervals by position; a longer list keeps its tail.
fn add_intervals(merged: &mut Vec<Interval>, others: Vec<Interval>) {
    for (index, other) in others.into_iter().enumerate() {
        match merged.get_mut(index) {
            Some(interval) => interval.merge(&other),
            None => merged.push(other),
        }
    }
}

/// Appends the items that are not there yet.
fn add_new<T: PartialEq>(items: &mut Vec<T>, others: Vec<T>) {
    for item in others {
        if !items.contains(&item) {
            items.push(item);
        }
    }
}

/// The part of a policy that has to be equal: all but the rate, which adds up.
fn alike(policy: ConnectionPolicy) -> ConnectionPolicy {
    ConnectionPolicy {
        rate_max: None,
        ..policy
    }
}

/// Names the fields that should be alike, are not, and keep the value of the first record.
fn differing_fields(first: &RunRecord, record: &RunRecord) -> Vec<&'static str> {
    let (a, b) = (&first.scenario, &record.scenario);
    let fields = [
        (
            "throng_version",
            first.throng_version != record.throng_version,
        ),
        ("driver", first.driver != record.driver),
        ("scenario.target", a.target != b.target),
        (
            "scenario.connections",
            alike(a.connections) != alike(b.connections),
        ),
        ("scenario.script", a.script != b.script),
        ("scenario.http", a.http != b.http),
        ("scenario.edns", a.edns != b.edns),
        (
            "scenario.edns_padding_octets",
            a.edns_padding_octets != b.edns_padding_octets,
        ),
        (
            "scenario.edns_keepalive",
            a.edns_keepalive != b.edns_keepalive,
        ),
        ("scenario.tcp_fallback", a.tcp_fallback != b.tcp_fallback),
        ("scenario.offload", a.offload != b.offload),
        ("scenario.timestamps", a.timestamps != b.timestamps),
        ("scenario.tls", a.tls != b.tls),
        (
            "scenario.tsig_algorithm",
            a.tsig_algorithm != b.tsig_algorithm,
        ),
        ("scenario.labels", a.labels != b.labels),
    ];
    fields
        .into_iter()
        .filter_map(|(name, differs)| differs.then_some(name))
        .collect()
}
