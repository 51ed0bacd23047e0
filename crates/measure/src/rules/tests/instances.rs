//! Server instances of which some answer later, or otherwise, than the others.

use crate::instances::{Instance, Instances};
use crate::rules::situations::*;

/// Responses: their number, RCODE and latency.
type Responses = &'static [(u64, u16, u64)];

/// A run of these instances, each with its responses.
fn of_instances(each: &[(&str, Responses)]) -> RunRecord {
    let mut all = Instances::default();
    let mut answered = Interval::default();
    for (nsid, responses) in each {
        let mut instance = Instance::new((*nsid).to_owned());
        for &(number, rcode, ns) in *responses {
            answered.counts.rcodes.record_many(rcode, number);
            answered.distributions.latency.record_many(ns, number);
            answered.distributions.service.record_many(ns, number);
            for _ in 0..number {
                instance.count(rcode, ns);
            }
        }
        answered.counts.responses += instance.responses;
        all.each.push(instance);
    }
    answered.counts.sent = answered.counts.responses;
    answered.counts.offered = answered.counts.sent;
    answered.end_ns = 10 * SECOND;
    let mut record = record(vec![answered]);
    record.scenario.arrival = in_time(1_000.0).scenario.arrival;
    record.instances = Some(all);
    record
}

const FAST: Responses = &[(3_000, 0, MS)];

fn said(record: &RunRecord) -> String {
    format!("{:#?}{:#?}", met(record), judge(record))
}

#[test]
fn instance_that_fails_is_named() {
    let failing: Responses = &[(2_900, 2, MS), (100, 0, MS)];
    let said = said(&of_instances(&[("a", FAST), ("b", failing), ("c", FAST)]));
    let expected = "SERVFAIL (2,900), nearly all at 1 of 3 server instances: b";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn slow_instance_is_named() {
    let slow: Responses = &[(2_000, 0, MS), (1_000, 0, 400 * MS)];
    let said = said(&of_instances(&[("a", FAST), ("b", slow)]));
    assert!(said.contains("at 1 of 2 server instances: b"), "{said}");
}

#[test]
fn no_instance_is_named_where_all_are_alike_or_most_are_unknown() {
    let failing: Responses = &[(900, 2, MS), (2_100, 0, MS)];
    let said_of_all = said(&of_instances(&[("a", failing), ("b", failing)]));
    assert!(said_of_all.contains("SERVFAIL"), "{said_of_all}");
    assert!(!said_of_all.contains("instance"), "{said_of_all}");
    let mut record = of_instances(&[("a", FAST), ("b", failing), ("c", FAST)]);
    let instances = record.instances.as_mut().unwrap();
    let unknown = instances.each.pop().unwrap();
    instances.responses_without = unknown.responses;
    let said = said(&record);
    assert!(
        said.contains("SERVFAIL") && !said.contains("instance"),
        "{said}"
    );
}
