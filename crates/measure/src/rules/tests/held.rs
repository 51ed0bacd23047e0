//! Slots of a closed loop blocked by lost queries, which send no other query until they time out.
//!
//! The cure depends on where they were lost. With a full receive buffer, fewer queries at a time
//! help, and more make it worse. On a path with random loss, more slots compensate for the blocked
//! ones.

use crate::EndedBy;
use crate::histogram::Histogram;
use crate::rules::situations::*;
use crate::timeline::Timeline;

#[test]
fn red_hat_udp_run_had_590_of_1000_places_held_by_lost_queries() {
    let mut record = record(vec![interval(
        0,
        &[(100_000, 1_000), (1_150_000, 36_510_000)],
    )]);
    lose(&mut record, 14_163);
    record.measured_ns = 120 * SECOND;
    record.intervals[0].end_ns = 120 * SECOND;
    record.intervals[0].in_flight_ns += 14_163 * 5 * u128::from(SECOND);
    record.scenario.arrival = Arrival::Closed {
        outstanding: 1_000,
        rate_qps_max: None,
    };
    let evidence = "590 of 1,000 outstanding slots were held by lost queries (14,163 timed out \
        after 5.000 s each)";
    // Queries waited at the target: of those that fit in, no more came than before.
    let verdict = judged(&record, Limit::Server, evidence, "--outstanding 175");
    assert!(
        !verdict
            .advice
            .iter()
            .any(|it| it.contains("--outstanding 2000"))
    );
    // Their queue set the latency, and not the number of slots.
    let law = "mean latency 1.150 ms x 304,258 qps = 349.9 in flight of 1,000";
    assert!(verdict.evidence.iter().any(|it| it == law), "{verdict:#?}");
}

#[test]
fn places_held_by_what_full_buffers_drop_need_fewer_queries_and_of_a_path_more() {
    let mut record = record(
        (0..4)
            .map(|at| interval(at, &[(MS, 10), (10 * MS, 39_990)]))
            .collect(),
    );
    lose(&mut record, 600);
    let last = record.intervals.last_mut().expect("has intervals");
    last.in_flight_ns += 600 * 4 * u128::from(SECOND);
    record.total = Interval::total(&record.intervals);
    record.scenario.arrival = Arrival::Closed {
        outstanding: 1_000,
        rate_qps_max: None,
    };
    record.scenario.target = "127.0.0.1:53".into();
    record.scenario.timeout_ns = 4 * SECOND;
    let kernel = &mut record.network.kernel;
    kernel.insert("Udp.RcvbufErrors".into(), 600);
    let mut timeline = Timeline::new();
    (0..600).for_each(|at| timeline.lose(at * 6 * MS, 1));
    record.timeline = Some(timeline);
    let evidence = "600 of 1,000 outstanding slots were held by lost queries (600 timed out \
        after 4.000 s each), throughout the run (17 were asked in the first 0.1 s), and the \
        target's receive buffers were full: they dropped 600 datagrams";
    for cure in ["--rate 32000", "--outstanding 200", "rmem_default=16777216"] {
        judged(&record, Limit::Server, evidence, cure);
    }
    // All at once, and nothing that waits: a path that loses a burst.
    let mut timeline = Timeline::new();
    timeline.lose(5 * MS, 600);
    record.timeline = Some(timeline);
    record.network.kernel.clear();
    let mut record_of_path = record;
    record_of_path.intervals.iter_mut().for_each(|it| {
        it.distributions.service = Histogram::new();
        it.distributions.service.record_many(MS, 40_000);
    });
    record_of_path.total = Interval::total(&record_of_path.intervals);
    let evidence = "each), nearly all in the burst with which the run began (600 were asked in the";
    for cure in ["timeout 1s", "--outstanding 2000"] {
        judged(&record_of_path, Limit::Outstanding, evidence, cure);
    }
}

