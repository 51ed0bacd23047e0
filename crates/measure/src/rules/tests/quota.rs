//! Time in which the control group might not run: its CPU quota was used up.

use crate::rules::situations::*;

#[test]
fn a_quota_that_was_used_up_is_named_with_the_times() {
    let mut record = in_time(10_000.0);
    record.network.kernel.insert("Cgroup.Throttled".into(), 4);
    told(&record, "CPU quota").problem("used up 4 times", "limits.cpu");
}
