//! What may vary between scenarios.

use measure::notation::{count, counted, decimal};
use measure::{Arrival, Process, RunRecord, ScenarioRecord};
use serde_json::Value as Json;

use super::settings::{self, DATA, Settings};
use crate::run::transport;

/// The value of one scenario.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// The scenario has nothing of the kind.
    None,
    Number(f64),
    Text(String),
}

impl Value {
    fn of(number: Option<u64>) -> Self {
        number.map_or(Value::None, |number| Value::Number(number as f64))
    }

    fn text(text: Option<&String>) -> Self {
        text.map_or(Value::None, |text| Value::Text(text.clone()))
    }

    /// The value in words.
    pub(crate) fn words(&self) -> String {
        match self {
            Value::None => "-".to_owned(),
            Value::Number(number) if number.fract() == 0.0 && *number >= 0.0 => {
                count(*number as u64)
            }
            Value::Number(number) => decimal(*number, 2),
            Value::Text(text) => text.clone(),
        }
    }
}

/// Where a value is found.
#[derive(Clone, Debug)]
enum ValueSource {
    Field(fn(&RunRecord) -> Value),
    Label(String),
    /// In the scenario as JSON.
    Setting(String),
}

/// Something that differs between the runs.
#[derive(Clone, Debug)]
pub(crate) struct Dimension {
    pub(crate) name: String,
    place: ValueSource,
    /// Each value once: numbers ascending, words in the order in which they were run.
    pub(crate) values: Vec<Value>,
}

/// Name of the dimension of transports.
pub(crate) const TRANSPORT: &str = "transport";
/// Name of the dimension of clients.
pub(crate) const CLIENTS: &str = "clients";
/// Name of the dimension of the rate asked for.
pub(crate) const RATE: &str = "rate asked for";

/// Name of the dimension of questions.
const QUESTIONS: &str = "questions";
/// Name of the dimension of sessions that were resumed, of transports that have any.
const RESUMED: &str = "sessions resumed";
/// The label by which an experiment tells its variants apart.
const VARIANT: &str = "variant";

/// Transports in the order of their cost.
const TRANSPORTS: [&str; 7] = ["udp", "tcp", "dot", "doh2", "doh3", "doq", "mixed"];

/// Labels that number repeats and so tell no scenarios apart.
const REPEATS: [&str; 3] = ["repeat", "run", "round"];

/// Labels by which the user says how busy the target was, in percent.
const SERVER_CPU: [&str; 2] = ["server-cpu", "server_cpu"];

/// The label by which an experiment tells its servers apart: a server that the lab starts has
/// another address each time.
const SERVER: &str = "server";
/// The label with the product of a server of the lab.
const PRODUCT: &str = "product";

/// Where a field's value is in a record.
type ValueOf = fn(&RunRecord) -> Value;

/// Fields in the order of columns.
const FIELDS: [(&str, ValueOf); 20] = [
    (TRANSPORT, |it| {
        Value::Text(it.scenario.transport.to_string())
    }),
    (CLIENTS, |it| Value::of(Some(it.scenario.clients))),
    ("queries per connection", |it| {
        Value::of(it.scenario.connections.queries_max.map(u64::from))
    }),
    ("outstanding", |it| Value::of(it.outstanding())),
    (RATE, |it| rate(&it.scenario)),
    ("arrival", |it| Value::Text(arrival(&it.scenario.arrival))),
    ("duration, s", |it| seconds(it.scenario.duration_ns)),
    ("warm-up, s", |it| seconds(Some(it.scenario.warmup_ns))),
    ("workers", |it| Value::of(Some(it.scenario.workers))),
    (QUESTIONS, |it| {
        Value::Text(it.scenario.questions.source.clone())
    }),
    ("each client", |it| {
        Value::text(it.scenario.per_client.as_ref())
    }),
    ("shape", |it| Value::text(it.scenario.shape.as_ref())),
    ("script", |it| Value::text(it.scenario.script.as_ref())),
    ("idle timeout, ms", |it| {
        Value::of(
            it.scenario
                .connections
                .idle_timeout
                .map(|time| time.as_millis() as u64),
        )
    }),
    ("queries at once", |it| {
        Value::of(it.scenario.connections.in_flight_max.map(u64::from))
    }),
    ("timeout, ms", |it| {
        Value::of(Some(it.scenario.timeout_ns / 1_000_000))
    }),
    ("EDNS", |it| Value::text(it.scenario.edns.as_ref())),
    ("padding, bytes", |it| {
        Value::of(it.scenario.edns_padding_octets)
    }),
    (RESUMED, |it| {
        let share = it
            .scenario
            .tls
            .as_ref()
            .map(|tls| tls.settings.resume_share);
        share.map_or(Value::None, Value::Number)
    }),
    ("self-test", |it| {
        Value::Text(if it.self_test { "yes" } else { "no" }.into())
    }),
];

