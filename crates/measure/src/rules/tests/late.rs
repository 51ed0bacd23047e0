//! Responses that came after their queries had timed out: the target answers, later than is waited
//! for.

use crate::rules::situations::*;

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
