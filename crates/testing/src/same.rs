//! Records of the same load, whoever measured it.

use measure::RunRecord;
use serde_json::Value;

use crate::due;

/// What tells who measured, where, when and with what.
const OTHERS: [&str; 15] = [
    "/agent_count",
    "/agents",
    "/asked",
    "/driver",
    "/driver_reason",
    "/generators",
    "/host_use",
    "/hosts",
    // An agent looks for messages meanwhile, and waits for the other agents.
    "/network/waits",
    "/phases/connect_ns",
    "/simulation",
    "/started_at",
    // They say that it was a simulation.
    "/summary/evidence",
    "/verdict",
    "/workers",
];

/// What depends on times, beside the times themselves.
const OF_TIMES: [&str; 8] = [
    "/intervals",
    "/network",
    "/outages",
    "/responses_in_window",
    "/steady_state",
    "/summary",
    "/timeline",
    "/warnings",
];

/// A record without who measured.
pub fn measured(record: &RunRecord) -> Value {
    let mut record = serde_json::to_value(record).unwrap();
    take(&mut record, &OTHERS);
    record
}

/// The same without times: what two runs of the same load have in common on a real network.
/// Histograms have their number of samples alone.
pub fn counted(record: &RunRecord) -> Value {
    let mut record = measured(record);
    take(&mut record, &OF_TIMES);
    take_times(&mut record);
    record
}

/// Fails unless they are equal, and shows what differs.
pub fn assert_same(divided: &Value, alone: &Value, what: &str) {
    let alone = alone.as_object().unwrap();
    let differ = alone
        .iter()
        .filter(|(name, value)| divided[name.as_str()] != **value);
    let differ: Vec<_> = differ
        .map(|(name, value)| (name, value, &divided[name]))
        .collect();
    assert!(differ.is_empty(), "{what}: {differ:#?}");
    assert_eq!(divided.as_object().unwrap().len(), alone.len(), "{what}");
}

/// Fails unless two runs of the same load on a real network have counted the same. Where a busy
/// host kept one from sending all of it, what was due is the same.
#[track_caller]
pub fn assert_same_load(divided: &RunRecord, alone: &RunRecord, what: &str) {
    let [of_divided, of_alone] = [divided, alone].map(|it| it.total.counts.offered);
    assert_eq!(of_divided, of_alone, "{what}");
    if due::are_all_sent(divided) && due::are_all_sent(alone) {
        assert_same(&counted(divided), &counted(alone), what);
    }
}

fn take(record: &mut Value, paths: &[&str]) {
    for path in paths {
        if let Some(value) = record.pointer_mut(path) {
            value.take();
        }
    }
    // A field that one record has not is one that was taken from the other.
    record
        .as_object_mut()
        .unwrap()
        .retain(|_, it| !it.is_null());
}

fn take_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let is_histogram = fields.contains_key("buckets");
            fields.retain(|name, _| match is_histogram {
                true => name == "count",
                // The worst clients are the slowest.
                false => !name.ends_with("_ns") && name != "worst",
            });
            // What was asked for is the same.
            let measured = fields.iter_mut().filter(|(name, _)| *name != "scenario");
            measured.for_each(|(_, value)| take_times(value));
        }
        Value::Array(values) => values.iter_mut().for_each(take_times),
        _ => {}
    }
}
