//! Exact merging of the records of several generators that ran one scenario together.
//!
//! Counts add, histograms add bucket by bucket, intervals merge by their position, groups of
//! clients by their names, workers and hosts are listed; nothing is averaged, so percentiles of the
//! merged record are those of all responses (P23). Records whose figures do not mean the same are
//! refused. What differs and does not change the meaning is kept from the first record and named in
//! `warnings`.

use crate::experience::{GroupRecord, merge_groups};
use crate::interval::Interval;
use crate::notation::seconds;
use crate::record::RunRecord;
use crate::scenario::{Arrival, ConnectionPolicy, ScenarioRecord, TlsFacts};
use crate::timeline::Timeline;

#[cfg(test)]
mod tests;

/// Merges records in order. One record is returned as it is.
///
/// The window is the longest one; rates of the result are exact if all ran at the same time.
/// The verdict is judged anew from the merged figures.
///
/// # Errors
/// No record, or a record that differs from the first one in schema version, transport, interval
/// length, kind of load or goodput set; the message names its position, from 1, and the field.
pub fn merge(records: Vec<RunRecord>) -> Result<RunRecord, String> {
    let mut rest = records.into_iter();
    let mut merged = rest.next().ok_or("no record to merge")?;
    let mut alone = true;
    for (index, record) in rest.enumerate() {
        check_alike(&merged, &record, index + 2)?;
        add(&mut merged, record, index + 2);
        alone = false;
    }
    if !alone {
        merged.conclude();
    }
    Ok(merged)
}

/// Merges what the processes of one generator measured, each of a part of the clients. All ran the
/// same plan at the same time, so nothing but clients, workers and figures adds up. What is the
/// host's and not the processes' own, `network.kernel`, is left to the caller.
///
/// None if there is no record.
pub fn merge_parts(records: Vec<RunRecord>) -> Option<RunRecord> {
    let mut rest = records.into_iter();
    let mut merged = rest.next()?;
    for record in rest {
        let generators = merged.generators;
        add_part(&mut merged.scenario, &record.scenario);
        add_groups_of_part(&mut merged.groups, &record.groups);
        add_figures(&mut merged, record);
        merged.generators = generators;
    }
    merged.conclude();
    Some(merged)
}

/// Adds the groups of a further part by their names.
fn add_groups_of_part(groups: &mut Vec<GroupRecord>, part: &[GroupRecord]) {
    for other in part {
        let Some(group) = groups.iter_mut().find(|group| group.name == other.name) else {
            groups.push(other.clone());
            continue;
        };
        let mut scenario = group.scenario.clone();
        add_part(&mut scenario, &other.scenario);
        group.merge(other);
        group.scenario = scenario;
    }
}

/// What a part of the clients adds to the scenario of all.
fn add_part(merged: &mut ScenarioRecord, part: &ScenarioRecord) {
    merged.clients += part.clients;
    merged.workers += part.workers;
    // Negotiated with the first connection; a part may have had none.
    let negotiated = |tls: &Option<TlsFacts>| tls.as_ref().is_some_and(|tls| tls.version.is_some());
    if !negotiated(&merged.tls) && part.tls.is_some() {
        merged.tls.clone_from(&part.tls);
    }
}

/// Refuses a record whose figures mean something else than those of the first.
fn check_alike(first: &RunRecord, record: &RunRecord, position: usize) -> Result<(), String> {
    let (a, b) = (&first.scenario, &record.scenario);
    let kind = |scenario: &ScenarioRecord| match scenario.arrival {
        Arrival::Closed { .. } => "closed loop".to_string(),
        Arrival::Open { process, burst, .. } => match burst {
            1 => format!("open loop, {process:?}"),
            _ => format!("open loop, {process:?}, bursts of {burst}"),
        },
        Arrival::Clients { .. } => "each client by itself".to_string(),
    };
    let fields = [
        (
            "schema_version",
            first.schema_version.clone(),
            record.schema_version.clone(),
        ),
        (
            "scenario.transport",
            a.transport.to_string(),
            b.transport.to_string(),
        ),
        (
            "scenario.interval_ns",
            a.interval_ns.to_string(),
            b.interval_ns.to_string(),
        ),
        ("scenario.arrival", kind(a), kind(b)),
        (
            "scenario.goodput_rcodes",
            format!("{:?}", a.goodput_rcodes),
            format!("{:?}", b.goodput_rcodes),
        ),
    ];
    match fields
        .into_iter()
        .find(|(_, of_first, of_record)| of_first != of_record)
    {
        None => Ok(()),
        Some((field, of_first, of_record)) => Err(format!(
            "record {position} cannot be merged with record 1: {field} is {of_record}, in \
             record 1 {of_first}"
        )),
    }
}

