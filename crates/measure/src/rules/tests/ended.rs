//! Connections that ended before they should, and the queries lost with them.

use crate::rules::situations::*;

#[test]
fn target_that_closes_connections_after_some_queries_is_reported() {
    let mut record = saturated();
    record.scenario.transport = Transport::Tcp.into();
    change_last(&mut record, |interval| {
        interval.connections_open = 10;
        interval.counts.connections.closed_by_target = 781;
    });
    let line = "the target ended 781 connections (781 closed in order), after 128 queries \
                each on average";
    assert!(
        judge(&record)
            .evidence
            .iter()
            .any(|evidence| evidence == line)
    );
}

#[test]
fn connections_that_the_target_ends_are_a_habit_or_a_loss() {
    let mut record = saturated();
    record.scenario.transport = Transport::Tcp.into();
    change_last(&mut record, |interval| {
        interval.connections_open = 10;
        interval.counts.connections.closed_by_target = 781;
    });
    let seen = "ended 781 connections (781 closed in order), after 128 queries each";
    let topic = "closed connections";
    told(&record, topic).warning(seen, "--queries-per-connection 102");
    told(&record, topic).warning(seen, "miekg/dns");
    change_last(&mut record, |interval| {
        interval.counts.offered += 5_000;
        interval.counts.sent += 5_000;
        interval.counts.connection_losses += 5_000;
    });
    told(&record, topic).problem("5,000 queries (4.76 %", "tcp-idle-timeout");
    // More are sent than the target answers on a connection.
    change_last(&mut record, |interval| {
        interval.counts.sent += 100_000;
        interval.counts.connection_losses += 100_000;
    });
    told(&record, topic).problem("after 262 queries each", "--queries-per-connection 102");
}