/// The rate that was asked for.
fn rate(scenario: &ScenarioRecord) -> Value {
    let rate = match scenario.arrival {
        Arrival::Open { rate_qps, .. } => Some(rate_qps),
        Arrival::Clients { rate_qps } => rate_qps,
        Arrival::Closed { rate_qps_max, .. } => rate_qps_max,
    };
    rate.map_or(Value::None, Value::Number)
}

/// How queries became due, in words.
fn arrival(arrival: &Arrival) -> String {
    let words = match arrival {
        Arrival::Closed { .. } => "closed loop",
        Arrival::Clients { .. } => "each client by itself",
        Arrival::Open { process, burst, .. } => match (process, burst) {
            (Process::Constant, 1) => "equally spaced",
            (Process::Poisson, 1) => "Poisson",
            (Process::Constant, burst) => return format!("bursts of {burst}, equally spaced"),
            (Process::Poisson, burst) => return format!("bursts of {burst}, Poisson"),
        },
    };
    words.to_owned()
}

fn seconds(ns: Option<u64>) -> Value {
    ns.map_or(Value::None, |ns| Value::Number(ns as f64 / 1e9))
}

/// How busy the target was in percent, where a label says so or it was observed.
pub(crate) fn server_cpu(record: &RunRecord) -> Option<f64> {
    let labels = &record.scenario.labels;
    match SERVER_CPU.iter().find_map(|key| labels.get(*key)) {
        Some(text) => text.trim_end_matches(['%', ' ']).parse().ok(),
        None => Some(record.programs().first()?.cpu_share()? * 100.0),
    }
}

impl Dimension {
    fn new(name: &str, place: ValueSource, records: &[&RunRecord]) -> Self {
        let mut dimension = Dimension {
            name: name.to_owned(),
            place,
            values: Vec::new(),
        };
        for record in records {
            let value = dimension.value(record);
            if !dimension.values.contains(&value) {
                dimension.values.push(value);
            }
        }
        dimension.order();
        dimension
    }

