//! Truncated responses, and beside lost ones: as limits on the rate of responses make them.

use crate::rules::situations::*;

#[test]
fn truncated_responses_are_avoided_by_larger_datagrams_or_exemption_from_limits() {
    let mut record = saturated();
    change_last(&mut record, |interval| interval.counts.truncated += 2_000);
    told(&record, "truncated responses").warning("2.00 %", "--edns-size 1232");
    lose(&mut record, 5_000);
    told(&record, "truncated responses").warning("2.00 %", "exempt-clients");
}
