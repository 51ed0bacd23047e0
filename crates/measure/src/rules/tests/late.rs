//! Responses that came after their queries had timed out: the target answers, later than is waited
//! for.

use super::host::starved;
use super::outage::{judged_in, outage};
use crate::rules::situations::*;
use crate::timeline::outages::Outside;
use crate::timeline::{Bin, OutageKind, Timeline};

#[test]
fn most_of_what_timed_out_came_later_or_it_is_not_told() {
    let mut record = in_time(10_000.0);
    lose(&mut record, 1_000);
    change_last(&mut record, |interval| interval.counts.late += 499);
    assert!(found_on(&record, "timeout").is_none());
    change_last(&mut record, |interval| interval.counts.late += 1);
    assert_eq!(judge(&record).limit, Limit::Unknown);
    let seen = "500 responses came after the";
    told(&record, "timeout").problem(seen, "--timeout 20000ms");
}

#[test]
fn responses_that_are_all_too_late_are_of_the_path_or_the_target() {
    let mut record = record((0..10).map(|index| interval(index, &[])).collect());
    lose(&mut record, 1_000);
    change_last(&mut record, |interval| interval.counts.late += 900);
    judged(&record, Limit::Unknown, "900 responses", "--timeout");
    // Others came in time: the timeout is not all that the run shows.
    let mut some = saturated();
    lose(&mut some, 1_000);
    change_last(&mut some, |interval| interval.counts.late += 900);
    assert!(!judge(&some).evidence[0].contains("900 responses"));
}

/// The first half of a run took `latency_ms` each, and nothing came in time in the second half;
/// `late` responses came after the timeout of 5 s.
fn silent_after(latency_ms: u64, late: u64) -> RunRecord {
    let mut timeline = Timeline::new();
    for bin in 0..1_000 {
        let responses = if bin < 500 { 10 } else { 0 };
        let what = Bin {
            due: 10,
            sent: 10,
            responses,
            latency_us: responses * latency_ms * 1_000,
            lost: 10 - responses,
            ..Bin::default()
        };
        timeline.add(bin * 10 * MS, &what);
    }
    let mut record = in_time(10_000.0);
    record.timeline = Some(timeline);
    lose(&mut record, 5_000);
    change_last(&mut record, |interval| interval.counts.late += late);
    record
}

fn judged_silent(record: &RunRecord) -> Verdict {
    let silence = outage(OutageKind::Silence, 50, 100);
    judged_in(record, &[silence], Outside::default())
}

#[test]
fn silence_after_latency_near_the_timeout_is_a_queue_if_late_responses_come() {
    let is_queue = |verdict: &Verdict| verdict.evidence[0].starts_with("latency grew to");
    let queued = judged_silent(&silent_after(2_500, 1_000));
    assert!(is_queue(&queued), "{queued:#?}");
    assert_eq!(queued.limit, Limit::Server);
    // A target that stopped answers nothing, and one that was fast had no such queue.
    for (latency_ms, late) in [(2_500, 10), (2_400, 1_000)] {
        let stopped = judged_silent(&silent_after(latency_ms, late));
        assert!(!is_queue(&stopped), "{stopped:#?}");
    }
}

#[test]
fn a_queue_of_a_target_that_others_kept_from_its_cpu_is_not_the_targets() {
    let beside_others = |waited, target_ns, late| {
        let mut record = silent_after(2_500, late);
        record.host_use = starved(waited, 1.9).host_use;
        record.host_use.as_mut().unwrap().target_ns = Some(target_ns);
        judged_silent(&record)
    };
    // Whether most of what timed out came later or not.
    for late in [1_000, 4_000] {
        let kept = beside_others(5.0, SECOND / 10, late);
        assert_eq!(kept.limit, Limit::Generator, "{kept:#?}");
        let evidence = kept.evidence.join("\n");
        assert_eq!(evidence.matches("waited for a CPU").count(), 1, "{kept:#?}");
        assert!(!kept.advice.join("").contains("--rate"), "{kept:#?}");
    }
    let busy = beside_others(0.06, 9 * SECOND, 1_000);
    assert_eq!(busy.limit, Limit::Server, "{busy:#?}");
}
