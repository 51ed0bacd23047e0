//! The CPU of an observed server: used up, used up by one thread, kept from it by a quota or by
//! others, or free.

use crate::observation::SeriesKind;
use crate::rules::observed_situations::*;
use crate::rules::situations::*;

/// Few enough slots that nothing queued.
fn with_few_places() -> RunRecord {
    run(&[(10 * MS, 1_000)])
}

#[test]
fn a_server_that_has_used_its_cpus_is_told_with_its_figures() {
    let record = observing(saturated(), &[program(1.96, 0.99, &[])]);
    assert_eq!(record.verdict.limit, Limit::Server);
    tells(
        &record,
        &["named used 1.96 of its 2.00 CPUs (98.0 %): its CPU is the limit"],
    );
    // The load's own finding is reported beside it, with its advice.
    assert!(record.verdict.evidence[0].contains("its CPU is the limit"));
    tells(
        &record,
        &["queries queued at the target", "run with --rate 7000"],
    );
}

#[test]
fn a_server_without_cpu_left_is_the_limit_where_the_load_alone_does_not_tell() {
    let alone = observing(with_few_places(), &[]);
    assert_eq!(alone.verdict.limit, Limit::Outstanding);
    let record = observing(with_few_places(), &[program(1.96, 0.99, &[])]);
    assert_eq!(record.verdict.limit, Limit::Server, "{:#?}", record.verdict);
    let record = observing(in_time(10_000.0), &[program(1.96, 0.99, &[])]);
    assert_eq!(record.verdict.limit, Limit::Rate, "{:#?}", record.verdict);
}

#[test]
fn one_full_thread_is_told_from_a_full_server() {
    let record = observing(saturated(), &[program(1.1, 0.97, &[])]);
    tells(
        &record,
        &[
            "one of its threads was busy 97.0 % of the time",
            "named -n 2",
        ],
    );
}

#[test]
fn a_quota_that_stops_the_server_is_its_limit() {
    let periods = [
        ("group.periods", SeriesKind::Counter, 10.0),
        ("group.throttled_periods", SeriesKind::Counter, 9.0),
    ];
    let mut program = program(0.5, 0.3, &periods);
    program.facts.quota_cpus = Some(0.5);
    let record = observing(with_few_places(), &[program]);
    assert_eq!(record.verdict.limit, Limit::Server);
    tells(
        &record,
        &[
            "0.50 of its 0.50 CPUs",
            "its CPU quota stopped it in 90.0 % of the periods",
        ],
    );
}

#[test]
fn a_generator_that_had_to_wait_is_no_limit_of_a_server_without_cpu_left() {
    let limit = |cpus_used: f64, throttled: f64| {
        let periods = [
            ("group.periods", SeriesKind::Counter, 10.0),
            ("group.throttled_periods", SeriesKind::Counter, throttled),
        ];
        let mut program = program(cpus_used, 0.3, &periods);
        program.facts.quota_cpus = Some(0.5);
        let mut record = with_few_places();
        record.workers[0].cpu_wait_ns = Some(14 * record.measured_ns / 100);
        observing(record, &[program]).verdict.limit
    };
    assert_eq!(limit(0.5, 9.8), Limit::Server);
    assert_eq!(limit(0.5, 0.0), Limit::Server);
    // It had idle time left.
    assert_eq!(limit(0.48, 0.0), Limit::Generator);
    assert_eq!(limit(0.4, 9.8), Limit::Generator);
}

#[test]
fn time_in_which_others_had_its_cpus_is_told() {
    let waited = [("cpu.wait", SeriesKind::Counter, 0.8)];
    let record = observing(saturated(), &[program(1.2, 0.6, &waited)]);
    tells(&record, &["had to wait for a CPU, 0.80 s in each second"]);
    // It hardly waited.
    let waited = [("cpu.wait", SeriesKind::Counter, 0.02)];
    let record = observing(saturated(), &[program(1.2, 0.6, &waited)]);
    let said = said(&record);
    assert!(!said.contains("had to wait for a CPU"), "{said}");
}
