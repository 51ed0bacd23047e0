//! A target and the servers behind it that have CPUs in common.

use crate::facts::{CpuUse, ProcessUse};
use crate::observation::{Observation, SeriesKind};
use crate::rules::observed_situations::*;
use crate::rules::situations::*;

/// A server on CPU 1, which was found at `place`.
fn server_at(place: &str, pid: u32, cpus: f64, waited: f64) -> Observation {
    let mut observation = program(cpus, cpus, &[("cpu.wait", SeriesKind::Counter, waited)]);
    observation.source = format!("process={place}");
    observation.facts.cpus = Some("1".to_owned());
    observation.facts.process_id = Some(pid);
    observation
}

/// CoreDNS, which has few slots, waits for a BIND at `place`, and for other processes with the
/// given CPU usage.
fn before_bind(place: &str, cpus: [f64; 2], others: f64) -> RunRecord {
    with_bind(run(&[(10 * MS, 1_000)]), place, cpus, others)
}

fn with_bind(mut record: RunRecord, place: &str, cpus: [f64; 2], others: f64) -> RunRecord {
    let mut target = server_at("192.0.2.1:53", 6, cpus[0], 0.34);
    target.facts.binary = Some("/usr/bin/coredns".to_owned());
    let seconds = |seconds: f64| (seconds * SECOND as f64) as u64;
    let busiest = [("named", 7, cpus[1]), ("stress", 8, others)];
    let busiest = busiest.into_iter().filter(|it| it.2 > 0.0);
    record.host_use = Some(CpuUse {
        wall_ns: seconds(10.0),
        is_target_here: true,
        target_ns: Some(seconds(10.0 * cpus[0])),
        target_wait_ns: Some(seconds(3.4)),
        others_ns: seconds(10.0 * (cpus[1] + others)),
        busiest: busiest
            .map(|(name, pid, cpus)| ProcessUse {
                name: name.to_owned(),
                pid,
                cpu_ns: seconds(10.0 * cpus),
            })
            .collect(),
        ..CpuUse::default()
    });
    observing(record, &[target, server_at(place, 7, cpus[1], 0.12)])
}

#[test]
fn servers_that_have_used_up_the_cpu_that_they_share_are_the_limit() {
    let record = before_bind("127.0.0.1:5353", [0.69, 0.31], 0.0);
    assert_eq!(record.verdict.limit, Limit::Server, "{:#?}", record.verdict);
    tells(
        &record,
        &[
            "coredns used 0.69 and named, behind it, 0.31 of the 1.00 CPUs that they share \
             (100.0 %): their CPU is the limit",
            "CPUs of their own",
        ],
    );
    let said = said(&record);
    for wrong in ["other processes", "stop the other processes"] {
        assert!(!said.contains(wrong), "{wrong}: {said}");
    }
}

#[test]
fn servers_that_leave_some_of_their_cpu_are_no_limit() {
    let record = before_bind("127.0.0.1:5353", [0.49, 0.21], 0.0);
    let said = said(&record);
    assert!(!said.contains("their CPU is the limit"), "{said}");
    assert!(!said.contains("other processes"), "{said}");
}

#[test]
fn what_is_no_server_behind_the_target_is_another_process() {
    let record = with_bind(saturated(), "4711", [0.69, 0.31], 0.0);
    assert_eq!(record.verdict.limit, Limit::Generator);
    tells(&record, &["other processes kept 0.31 CPUs busy: named (7)"]);
    let record = with_bind(saturated(), "127.0.0.1:5353", [0.40, 0.20], 0.4);
    assert_eq!(record.verdict.limit, Limit::Generator);
    tells(
        &record,
        &["other processes kept 0.40 CPUs busy: stress (8) 40.0 %"],
    );
    assert!(!said(&record).contains("named (7)"), "{}", said(&record));
}
