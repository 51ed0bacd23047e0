//! Diagnoses from several runs together: labelled settings, and losses at several rates. Runs that
//! are not conclusive about their target are excluded ([`crate::left_out`]).

use std::collections::BTreeMap;

use super::{BUSY_POLL_US, Cure, Diagnosis, Place, State};
use crate::interval::per;
use crate::limit::Limit;
use crate::notation::{percent, rate};
use crate::record::RunRecord;
use crate::rules::unexplained_losses;
use crate::scenario::{Arrival, Transport};
use crate::statistics::median;

#[cfg(test)]
mod tests;

/// A setting helps if the rate rises by that share.
const RISE_MIN: f64 = 0.03;
/// Losses below this share of the queries sent are not compared.
const LOSS_MIN: f64 = 0.001;
/// Rates that far apart show whether losses depend on them.
const RATES_APART: f64 = 1.5;
/// Shares of losses that close are the same.
const LOSS_SAME: f64 = 1.3;

/// Labels that say what was seen rather than what was set.
const OBSERVED: [&str; 2] = ["server-cpu", "repeat"];

/// A setting of servers that people label runs with.
struct Setting {
    /// Its name in labels, without `-` and `_`.
    labels: &'static [&'static str],
    topic: &'static str,
    /// The value of it that may help.
    better: Better,
    matters: &'static str,
    cures: fn(&str) -> Vec<Cure>,
}

enum Better {
    Off,
    On,
    More,
}

const SETTINGS: [Setting; 4] = [
    Setting {
        labels: &["querylog", "querylogging", "logging", "log"],
        topic: "query logging",
        better: Better::Off,
        matters: "a server that writes a line for each query waits for its log and not for queries",
        cures: |_| {
            vec![
                Cure::new(Place::Rndc, "rndc querylog off"),
                Cure::named("querylog no;"),
                Cure::words(
                    "the other categories too, while measuring: logging { category default { null; \
                     }; };",
                ),
            ]
        },
    },
    Setting {
        labels: &["busypoll", "busyread", "busypolling"],
        topic: "busy polling",
        better: Better::On,
        matters: "a server that spins for packets answers more of them, at the cost of all its CPU",
        cures: |_| {
            vec![
                Cure::server_sysctl("net.core.busy_read", BUSY_POLL_US),
                Cure::server_sysctl("net.core.busy_poll", BUSY_POLL_US),
            ]
        },
    },
    Setting {
        labels: &["tcpclients"],
        topic: "TCP clients",
        better: Better::More,
        matters: "clients beyond the cap have no connection and send nothing",
        cures: |best| {
            vec![
                Cure::named(format!("tcp-clients {best};")),
                Cure::named("tcp-listen-queue 4096;"),
            ]
        },
    },
    Setting {
        labels: &["threads", "workerthreads", "workers"],
        topic: "worker threads",
        better: Better::More,
        matters: "each thread of a server keeps one CPU busy at most",
        cures: |best| {
            vec![
                Cure::new(Place::Server, format!("named -n {best}")),
                Cure::new(Place::UnboundConf, format!("num-threads: {best}")),
                Cure::new(Place::KnotConf, format!("udp-workers: {best}")),
            ]
        },
    },
];

/// Diagnoses from `records` together, beside those of each alone.
pub fn of_runs(records: &[&RunRecord]) -> Vec<Diagnosis> {
    let mut records = records.to_vec();
    records.retain(|it| it.why_left_out().is_none());
    let mut keys: Vec<&String> = records
        .iter()
        .flat_map(|it| it.scenario.labels.keys())
        .collect();
    keys.sort();
    keys.dedup();
    let settings = keys.into_iter().filter_map(|key| {
        let plain = key.to_lowercase().replace(['-', '_'], "");
        let setting = SETTINGS
            .iter()
            .find(|setting| setting.labels.contains(&plain.as_str()))?;
        compare(&records, key, setting)
    });
    settings.chain(lossy_path(&records)).collect()
}

/// Rates by value of the label `key`, of runs that are otherwise alike; of several such sets the
/// one with the largest rise. Runs that all achieved the requested rate do not count as different.
fn compare(records: &[&RunRecord], key: &str, setting: &Setting) -> Option<Diagnosis> {
    let mut sets: Vec<Set<'_>> = Vec::new();
    for record in records {
        let Some(value) = record.scenario.labels.get(key) else {
            continue;
        };
        let place = sets
            .iter()
            .position(|set| are_alike(set.first, record, key));
        let place = place.unwrap_or_else(|| {
            sets.push(Set {
                first: record,
                all_held_rate: true,
                rates: BTreeMap::new(),
            });
            sets.len() - 1
        });
        let set = &mut sets[place];
        set.all_held_rate &= record.verdict.limit == Limit::Rate;
        let rates = set.rates.entry(value.as_str()).or_default();
        rates.push(record.achieved_qps());
    }
    let sets = sets.iter().filter(|set| !set.all_held_rate);
    let found = sets.filter_map(|set| Rise::of(&set.rates, setting));
    let rise = found.max_by(|a, b| a.share.total_cmp(&b.share))?;
    let seen = format!(
        "{} with {key}={}, {} with {key}={}: {} {}",
        rate(rise.from_qps),
        rise.from,
        rate(rise.to_qps),
        rise.to,
        percent(rise.share.abs()),
        if rise.share < 0.0 { "less" } else { "more" }
    );
    Some(if rise.is_real {
        let diagnosis = Diagnosis::new(setting.topic, State::Problem, seen, setting.matters);
        diagnosis.cures((setting.cures)(rise.to))
    } else {
        let seen = format!("{seen}: these runs show no gain");
        Diagnosis::new(setting.topic, State::Ok, seen, setting.matters)
    })
}