/// Adds `record` to `merged`; `total` and `verdict` are left to the caller.
fn add(merged: &mut RunRecord, record: RunRecord, position: usize) {
    let differing = differing_fields(merged, &record);
    let (window_ns, merged_window_ns) = (record.measured_ns, merged.measured_ns);
    merge_groups(&mut merged.groups, record.groups.clone());
    add_scenario(&mut merged.scenario, record.scenario.clone());
    add_figures(merged, record);
    let mut warnings: Vec<String> = differing
        .into_iter()
        .map(|field| format!("{field} of record {position} differs from that of record 1"))
        .collect();
    if merged_window_ns != window_ns {
        warnings.push(format!(
            "record {position} measured for {}, those before it for {}: rates are of the longer",
            seconds(window_ns),
            seconds(merged_window_ns)
        ));
    }
    add_new(&mut merged.warnings, warnings);
}

/// Adds everything that was measured, but for the groups.
fn add_figures(merged: &mut RunRecord, record: RunRecord) {
    merged.generators += record.generators;
    merged.processes += record.processes;
    merged.responses_in_window += record.responses_in_window;
    merged.measured_ns = merged.measured_ns.max(record.measured_ns);
    merged.started_at = merged.started_at.clone().min(record.started_at);
    merged.self_test |= record.self_test;
    merged.ended_by = merged.ended_by.max(record.ended_by);
    let phases = &mut merged.phases;
    phases.connect_ns = phases.connect_ns.max(record.phases.connect_ns);
    phases.warmup_ns = phases.warmup_ns.max(record.phases.warmup_ns);
    phases.run_ns = phases.run_ns.max(record.phases.run_ns);
    phases.drain_ns = phases.drain_ns.max(record.phases.drain_ns);
    merged.warmup.merge(&record.warmup);
    merged.network.add(&record.network);
    if let Some(responder) = &record.responder {
        merged.responder.get_or_insert_default().add(responder);
    }
    merged.workers.extend(record.workers);
    add_intervals(&mut merged.intervals, record.intervals);
    Timeline::join(&mut merged.timeline, record.timeline.as_ref());
    add_new(&mut merged.hosts, record.hosts);
    add_new(&mut merged.warnings, record.warnings);
}

/// Adds what adds up: clients, workers, places, rates; the rest stays as in the first record.
pub(crate) fn add_scenario(merged: &mut ScenarioRecord, other: ScenarioRecord) {
    merged.clients += other.clients;
    merged.workers += other.workers;
    merged.cpus.extend(other.cpus);
    merged.duration_ns = merged.duration_ns.max(other.duration_ns);
    merged.queries_max = both(merged.queries_max, other.queries_max, |a, b| a + b);
    add_new(&mut merged.local_addresses, other.local_addresses);
    let rates = (merged.connections.rate_max, other.connections.rate_max);
    merged.connections.rate_max = both(rates.0, rates.1, |a, b| a + b);
    match (&mut merged.arrival, other.arrival) {
        (
            Arrival::Closed {
                outstanding,
                rate_qps_max,
            },
            Arrival::Closed {
                outstanding: more,
                rate_qps_max: more_qps,
            },
        ) => {
            *outstanding += more;
            *rate_qps_max = both(*rate_qps_max, more_qps, |a, b| a + b);
        }
        (Arrival::Open { rate_qps, .. }, Arrival::Open { rate_qps: more, .. }) => *rate_qps += more,
        (Arrival::Clients { rate_qps }, Arrival::Clients { rate_qps: more }) => {
            *rate_qps = both(*rate_qps, more, |a, b| a + b);
        }
        // Refused before by `check_alike`.
        (Arrival::Closed { .. } | Arrival::Open { .. } | Arrival::Clients { .. }, _) => {}
    }
}

/// A limit that holds for the sum only if it held for both.
fn both<T>(a: Option<T>, b: Option<T>, sum: impl FnOnce(T, T) -> T) -> Option<T> {
    a.zip(b).map(|(a, b)| sum(a, b))
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

/// What should be alike in a policy: all but the rate, which adds up.
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
        ("simulation", first.simulation != record.simulation),
        ("self_test", first.self_test != record.self_test),
        ("scenario.target", a.target != b.target),
        ("scenario.questions", !a.questions.are_like(&b.questions)),
        ("scenario.warmup_ns", a.warmup_ns != b.warmup_ns),
        ("scenario.timeout_ns", a.timeout_ns != b.timeout_ns),
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