/// 1,000 slots, of which the warm-up's lost queries block the given number.
fn stuck(slots: u64) -> RunRecord {
    let answered = 1_000 - slots;
    let latencies = [(MS, 1_000 * answered)];
    let mut record = record((0..10).map(|i| interval(i, &latencies)).collect());
    record.scenario.arrival = Arrival::Closed {
        outstanding: 1_000,
        rate_qps_max: None,
    };
    for interval in &mut record.intervals {
        interval.in_flight_ns += u128::from(slots * SECOND);
    }
    record.total = Interval::total(&record.intervals);
    record.warmup.counts.offered = slots;
    record.warmup.counts.sent = slots;
    record.warmup.counts.timeouts = slots;
    record
}

#[test]
fn slots_that_the_warm_up_lost_are_said_and_none_of_the_servers() {
    let evidence = "958 of 1,000 outstanding slots were held by queries of the warm-up that got no \
                    response in time (958 timed out after";
    judged(&stuck(958), Limit::Outstanding, evidence, "--timeout");
    // All of them: nothing was sent.
    let evidence = "no query was sent: 1,000 queries of the warm-up got no response in time";
    judged(
        &stuck(1_000),
        Limit::Unknown,
        evidence,
        "check that a DNS server answers",
    );
    // A few that were lost before are no reason.
    let mut few = saturated();
    few.warmup.counts.timeouts = 3;
    assert_eq!(judge(&few).limit, Limit::Server);
}

#[test]
fn answers_of_the_warm_up_hold_slots_if_they_come_in_the_second_half_of_the_run() {
    let answered_after = |seconds: u64| {
        let mut record = saturated();
        record.phases.warmup_ns = SECOND;
        let latency = &mut record.warmup.distributions.latency;
        latency.record_many(seconds * SECOND, 100);
        record
    };
    // A slow target answers many of them in the warm-up or soon after it.
    assert_eq!(answered_after(5).answered_after_warmup(), 0);
    assert_eq!(answered_after(7).answered_after_warmup(), 100);
    // A run that was interrupted in its warm-up measured nothing, and no slots were held in it.
    let mut interrupted = answered_after(7);
    interrupted.intervals.clear();
    interrupted.total = Interval::total(&[]);
    interrupted.measured_ns = 0;
    interrupted.ended_by = EndedBy::Interrupted;
    assert_eq!(interrupted.answered_after_warmup(), 0);
    let verdict = judge(&interrupted);
    let seen = "the run was interrupted before the first query";
    assert!(verdict.evidence[0].contains(seen), "{verdict:#?}");
}

#[test]
fn places_held_by_lost_queries_are_named() {
    let mut record = saturated();
    lose(&mut record, 400);
    change_last(&mut record, |it| {
        it.in_flight_ns += 400 * 5 * u128::from(SECOND)
    });
    let topic = "slots held by lost queries";
    told(&record, topic).problem(
        "of 100 outstanding slots were held by lost queries",
        "timeout 1s",
    );
}

/// 100 slots, whose queries were all lost each time that they timed out.
fn lost_all() -> RunRecord {
    let mut record = record((0..10).map(|i| interval(i, &[(MS, 100)])).collect());
    lose(&mut record, 200);
    change_last(&mut record, |it| {
        it.in_flight_ns += 99 * 10 * u128::from(SECOND)
    });
    record
}

#[test]
fn where_nearly_all_slots_were_lost_more_of_them_are_no_cure() {
    let mut record = lost_all();
    let evidence = "of 100 outstanding slots were held by lost queries (200 timed out after";
    let verdict = judged(&record, Limit::Unknown, evidence, "--rate 100");
    let advice = verdict.advice.join("; ");
    assert!(!advice.contains("--outstanding 200"), "{advice}");
    // All at once, after others had been answered, and then none: whatever else waited.
    let mut timeline = Timeline::new();
    let answered = crate::timeline::Bin {
        due: 1_000,
        sent: 1_000,
        responses: 1_000,
        ..Default::default()
    };
    timeline.add(500 * MS, &answered);
    timeline.lose(510 * MS, 100);
    timeline.lose(5_600 * MS, 100);
    timeline.add(9_990 * MS, &answered);
    record.timeline = Some(timeline);
    let at_once = "throughout the run (0 were asked in the first 0.1 s), those of all slots at \
                   once: from 0.5";
    judged(&record, Limit::Unknown, at_once, "open loop");
}
