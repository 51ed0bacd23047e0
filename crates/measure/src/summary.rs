//! The figures of a run by name, so that nobody who reads a record has to decode its buckets.
//!
//! They are those of [`Metric::ALL`], each under [`Metric::key`], and follow from the rest of the
//! record; nothing is read back from here.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::counts::Counts;
use crate::interval::Interval;
use crate::metric::{Metric, Unit};
use crate::record::RunRecord;
use crate::verdict::Limit;

/// What a run amounts to; in JSON one map.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(from = "BTreeMap<String, Value>")]
pub struct Summary {
    values: BTreeMap<String, Value>,
}

/// A count of the summary: its key, what it is, and where it is, given the RCODEs of goodput.
type Count = (&'static str, &'static str, fn(&Counts, &[u16]) -> u64);

const COUNTS: [Count; 5] = [
    ("offered_queries", "Queries scheduled", |it, _| it.offered),
    ("sent_queries", "Queries handed to the network", |it, _| {
        it.sent
    }),
    ("responses", "Queries that got a response", |it, _| {
        it.responses
    }),
    (
        "lost_queries",
        "Queries without a response, whatever the cause",
        |it, _| it.lost(),
    ),
    (
        "goodput_responses",
        "Whole responses with an RCODE of the goodput set",
        Counts::goodput,
    ),
];

impl Summary {
    /// The summary of a run whose verdict is there.
    pub fn of(record: &RunRecord) -> Summary {
        let mut values = counts(&record.total.counts, &record.scenario.goodput_rcodes);
        let mut add = |key: &str, value: Value| values.insert(key.to_owned(), value);
        for metric in Metric::ALL {
            add(metric.key(), json!(metric.of(record)));
        }
        add("limit", json!(record.verdict.limit));
        add("evidence", json!(record.verdict.evidence));
        Summary { values }
    }

    /// The summary of a part of a run, such as a target's: its counts, shares and latencies, and
    /// no rates, for responses that came after the window are in it.
    pub fn of_interval(interval: &Interval, goodput_rcodes: &[u16]) -> Summary {
        let mut values = counts(&interval.counts, goodput_rcodes);
        let metrics = Metric::ALL.into_iter();
        for metric in metrics.filter(|it| it.is_of_target() && it.unit() != Unit::PerSecond) {
            let value = metric.of_interval(interval, goodput_rcodes);
            values.insert(metric.key().to_owned(), json!(value));
        }
        Summary { values }
    }

    /// What it says under this key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// Its keys in the order in which they are written.
    fn keys() -> impl Iterator<Item = &'static str> {
        let counts = COUNTS.iter().map(|(key, _, _)| *key);
        let words = ["limit", "evidence"];
        counts.chain(Metric::ALL.map(Metric::key)).chain(words)
    }
}

fn counts(counts: &Counts, goodput_rcodes: &[u16]) -> BTreeMap<String, Value> {
    let each = COUNTS.iter();
    let each =
        each.map(|(key, _, count)| ((*key).to_owned(), json!(count(counts, goodput_rcodes))));
    each.collect()
}

impl From<BTreeMap<String, Value>> for Summary {
    fn from(values: BTreeMap<String, Value>) -> Self {
        Summary { values }
    }
}

impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let known: Vec<&str> = Summary::keys().collect();
        for key in &known {
            if let Some(value) = self.values.get(*key) {
                map.serialize_entry(key, value)?;
            }
        }
        // Of a version that knows more.
        let others = self.values.iter();
        for (key, value) in others.filter(|(key, _)| !known.contains(&key.as_str())) {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl JsonSchema for Summary {
    fn schema_name() -> Cow<'static, str> {
        "Summary".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut properties = Map::new();
        for (key, meaning, _) in COUNTS {
            let schema = json!({ "description": meaning, "type": "integer", "minimum": 0 });
            properties.insert(key.to_owned(), schema);
        }
        for metric in Metric::ALL {
            let description = format!("{}, {}", metric.meaning(), metric.unit().words());
            let schema = json!({ "description": description, "type": ["number", "null"] });
            properties.insert(metric.key().to_owned(), schema);
        }
        let limit = generator.subschema_for::<Limit>().to_value();
        properties.insert("limit".into(), limit);
        let evidence = json!({
            "description": "Why, one sentence each, the decisive one first",
            "type": "array",
            "items": { "type": "string" },
        });
        properties.insert("evidence".into(), evidence);
        json_schema!({
            "description": "What a run amounts to: its counts, its figures by name with the unit \
                            in it (null if not measured), and what limited it.",
            "type": "object",
            "properties": properties,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    #[test]
    fn every_metric_is_in_the_summary_and_in_its_schema_with_the_value_of_the_record() {
        let mut record = example::record(vec![example::interval(0, &[(1_000_000, 500)])]);
        record.conclude();
        let json: Value = serde_json::from_str(&record.to_json()).expect("is JSON");
        let schema = RunRecord::json_schema();
        let described = &schema["$defs"]["Summary"]["properties"];
        for metric in Metric::ALL {
            let value = &json["summary"][metric.key()];
            assert_eq!(value.as_f64(), metric.of(&record), "{metric:?}");
            let words = described[metric.key()]["description"].as_str();
            assert!(
                words.is_some_and(|it| it.starts_with(metric.meaning())),
                "{metric:?}"
            );
        }
        assert_eq!(json["summary"]["responses"], 500);
        assert_eq!(
            json["summary"]["latency_p99_ns"],
            json["summary"]["latency_max_ns"]
        );
        assert_eq!(json["summary"]["limit"], json["verdict"]["limit"]);
        let keys: Vec<&str> = Summary::keys().collect();
        let written = json["summary"].as_object().map(Map::len);
        assert_eq!(written, Some(keys.len()));
    }

    #[test]
    fn summary_of_a_later_version_is_kept_as_it_is() {
        let json = r#"{"responses":7,"of_tomorrow":[1]}"#;
        let summary: Summary = serde_json::from_str(json).expect("reads");
        assert_eq!(summary.get("responses"), Some(&json!(7)));
        assert_eq!(serde_json::to_string(&summary).expect("writes"), json);
    }
}
