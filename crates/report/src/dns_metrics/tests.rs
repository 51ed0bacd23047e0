use super::*;
use crate::conforms::offences;
use crate::example;

/// What dns-metrics.schema.json of that day demands, without its words.
fn schema() -> Value {
    let integers = |names: &[&str]| -> Map<String, Value> {
        let each = names
            .iter()
            .map(|name| ((*name).to_owned(), json!({ "type": "integer" })));
        each.collect()
    };
    let mut latency = integers(&["avg", "min", "max", "stddev"]);
    let rows = json!({ "type": "array", "items": { "type": "integer" } });
    latency.insert("buckets".into(), json!({ "type": "array", "items": rows }));
    let latency = json!({ "type": "object", "properties": latency });
    let connection = |kind: &str| {
        let mut properties = integers(&[
            "packets_sent",
            "packets_received",
            "socket_errors",
            "handshakes",
            "handshakes_failed",
        ]);
        properties.insert("type".into(), json!({ "const": kind }));
        let resumption = integers(&["initialized", "established", "fallbacks"]);
        properties.insert("resumption".into(), json!({ "properties": resumption }));
        json!({ "type": "object", "properties": properties })
    };
    let kinds = ["udp", "tcp", "tls_conn", "quic_conn"].map(connection);
    let mut stats = integers(&[
        "since",
        "until",
        "queries",
        "responses",
        "timeouts",
        "interrupted",
        "unexpected",
        "discarded",
    ]);
    stats.insert("response_rcodes".into(), json!({ "type": "object" }));
    stats.insert("response_latency".into(), latency);
    stats.insert("conn_info".into(), json!({ "oneOf": kinds }));
    let stats_of = |kind: &str| {
        let mut properties = stats.clone();
        properties.insert("type".into(), json!({ "const": kind }));
        json!({ "properties": properties, "required": ["since", "until"] })
    };
    let header = json!({
        "properties": {
            "type": { "const": "header" },
            "schema_version": { "type": "integer" },
            "generator": { "type": "string" },
            "generator_version": { "type": "string" },
            "generator_params": { "type": "array", "items": { "type": "string" } },
            "time_units_per_sec": { "type": "integer" },
            "stats_interval": { "type": "number" },
            "timeout": { "type": "number" },
        },
        "required": ["schema_version", "generator", "generator_version", "stats_interval"],
    });
    let event = json!({
        "properties": { "type": { "const": "event" }, "msg": { "type": "string" } },
        "required": ["msg"],
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": { "runid": { "type": "string" }, "subid": { "type": "string" } },
        "required": ["runid"],
        "oneOf": [header, event, stats_of("stats_periodic"), stats_of("stats_sum")],
    })
}

#[test]
fn every_line_is_valid_by_the_schema() {
    let schema = schema();
    for record in [
        example::udp_self_test(),
        example::dot(),
        example::doh2(),
        example::without_queries(),
    ] {
        let lines = render(&record).unwrap();
        assert_eq!(lines.lines().count(), record.intervals.len() + 2);
        for line in lines.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            assert_eq!(offences(&schema, &value), Vec::<String>::new(), "{line}");
        }
    }
}

#[test]
fn sum_is_that_of_the_record_and_times_count_from_its_start() {
    let record = example::dot();
    let lines = render(&record).unwrap();
    let sum: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(sum["type"], "stats_sum");
    assert_eq!(sum["queries"], 3_012);
    assert_eq!(sum["responses"], 3_000);
    assert_eq!(sum["timeouts"], 5);
    assert_eq!(sum["interrupted"], 7);
    assert_eq!(sum["discarded"], 8);
    assert_eq!(sum["response_rcodes"]["NXDOMAIN"], 900);
    assert_eq!(sum["conn_info"]["handshakes"], 205);
    // 2026-01-28T09:00:00Z.
    assert_eq!(sum["since"], 1_769_590_800_000_000_000_i64);
    assert_eq!(sum["until"], 1_769_590_803_000_000_000_i64);
}

#[test]
fn a_start_that_is_no_instant_is_named() {
    let mut record = example::dot();
    record.started_at = "yesterday".into();
    assert_eq!(
        render(&record),
        Err("`started_at` is not an instant: yesterday".into())
    );
}
