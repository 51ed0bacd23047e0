//! Trials that missed the objective, on hosts that had a part in it or not.

use super::super::*;
use super::capacity_plan;
use crate::example::{interval, record};
use crate::facts::{CpuUse, ProcessUse};
use crate::rules::situations;
use crate::scenario::{Arrival, Process, Transport};

/// Ten thousand queries at a rate, with the percentages that took 40 ms, left 5 ms late, and got no
/// response.
#[derive(Clone, Copy)]
struct Ran {
    slow: u64,
    late: u64,
    lost: u64,
}

fn ran(ran: Ran) -> RunRecord {
    let slow = 100 * ran.slow;
    let answered = 10_000 - 100 * ran.lost;
    let mut second = interval(0, &[(1_000_000, answered - slow), (40_000_000, slow)]);
    second.counts.offered = 10_000;
    second.counts.sent = 10_000;
    second.counts.timeouts = 10_000 - answered;
    let mut lateness = crate::Histogram::new();
    lateness.record_many(10_000, 10_000 - 100 * ran.late);
    lateness.record_many(5_000_000, 100 * ran.late);
    second.distributions.send_lateness = lateness;
    let mut record = record(vec![second]);
    record.scenario.transport = Transport::Udp.into();
    record.scenario.arrival = Arrival::Open {
        rate_qps: 10_000.0,
        process: Process::Constant,
        burst: 1,
    };
    record.verdict.limit = Limit::Server;
    record
}

fn trial(record: &RunRecord, cpu: Option<CpuUse>) -> Trial {
    let about = (Purpose::Search, 10_000.0);
    let mut record = record.clone();
    record.host_use = cpu;
    Trial::new(about, &record, &capacity_plan().objective, None)
}

/// A host whose target waited for its CPU for this percentage of a second.
fn host(others: u64, target_waited: Option<u64>) -> CpuUse {
    let percent = 10_000_000;
    CpuUse {
        wall_ns: 100 * percent,
        is_target_here: true,
        target_ns: target_waited,
        target_wait_ns: target_waited.map(|waited| waited * percent),
        others_ns: others * percent,
        busiest: vec![ProcessUse {
            name: "stress".into(),
            pid: 4711,
            cpu_ns: others * percent,
        }],
        ..CpuUse::default()
    }
}

#[test]
fn what_a_waiting_generator_explains_is_not_the_targets() {
    for (slow, late, lost, outcome) in [
        // As many late responses as late queries.
        (20, 20, 0, TrialOutcome::Host),
        // A burst after each wait makes more of them late, and loses some.
        (50, 20, 0, TrialOutcome::Host),
        (0, 20, 40, TrialOutcome::Host),
        // Nearly all of them are the target's.
        (98, 20, 0, TrialOutcome::Failed),
        (0, 20, 90, TrialOutcome::Failed),
        // Nothing left late.
        (20, 0, 0, TrialOutcome::Failed),
        (0, 0, 1, TrialOutcome::Failed),
        (0, 20, 0, TrialOutcome::Passed),
    ] {
        let mut record = ran(Ran { slow, late, lost });
        record.workers[0].cpu_wait_ns = Some(record.workers[0].wall_ns / 2);
        let trial = trial(&record, None);
        let of = format!("{slow} % slow, {late} % late, {lost} % lost");
        assert_eq!(trial.outcome, outcome, "{of}: {trial:#?}");
        let is_told = trial
            .excuse
            .is_some_and(|why| why.contains("waited for its CPU 50.0 %"));
        assert_eq!(is_told, outcome == TrialOutcome::Host, "{of}");
    }
}

#[test]
fn wrong_answers_are_the_targets_however_busy_the_host_is() {
    let mut record = ran(Ran {
        slow: 20,
        late: 20,
        lost: 0,
    });
    record.workers[0].cpu_wait_ns = Some(record.workers[0].wall_ns / 2);
    record.scenario.goodput_rcodes = vec![3];
    let trial = trial(&record, Some(host(98, Some(40))));
    assert_eq!(trial.outcome, TrialOutcome::Failed, "{trial:#?}");
}

#[test]
fn constant_rate_is_the_targets_however_busy_the_host_is() {
    let constant = situations::limited(|_| 5);
    let scattered = situations::limited(situations::scattered);
    for (record, outcome) in [
        (constant, TrialOutcome::Failed),
        (scattered, TrialOutcome::Host),
    ] {
        let trial = trial(&record, Some(host(98, Some(40))));
        assert_eq!(trial.outcome, outcome, "{trial:#?}");
        let is_constant = outcome == TrialOutcome::Failed;
        assert_eq!(trial.admitted_qps, is_constant.then_some(500.0));
    }
}

#[test]
fn target_here_that_waited_for_a_cpu_that_others_used_is_excused() {
    let slow = ran(Ran {
        slow: 20,
        late: 0,
        lost: 0,
    });
    let outcome = |cpu: CpuUse| trial(&slow, Some(cpu)).outcome;
    assert_eq!(outcome(host(98, Some(40))), TrialOutcome::Host);
    // Other processes had their own CPU, or there were none.
    assert_eq!(outcome(host(98, Some(0))), TrialOutcome::Failed);
    assert_eq!(outcome(host(2, Some(40))), TrialOutcome::Failed);
    // Whether it waited is not known.
    assert_eq!(outcome(host(98, None)), TrialOutcome::Host);
    let elsewhere = CpuUse {
        is_target_here: false,
        ..host(98, None)
    };
    assert_eq!(outcome(elsewhere), TrialOutcome::Failed);
    let why = trial(&slow, Some(host(98, Some(40)))).excuse.unwrap();
    assert_eq!(
        why,
        "the target on it waited for a CPU 40.0 % of the time; other processes kept 0.98 CPUs \
            busy: stress \
         (4711) 98.0 %"
    );
}

#[test]
fn stamps_of_the_kernel_leave_the_generator_out() {
    let mut record = ran(Ran {
        slow: 20,
        late: 20,
        lost: 0,
    });
    let path = &mut record.total.distributions.path;
    path.network.record_many(1_000_000, 10_000);
    assert_eq!(trial(&record, None).outcome, TrialOutcome::Host);
    // The network and the server had it, more often than any query was late.
    let path = &mut record.total.distributions.path;
    path.network.record_many(40_000_000, 5_000);
    assert_eq!(trial(&record, None).outcome, TrialOutcome::Failed);
}
