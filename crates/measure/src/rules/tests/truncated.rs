//! Truncated responses, and beside lost ones: as limits on the rate of responses make them.

use crate::rules::situations::*;

#[test]
fn truncated_responses_are_avoided_by_larger_datagrams_or_exemption_from_limits() {
    let mut record = saturated();
    record.scenario.edns = Some("1232 bytes".to_owned());
    change_last(&mut record, |interval| interval.counts.truncated += 2_000);
    let in_force = told(&record, "truncated responses");
    assert!(
        !format!("{in_force:?}").contains("--edns-size"),
        "{in_force:?}"
    );
    record.scenario.edns = None;
    told(&record, "truncated responses").warning("2.00 %", "--edns-size 1232");
    lose(&mut record, 5_000);
    told(&record, "truncated responses").warning("2.00 %", "exempt-clients");
}

#[test]
fn small_responses_that_are_truncated_at_times_are_a_limit_on_the_rate() {
    let truncated = |octets_each: u64| {
        let mut record = saturated();
        let whole = record.total.counts.responses;
        change_last(&mut record, |interval| {
            let counts = &mut interval.counts;
            let more = 4 * whole;
            counts.offered += more;
            counts.sent += more;
            counts.responses += more;
            counts.truncated += more;
            counts.sent_octets = 40 * (whole + more);
            counts.received_octets = 40 * more + octets_each * whole;
        });
        format!("{:?}", told(&record, "truncated responses").cures[0])
    };
    let limit = "if fewer are truncated then, a limit on the rate does it";
    assert!(truncated(60).contains(limit), "{}", truncated(60));
    // Those that are whole are not much smaller than what fits.
    assert!(!truncated(400).contains(limit), "{}", truncated(400));
}