/// Runs that differ in a label alone.
struct Set<'a> {
    first: &'a RunRecord,
    all_held_rate: bool,
    /// By value of the label.
    rates: BTreeMap<&'a str, Vec<f64>>,
}

/// The same load on what is otherwise the same server.
fn are_alike(one: &RunRecord, other: &RunRecord, key: &str) -> bool {
    let (a, b) = (&one.scenario, &other.scenario);
    let without = |labels: &BTreeMap<String, String>| {
        let mut labels = labels.clone();
        labels.retain(|label, _| label != key && !OBSERVED.contains(&label.as_str()));
        labels
    };
    a.transport == b.transport
        && a.arrival == b.arrival
        && a.clients == b.clients
        && a.questions == b.questions
        && without(&a.labels) == without(&b.labels)
}

/// The effect of a setting on the rate.
struct Rise<'a> {
    from: &'a str,
    to: &'a str,
    from_qps: f64,
    to_qps: f64,
    share: f64,
    /// It is large enough, and no run without is faster than one with.
    is_real: bool,
}

impl<'a> Rise<'a> {
    fn of(rates: &BTreeMap<&'a str, Vec<f64>>, setting: &Setting) -> Option<Rise<'a>> {
        let rank = |value: &str| match setting.better {
            Better::Off => is_on(value).map(|on| if on { 0.0 } else { 1.0 }),
            Better::On => is_on(value).map(|on| if on { 1.0 } else { 0.0 }),
            Better::More => value.parse::<f64>().ok(),
        };
        let mut ranked: Vec<(f64, &'a str, &Vec<f64>)> = rates
            .iter()
            .filter_map(|(value, rates)| Some((rank(value)?, *value, rates)))
            .collect();
        ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (first, last) = (ranked.first()?, ranked.last()?);
        if first.0 == last.0 {
            return None;
        }
        let (from_qps, to_qps) = (median(first.2)?, median(last.2)?);
        let share = per(to_qps - from_qps, from_qps);
        let highest = first.2.iter().copied().fold(0.0, f64::max);
        let lowest = last.2.iter().copied().fold(f64::INFINITY, f64::min);
        Some(Rise {
            from: first.1,
            to: last.1,
            from_qps,
            to_qps,
            share,
            is_real: share >= RISE_MIN && lowest > highest,
        })
    }
}

/// Whether the value of a label says on or off.
fn is_on(value: &str) -> Option<bool> {
    match value.to_lowercase().as_str() {
        "on" | "yes" | "true" | "file" | "syslog" | "info" | "default" => Some(true),
        "off" | "no" | "false" | "null" | "none" | "notice" => Some(false),
        number => number.parse::<f64>().ok().map(|number| number > 0.0),
    }
}

/// The same share lost at rates far apart, in runs that show no reason for it.
fn lossy_path(records: &[&RunRecord]) -> Option<Diagnosis> {
    let rate_of = |record: &RunRecord| match record.scenario.arrival {
        Arrival::Open { rate_qps, .. } => Some(rate_qps),
        Arrival::Closed { .. } | Arrival::Clients { .. } => None,
    };
    let mut points: Vec<(f64, f64, &RunRecord)> = records
        .iter()
        .filter(|it| it.scenario.transport == Transport::Udp)
        .filter_map(|it| Some((rate_of(it)?, unexplained_losses(it)?, *it)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (low, high) = (points.first()?, points.last()?);
    let is_same_target = low.2.scenario.target == high.2.scenario.target;
    let is_same = high.1 <= LOSS_SAME * low.1 && low.1 <= LOSS_SAME * high.1;
    if high.0 < RATES_APART * low.0 || low.1 < LOSS_MIN || !is_same || !is_same_target {
        return None;
    }
    let seen = format!(
        "{} of the queries were lost at {}, and {} at {}: the share does not depend on the rate",
        percent(low.1),
        rate(low.0),
        percent(high.1),
        rate(high.0)
    );
    let matters = "an overloaded server and a limit on the rate lose more the more is asked; the \
                   same share of everything is lost by a path, by a server of several that is \
                   dead, or by a rule of the target on a share of the queries";
    let cures = [
        Cure::trace_path("udp", &low.2.scenario.target),
        Cure::words("--observe the server: its own count of queries shows how many reached it"),
    ];
    Some(Diagnosis::new("path", State::Problem, seen, matters).cures(cures))
}
