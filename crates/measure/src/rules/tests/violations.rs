//! Connections that we closed because the target broke a rule that makes us: no limit of the
//! target's.

use crate::rules::situations::*;

/// Adds connections of DoQ that were closed for a rule that the target broke, and queries that were
/// lost with them.
fn violate(record: &mut RunRecord, connections: u64, lost: u64) {
    record.scenario.transport = Transport::Doq.into();
    change_last(record, |interval| {
        let rules = &mut interval.counts.connections.closed_for_violation;
        (0..connections).for_each(|_| rules.record("STOP_SENDING from a server (RFC 9250)"));
        interval.counts.offered += lost;
        interval.counts.sent += lost;
        interval.counts.connection_losses += lost;
    });
}

#[test]
fn connections_that_we_had_to_close_are_no_limit_of_the_server() {
    let mut record = saturated();
    violate(&mut record, 50, 0);
    let evidence =
        "this tool closed 50 connections because the target broke a rule: 50 STOP_SENDING";
    judged(
        &record,
        Limit::Generator,
        evidence,
        "--doq-allow-stop-sending",
    );
}

#[test]
fn few_broken_rules_are_reported_and_name_no_limit() {
    // One a client at most, and few queries lost with them.
    for (connections, lost) in [(1, 1), (10, 100)] {
        let mut record = saturated();
        violate(&mut record, connections, lost);
        assert!(found_on(&record, "rules broken").is_some());
        assert_eq!(judge(&record).limit, Limit::Server, "{connections}, {lost}");
    }
}

#[test]
fn few_of_many_short_connections_that_broke_rules_do_not_set_the_rate() {
    for (connections, limit) in [(50_000, Limit::Server), (49_000, Limit::Generator)] {
        let mut record = saturated();
        violate(&mut record, 50, 0);
        change_last(&mut record, |it| {
            it.counts.connections.became_usable = connections;
        });
        assert_eq!(judge(&record).limit, limit, "{connections}");
    }
}

#[test]
fn broken_rules_do_not_explain_losses_for_other_reasons() {
    let mut record = saturated();
    violate(&mut record, 50, 200);
    assert_eq!(judge(&record).limit, Limit::Generator);
    lose(&mut record, 1_000);
    assert_ne!(judge(&record).limit, Limit::Generator);
}
