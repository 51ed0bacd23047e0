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

#[test]
fn silence_until_quic_gives_up_is_no_end_by_the_target() {
    let mut record = saturated();
    record.scenario.transport = Transport::Doq.into();
    change_last(&mut record, |interval| {
        interval.counts.offered += 5_000;
        interval.counts.sent += 5_000;
        interval.counts.connection_losses += 5_000;
        interval.counts.connections.became_usable = 16;
        interval.counts.connections.quic_idle_timeouts = 6;
    });
    let seen = "nothing came back on 6 connections until QUIC gave up; 5,000 queries (4.76 %";
    let verdict = judged(&record, Limit::Unknown, seen, "run the same over UDP");
    let said = format!("{:#?}", (met(&record), verdict));
    for wrong in ["the target ended", "tcp-idle-timeout"] {
        assert!(!said.contains(wrong), "{wrong}: {said}");
    }
    // What it ends, it ends.
    change_last(&mut record, |interval| {
        interval.counts.connections.closed_by_target = 12;
        interval.counts.connections.quic_idle_timeouts = 0;
    });
    let seen = "the target ended 12 connections (12 closed in order)";
    judged(&record, Limit::Server, seen, "tcp-idle-timeout");
}
