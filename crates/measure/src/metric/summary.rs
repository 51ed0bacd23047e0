//! The summary of a run: the figures of [`Metric::main`], each under [`Metric::key`].

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::{Metric, TimeUnit, Unit};
use crate::interval::Interval;
use crate::limit::Limit;
use crate::record::RunRecord;
use crate::summary::Summary;

impl Summary {
    /// The summary of a run whose verdict is there.
    pub fn of(record: &RunRecord) -> Summary {
        let figures = Metric::main().map(|metric| entry(metric, metric.of(record)));
        let mut values: BTreeMap<String, Value> = figures.collect();
        let mut add = |key: &str, value: Value| values.insert(key.to_owned(), value);
        add("limit", json!(record.verdict.limit));
        add("evidence", json!(record.verdict.evidence));
        Summary { values }
    }

    /// The summary of a part of a run, such as a target's: its counts, shares and latencies, and
    /// no rates, for responses that came after the window are in it.
    pub fn of_interval(interval: &Interval, goodput_rcodes: &[u16]) -> Summary {
        let figures = Metric::main().filter(|metric| match metric.unit() {
            Unit::Count => true,
            unit => metric.is_of_target() && unit != Unit::PerSecond,
        });
        let value = |metric: Metric| metric.of_interval(interval, goodput_rcodes);
        let figures = figures.map(|metric| entry(metric, value(metric)));
        Summary {
            values: figures.collect(),
        }
    }

    /// Its keys in the order in which they are written.
    fn keys() -> impl Iterator<Item = String> {
        let words = ["limit", "evidence"].map(str::to_owned);
        Metric::main().map(key).chain(words)
    }
}

fn key(metric: Metric) -> String {
    metric.key(TimeUnit::Nanoseconds)
}

fn entry(metric: Metric, value: Option<f64>) -> (String, Value) {
    let value = match metric.unit().is_whole() {
        true => json!(value.map(|number| number as u64)),
        false => json!(value),
    };
    (key(metric), value)
}

impl Serialize for Summary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let known: Vec<String> = Summary::keys().collect();
        for key in &known {
            if let Some(value) = self.values.get(key) {
                map.serialize_entry(key, value)?;
            }
        }
        // Of a version that knows more.
        let others = self.values.iter();
        for (key, value) in others.filter(|(key, _)| !known.contains(key)) {
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
        for metric in Metric::main() {
            let schema = match metric.unit().is_whole() {
                true => json!({
                    "description": metric.meaning(), "type": "integer", "minimum": 0,
                }),
                false => {
                    let description = format!("{}, {}", metric.meaning(), metric.unit().words());
                    json!({ "description": description, "type": ["number", "null"] })
                }
            };
            properties.insert(key(metric), schema);
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
        for metric in Metric::main() {
            let value = &json["summary"][key(metric)];
            assert_eq!(value.as_f64(), metric.of(&record), "{metric:?}");
            let words = described[key(metric)]["description"].as_str();
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
        let keys: Vec<String> = Summary::keys().collect();
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