    fn order(&mut self) {
        if self.name == TRANSPORT {
            let rank = |value: &Value| TRANSPORTS.iter().position(|it| *it == value.words());
            self.values.sort_by_key(rank);
        } else if self.values.iter().all(|it| !matches!(it, Value::Text(_))) {
            let number = |value: &Value| match value {
                Value::Number(number) => *number,
                Value::None | Value::Text(_) => f64::INFINITY,
            };
            self.values.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
    }

    /// The value of a run.
    pub(crate) fn value(&self, record: &RunRecord) -> Value {
        match &self.place {
            ValueSource::Field(field) => field(record),
            ValueSource::Setting(path) => match settings::of(&record.scenario).remove(path) {
                None => Value::None,
                Some(Json::Number(number)) => Value::Number(number.as_f64().unwrap_or(f64::NAN)),
                Some(Json::String(text)) => Value::Text(text),
                Some(other) => Value::Text(other.to_string()),
            },
            ValueSource::Label(key) => match record.scenario.labels.get(key) {
                None => Value::None,
                Some(text) => match text.parse::<f64>() {
                    Ok(number) if number.is_finite() => Value::Number(number),
                    _ => Value::Text(text.clone()),
                },
            },
        }
    }

    /// True if all values are numbers, and there are several.
    pub(crate) fn is_numeric(&self) -> bool {
        let numbers = self.values.iter().all(|it| matches!(it, Value::Number(_)));
        numbers && self.values.len() > 1
    }

    /// True if all values are words.
    pub(crate) fn is_words(&self) -> bool {
        self.values.iter().all(|it| matches!(it, Value::Text(_)))
    }

    /// The position of a value in order.
    pub(crate) fn rank(&self, value: &Value) -> usize {
        let found = self.values.iter().position(|it| it == value);
        found.unwrap_or(self.values.len())
    }

    /// A value in words that stand alone.
    pub(crate) fn words(&self, value: &Value) -> String {
        match value {
            Value::Text(text) if self.name == TRANSPORT => transport(text).to_owned(),
            Value::Text(text) if matches!(self.place, ValueSource::Label(_)) => text.clone(),
            Value::Number(_) if matches!(self.place, ValueSource::Label(_)) => {
                format!("{}={}", self.name, value.words())
            }
            Value::Number(number) if self.name == CLIENTS => counted(*number as u64, "client"),
            _ => format!("{} {}", self.name, value.words()),
        }
    }

    /// A value as the cell of a column that has the name at its head.
    pub(crate) fn cell(&self, value: &Value) -> String {
        match value {
            Value::Text(text) if self.name == TRANSPORT => transport(text).to_owned(),
            _ => value.words(),
        }
    }
}

/// Everything that has more than one value.
pub(crate) fn varying(records: &[&RunRecord]) -> Vec<Dimension> {
    let all_have = |label: &str| {
        let mut each = records.iter();
        each.all(|it| it.scenario.labels.contains_key(label))
    };
    let fields = FIELDS.iter();
    let fields = fields.filter(|(name, _)| *name != QUESTIONS || !all_have(DATA));
    let fields = fields.map(|(name, of)| Dimension::new(name, ValueSource::Field(*of), records));
    let mut all: Vec<Dimension> = fields.collect();
    let mut keys: Vec<&String> = records
        .iter()
        .flat_map(|it| it.scenario.labels.keys())
        .collect();
    keys.sort();
    keys.dedup();
    keys.retain(|key| {
        let key = key.as_str();
        !REPEATS.contains(&key) && !SERVER_CPU.contains(&key)
    });
    let labels = keys.into_iter();
    let labels = labels.map(|key| Dimension::new(key, ValueSource::Label(key.clone()), records));
    // What the user named comes first, after the transport.
    all.splice(1..1, labels);
    if !all_have(SERVER) {
        let target = ValueSource::Field(target);
        all.insert(1, Dimension::new("target", target, records));
    }
    all.retain(|dimension| dimension.values.len() > 1);
    all.retain(|dimension| !is_told_by_transport(dimension, records));
    leave_out_labels_told_by_others(&mut all, records);
    all.extend(further(&all, records));
    all
}

/// Settings in which runs differ that are otherwise the same: without these they would pass for
/// repeats of each other.
fn further(known: &[Dimension], records: &[&RunRecord]) -> Vec<Dimension> {
    let mut paths: Vec<String> = Vec::new();
    let all = |record: &RunRecord| -> Vec<Value> {
        known
            .iter()
            .map(|dimension| dimension.value(record))
            .collect()
    };
    let mut firsts: Vec<(Vec<Value>, Settings)> = Vec::new();
    for record in records {
        let (values, settings) = (all(record), settings::of(&record.scenario));
        match firsts.iter().find(|first| first.0 == values) {
            Some((_, first)) => paths.extend(settings::differing(first, &settings)),
            None => firsts.push((values, settings)),
        }
    }
    paths.sort();
    paths.dedup();
    let each = paths.into_iter();
    each.map(|path| Dimension::new(&settings::name(&path), ValueSource::Setting(path), records))
        .collect()
}

/// True if a dimension says nothing that the transport does not say.
fn is_told_by_transport(dimension: &Dimension, records: &[&RunRecord]) -> bool {
    let is_of_transport = match (&dimension.place, dimension.name.as_str()) {
        // A transport has a port of its own.
        (ValueSource::Field(_), "target") => true,
        // Some have no sessions.
        (ValueSource::Field(_), RESUMED) => matches!(dimension.values[..], [_, Value::None]),
        // An experiment whose variants are the transports.
        (ValueSource::Label(_), VARIANT) => differ_by_transport(dimension, records),
        _ => false,
    };
    is_of_transport && is_by_transport(dimension, records)
}

/// The target; the built-in responder listens anywhere.
fn target(record: &RunRecord) -> Value {
    match record.self_test {
        true => Value::Text("built-in responder".into()),
        false => Value::Text(record.scenario.target.clone()),
    }
}

/// Factors of one product are no dimensions of their own, and a server is none whose product and
/// factors are. Where somebody has named the servers, their names stand for all of that.
fn leave_out_labels_told_by_others(all: &mut Vec<Dimension>, records: &[&RunRecord]) {
    let is_label = |it: &Dimension| matches!(it.place, ValueSource::Label(_));
    let server = all.iter().find(|it| is_label(it) && it.name == SERVER);
    if let Some(server) = server.filter(|_| are_named(records)).cloned() {
        all.retain(|it| !is_label(it) || it.name == SERVER || !is_told_by(it, &[&server], records));
        return;
    }
    if let Some(at) = all.iter().position(|it| is_label(it) && it.name == PRODUCT) {
        let product = all[at].clone();
        all.retain(|it| {
            !is_label(it)
                || [SERVER, PRODUCT].contains(&it.name.as_str())
                || !is_told_by(it, &[&product], records)
        });
    }
    if let Some(at) = all.iter().position(|it| is_label(it) && it.name == SERVER) {
        let server = all.remove(at);
        let others: Vec<&Dimension> = all.iter().filter(|it| is_label(it)).collect();
        if others.is_empty() || !is_told_by(&server, &others, records) {
            all.insert(at, server);
        }
    }
}

/// True if the servers of the lab have names that are no products, with or without factors.
fn are_named(records: &[&RunRecord]) -> bool {
    let mut each = records.iter();
    let is_named = |record: &&RunRecord| {
        let label = |name: &str| record.scenario.labels.get(name);
        let (server, product) = (label(SERVER)?, label(PRODUCT)?);
        let is_of_factors = server.contains('=');
        Some(!is_of_factors && !server.starts_with(product.as_str()))
    };
    each.any(|record| is_named(record) == Some(true))
}

/// True if runs that have the same values of the others have the same value of this one.
fn is_told_by(dimension: &Dimension, others: &[&Dimension], records: &[&RunRecord]) -> bool {
    pairs(records).all(|(a, b)| {
        let mut each = others.iter();
        each.any(|it| it.value(a) != it.value(b)) || dimension.value(a) == dimension.value(b)
    })
}

/// True if runs over the same transport have the same value.
fn is_by_transport(dimension: &Dimension, records: &[&RunRecord]) -> bool {
    pairs(records).all(|(a, b)| {
        a.scenario.transport != b.scenario.transport || dimension.value(a) == dimension.value(b)
    })
}

/// True if runs over different transports have different values.
fn differ_by_transport(dimension: &Dimension, records: &[&RunRecord]) -> bool {
    pairs(records).all(|(a, b)| {
        a.scenario.transport == b.scenario.transport || dimension.value(a) != dimension.value(b)
    })
}

fn pairs<'a>(records: &'a [&RunRecord]) -> impl Iterator<Item = (&'a RunRecord, &'a RunRecord)> {
    let each = records.iter();
    each.flat_map(|a| records.iter().map(|b| (*a, *b)))
}
