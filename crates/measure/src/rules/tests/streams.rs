//! Queries that waited because of the limit of queries on a connection.

use crate::rules::situations::*;

#[test]
fn queries_that_waited_for_a_stream_are_told_beside_the_verdict() {
    let record = limited_by_streams(&[(9_900_000, 1), (10 * MS, 999)]);
    let verdict = judge(&record);
    let waited = "50.00 % of the queries waited until their connection had carried others: 10 \
                  connections with 10 queries at once carry 100";
    assert!(
        verdict.evidence.iter().any(|line| line == waited),
        "{verdict:#?}"
    );
}

#[test]
fn streams_that_no_query_waited_for_are_not_reported() {
    let mut record = limited_by_streams(&[(9_900_000, 1), (10 * MS, 999)]);
    change_last(&mut record, |interval| {
        interval.counts.waited_for_stream = 0
    });
    assert_eq!(found_on(&record, "streams"), None);
}
