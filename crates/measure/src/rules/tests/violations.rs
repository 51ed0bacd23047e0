//! Connections that we closed because the target broke a rule that makes us: no limit of the
//! target's.

use crate::rules::situations::*;

#[test]
fn connections_that_we_had_to_close_are_no_limit_of_the_server() {
    let mut record = saturated();
    record.scenario.transport = Transport::Doq.into();
    change_last(&mut record, |interval| {
        let rules = &mut interval.counts.connections.closed_for_violation;
        (0..50).for_each(|_| rules.record("STOP_SENDING from a server (RFC 9250)"));
    });
    let evidence =
        "this tool closed 50 connections because the target broke a rule: 50 STOP_SENDING";
    judged(
        &record,
        Limit::Generator,
        evidence,
        "--doq-allow-stop-sending",
    );
}
