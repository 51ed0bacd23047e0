//! Time in which the control group might not run: its CPU quota was used up.

use crate::rules::situations::*;

/// A run of ten seconds that its quota stopped four times, for `microseconds` in total.
fn throttled(microseconds: u64) -> RunRecord {
    let mut record = saturated();
    let kernel = &mut record.network.kernel;
    kernel.insert("Cgroup.Throttled".into(), 4);
    kernel.insert("Cgroup.ThrottledMicroseconds".into(), microseconds);
    record
}

#[test]
fn a_quota_that_was_used_up_is_named_with_the_times() {
    let record = throttled(200_000);
    told(&record, "CPU quota").problem("used up 4 times", "limits.cpu");
    let evidence = "the CPU quota of this container was used up 4 times";
    judged(&record, Limit::Generator, evidence, "limits.cpu");
}

#[test]
fn a_quota_that_stopped_the_generator_briefly_is_not_the_limit() {
    let record = throttled(190_000);
    told(&record, "CPU quota").warning("used up 4 times", "limits.cpu");
    assert_eq!(judge(&record).limit, Limit::Server);
    // Nor is one that stopped it for longer, where all queries were answered in time.
    let mut held = in_time(10_000.0);
    held.network.kernel = throttled(3_000_000).network.kernel;
    assert_eq!(judge(&held).limit, Limit::Rate);
}
