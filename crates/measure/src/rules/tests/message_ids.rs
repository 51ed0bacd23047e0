//! Clients that have used up their message IDs: 16 bits distinguish the queries of one client.

use crate::rules::situations::*;

/// A run in which `queries` were not sent for lack of a message ID.
fn without_id(queries: u64) -> RunRecord {
    let mut record = saturated();
    change_last(&mut record, |interval| {
        interval.counts.offered += queries;
        interval.counts.not_sent.no_free_id += queries;
    });
    record
}

#[test]
fn exhausted_message_ids_are_the_generators_limit() {
    judged(
        &without_id(1_000),
        Limit::Generator,
        "1,000 queries (0.99 % of those offered) were not sent: some of the 10 clients had \
         used up",
        "--clients 20",
    );
}

#[test]
fn clients_that_used_up_their_message_ids_are_too_few() {
    told(&without_id(1_000), "message IDs")
        .problem("had used up their message IDs", "--clients 20");
}

#[test]
fn few_queries_without_a_message_id_are_not_the_limit() {
    let record = without_id(100);
    assert!(found_on(&record, "message IDs").is_some());
    assert_eq!(judge(&record).limit, Limit::Server);
}

#[test]
fn message_ids_run_out_where_nothing_is_answered() {
    for (queries, limit) in [(1_000, Limit::Generator), (1, Limit::Unknown)] {
        let mut record = record((0..10).map(|index| interval(index, &[])).collect());
        lose(&mut record, 1_000);
        change_last(&mut record, |interval| {
            interval.counts.offered += queries;
            interval.counts.not_sent.no_free_id += queries;
        });
        assert_eq!(judge(&record).limit, limit, "{queries}");
    }
}

#[test]
fn message_ids_run_out_beside_clients_without_response() {
    for (queries, limit) in [(1_000, Limit::Generator), (100, Limit::Server)] {
        let mut record = without_id(queries);
        record.scenario.transport = Transport::Tcp.into();
        record.scenario.clients = 200;
        serve(&mut record, 150, 50);
        lose(&mut record, 1_000);
        assert_eq!(judge(&record).limit, limit, "{queries}");
    }
}
